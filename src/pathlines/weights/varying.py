"""Heads that are functions of depth-time."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.foundation.schedule import Schedule, array_or_schedule
from pathlines.weights.heads import Heads, Weights, check_heads, stacked


class VaryingWeights(Weights):
    """Heads (Q_h(t), K_h(t), V_h(t)): each a function of depth-time t or a constant, (d, d) or (H, d, d).

    Functions are smooth; for weights that jump there is ``PiecewiseWeights``. They are called with a scalar of JAX and
    must compute with ``jax.numpy``. No form that needs constant weights is taken, and the energy is not asserted.
    """

    query: Any
    key: Any
    value: Any

    def __init__(self, value: Any, query: Any = None, key: Any = None) -> None:
        given = {"query": query, "key": key, "value": value}
        parts = {k: None if m is None else array_or_schedule(k, m) for k, m in given.items()}
        self.query, self.key, self.value = parts["query"], parts["key"], parts["value"]
        first = [None if m is None else stacked(k, _start(m), 1) for k, m in parts.items()]
        check_heads(first[0], first[1], first[2])

    def at(self, t: Array) -> Heads | None:
        """The heads of that time."""
        now = [m(t) if isinstance(m, Schedule) else m for m in (self.query, self.key, self.value)]
        query, key, value = (None if m is None else m if m.ndim == 3 else m[None] for m in now)
        return Heads(query, key, value)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """None: the functions are smooth."""
        return ()

    @property
    def value_sign(self) -> Array:
        """Values carry their own sign."""
        return jnp.ones((), _start(self.value).dtype)


def _start(matrix: Any) -> Array:
    return matrix.start if isinstance(matrix, Schedule) else matrix
