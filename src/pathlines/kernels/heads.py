"""Several heads (Q_h, K_h, V_h) among the same tokens."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.attention.masks import PositionMask
from pathlines.kernels.dense import attend
from pathlines.kernels.native import fused_heads, native_serves
from pathlines.kernels.prefixes import averaged, prefix_mask, shifted

Stacks = tuple[Float[Array, "h p d"] | None, Float[Array, "h p d"] | None, Float[Array, "h d d"]]
"""Q_h, K_h and V_h of all heads; ``None`` stands for the identity."""
WIDEST = 512
"""Rows up to this width go through their matrices inside the native call; wider matrices want their library."""


def attend_heads(
    attention: Attention,
    matrices: Stacks,
    x: Float[Array, "n d"],
    masses: Float[Array, " m"],
    mask: PositionMask | None = None,
    *,
    beta: Float[Array, ""] | float = 1.0,
) -> tuple[Float[Array, "h n d"], Float[Array, "h n"]]:
    """``attend`` for each head with q_i = Q_h x_i, k_j = K_h x_j, v_j = V_h x_j; the first m tokens are heard."""
    given = [m for m in matrices if m is not None]
    axes = tuple(None if m is None else 0 for m in matrices)
    heard, prefix = masses.shape[0], prefix_mask(mask, x.shape[0])
    narrow = max(x.shape[1], *(m.shape[1] for m in given)) <= WIDEST
    plain = mask is None or (prefix is not None and prefix.flat)
    if narrow and plain and attention.fused is not None and native_serves(jnp.result_type(x, *given)):

        def fused(query: Array | None, key: Array | None, value: Array) -> tuple[Array, Array]:
            scaled = (None if query is None else beta * query, key, value)
            rows = beta * x if query is None else x
            causal = lambda rows, y, masses: fused_heads(attention, scaled, rows, y, masses, mask is not None)  # noqa: E731
            if prefix is None:
                return causal(rows, x[:heard], masses)
            return averaged(prefix, attention, shifted(prefix.strict, attention, causal, rows, x, masses), masses)

        return jax.vmap(fused, in_axes=axes)(*matrices)

    def one(kind: Attention, query: Array, key: Array, value: Array) -> tuple[Array, Array]:
        return attend(kind, query, key[:heard], value[:heard], masses, mask, beta=beta)

    return jax.vmap(one, in_axes=(attention.head_axes, *axes))(attention, *_products(matrices, x))


def _products(matrices: Stacks, x: Float[Array, "n d"]) -> tuple[Array, ...]:
    """(Q_h x_i, K_h x_i, V_h x_i), or x itself where there is no matrix: one product with all of them."""
    given = [m for m in matrices if m is not None]
    cuts = np.cumsum([m.shape[1] for m in given])[:-1]
    parts = iter(jnp.split(jnp.einsum("hpd,nd->hnp", jnp.concatenate(given, axis=1), x), cuts, axis=-1))
    return tuple(x if m is None else next(parts) for m in matrices)
