"""The random transformer: a chain of attention layers, every layer and head with fresh weights."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.attention import SoftmaxAttention
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require
from pathlines.foundation.module import exactly, overridden
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING, Paper
from pathlines.foundation.traceable import is_traced, known, traceable_number
from pathlines.kernels import attend
from pathlines.model.base import MODELS, Description, Model, checked_multiplicities
from pathlines.model.capability import HasHeadAttentions, HasRandomLayers, Sampled
from pathlines.model.homogenized.random_parameters import LayerParameters
from pathlines.weights.gaussian import GaussianHeads
from pathlines.weights.law import HeadLaw


class RandomTransformer(HasRandomLayers, HasHeadAttentions):
    """x_i ← N(x_i + (η/H) Σ_h V_h m_h(x_i)),  m_h(x_i) = Σ_k π_ik x_k,  π_ik ∝ e^{β⟨A_h x_i, x_k⟩}.

    Homogenized Transformers, arXiv:2604.01978: the heads (V_h, A_h) are independent draws of ``law`` in every layer,
    and the same for all tokens, which is why tokens move together.

    Args:
        d: the width, d ≥ 1. Overlaps fluctuate by d^{-1/2} around the curve of the theory: the larger, the closer.
        heads: H ≥ 1 per layer. The more, the less a layer moves: only v = (η²/H) d σ_V² matters.
        step: η > 0, the residual step. The larger, the fewer layers to collapse, and the further from the limit.
        beta: β ≥ 0, multiplies the score; nothing is divided by √d, and softmax over k includes k = i. The larger, the
            fewer tokens one listens to: collapse is delayed once b exceeds √(2 log n).
        logit_scale: b = βσ_A²√p ≥ 0, the standard deviation of a logit, instead of β; it must be given at p = ∞. The
            larger, the fewer tokens one listens to.
        law: a law of heads (``GaussianHeads``, ``MixtureHeads``) instead of the next three.
        sigma_v: σ_V > 0, of the entries of V; d^{-1/2} by default. The larger, the more a layer moves.
        sigma_a: σ_A ≥ 0, of the factors of A; p^{-1/4} by default. The larger, the fewer tokens one listens to.
        qk_dim: p, the dimension of a head, d by default; ∞ is allowed. The smaller, the heavier the tails of a logit.
        update: "ambient" as in the paper, or "tangent", which projects the increment before N.
        multiplicities: w_k ≥ 0, masses of the tokens (quadrature nodes of a measure); one of mass zero is a listener:
            the heads move it with the attention of the others, which do not hear it.

    You will see the mean overlap grow like a logistic curve in the diffusive time τ = vℓ, v = (η²/H) d σ_V²: collapse
    to one point after about log(n)/v layers while b is below √(2 log n), much later above.
    Good values: n = 16..200, d = 64..1024, H = 1..16, η = 0.1..0.5, b = 0..4, depth = 5/v.
    Cost of a layer with full matrices: O(H(nd² + n²d)) and 3Hd² normals; ``chain`` picks a cheaper exact sampler.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    law: HeadLaw
    beta: Float[Array, ""]
    step: Float[Array, ""]
    heads: int = eqx.field(static=True)
    update: str = eqx.field(static=True)
    multiplicities: Float[Array, " n"] | None

    def __init__(
        self,
        d: int | None = None,
        *,
        heads: int = 1,
        step: float = 0.3,
        beta: float | None = None,
        logit_scale: float | None = None,
        law: HeadLaw | None = None,
        sigma_v: float | None = None,
        sigma_a: float | None = None,
        qk_dim: float | None = None,
        update: str = "ambient",
        multiplicities: Any = None,
    ) -> None:
        self.law = _law(d, law, sigma_v, sigma_a, qk_dim)
        self.beta = jnp.asarray(_inverse_temperature(self.law, beta, logit_scale))
        self.heads = positive_integer("heads", heads)
        self.step = jnp.asarray(traceable_number("step", step, low=0.0, open_low=True))
        require(update in ("ambient", "tangent"), "update", "be 'ambient' or 'tangent'", update)
        self.update = update
        self.multiplicities = checked_multiplicities(multiplicities)

    @property
    def d(self) -> int:
        """The ambient dimension."""
        return self.law.d

    @property
    def parameters(self) -> LayerParameters:
        """ς², α, v, b and the like."""
        d, heads, eta, beta, law = self.d, self.heads, known(self.step), known(self.beta), self.law
        if not exactly(law, GaussianHeads):
            return LayerParameters(d, heads, eta, beta, float(d), None, None, None, None, None, None)
        sigma = known(law.sigma_v)
        proxy = sigma**2 * (d - 1) if law.centred or not law.random_scores else None
        alpha = None if proxy is None else eta * proxy / heads
        effective = beta * law.score_std * math.sqrt(d)
        clock = eta**2 / heads * d * sigma**2
        scale = beta * law.score_std
        return LayerParameters(d, heads, eta, beta, law.qk_dim, sigma, proxy, alpha, clock, scale, effective)

    @property
    def derived(self) -> dict[str, Any]:
        """``parameters`` as a dictionary."""
        return msgspec.structs.asdict(self.parameters)

    @property
    def clocks(self) -> dict[str, float]:
        """Diffusive time v and macroscopic time η of a layer; the diffusive one first when the drift vanishes."""
        times = {"t": known(self.step)}
        clock = self.parameters.layer_time
        if clock is None or (not is_traced(clock) and not clock):
            return times
        return {"tau": clock, **times} if self.law.centred else {**times, "tau": clock}

    def as_tokens(self, start: Any) -> Any:
        """Tokens as they are; a Gram matrix (symmetric, unit diagonal, positive semidefinite) as a factor of it.

        A square array could be either. Symmetric with unit diagonal it is a Gram matrix: tokens of that form are the
        identity, for which both readings agree.
        """
        if is_traced(start):
            return start
        array = np.asarray(start)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "iuf":
            return start
        symmetric = np.allclose(array, array.T, rtol=0, atol=1e-6)
        unit_rows = np.allclose(np.linalg.norm(array, axis=1), 1, rtol=0, atol=1e-3)
        gram = symmetric and np.allclose(np.diagonal(array), 1, rtol=0, atol=1e-6)
        return gram_factor(array, self.d) if gram or not unit_rows else start

    def check(self, tokens: Any) -> None:
        """Unit rows of at most d columns (missing ones are zero), one multiplicity each."""
        size = np.shape(tokens)
        if len(size) != 2 or 0 in size or size[1] > self.d:
            raise ArgumentError(f"Argument `start` must have shape (n, {self.d}), but has shape {size}.")
        Sphere(size[1]).check(tokens)
        if self.multiplicities is not None and self.multiplicities.shape != size[:1]:
            shape = self.multiplicities.shape
            raise ArgumentError(f"Argument `multiplicities` must have one entry per token ({size[0]}), not {shape}.")

    def initial(self, tokens: Float[Array, "n c"]) -> Float[Array, "n d"]:
        """The tokens, with missing columns zero."""
        return jnp.pad(tokens, ((0, 0), (0, self.d - tokens.shape[1])))

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The state."""
        return state

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """One layer with full matrices drawn from the law."""
        return self.carried(state, self.law.heads(key, self.heads, state.dtype))

    def carried(self, state: Float[Array, "n d"], heads: Any) -> Float[Array, "n d"]:
        """One layer with given heads."""
        return moved(state, self.step / self.heads * self.attended(state, heads), self.update)

    def head_attentions(self, state: Float[Array, "n d"], t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """π_ik of H fresh heads."""
        query, key_rows = self._queries_and_keys(state, self.law.heads(key, self.heads, state.dtype))
        masses = self.normalised_masses(state.shape[0], state.dtype)
        return SoftmaxAttention().normalise(query @ jnp.swapaxes(key_rows, -1, -2), masses)[0]

    def _queries_and_keys(self, x: Float[Array, "n d"], heads: Any) -> tuple[Array, Array]:
        query = jnp.einsum("hpd,nd->hnp", self.beta * heads.query, x)
        return query, x if heads.key is None else jnp.einsum("hpd,nd->hnp", heads.key, x)

    def attended(self, x: Float[Array, "n d"], heads: Any) -> Float[Array, "n d"]:
        """Σ_h V_h m_h(x_i) for given heads."""
        masses = self.normalised_masses(x.shape[0], x.dtype)
        query, key = self._queries_and_keys(x, heads)
        value = jnp.einsum("hed,nd->hne", heads.value, x)
        axes = (0, None if heads.key is None else 0, 0)
        one = lambda q, k, v: attend(SoftmaxAttention(), q, k, v, masses)[0]  # noqa: E731
        return jnp.sum(jax.vmap(one, in_axes=axes)(query, key, value), axis=0)

    def layer_work(self, state: Any) -> float:
        """The matrices of all heads."""
        n, d = state.shape
        return float(self.heads * (3 * d * d + n * max(n, d)))

    def spread(self, state: Float[Array, "n d"]) -> Array | None:
        """From the distances to the first token."""
        return spread_of(state)

    def sampler_for(self, shape: tuple[int, ...], ambient: bool, sampler: str = "auto") -> Sampled:
        """The cheapest exact sampler, or the one asked for."""
        from pathlines.model.homogenized.samplers.choice import choose_sampler

        if changed := overridden(self, RandomTransformer):
            _, name, reason = super().sampler_for(shape, ambient, sampler)
            return self, name, f"{type(self).__name__} has its own `{changed[0]}`; {reason}"
        return choose_sampler(self, shape[0], ambient, sampler)


def moved(x: Float[Array, "n q"], increment: Float[Array, "n q"], update: str) -> Float[Array, "n q"]:
    """N(x + Δ), or N(x + P_x Δ) for the tangent update."""
    if update == "tangent":
        increment = increment - jnp.sum(x * increment, axis=-1, keepdims=True) * x
    x = x + increment
    return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


def spread_of(x: Float[Array, "n q"]) -> Float[Array, ""]:
    """max_ij u_ij ≤ 4 max_i u_i1 (triangle inequality), with equality of the two sides for n = 2 up to the factor."""
    u = 0.5 * jnp.sum((x - x[:1]) ** 2, axis=-1)
    return jnp.max(u) * (1.0 if x.shape[0] <= 2 else 4.0)


def gram_factor(gram: Any, d: int) -> np.ndarray:
    """Unit tokens with a given Gram matrix, in at most min(n, d) coordinates, by its eigenvectors."""
    gram = finite_array("start", gram, ("n", "n"))
    off = np.abs(np.diagonal(gram) - 1).max()
    if off > 1e-6:
        raise ArgumentError(
            f"Argument `start` must be unit tokens or a Gram matrix with unit diagonal; it is off by {off:.3g}."
        )
    require(bool(np.abs(gram - gram.T).max() <= 1e-9), "start", "be symmetric as a Gram matrix", gram)
    values, vectors = np.linalg.eigh(gram.astype(np.float64))
    slack = 1e-9 * len(gram)
    if values[0] < -slack:
        raise ArgumentError(
            f"Argument `start` must be positive semidefinite as a Gram matrix, but has the eigenvalue {values[0]:.6g}."
        )
    if len(gram) > d and values[-d - 1] > slack:
        raise ArgumentError(f"Argument `start` must have rank at most d = {d} as a Gram matrix, but has a higher one.")
    rows = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :d]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(gram.dtype if gram.dtype.kind == "f" else float)


def _law(d: Any, law: HeadLaw | None, sigma_v: Any, sigma_a: Any, qk_dim: Any) -> HeadLaw:
    if law is None:
        require(d is not None, "d", "be given (or `law`)", d)
        return GaussianHeads(positive_integer("d", d), sigma_v, sigma_a, qk_dim)
    require(isinstance(law, HeadLaw), "law", "be a law of heads such as GaussianHeads", law)
    for name, value in (("sigma_v", sigma_v), ("sigma_a", sigma_a), ("qk_dim", qk_dim)):
        require(value is None, name, "be None when `law` is given (it belongs to the law)", value)
    require(d is None or d == law.d, "d", f"be None or the law's {law.d}", d)
    return law


def _inverse_temperature(law: HeadLaw, beta: Any, logit_scale: Any) -> Any:
    """β, from b = β · score_std when that is what was given; one by default."""
    if beta is not None and logit_scale is not None:
        raise ArgumentError("Give either `beta` or `logit_scale`, not both.")
    if logit_scale is not None:
        scale = traceable_number("logit_scale", logit_scale, low=0.0)
        require(
            is_traced(law) or law.score_std > 0,
            "logit_scale",
            "be None (give `beta`) when scores are not random",
            logit_scale,
        )
        return scale / law.score_std
    endless = isinstance(law, GaussianHeads) and law.random_scores and math.isinf(law.qk_dim)
    if endless and (is_traced(beta) or beta != 0):
        raise ArgumentError(
            "Argument `logit_scale` must be given (not `beta`) at qk_dim = inf, where σ_A → 0 with b fixed."
        )
    return 1.0 if beta is None else traceable_number("beta", beta)


class LimitOfChain(Model):
    """What limits of a chain on tokens share: they start from what it starts from and show what it shows."""

    chain: eqx.AbstractVar[RandomTransformer]

    @property
    @abstractmethod
    def derived(self) -> dict[str, Any]:
        """The numbers of the limit, those of the chain among them."""

    @property
    def multiplicities(self) -> Float[Array, " n"] | None:
        """Masses of the tokens."""
        return self.chain.multiplicities

    def check(self, tokens: Any) -> None:
        """What the chain accepts."""
        self.chain.check(tokens)

    def initial(self, tokens: Float[Array, "n c"]) -> Float[Array, "n d"]:
        """The tokens, with missing columns zero."""
        return self.chain.initial(tokens)

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The state."""
        return state

    def spread(self, state: Float[Array, "n d"]) -> Array | None:
        """From the distances to the first token."""
        return self.chain.spread(state)


def _build(
    d: int = 256,
    heads: int = 1,
    step: float = 0.3,
    beta: float | None = None,
    logit_scale: float | None = None,
    sigma_v: float | None = None,
    sigma_a: float | None = None,
    qk_dim: float | None = None,
    update: str = "ambient",
) -> RandomTransformer:
    return RandomTransformer(
        d, heads=heads, step=step, beta=beta, logit_scale=logit_scale, sigma_v=sigma_v, sigma_a=sigma_a, qk_dim=qk_dim,
        update=update,
    )  # fmt: skip


MODELS.register(
    "random",
    Description(
        _build,
        "Random transformer (chain)",
        "xᵢ ← N( xᵢ + (η/H) Σₕ Vₕ Σₖ πₕ(i,k) xₖ ),  πₕ(i,k) ∝ e^{β⟨Aₕxᵢ,xₖ⟩},  fresh Vₕ, Aₕ in every layer",
        "Tokens become parallel: the mean overlap is logistic in τ = vℓ, v = (η²/H)dσ_V², one point after ≈ log(n)/v "
        "layers; a logit scale above √(2 log n) turns log n into a power of n.",
        "--layers 100, n = 16…200, d = 64…1024, heads = 1…16, step = 0.1…0.5, logit_scale = 0…4",
        (HOMOGENIZED, STOCHASTIC_CLUSTERING),
    ),
)
