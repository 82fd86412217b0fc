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
        given = (("query", query), ("key", key))
        self.query, self.key = (None if m is None else array_or_schedule(name, m) for name, m in given)
        self.value = array_or_schedule("value", value)
        first = [None if m is None else stacked(k, _start(m), 1) for k, m in (("query", self.query), ("key", self.key))]
        check_heads(first[0], first[1], stacked("value", _start(self.value), 1))

    def at(self, t: Array) -> Heads | None:
        """The heads of that time."""
        query, key = (None if m is None else _stack(m, t) for m in (self.query, self.key))
        return Heads(query, key, _stack(self.value, t))

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """None: the functions are smooth."""
        return ()

    @property
    def value_sign(self) -> Array:
        """Values carry their own sign."""
        return jnp.ones((), _start(self.value).dtype)


def _stack(matrix: Any, t: Array) -> Array:
    now: Array = matrix(t) if isinstance(matrix, Schedule) else matrix
    return now if now.ndim == 3 else now[None]


def _start(matrix: Any) -> Array:
    return matrix.start if isinstance(matrix, Schedule) else matrix
