"""Positions that enter the logits: rotations of queries and keys, and a bias by distance."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float


def rotated(y: Float[Array, "n h p"], base: float, fraction: float = 1.0) -> Float[Array, "n h p"]:
    """Token i turned by the angles i base^{-2k/r} in the planes (k, k + r/2), r = p · fraction of the coordinates.

    RoFormer: enhanced transformer with rotary position embedding, arXiv:2104.09864: inner products depend on i - j.
    """
    n, _, p = y.shape
    half = int(p * fraction) // 2
    rates = base ** (-jnp.arange(half, dtype=y.dtype) / max(half, 1))
    angles = jnp.arange(n, dtype=y.dtype)[:, None, None] * rates[None, None]
    one, two, rest = y[..., :half], y[..., half : 2 * half], y[..., 2 * half :]
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([one * cosine - two * sine, two * cosine + one * sine, rest], axis=-1)


def distance_bias(n: int, heads: int, dtype: Any) -> Float[Array, "heads n n"]:
    """-m_h |i - j| with slopes m_h = 2^{-8h/H}, h = 1…H (Train short, test long: ALiBi, arXiv:2108.12409)."""
    slopes = 2.0 ** (-8.0 * jnp.arange(1, heads + 1, dtype=dtype) / heads)
    distance = jnp.abs(jnp.arange(n)[:, None] - jnp.arange(n)[None, :]).astype(dtype)
    return -slopes[:, None, None] * distance[None]
