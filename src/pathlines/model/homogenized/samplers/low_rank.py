"""Tokens moved by a layer whose matrices are never drawn."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain.span import reduced
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.capability import HasHeadAttentions, HasRandomLayers
from pathlines.model.homogenized.random_transformer import RandomTransformer, moved
from pathlines.model.homogenized.samplers.choice import CHOLESKY, MULTIPLY, NORMAL, PIECE, SAMPLERS, Sampler
from pathlines.model.homogenized.samplers.layer import GaussianLayer, not_gaussian
from pathlines.numerics.draws import Draws


class LowRankSampler(HasRandomLayers, HasHeadAttentions):
    """X ← N(X + (η/H)(Σ_h Π_h X V̄ᵀ + σ_V C Z)),  C Cᵀ = Σ_h Π_h X Xᵀ Π_hᵀ,  Z standard normal: exact in law.

    Cost O(H n²r + n³ + n²d) with r = min(n, d), and 1.5 H r² + n d normals instead of 3Hd².
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    stack: GaussianLayer
    d: int = eqx.field(static=True)

    def __init__(self, model: RandomTransformer, n: int) -> None:
        self.d = model.d
        self.stack = GaussianLayer(model, min(n, model.d))

    @property
    def multiplicities(self) -> Float[Array, " n"] | None:
        """Masses of the tokens."""
        return self.stack.multiplicities

    initial = RandomTransformer.initial
    tokens = RandomTransformer.tokens
    check = RandomTransformer.check
    spread = RandomTransformer.spread

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Attention from a factor of the Gram matrix, then one Gaussian matrix of increments."""
        normals, uniforms = self.stack.counts
        columns = self.stack.noise_rank(state.shape[0])
        draws = Draws(key, normals + columns * self.d, uniforms, state.dtype)
        factor = reduced(state)
        mixed, mean = self.stack.mixed(draws, factor, state)
        noise = self.stack.noise_factor(mixed) @ draws.normal(columns, self.d)
        return moved(state, noise + self.stack.mean_increment(mean), self.stack.update)

    def head_attentions(self, state: Float[Array, "n d"], t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """Π_h of fresh heads."""
        return self.stack.fresh_attention(key, reduced(state), state)

    def layer_work(self, state: Any) -> float:
        """Attention of all heads, increments."""
        n, d = state.shape
        return float(n * (3 * self.stack.heads * n + 4 * d))


def _cost(model: RandomTransformer, n: int) -> float:
    d, layer = model.d, GaussianLayer(model, min(n, model.d))
    columns = layer.noise_rank(n)
    factors = (n**3 if d > n else 0) + (n**3 if model.heads * layer.rank > n else 0)
    return layer.cost(n) + NORMAL * columns * d + MULTIPLY * n * d * (n + columns) + CHOLESKY * factors + PIECE


SAMPLERS.register(
    "low-rank",
    Sampler(
        LowRankSampler,
        lambda model, n, ambient: not_gaussian(model),
        _cost,
        "Gaussian heads act on the tokens through an n × d Gaussian matrix",
    ),
)
