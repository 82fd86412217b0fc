"""Gaussian token clouds: the Transformer PDE as an exact equation for mean and covariance factor."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS
from pathlines.domain import Euclidean
from pathlines.foundation.errors import ArgumentError, UnknownNameError, finite_array, finite_number, of_kind, require
from pathlines.foundation.module import Module
from pathlines.foundation.papers import UNIFIED, Paper
from pathlines.foundation.schedule import varies
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HasLayers
from pathlines.model.self_attention import SelfAttention
from pathlines.numerics.jacobi import orthogonal_rows
from pathlines.weights.fixed import FixedWeights
from pathlines.weights.heads import check_heads, stacked

Vector = Float[Array, " d"]
Factor = Float[Array, "d r"]
Scalar = Float[Array, ""]


class Cloud(Module):
    """N(α, LLᵀ): a mean and a factor with r columns, so that Σ is positive semidefinite of rank ≤ r by construction."""

    mean: Vector
    factor: Factor


SMALL = 4096
"""Multiplications up to which ``product`` is a sum (d = 16).

A drift in sixteen lanes takes a sixth of the time at d = 4, two thirds at d = 16.
"""


def product(a: Float[Array, "i j"], b: Float[Array, "j k"]) -> Float[Array, "i k"]:
    """a b, for small matrices as a sum that fuses with the rest: in lanes ``@`` is a loop over library calls."""
    if a.size * b.shape[1] > SMALL:
        return a @ b
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def stacked_heads(value: Any, query: Any, key: Any, scale: float) -> tuple[Array, Array, Array]:
    """(V, scale·Q, K), each with a leading axis for the heads; a missing Q or K is the identity.

    Made by NumPy: operations of JAX on small arrays would cost more than following the cloud to its fate.
    """
    values = stacked("value", value, 1)
    queries, keys = (None if m is None else stacked(n, m, 1) for n, m in (("query", query), ("key", key)))
    check_heads(queries, keys, values)
    plain = np.broadcast_to(np.eye(values.shape[-1]), values.shape)
    queries = finite_number("scale", scale) * (plain if queries is None else queries)
    return jnp.asarray(values), jnp.asarray(queries), jnp.asarray(plain if keys is None else keys)


class GaussianClosure(HasLayers):
    """α' = Σ_h C_h m_h,  L' = Σ_h C_h F_h,  where a token α + Lz of N(α, LLᵀ) attends to m_h + F_h z on average.

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322. Where the attended vector is affine in
    the token, N(α_t, L_tL_tᵀ) *is* the solution of the PDE; Σ' = BΣ + ΣBᵀ with B L = Σ_h C_h F_h. A layer of step η is
    the network's own map (I + ηB)Σ(I + ηB)ᵀ. Conventions: score (Ax)·y with A = ``scale``·KᵀQ, values C = ``value``,
    each of shape (d, d) for one head or (H, d, d); Q or K alone means that the other is the identity (so
    ``query=A``), the self term is included, the heads are summed.

    A start is n tokens, of which only mean and covariance (1/n) matter; ``sigma_points`` makes 2r of them from (α, Σ).
    The tokens that observables see are such points again.
    """

    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)
    preserves: ClassVar[bool] = True
    """Whether Gaussians stay Gaussian; otherwise this is a moment closure, with an error of its own."""
    homogeneous: ClassVar[bool] = False
    """Whether centred clouds follow L' = Σ_h C_h L(LᵀA_hL): Σ → cΣ makes them move c times faster and nothing else, and
    blow-up is (T* - t)^{-1}.
    """

    value: Float[Array, "h d d"]
    query: Float[Array, "h p d"]
    key: Float[Array, "h p d"]

    @abstractmethod
    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """(m, F, pace) of one head; |F| ≤ pace·|L|, and of its order: the clock of scale-free integration."""

    def total(self, cloud: Cloud) -> tuple[Cloud, Scalar]:
        """(velocity, Σ_h |C_h| pace_h)."""
        one = jax.vmap(self.attended, in_axes=(None, None, 0, 0))
        means, factors, paces = one(cloud.mean, cloud.factor, self.query, self.key)
        mean, factor = jnp.einsum("hij,hj->i", self.value, means), jnp.sum(jax.vmap(product)(self.value, factors), 0)
        return Cloud(mean, factor), jnp.sqrt(jnp.sum(self.value**2, (1, 2))) @ paces

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    def check(self, tokens: Any) -> None:
        """Finite rows of the width of V."""
        Euclidean(self.value.shape[-1]).check(tokens)

    def initial(self, tokens: Float[Array, "n d"]) -> Cloud:
        """Mean and factor of the tokens; min(n, d) columns.

        The two halves are added first: opposite tokens give a mean of exactly zero, which the flow keeps, while a
        rounding error would grow like e^{tV}.
        """
        n, half = tokens.shape[0], tokens.shape[0] // 2
        mean = (jnp.sum(tokens[:half] + tokens[half : 2 * half], axis=0) + jnp.sum(tokens[2 * half :], axis=0)) / n
        centred = (tokens - mean[None]) / np.sqrt(n)
        if tokens.shape[0] <= tokens.shape[1]:
            return Cloud(mean, centred.T)
        turn, rows = orthogonal_rows(centred.T)
        return Cloud(mean, turn * jnp.linalg.norm(rows, axis=1)[None])

    def tokens(self, state: Cloud, t: Array) -> Float[Array, "n d"]:
        """α ± √r L_k: 2r tokens with the mean and covariance of the cloud."""
        arms = np.sqrt(state.factor.shape[1]) * state.factor.T
        return jnp.concatenate([state.mean[None] + arms, state.mean[None] - arms])

    def drift(self, state: Cloud, t: Array) -> Cloud:
        """Σ_h C_h (m_h, F_h)."""
        return self.total(state)[0]

    def layer(self, state: Cloud, t: Array, step: Array) -> Cloud:
        """α ← α + η(c + Bα), L ← (I + ηB)L."""
        return jax.tree.map(lambda x, v: x + step * v, state, self.drift(state, t))


class SoftmaxGaussian(GaussianClosure):
    """α' = Σ_h C_h(I + ΣA_h)α,  L' = Σ_h C_h L(LᵀA_hL).

    You will see, for one head with A + Aᵀ > 0, Σ grow to infinity at a finite depth; with A + Aᵀ ≤ 0 and V = I, the
    cloud flatten onto the kernel of A + Aᵀ like 1/t; in between, rank-one limits, exponential growth, or either
    depending on the start (``pathlines gaussian`` says which). Good values: d = 2, entries of A and V of order one,
    until 1..10. Cost O(H d²(d+r)) per drift.
    """

    homogeneous: ClassVar[bool] = True

    def __init__(self, value: Any, query: Any = None, key: Any = None, scale: float = 1.0) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """E[y | x] = α + ΣAx, Cov(y | x) = Σ: tilting a Gaussian moves it without changing its covariance."""
        keys = product(key, factor).T
        pace = jnp.sqrt(jnp.sum(product(key.T, query) ** 2)) * jnp.sum(factor * factor)
        moved = product(factor, product(keys, product(query, factor)))
        return mean + factor @ (keys @ (query @ mean)), moved, pace


class LinearGaussian(GaussianClosure):
    """α' = Σ_h C_h M A_h α,  L' = Σ_h C_h M A_h L,  M = Σ + ααᵀ.

    Exact for every law and every finite n, with empirical mean and covariance. ``offset = 1`` is affine attention,
    weights 1 + s, which adds C_h α to α'. You will see the covariance of softmax when α = 0. Cost O(H d²(d+r)).
    """

    homogeneous: ClassVar[bool] = True

    offset: Float[Array, ""]

    def __init__(self, value: Any, query: Any = None, key: Any = None, scale: float = 1.0, offset: float = 0.0) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)
        self.offset = jnp.asarray(finite_number("offset", offset))

    def attended(self, mean: Vector, factor: Factor, query: Array, key: Array) -> tuple[Vector, Factor, Scalar]:
        """∫ y (offset + Ax·y) dμ(y) = offset·α + MAx."""

        def second_moment(x: Array) -> Array:
            return factor @ ((key @ factor).T @ x) + jnp.tensordot(mean, (key @ mean) @ x, 0)

        pace = jnp.sqrt(jnp.sum((key.T @ query) ** 2)) * (jnp.sum(factor * factor) + mean @ mean)
        return self.offset * mean + second_moment(query @ mean), second_moment(query @ factor), pace


def sigma_points(mean: Any, covariance: Any) -> np.ndarray:
    """2r tokens α ± √r L_k whose mean is α and whose covariance (1/n) is Σ; Σ must be positive semidefinite."""
    alpha = finite_array("mean", mean, ("d",)).astype(float)
    sigma = finite_array("covariance", covariance, (len(alpha), len(alpha))).astype(float)
    scale = float(np.abs(sigma).max())
    require(bool(np.abs(sigma - sigma.T).max() <= 1e-12 * scale), "covariance", "be symmetric", sigma)
    values, vectors = np.linalg.eigh((sigma + sigma.T) / 2)
    if values[0] < -1e-12 * scale:
        text = f"Argument `covariance` must be positive semidefinite, but has the eigenvalue {values[0]:.6g}."
        raise ArgumentError(text)
    kept = values > 1e-14 * scale
    arms = (vectors[:, kept] * np.sqrt(values[kept] * max(int(kept.sum()), 1))).T
    return np.concatenate([alpha + arms, alpha - arms]) if len(arms) else alpha[None]


PREFIX = "gaussian-"


def closure_kinds() -> dict[str, bool]:
    """The kinds of attention that have a closure here, and whether it is exact."""
    names = [n.removeprefix(PREFIX) for n in MODELS if n.startswith(PREFIX)]
    return {n: "moment closure" not in MODELS[PREFIX + n].title for n in names}


def gaussian_closure(
    model: SelfAttention | str, value: Any = None, query: Any = None, key: Any = None, **options: Any
) -> GaussianClosure:
    """Mean and covariance of a Gaussian cloud under self-attention in R^d; where there is none, the error says why.

    Args:
        model: ``SelfAttention(…, weights=FixedWeights(V, Q, K), space="euclidean")``, whose kind, β and weights are
            read off it; or the name of an attention kind, with the next arguments.
        value: V, (d, d) or (H, d, d).
        query: Q, the identity by default.
        key: K, the identity by default.
        options: of the kind: ``scale``, ``eps`` and ``prefactor`` of Sinkhorn, ``bias`` of sigmoid.
    """
    if isinstance(model, SelfAttention):
        require(value is None and query is None and key is None and not options, "value", "be None with a model", value)
        return _of_model(model)
    kind = of_kind("model", model, str, "SelfAttention or the name of an attention kind")
    kinds = closure_kinds()
    if kind not in kinds:
        exact = ", ".join(k for k, ok in kinds.items() if ok)
        rest = ", ".join(k for k, ok in kinds.items() if not ok)
        raise UnknownNameError(
            f"Attention `{kind}` has no Gaussian closure: exact ones exist for {exact}; moment closures for {rest}; "
            "anything else needs particles."
        )
    build = MODELS[PREFIX + kind].build
    known = list(inspect.signature(build).parameters)
    if unknown := [name for name in options if name not in known]:
        text = f"Attention `{kind}` has no option `{unknown[0]}` in its closure; there are {', '.join(known)}."
        raise ArgumentError(text)
    require(value is not None, "value", "be a matrix d × d", value)
    made = build(value=value, query=query, key=key, **options)
    assert isinstance(made, GaussianClosure)
    return made


def _of_model(model: SelfAttention) -> GaussianClosure:
    """The closure with the kind, the weights and β of a model of tokens."""
    alone = model.perceptron is None and model.mask is None and not model.frozen
    euclidean = not model.on_sphere and alone and not varies(model)
    require(euclidean, "model", 'have space="euclidean", no perceptron and no mask to have a closure', model.space)
    attention, beta = model.attention, float(model.beta)
    weights = of_kind("model", model.weights, FixedWeights, "a model with FixedWeights, which say the dimension")
    kind = next(name for name, entry in ATTENTIONS.items() if type(attention) is entry)
    options = {n: getattr(attention, n) for n in ("eps", "prefactor", "bias") if hasattr(attention, n)}
    query, key, value = weights.query, weights.key, weights.value * jnp.exp(-getattr(attention, "shift", 0.0))
    if kind == "l2":  # the score is a distance: both sides carry β
        plain = jnp.broadcast_to(jnp.eye(value.shape[-1]), value.shape)
        query, key = (np.sqrt(beta) * (plain if m is None else m) for m in (query, key))
        return gaussian_closure(kind, value, query, key)
    return gaussian_closure(kind, value, query, key, scale=beta, **options)


def matrices(value: Any, query: Any, key: Any, d: int) -> tuple[Any, Any, Any]:
    """Weights for a builder on the command line: V = I and A = -I of width d where nothing is given."""
    named = (("value", value), ("query", query), ("key", key))
    given = [None if m is None else finite_array(name, m).astype(float) for name, m in named]
    if given[1] is None and given[2] is None:
        given[1] = -np.eye(d)
    return np.eye(d) if given[0] is None else given[0], given[1], given[2]


def _softmax(value: Any = None, query: Any = None, key: Any = None, d: int = 2, scale: float = 1.0) -> Model:
    return SoftmaxGaussian(*matrices(value, query, key, d), scale)


def _linear(value: Any = None, query: Any = None, key: Any = None, d: int = 2, scale: float = 1.0) -> Model:
    return LinearGaussian(*matrices(value, query, key, d), scale)


def _affine(value: Any = None, query: Any = None, key: Any = None, d: int = 2, scale: float = 1.0) -> Model:
    return LinearGaussian(*matrices(value, query, key, d), scale, offset=1.0)


_VALUES = "n ≥ 1 tokens give mean and covariance; value, query, key as matrices (default V = I, A = −I); until = 1…10"

MODELS.register(
    PREFIX + "softmax",
    Description(
        _softmax,
        "Gaussian cloud, softmax attention",
        "α̇ = Σ_h C_h(I + ΣA_h)α,  Σ̇ = Σ_h C_hΣA_hΣ + (·)ᵀ,  Σ = LLᵀ",
        "The cloud flattens, collapses, grows, or explodes at a finite depth, as V and A decide.",
        _VALUES,
        (UNIFIED,),
    ),
)
MODELS.register(
    PREFIX + "linear",
    Description(
        _linear,
        "Gaussian cloud, linear attention",
        "α̇ = CMAα,  Σ̇ = CMAΣ + (·)ᵀ,  M = Σ + ααᵀ",
        "Exact for any law of tokens; the covariance of softmax for centred clouds.",
        _VALUES,
        (UNIFIED,),
    ),
)
MODELS.register(
    PREFIX + "affine",
    Description(
        _affine,
        "Gaussian cloud, affine attention (weights 1 + s)",
        "α̇ = Cα + CMAα,  Σ̇ = CMAΣ + (·)ᵀ",
        "The first Taylor step of unnormalised attention.",
        _VALUES,
        (UNIFIED,),
    ),
)
