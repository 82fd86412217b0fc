"""Attention in plain JAX, on any device: row blocks that stay in the cache, differentiable without n × n memory."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pathlines.attention import Attention

BLOCK_WEIGHTS = 1 << 18
"""Weights of one row block: a megabyte or two, what a core's second cache holds."""

Rows = Callable[[Float[Array, "r p"], Int[Array, " r"]], tuple[Float[Array, "r d"], Float[Array, " r"]]]


def causal_scores(scores: Float[Array, "r m"], rows: Int[Array, " r"]) -> Float[Array, "r m"]:
    """Scores of row i with those of the keys j > i at minus infinity."""
    return jnp.where(jnp.arange(scores.shape[1]) <= rows[:, None], scores, -jnp.inf)


def masked_weights(
    attention: Attention, scores: Float[Array, "r m"], masses: Float[Array, " m"], last: Int[Array, " r"] | None
) -> tuple[Float[Array, "r m"], Float[Array, " r"]]:
    """``attention.normalise`` over the keys up to ``last`` of each row (all of them without it), zero beyond."""
    if last is None:
        return attention.normalise(scores, masses)
    weights, log_scale = attention.normalise(causal_scores(scores, last), masses)
    return jnp.where(jnp.arange(scores.shape[1]) <= last[:, None], weights, 0.0), log_scale


def portable_attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    causal: bool = False,
    last: Int[Array, " n"] | None = None,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """(A, log_scale) of any attention kind: A_i = Σ_j a_ij v_j, a = ``attention.normalise`` of <q_i, k_j>.

    ``causal`` rows see the keys j ≤ i, or j ≤ ``last``_i. O(nm(p+d)) time. Memory O(nm) for n·m ≤ 2¹⁸ and O(2¹⁸)
    beyond, in derivatives too: blocks are computed again.
    """

    def rows(block: Float[Array, "r p"], numbers: Int[Array, " r"]) -> tuple[Float[Array, "r d"], Float[Array, " r"]]:
        seen = last[numbers] if last is not None else numbers if causal else None
        weights, log_scale = masked_weights(attention, block @ keys.T, masses, seen)
        return weights @ values, log_scale

    return in_blocks(rows, queries, max(1, BLOCK_WEIGHTS // keys.shape[0]))


def in_blocks(rows: Rows, queries: Float[Array, "n p"], size: int) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """``rows`` applied to blocks of ``size`` queries, one after the other, each with its row numbers."""
    n = queries.shape[0]
    if n <= size:
        return rows(queries, jnp.arange(n))
    count = -(-n // size)
    padded = jnp.pad(queries, ((0, count * size - n), (0, 0))).reshape(count, size, -1)
    one = jax.checkpoint(lambda block: rows(*block))
    out, log_scale = jax.lax.map(one, (padded, jnp.arange(count * size).reshape(count, size)))
    return out.reshape(count * size, out.shape[-1])[:n], log_scale.reshape(-1)[:n]
