"""The same heads at every depth."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.weights.heads import Heads, Weights, check_heads, stacked


class FixedWeights(Weights):
    """Heads (Q_h, K_h, V_h), h = 1..H, constant in depth. Matrices are (d, d) for one head or (H, d, d).

    Args:
        value: V, what is added to a token that listens; its leading eigenvectors decide where tokens end.
        query: Q, the identity by default.
        key: K, the identity by default; only QᵀK matters.
    """

    query: Float[Array, "h p d"] | None
    key: Float[Array, "h p d"] | None
    value: Float[Array, "h d d"]

    def __init__(self, value: Any, query: Any = None, key: Any = None) -> None:
        stacks = [None if m is None else stacked(k, m, 1) for k, m in (("query", query), ("key", key))]
        values = stacked("value", value, 1)
        check_heads(stacks[0], stacks[1], values)
        self.query, self.key = (None if m is None else jnp.asarray(m) for m in stacks)
        self.value = jnp.asarray(values)

    def at(self, t: Array) -> Heads | None:
        """The same heads for every t."""
        return Heads(self.query, self.key, self.value)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Constant in depth."""
        return ()

    @property
    def value_sign(self) -> Array:
        """Values carry their own sign."""
        return jnp.ones((), self.value.dtype)
