"""Gaussian heads, with or without means."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import positive_integer, require
from pathlines.foundation.traceable import is_traced, known, traceable_number
from pathlines.numerics.draws import Draws
from pathlines.weights.heads import Heads
from pathlines.weights.law import LAWS, HeadLaw, as_matrix, is_zero, square_matrix


class GaussianHeads(HeadLaw):
    """V = V̄ + σ_V N, A = Ā + W W'ᵀ with W, W' of size d × p and entries σ_A N (assumption G of arXiv:2604.01978 for
    V̄ = Ā = 0 and p = d). Each N is a matrix of independent standard normals.

    Args:
        d: the width, d ≥ 1. The larger, the less overlaps fluctuate, like d^{-1/2}.
        sigma_v: σ_V > 0; d^{-1/2} by default, so that V keeps lengths on average. The larger, the more a layer moves.
        sigma_a: σ_A ≥ 0; p^{-1/4} by default, where a score ⟨A x, y⟩ of unit tokens has variance one. 0 fixes A = Ā.
            The larger, the fewer tokens one listens to.
        qk_dim: p, the head dimension, d by default; at p = ∞ the scores are a Gaussian field of that variance. The
            smaller, the heavier the tails of a logit.
        value_mean: V̄, a d × d matrix or a number c for c·I; 0 by default. With a mean there is a drift.
        score_mean: Ā, likewise.
    """

    d: int = eqx.field(static=True)
    qk_dim: float = eqx.field(static=True)
    sigma_v: Float[Array, ""]
    sigma_a: Float[Array, ""]
    value_mean: Float[Array, ...] | None
    score_mean: Float[Array, ...] | None
    random_scores: bool = eqx.field(static=True)

    def __init__(
        self,
        d: int,
        sigma_v: float | None = None,
        sigma_a: float | None = None,
        qk_dim: float | None = None,
        value_mean: Any = None,
        score_mean: Any = None,
    ) -> None:
        self.d = positive_integer("d", d)
        self.qk_dim = _head_dimension(qk_dim, self.d)
        finite = math.isfinite(self.qk_dim)
        require(
            finite or sigma_a in (None, 0), "sigma_a", "be None at qk_dim = inf (scores have unit variance)", sigma_a
        )
        usual = self.qk_dim**-0.25 if finite else 1.0
        spread = usual if sigma_a is None else traceable_number("sigma_a", sigma_a, low=0.0)
        self.sigma_v = jnp.asarray(self.d**-0.5 if sigma_v is None else traceable_number("sigma_v", sigma_v, low=0.0))
        self.sigma_a = jnp.asarray(spread)
        self.random_scores = is_traced(spread) or spread > 0
        self.value_mean = square_matrix("value_mean", value_mean, self.d)
        self.score_mean = square_matrix("score_mean", score_mean, self.d)

    def heads(self, key: PRNGKeyArray, count: int, dtype: Any = float) -> Heads:
        """3 d² (or d² + 2dp) normals a head."""
        d, inner = self.d, int(self.qk_dim) if math.isfinite(self.qk_dim) else 0
        scores = 0 if not self.random_scores else 2 * d * inner if inner else d * d
        draws = Draws(key, count * (d * d + scores), 0, dtype)
        value = self.sigma_v.astype(dtype) * draws.normal(count, d, d)
        if self.value_mean is not None:
            value = value + as_matrix(self.value_mean, d).astype(dtype)[None]
        mean = as_matrix(self.score_mean, d).astype(dtype)[None]
        if not self.random_scores:
            return Heads(jnp.broadcast_to(mean, value.shape), None, value)
        if not inner:
            return Heads(mean + draws.normal(count, d, d), None, value)
        query, key_ = (self.sigma_a.astype(dtype) * draws.normal(count, inner, d) for _ in range(2))
        if self.score_mean is None:
            return Heads(query, key_, value)
        return Heads(mean + jnp.einsum("hpk,hpi->hki", key_, query), None, value)

    @property
    def mean_value(self) -> Float[Array, "d d"]:
        """V̄."""
        return as_matrix(self.value_mean, self.d)

    @property
    def mean_score(self) -> Float[Array, "d d"]:
        """Ā."""
        return as_matrix(self.score_mean, self.d)

    @property
    def score_std(self) -> Any:
        """σ_A² √p, and one at p = ∞."""
        if not self.random_scores:
            return 0.0
        return known(self.sigma_a) ** 2 * math.sqrt(self.qk_dim) if math.isfinite(self.qk_dim) else 1.0

    @property
    def centred(self) -> bool:
        """V̄ = 0."""
        return is_zero(self.value_mean)

    @property
    def isotropic(self) -> bool:
        """Whether the law is invariant under rotations (means are multiples of the identity)."""
        return all(m is None or m.ndim == 0 for m in (self.value_mean, self.score_mean))


def _head_dimension(qk_dim: Any, d: int) -> float:
    if qk_dim is None:
        return float(d)
    if qk_dim in (math.inf, "inf"):
        return math.inf
    return float(positive_integer("qk_dim", qk_dim))


def random_values(d: int, score: Any = 1.0, sigma_v: float | None = None) -> GaussianHeads:
    """Fresh values, the same attention in every layer: V = σ_V N, A = ``score`` (Clustering in Deep Stochastic
    Transformers, arXiv:2601.21942; a number c stands for c·I, so that logits are β c ⟨x_i, x_k⟩).
    """
    return GaussianHeads(d, sigma_v, 0.0, None, None, score)


LAWS.register("gaussian", GaussianHeads)
LAWS.register("random-values", random_values)
