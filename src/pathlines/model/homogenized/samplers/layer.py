"""What the fast samplers share: attention of all heads, and the Gaussian noise of their values, from a factor of K."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.attention import SoftmaxAttention
from pathlines.domain.span import reduced
from pathlines.foundation.module import Module, exactly
from pathlines.kernels import attend
from pathlines.model.homogenized.samplers.choice import ENTRY, MULTIPLY, NORMAL
from pathlines.numerics.chi import bartlett_counts, bartlett_from
from pathlines.numerics.draws import Draws
from pathlines.weights.gaussian import GaussianHeads


class GaussianLayer(Module):
    """One layer with Gaussian heads in terms of a factor F (n × r) of the Gram matrix, K = F Fᵀ (arXiv:2604.01978).

    Scores: W'ᵀ x and Wᵀ x are Gaussian with covariance K, so the logits are β σ_A² F (G Tᵀ) Fᵀ with G an r × r normal
    matrix and T a Bartlett factor of Wishart_r(p); for r > p they are β σ_A² F G₁ G₂ᵀ Fᵀ with r × p factors; at p = ∞
    b F G Fᵀ. Values: Σ_h Π_h X V_hᵀ given the attention Π_h is Σ_h Π_h X V̄ᵀ + σ_V C Z with C Cᵀ = Σ_h Π_h K Π_hᵀ and Z
    normal. No d × d matrix is ever drawn.
    """

    beta: Float[Array, ""]
    step: Float[Array, ""]
    sigma_v: Float[Array, ""]
    sigma_a: Float[Array, ""]
    width: Float[Array, ""]
    score_mean: Float[Array, ...] | None
    value_mean: Float[Array, ...] | None
    multiplicities: Float[Array, " n"] | None
    heads: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    scores: str = eqx.field(static=True)
    inner: int = eqx.field(static=True)
    update: str = eqx.field(static=True)

    def __init__(self, model: Any, rank: int) -> None:
        law: GaussianHeads = model.law
        self.beta, self.step, self.multiplicities = model.beta, model.step, model.multiplicities
        self.sigma_v, self.sigma_a = law.sigma_v, law.sigma_a
        self.score_mean, self.value_mean = law.score_mean, law.value_mean
        self.heads, self.update, self.rank = model.heads, model.update, rank
        p = law.qk_dim
        kind = "field" if math.isinf(p) else "factors" if p < rank else "bartlett"
        self.scores = kind if law.random_scores else "fixed"
        self.inner = int(p) if self.scores == "factors" else 0
        self.width = jnp.asarray(p if self.scores == "bartlett" else 1.0)

    @property
    def counts(self) -> tuple[int, int]:
        """(normals, uniforms) that ``attention`` takes."""
        r = self.rank
        if self.scores == "bartlett":
            normals, uniforms = bartlett_counts(r)
            return self.heads * (r * r + normals), self.heads * uniforms
        return self.heads * {"fixed": 0, "field": r * r, "factors": 2 * r * self.inner}[self.scores], 0

    def mixed(
        self, draws: Draws, factor: Float[Array, "n r"], x: Float[Array, "n q"]
    ) -> tuple[Float[Array, "h n r"], Float[Array, "n q"] | None]:
        """Π_h F for h = 1..H, and the mean of Π_h X over the heads where values have a mean.

        ``x`` are the coordinates in which the mean matrices are written. The weights Π_h are never written.
        """
        queries, keys = self._queries_and_keys(draws, factor, x)
        values = factor if self.value_mean is None else jnp.concatenate([factor, x], axis=1)
        masses = self._masses(factor)
        out = jax.vmap(lambda q: attend(SoftmaxAttention(), q, keys, values, masses)[0])(queries)
        rank = factor.shape[1]
        return out[..., :rank], None if self.value_mean is None else jnp.mean(out[..., rank:], axis=0)

    def fresh_attention(
        self, key: PRNGKeyArray, factor: Float[Array, "n r"], x: Float[Array, "n q"]
    ) -> Float[Array, "h n n"]:
        """Π_h of heads drawn from ``key`` alone."""
        queries, keys = self._queries_and_keys(Draws(key, *self.counts, factor.dtype), factor, x)
        return SoftmaxAttention().normalise(queries @ keys.T, self._masses(factor))[0]

    def _masses(self, factor: Float[Array, "n r"]) -> Float[Array, " n"]:
        n = factor.shape[0]
        return jnp.full(n, 1.0 / n, factor.dtype) if self.multiplicities is None else self.multiplicities

    def _queries_and_keys(
        self, draws: Draws, factor: Float[Array, "n r"], x: Float[Array, "n q"]
    ) -> tuple[Float[Array, "h n s"], Float[Array, "n s"]]:
        """Rows whose inner products are the logits: random scores in the span, mean scores in the coordinates of x."""
        n = factor.shape[0]
        parts = []
        if self.scores != "fixed":
            parts.append((jnp.einsum("ir,hrs->his", factor, self._core(draws)), factor))
        if self.score_mean is not None:
            parts.append((jnp.broadcast_to(self.beta * x, (self.heads, *x.shape)), _times(self.score_mean.T, x).T))
        if not parts:
            return jnp.zeros((self.heads, n, 1), factor.dtype), jnp.zeros((n, 1), factor.dtype)
        queries, keys = zip(*parts, strict=True)
        return jnp.concatenate(queries, axis=-1), jnp.concatenate(keys, axis=-1)

    def _core(self, draws: Draws) -> Float[Array, "h r r"]:
        """β E W' Wᵀ Eᵀ for the orthonormal frame E of the factor, X = F E; row = query."""
        heads, r = self.heads, self.rank
        if self.scores == "field":
            return self.beta * draws.normal(heads, r, r)
        scale = self.beta * self.sigma_a**2
        if self.scores == "factors":
            return scale * draws.normal(heads, r, self.inner) @ draws.normal(heads, r, self.inner).mT
        return scale * draws.normal(heads, r, r) @ bartlett_from(draws, r, self.width, (heads,)).mT

    def noise_factor(self, mixed: Float[Array, "h n r"]) -> Float[Array, "n q"]:
        """(η σ_V/H) C with C Cᵀ = Σ_h Π_h K Π_hᵀ, from Π_h F; C = Π F for one head."""
        rows = jnp.swapaxes(mixed, 0, 1).reshape(mixed.shape[1], -1)
        return self.step * self.sigma_v / self.heads * reduced(rows)

    def noise_rank(self, n: int) -> int:
        """Columns of C."""
        return min(n, self.heads * self.rank)

    def mean_increment(self, mean: Float[Array, "n q"] | None) -> Float[Array, "n q"] | float:
        """(η/H) Σ_h Π_h X V̄ᵀ, from the mean of Π_h X."""
        return 0.0 if mean is None or self.value_mean is None else self.step * _times(self.value_mean, mean).T

    def cost(self, n: int) -> float:
        """Predicted nanoseconds for attention and noise factor."""
        r, inner = self.rank, self.rank if self.scores == "bartlett" else self.inner
        products = 2 * n * n * r + n * r * r + r * r * inner + (n * n * r if self.noise_rank(n) == n else 0)
        return NORMAL * sum(self.counts) + self.heads * (MULTIPLY * products + ENTRY * n * n)


def _times(matrix: Float[Array, ...], x: Float[Array, "n q"]) -> Float[Array, "q n"]:
    """M Xᵀ for a matrix, c Xᵀ for a number."""
    return matrix * x.T if matrix.ndim == 0 else matrix @ x.T


def not_gaussian(model: Any) -> str | None:
    """Why the layers cannot be drawn without their matrices."""
    return None if exactly(model.law, GaussianHeads) else f"it needs Gaussian heads, not {type(model.law).__name__}"
