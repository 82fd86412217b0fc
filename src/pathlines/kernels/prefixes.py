"""Masks whose sums are prefix sums, in terms of plain causal ones: shifted by a token, tilted, averaged."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float

from pathlines.attention import Attention
from pathlines.attention.masks import PositionMask, PrefixMask

Attended = tuple[Float[Array, "n d"], Float[Array, " n"]]


def prefix_mask(mask: PositionMask | None, n: int) -> PrefixMask | None:
    """The mask, if everyone sees all tokens before him, with weights e^{h_j - h_i}; strict ones need two tokens."""
    found = isinstance(mask, PrefixMask) and mask.in_order and not (mask.strict and n == 1)
    return mask if found else None  # type: ignore[return-value]


def centred_heights(mask: PrefixMask, n: int, dtype: DTypeLike) -> Float[Array, " n"] | None:
    """h_i from the middle, so that e^{±h} stays a number; nothing where all are equal."""
    if mask.flat:
        return None
    h = mask.heights(n)
    return (h - h[n // 2]).astype(dtype)


def over_prefixes(
    mask: PrefixMask,
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "n p"],
    values: Float[Array, "n d"],
    masses: Float[Array, " n"],
    causal: Callable[..., Attended],
) -> Attended:
    """Σ_j q_ij m_j e^{s_ij} v_j of a ``fused`` kind by ``causal(queries, keys, values, masses)``, which sums j ≤ i.

    q_ij = e^{h_j - h_i} are two columns more of the queries, (1, -h_i), and of the keys, (h_j, 1).
    """
    h = centred_heights(mask, queries.shape[0], queries.dtype)
    if h is not None:
        one = jnp.ones_like(h)
        queries = jnp.column_stack([queries, one, -h])
        keys = jnp.column_stack([keys, h, one])
    return shifted(mask.strict, attention, causal, queries, keys, values, masses)


def shifted(
    strict: bool, attention: Attention, causal: Callable[..., Attended], queries: Array, *heard: Array
) -> Attended:
    """``causal(queries, *heard)``; strict rows are those of the token after, and the first hears nobody."""
    if not strict:
        return causal(queries, *heard)
    out, log_scale = causal(queries[1:], *(rows[:-1] for rows in heard))
    softmax, shift = attention.fused  # type: ignore[misc]
    nothing = jnp.asarray(-jnp.inf if softmax else shift, log_scale.dtype)[None]
    return jnp.pad(out, ((1, 0), (0, 0))), jnp.concatenate([nothing, log_scale])


def averaged(mask: PrefixMask, attention: Attention, found: Attended, masses: Float[Array, " n"]) -> Attended:
    """Sums over Σ_j q_ij m_j, where the mask takes means; kinds that normalise do already."""
    if mask.reduce == "sum" or attention.normalised:
        return found
    seen = mask.mass(masses)
    return found[0] / jnp.where(seen > 0, seen, 1.0)[:, None], found[1]
