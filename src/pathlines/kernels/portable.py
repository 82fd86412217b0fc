"""Attention in plain JAX, on any device: row blocks that stay in the cache, differentiable without n × n memory."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pathlines.attention import Attention
from pathlines.attention.masks import PositionMask
from pathlines.numerics.maxima import row_maxima

BLOCK_WEIGHTS = 1 << 20
"""Weights of one row block, some megabytes: with fewer rows than fifty, products of matrices take longer."""

NARROWEST = 64
"""Rows of a block of a window."""

Rows = Callable[[Float[Array, "r p"], Int[Array, " r"]], tuple[Float[Array, "r d"], Float[Array, " r"]]]


def masked_weights(
    attention: Attention,
    scores: Float[Array, "r m"],
    masses: Float[Array, " m"],
    mask: PositionMask | None,
    rows: Int[Array, " r"],
    columns: Int[Array, " m"],
    n: int | None = None,
) -> tuple[Float[Array, "r m"], Float[Array, " r"]]:
    """``attention.normalise`` with the masses q_ij m_j of those rows and columns (of n; all of them without it)."""
    if mask is None:
        return attention.normalise(scores, masses)
    seen = mask.seen(rows, columns, scores.shape[1] if n is None else n).astype(scores.dtype)
    heard = seen * masses[None]
    weights, log_scale = attention.normalise(jnp.where(seen > 0, scores, 0.0), heard)
    if mask.reduce == "mean" and not attention.normalised:
        total = jnp.sum(heard, axis=1, keepdims=True)
        weights = weights / jnp.where(total > 0, total, 1.0)
    return weights, log_scale


def portable_attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    mask: PositionMask | None = None,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """(A, log_scale) of any attention kind: A_i = Σ_j a_ij v_j, a = ``attention.normalise`` of <q_i, k_j>.

    O(nm(p+d)) time. Memory O(nm) for n·m ≤ 2²⁰ and O(2²⁰) beyond, in derivatives too: blocks are computed again.
    Exponential kinds with a window of w tokens and s sinks take O(n(2w + s)(p+d)) time where that is less.
    """
    m = keys.shape[0]
    everyone = jnp.arange(m)
    if attention.fused is not None and mask is None:
        return _exponentials(attention, queries, keys, values, masses)
    if mask is not None and attention.fused is not None and banded(mask, m) < m:
        return _band(attention, queries, keys, values, masses, mask)

    def rows(block: Float[Array, "r p"], numbers: Int[Array, " r"]) -> tuple[Float[Array, "r d"], Float[Array, " r"]]:
        weights, log_scale = masked_weights(attention, block @ keys.T, masses, mask, numbers, everyone)
        return weights @ values, log_scale

    return in_blocks(rows, queries, max(1, BLOCK_WEIGHTS // m))


def _exponentials(
    attention: Attention, queries: Array, keys: Array, values: Array, masses: Array
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """Kinds whose weights are m_j e^{s_ij}, divided by their sum or not: no weight is divided, and the sum is one more
    column of the product. Nothing but the exponential is asked of a pair that is not a product.
    """
    softmax, shift = attention.fused  # type: ignore[misc]
    columns = jnp.concatenate([masses[:, None] * values, masses[:, None]], axis=1)
    heard = masses > 0
    dtype = jnp.result_type(queries, keys)
    most = 0.5 * float(np.log(jnp.finfo(dtype).max))

    def level_of(scores: Float[Array, "r m"]) -> Array:
        if not softmax:
            return jnp.asarray(shift, dtype)
        return row_maxima(jnp.where(heard, scores, -jnp.inf))

    def rows(block: Float[Array, "r p"], _: Int[Array, " r"]) -> tuple[Float[Array, "r d"], Float[Array, " r"]]:
        scores = block @ keys.T
        level = level_of(scores)
        none = jnp.isneginf(level)
        logs = scores - jnp.where(none, 0.0, level)
        sums = jnp.exp(jnp.where(heard, logs, jnp.minimum(logs, most))) @ columns
        if not softmax:
            return sums[:, :-1], jnp.full(sums.shape[0], level)
        total = jnp.where(none, 1.0, sums[:, -1:])
        return sums[:, :-1] / total, jnp.where(none, -jnp.inf, level + jnp.log(total))[:, 0]

    return in_blocks(rows, queries, max(1, BLOCK_WEIGHTS // keys.shape[0]))


def banded(mask: PositionMask, m: int) -> int:
    """Keys that a row of a window looks at: the sinks, its block of rows and the window before it; else all m."""
    if mask.band is None:
        return m
    sinks, width = mask.band
    looked = sinks + width + max(width, NARROWEST)
    return looked if looked <= m // 2 else m


def _band(
    attention: Attention, queries: Array, keys: Array, values: Array, masses: Array, mask: PositionMask
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """Blocks of rows that look at the sinks and at the keys that end with their own."""
    sinks, width = mask.band  # type: ignore[misc]
    m, size = keys.shape[0], max(width, NARROWEST)
    reach = width + size

    def rows(block: Float[Array, "r p"], numbers: Int[Array, " r"]) -> tuple[Float[Array, "r d"], Float[Array, " r"]]:
        start = jnp.clip(numbers[-1] + 1 - reach, 0, m - reach)
        columns = jnp.concatenate([jnp.arange(sinks), start + jnp.arange(reach)])
        once = (jnp.arange(sinks + reach) >= sinks) | (columns < start)
        heard = jnp.where(once, masses[columns], 0.0)
        weights, log_scale = masked_weights(attention, block @ keys[columns].T, heard, mask, numbers, columns, m)
        return weights @ values[columns], log_scale

    return in_blocks(rows, queries, size)


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
