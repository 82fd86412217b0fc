"""Arguments that may be tracers: inside ``jax.grad``, ``jit`` or ``vmap`` only their shapes are known and checked."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.foundation.errors import finite_array, finite_number


def is_traced(*things: Any) -> bool:
    """Whether a number in any of the pytrees is a tracer, whose value is not known yet."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(things))


def known(value: Any) -> Any:
    """A number as a float of Python's, or a tracer as it is."""
    return value if is_traced(value) else float(value)


def traceable_number(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False
) -> Any:
    """``finite_number``, or a tracer of a scalar as it is."""
    return (
        traceable_array(name, value, ())
        if is_traced(value)
        else finite_number(name, value, low, high, open_low=open_low)
    )


def traceable_array(name: str, value: Any, shape: tuple[int | str, ...] | None = None) -> Any:
    """``finite_array``, or a traced array (a list of traced numbers) after checking its shape."""
    if not is_traced(value):
        return finite_array(name, value, shape)
    array = jnp.asarray(value)
    finite_array(name, np.broadcast_to(np.zeros((), array.dtype), array.shape), shape)
    return array
