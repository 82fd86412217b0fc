"""Models whose state is a residual stream: hidden states of any length, of which observables see the directions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from pathlines.model.base import Model
from pathlines.model.homogenized.random_transformer import spread_of

Hidden = Float[Array, "n d"]


class ResidualStream(Model):
    """h_i ∈ R^d, shown to observables as unit tokens h_i/|h_i|: their overlaps are the cosines of the hidden states."""

    @abstractmethod
    def hidden(self, state: Any) -> Hidden:
        """The hidden states h."""

    def tokens(self, state: Any, t: Array) -> Hidden:
        """The directions h/|h|."""
        h = self.hidden(state)
        return h / jnp.sqrt(jnp.sum(h * h, axis=-1, keepdims=True))

    def spread(self, state: Any) -> Array | None:
        """From the distances of directions to the first."""
        return spread_of(self.tokens(state, jnp.zeros(())))


def rms_normalised(h: Float[Array, "*rows d"], epsilon: Any = 0.0) -> Float[Array, "*rows d"]:
    """h/√(mean h² + ε)."""
    return h / jnp.sqrt(jnp.mean(h * h, axis=-1, keepdims=True) + epsilon)


def attention_weights(logits: Float[Array, "*heads n n"], seen: Bool[Array, "n n"] | None = None) -> Array:
    """Softmax over the last axis, over what is ``seen``."""
    return jax.nn.softmax(logits if seen is None else jnp.where(seen, logits, -jnp.inf), axis=-1)


def causal_mask(n: int, window: int = 0) -> Bool[Array, "n n"]:
    """Token i sees j ≤ i, and with a window only i - j < window."""
    distance = jnp.arange(n)[:, None] - jnp.arange(n)[None, :]
    return (distance >= 0) & ((distance < window) if window else True)
