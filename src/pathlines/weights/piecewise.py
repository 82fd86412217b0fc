"""Heads that are constant on pieces of depth."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, finite_array
from pathlines.foundation.traceable import traceable_array
from pathlines.weights.heads import Heads, Weights, check_heads, stacked


class PiecewiseWeights(Weights):
    """Piece k holds for switches[k-1] ≤ t < switches[k]; stacks are (pieces, d, d) or (pieces, H, d, d).

    Args:
        switches: times at which the weights jump, increasing, one fewer than pieces; each costs a new piece of the run.
        value: V of every piece.
        query: Q of every piece, the identity by default.
        key: K of every piece, the identity by default.
    """

    switches: tuple[float, ...] = eqx.field(static=True)
    query: Float[Array, "s h p d"] | None
    key: Float[Array, "s h p d"] | None
    value: Float[Array, "s h d d"]

    def __init__(self, switches: Any, value: Any, query: Any = None, key: Any = None) -> None:
        times = finite_array("switches", switches, ("s",))
        if np.any(np.diff(times) <= 0):
            raise ArgumentError(f"Argument `switches` must increase, but is {times.tolist()}.")
        stacks = [None if m is None else _pieces(k, m) for k, m in (("query", query), ("key", key))]
        values = _pieces("value", value)
        check_heads(stacks[0], stacks[1], values)
        if len(values) != len(times) + 1:
            raise ArgumentError(
                f"Argument `value` must hold {len(times) + 1} pieces for {len(times)} switches, "
                f"but holds {len(values)}."
            )
        self.switches = tuple(float(t) for t in times)
        self.query, self.key = (None if m is None else jnp.asarray(m) for m in stacks)
        self.value = jnp.asarray(values)

    def at(self, t: Array) -> Heads | None:
        """The piece that contains t (pieces are closed on the left)."""
        piece = jnp.searchsorted(jnp.asarray(self.switches, t.dtype), t, side="right")
        query, key = (None if m is None else m[piece] for m in (self.query, self.key))
        return Heads(query, key, self.value[piece])

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The switching times."""
        return self.switches

    @property
    def value_sign(self) -> Array:
        """Values carry their own sign."""
        return jnp.ones((), self.value.dtype)


def _pieces(name: str, matrices: Any) -> np.ndarray:
    array = traceable_array(name, matrices)
    return stacked(name, array[:, None] if array.ndim == 3 else array, 2)
