"""Parameters that are functions of depth-time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from pathlines.foundation.errors import require
from pathlines.foundation.module import Module
from pathlines.foundation.traceable import is_traced, traceable_array, traceable_number

T = TypeVar("T")


class Schedule(Module):
    """A parameter t ↦ function(t), smooth between the jumps of the weights; ``start`` is its value at t = 0.

    A function of Python's is part of the compiled program (a new lambda compiles anew); a callable pytree, such as an
    ``equinox.Module``, may hold numbers that are differentiated.
    """

    start: Array
    plain: Callable[[Any], Any] | None = eqx.field(static=True)
    tree: Any

    def __init__(self, function: Callable[[Any], Any], start: Any) -> None:
        own = isinstance(function, eqx.Module)
        self.plain, self.tree = (None, function) if own else (function, None)
        self.start = jnp.asarray(start, float)

    def __call__(self, t: Any) -> Array:
        """The value at depth-time t."""
        now = jnp.asarray((self.tree if self.plain is None else self.plain)(t), self.start.dtype)
        require(now.shape == self.start.shape, "function", f"return arrays of shape {self.start.shape}", now.shape)
        return now


def number_or_schedule(name: str, value: Any, low: float) -> Any:
    """A number of at least ``low``, a tracer, or a function of depth-time whose first value is one."""
    if not callable(value):
        return jnp.asarray(traceable_number(name, value, low=low))
    return Schedule(value, traceable_number(f"{name}(0)", value(0.0), low=low))


def array_or_schedule(name: str, value: Any) -> Any:
    """An array, or a function of depth-time whose first value is one."""
    if not callable(value):
        return jnp.asarray(traceable_array(name, value), float)
    return Schedule(value, traceable_array(f"{name}(0)", value(0.0)))


def _is_schedule(thing: Any) -> bool:
    return isinstance(thing, Schedule)


def varies(thing: Any) -> bool:
    """Whether anything in the pytree is a function of depth-time."""
    return any(map(_is_schedule, jax.tree.leaves(thing, is_leaf=_is_schedule)))


def unknown(thing: Any) -> bool:
    """Whether there is no one number that each parameter is: some are traced, or functions of depth-time."""
    return is_traced(thing) or varies(thing)


def at_time(thing: T, t: Any) -> T:
    """The pytree with every parameter as it is at depth-time t."""
    if not varies(thing):
        return thing
    return jax.tree.map(lambda x: x(t) if _is_schedule(x) else x, thing, is_leaf=_is_schedule)
