"""Masked linear attention on blocks of positions: each block's mean and covariance, exactly."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention.masks import REDUCTIONS
from pathlines.domain import Euclidean
from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require
from pathlines.foundation.module import Module
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import UNIFIED, Paper
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HasLayers
from pathlines.model.gaussian.closure import matrices, stacked_heads
from pathlines.numerics.jacobi import orthogonal_rows


class Clouds(Module):
    """N(α_s, L_sL_sᵀ), one for each block s of positions."""

    means: Float[Array, "b d"]
    factors: Float[Array, "b d d"]


class MaskedLinearGaussian(HasLayers):
    """α_s' = B_s α_s,  L_s' = B_s L_s,  B_s = Σ_h C_h M_{≤s} A_h,  M_{≤s} = Σ_{τ≤s} θ_τ (Σ_τ + α_τα_τᵀ).

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; How Smooth Is Attention?,
    arXiv:2312.14820 (measures on positions × tokens); closure derived. A token hears its own block s and those before,
    by linear attention: its velocity is linear, so every conditional law stays Gaussian if it was, and mean and
    covariance are exact for any law and any number of tokens. (Softmax loses this after the first block.) ``reduce``
    "mean" divides M_{≤s} by the mass θ_1 + … + θ_s of what is seen, "sum" does not, as masks do.

    ``blocks`` is how many equal pieces the tokens of a start are cut into, or one position a token (equal ones share a
    block, and must not decrease); ``shares`` are the masses θ_s, by default the tokens' own. You will see the first
    block follow unmasked linear attention, the later ones pulled along by all before them; any block may reach
    infinity in finite time. Good values: d = 2, two to ten blocks, entries of A and V of order one, until 1. Cost
    O(b H d³) per drift. Tokens that observables see are 2d to a block; ``block_means`` and ``block_covariances`` are
    the clouds.
    """

    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)

    value: Float[Array, "h d d"]
    query: Float[Array, "h p d"]
    key: Float[Array, "h p d"]
    shares: Float[Array, " b"]
    sizes: tuple[int, ...] | None = eqx.field(static=True)
    reduce: str = eqx.field(static=True)

    def __init__(
        self,
        value: Any,
        query: Any = None,
        key: Any = None,
        scale: float = 1.0,
        blocks: Any = 2,
        shares: Any = None,
        reduce: str = "sum",
    ) -> None:
        self.value, self.query, self.key = stacked_heads(value, query, key, scale)
        given = not np.isscalar(blocks)
        places = finite_array("blocks", blocks, ("n",)) if given else np.arange(positive_integer("blocks", blocks))
        require(bool(np.all(np.diff(places) >= 0)), "blocks", "hold positions that do not decrease", places)
        sizes = np.unique(places, return_counts=True)[1]
        self.sizes = tuple(map(int, sizes)) if given else None
        self.reduce = one_of("reduce", reduce, REDUCTIONS)
        masses = sizes if shares is None else finite_array("shares", shares, (len(sizes),))
        require(bool(np.all(masses > 0)), "shares", "be positive", masses)
        self.shares = jnp.asarray(masses / np.sum(masses))

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    @property
    def multiplicities(self) -> Float[Array, " n"]:
        """Masses of the tokens that observables see."""
        return jnp.repeat(self.shares, 2 * self.value.shape[-1])

    def check(self, tokens: Any) -> None:
        """Finite rows of the width of V, as many as the blocks take."""
        Euclidean(self.value.shape[-1]).check(tokens)
        n, b = np.shape(tokens)[-2], len(self.shares)
        if self.sizes is None and n % b:
            raise ArgumentError(
                f"Argument `tokens` must have a multiple of {b} rows, one part for each block, but {n}."
            )
        if self.sizes is not None and n != sum(self.sizes):
            raise ArgumentError(f"Argument `blocks` must have one position a token ({n}), not {sum(self.sizes)}.")

    def initial(self, tokens: Float[Array, "n d"]) -> Clouds:
        """Mean and factor of each block."""
        b = len(self.shares)
        sizes = self.sizes or (tokens.shape[0] // b,) * b
        parts = jnp.split(tokens, np.cumsum(sizes)[:-1])
        means, factors = zip(*(_moments(part) for part in parts), strict=True)
        return Clouds(jnp.stack(means), jnp.stack(factors))

    def tokens(self, state: Clouds, t: Array) -> Float[Array, "n d"]:
        """α_s ± √d L_s: 2d tokens with the mean and covariance of each block, the first block first."""
        d = self.value.shape[-1]
        arms = np.sqrt(d) * jnp.swapaxes(state.factors, 1, 2)
        centre = state.means[:, None]
        return jnp.concatenate([centre + arms, centre - arms], axis=1).reshape(-1, d)

    def drift(self, state: Clouds, t: Array) -> Clouds:
        """B_s of every block on its mean and factor."""
        second = state.factors @ jnp.swapaxes(state.factors, 1, 2) + state.means[:, :, None] * state.means[:, None]
        seen = jnp.cumsum(self.shares[:, None, None] * second, axis=0)
        if self.reduce == "mean":
            seen = seen / jnp.cumsum(self.shares)[:, None, None]
        score = jnp.swapaxes(self.key, 1, 2) @ self.query
        push = jnp.einsum("hij,bjk,hkl->bil", self.value, seen, score)
        return Clouds(jnp.einsum("bij,bj->bi", push, state.means), push @ state.factors)

    def layer(self, state: Clouds, t: Array, step: Array) -> Clouds:
        """α_s ← (I + ηB_s)α_s, L_s ← (I + ηB_s)L_s: the network's own map."""
        return jax.tree.map(lambda x, v: x + step * v, state, self.drift(state, t))


def _moments(tokens: Float[Array, "n d"]) -> tuple[Array, Array]:
    """Mean and a square factor."""
    n, d = tokens.shape
    mean = jnp.mean(tokens, axis=0)
    columns = ((tokens - mean[None]) / np.sqrt(n)).T
    if n <= d:
        return mean, jnp.pad(columns, ((0, 0), (0, d - n)))
    turn, rows = orthogonal_rows(columns)
    return mean, turn * jnp.linalg.norm(rows, axis=1)[None]


def _masked_linear(
    value: Any = None,
    query: Any = None,
    key: Any = None,
    d: int = 2,
    scale: float = 1.0,
    blocks: Any = 2,
    shares: Any = None,
    reduce: str = "sum",
) -> Model:
    return MaskedLinearGaussian(*matrices(value, query, key, d), scale, blocks, shares, reduce)


MODELS.register(
    "masked-gaussian-linear",
    Description(
        _masked_linear,
        "Gaussian clouds by position, masked linear attention",
        "α̇ₛ = CM≤ₛAαₛ,  Σ̇ₛ = CM≤ₛAΣₛ + (·)ᵀ,  M≤ₛ = Σ_{τ≤s} θ_τ(Σ_τ + α_τα_τᵀ)",
        "Each block of positions keeps its law and hears those before it; exact for any tokens.",
        "n a multiple of blocks; blocks = 2…10, or one position a token; value, query, key as matrices; until = 1",
        (UNIFIED,),
    ),
)
