"""Models whose state is a residual stream: hidden states of any length, of which observables see the directions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.masks import PositionMask
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


def attention_weights(logits: Float[Array, "*heads n n"], mask: PositionMask | None = None) -> Array:
    """Softmax over the last axis, over what the mask lets a token see."""
    seen = True if mask is None else mask.weights(logits.shape[-1]) > 0
    return jax.nn.softmax(jnp.where(seen, logits, -jnp.inf), axis=-1)
