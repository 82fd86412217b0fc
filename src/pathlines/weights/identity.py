"""Q = K = I and a scalar value matrix: the case in which the theory lives."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.foundation.traceable import traceable_number
from pathlines.weights.heads import Heads, Weights


class IdentityWeights(Weights):
    """Q = K = I, V = value · I; ``value = -1`` is the repulsive flow."""

    value: Array

    def __init__(self, value: float = 1.0) -> None:
        self.value = jnp.asarray(traceable_number("value", value))

    def at(self, t: Array) -> Heads | None:
        """No matrices at all."""
        return None

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Constant in depth."""
        return ()

    @property
    def value_sign(self) -> Array:
        """The scalar v of V = v I."""
        return self.value
