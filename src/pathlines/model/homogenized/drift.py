"""The homogenized drift: what a deep chain of heads with a mean does on average, to first and to second order in η."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import SoftmaxAttention
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.module import Module
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.base import MODELS, Description
from pathlines.model.homogenized.random_transformer import LimitOfChain, RandomTransformer
from pathlines.weights.frozen import FrozenHeads, frozen
from pathlines.weights.gaussian import GaussianHeads
from pathlines.weights.law import HeadLaw

CORRECTORS = ("none", "paper", "full")
WEIGHTS_AT_A_TIME = 1 << 22

Tokens = Float[Array, "n d"]


class HomogenizedDrift(Module):
    """D_i = b_i - (η/2)(∇_b b)_i - η⟨x_i, b_ρ⟩ b_i - (η/H) E[⟨x_i, ξ_i⟩ P_i ξ_i],  b_i = P_i b_ρ(x_i).

    The drift whose flow has, after time η, the mean of one layer of ``chain`` up to η³. B_θ(z) = V m_A(z), b_ρ = E_θ
    B_θ, ξ = B_θ - b_ρ, (∇_b b)_i = P_i D b_i(X)[b(X)]. The last two terms belong to the ambient update N(x + ηB), where
    normalising divides the tangent step by 1 + η⟨x, B⟩; with the tangent update they are absent. Homogenized
    Transformers, arXiv:2604.01978, has the first two only (``corrector="paper"``), which for its own ambient chain is
    first order, as b alone is ("none"). Check with one token and V fixed: N(x + ηVx) is a power iteration with log(I +
    ηV)/η = V - ηV²/2 + …, and P V² x = ∇_b b + 2⟨x, Vx⟩ b.

    Expectations are sums over ``heads`` (exact for laws with atoms, to a tolerance for Gaussian scores). Cost O(a n²d)
    for a heads, ∇_b b three times that; memory O(a n d), and at most 2²² attention weights at a time.
    """

    chain: RandomTransformer
    heads: FrozenHeads
    corrector: str = eqx.field(static=True)

    def head_field(self, x: Tokens, value: Array, score: Array, offset: Array) -> Tokens:
        """B(x_i) = V Σ_k π_ik x_k of one head, π_ik ∝ m_k e^{β⟨A x_i + q, x_k⟩}."""
        masses = self.chain.normalised_masses(x.shape[0], x.dtype)
        logits = self.chain.beta * (x @ score.T + offset[None]) @ x.T
        return SoftmaxAttention().normalise(logits, masses)[0] @ (x @ value.T)

    def each_head(self, function: Callable[[Array, Array, Array], Tokens], n: int) -> Float[Array, "a n d"]:
        """``function(V_a, A_a, q_a)`` for every head, as many at a time as memory allows."""
        heads = self.heads
        shared = heads.values.shape[0] == 1

        def one(index: Array) -> Tokens:
            value, score = (m[0] if shared else m[index] for m in (heads.values, heads.scores))
            return function(value, score, heads.offsets[index])

        size = max(1, min(heads.count, WEIGHTS_AT_A_TIME // (n * n)))
        indices = jnp.arange(heads.count)
        return jax.vmap(one)(indices) if size == heads.count else jax.lax.map(one, indices, batch_size=size)

    def fields(self, x: Tokens) -> Float[Array, "a n d"]:
        """B_a(x_i) of every head."""
        return self.each_head(lambda *head: self.head_field(x, *head), x.shape[0])

    def mean_field(self, x: Tokens) -> Tokens:
        """b_ρ(x_i) = E_θ B_θ[μ_X](x_i), an ambient vector."""
        return jnp.tensordot(self.heads.probabilities, self.fields(x), 1)

    def mean_drift(self, x: Tokens) -> Tokens:
        """b_i = P_{x_i} b_ρ(x_i)."""
        return tangent(x, self.mean_field(x))

    def transport(self, x: Tokens) -> Tokens:
        """(∇_b b)_i = P_{x_i} D b_i(X)[b(X)]."""
        return covariant(self.mean_drift, x, self.mean_drift(x))

    def radial(self, x: Tokens) -> tuple[Tokens, Tokens]:
        """⟨x, b_ρ⟩ b and E[⟨x, ξ⟩ P ξ] = E[⟨x, B⟩ P B] - ⟨x, b_ρ⟩ b."""
        fields = self.fields(x)
        mean = jnp.tensordot(self.heads.probabilities, fields, 1)
        along = jnp.sum(x * mean, axis=-1, keepdims=True) * tangent(x, mean)
        at = jnp.broadcast_to(x, fields.shape)
        second = jnp.sum(at * fields, axis=-1, keepdims=True) * tangent(at, fields)
        return along, jnp.tensordot(self.heads.probabilities, second, 1) - along

    def __call__(self, x: Tokens) -> Tokens:
        """D(X)."""
        b = self.mean_drift(x)
        if self.corrector == "none":
            return b
        eta = self.chain.step
        drift = b - eta / 2 * covariant(self.mean_drift, x, b)
        if self.corrector == "paper" or self.chain.update == "tangent":
            return drift
        along, noise = self.radial(x)
        return drift - eta * along - eta / self.chain.heads * noise

    def sampling_error(self, x: Tokens) -> Float[Array, ""]:
        """Largest error |δb_i| of the average: standard error of its blocks, or distance from the Gauss rule below it.

        Zero when the average is exact.
        """
        if self.heads.exact:
            return jnp.zeros((), x.dtype)
        if self.heads.below is not None:
            below = HomogenizedDrift(self.chain, self.heads.below, self.corrector)
            return jnp.max(jnp.linalg.norm(self.mean_drift(x) - below.mean_drift(x), axis=-1))
        fields = self.fields(x)
        fields = tangent(jnp.broadcast_to(x, fields.shape), fields)
        means = jnp.mean(fields.reshape(self.heads.blocks, -1, *x.shape), axis=1)
        variance = jnp.sum(jnp.var(means, axis=0, ddof=1), axis=-1) / self.heads.blocks
        return jnp.sqrt(jnp.max(variance))


def covariant(field: Callable[[Tokens], Tokens], x: Tokens, direction: Tokens) -> Tokens:
    """(∇_u F)_i = P_{x_i} D F_i(X)[u] for a tangent field F and a tangent direction u."""
    return tangent(x, jax.jvp(field, (x,), (direction,))[1])


def tangent(x: Float[Array, "*a n d"], v: Float[Array, "*a n d"]) -> Float[Array, "*a n d"]:
    """P_{x_i} v_i."""
    return Sphere(x.shape[-1]).tangent(x, v)


def homogenized_drift(
    chain: RandomTransformer, corrector: str = "full", tolerance: float = 1e-3, seed: int = 0
) -> HomogenizedDrift:
    """The drift of a chain; ``tolerance`` and ``seed`` are those of the average over Gaussian scores."""
    require(corrector in CORRECTORS, "corrector", f"be one of {', '.join(CORRECTORS)}", corrector)
    return HomogenizedDrift(chain, frozen(chain.law, float(chain.beta), tolerance, seed), corrector)


class DrivenLimit(LimitOfChain):
    """A limit of a chain that moves by its homogenized drift."""

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    field: HomogenizedDrift

    @property  # type: ignore[misc]
    def chain(self) -> RandomTransformer:  # type: ignore[override]
        """The chain of which this is the limit."""
        return self.field.chain

    def retract(self, state: Tokens) -> Tokens:
        """N(x)."""
        return Sphere(state.shape[-1]).retract(state)

    def drift(self, state: Tokens, t: Array) -> Tokens:
        """D(X)."""
        return self.field(state)


class HomogenizedODE(DrivenLimit):
    """dX/dt = D(X) in macroscopic time t = ηℓ: the regimes ODE I (``corrector="none"``) and ODE II of arXiv:2604.01978.

    You will see, for a mean value matrix V̄ with a positive eigenvalue, tokens gather as in self-attention. At the grid
    times t = ηℓ a chain with fixed heads stays within O(η²) of the flow with the full corrector, O(η) with the others;
    between them it lags by O(η). For centred heads D = 0: then only the noise moves tokens (``HomogenizedSDE``).
    Good values: n = 4..64, d = 2..16, η = 0.0125..0.1, until 1..5. Cost: that of ``HomogenizedDrift``.

    Args:
        law: the law of heads.
        beta: β ≥ 0, multiplies the score. The larger, the fewer tokens one listens to.
        logit_scale: b, the standard deviation of a logit, instead of β. The larger, the fewer tokens one listens to.
        step: η > 0, of the chain whose limit this is; the correctors are of its order. The larger, the more they
            matter.
        heads: H ≥ 1, of that chain; enters the last corrector. The more, the smaller it is.
        corrector: how much of D is kept: "full", "paper" (as printed) or "none" (b alone).
        update: "ambient" or "tangent", that of the chain.
        multiplicities: masses of the tokens; zero is a listener.
        tolerance: of the averages over heads that D needs, 1e-3 by default. The smaller, the more heads stand for the
            law, and the slower.
        seed: of those averages.
    """

    def __init__(
        self,
        law: HeadLaw,
        beta: float | None = None,
        *,
        logit_scale: float | None = None,
        step: float = 0.1,
        heads: int = 1,
        corrector: str = "full",
        update: str = "ambient",
        multiplicities: Any = None,
        tolerance: float = 1e-3,
        seed: int = 0,
    ) -> None:
        chain = RandomTransformer(
            law=law, beta=beta, logit_scale=logit_scale, step=step, heads=heads, update=update,
            multiplicities=multiplicities,
        )  # fmt: skip
        self.field = homogenized_drift(chain, corrector, tolerance, seed)

    @property
    def derived(self) -> dict[str, Any]:
        """The parameters of the chain, how many heads stand for the law, and how well."""
        return {**self.chain.derived, **self.field.heads.summary}

    def sampling_error(self, tokens: Any) -> float:
        """Largest error of b_i at these tokens (Gaussian scores only; zero when the average is exact)."""
        return float(self.field.sampling_error(self.initial(jnp.asarray(tokens))))


def _build(
    d: int = 3,
    value: of.MeanValue = 1.0,
    score: float = 1.0,
    beta: float = 1.0,
    step: float = 0.1,
    heads: int = 1,
    sigma_a: float = 0.0,
    qk_dim: float | None = None,
    corrector: str = "full",
    update: str = "ambient",
    tolerance: float = 1e-3,
) -> HomogenizedODE:
    law = GaussianHeads(d, None, sigma_a, qk_dim, value, score)
    return HomogenizedODE(law, beta, step=step, heads=heads, corrector=corrector, update=update, tolerance=tolerance)


MODELS.register(
    "homogenized-ode",
    Description(
        _build,
        "Homogenized transformer, mean drift (ODE)",
        "ẋᵢ = bᵢ − (η/2)(∇_b b)ᵢ − η⟨xᵢ,b_ρ⟩bᵢ − (η/H) E[⟨xᵢ,ξᵢ⟩Pξᵢ],  bᵢ = P_xᵢ V̄ E_A m_A(xᵢ)",
        "What a deep chain of heads with a mean does when its noise is negligible; second order in η at t = ηℓ.",
        "n = 4…64, d = 2…16, value = score = 1 (means c·I), beta = 1…9, step = 0.0125…0.1, until = 1…5",
        (HOMOGENIZED,),
    ),
)
