"""Observables of many states at once, after native code has made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.foundation.schedule import at_time
from pathlines.integrate.observe import Observable, positions
from pathlines.model.base import Model, Snapshot

STATES = 32
"""States that a compiled look has room for, or four times as many: how many of them it looks at is a number."""


class Seen(NamedTuple):
    """Tokens (k, n, d) of one model, and its energies F = e^{-β}(E - E_max) where the sums of the drift gave them."""

    model: Model
    states: np.ndarray
    energies: np.ndarray | None


AT_ONCE: dict[Callable[..., Any], Callable[..., np.ndarray | None]] = {}
"""By the function of an observable: all of its values in NumPy or native code, or ``None``."""


def at_once(observable: Observable) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function ``(seen, **parameters)`` for that observable of tokens, so that nothing is compiled for it.

    It goes with the function that the observable has now: one whose function is changed is evaluated as it says.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        AT_ONCE[observable.function] = function
        return function

    return add


def look_at_states(
    observables: tuple[Observable, ...],
    model: Model,
    states: np.ndarray,
    times: np.ndarray,
    start: Any,
    energies: np.ndarray | None = None,
) -> list[np.ndarray]:
    """The observables of tokens (k, n, d) at ``times``: one array (k, ...) for each.

    ``start`` is that of one run, or one for each state. Without states (k = 0) what has to be compiled is compiled, and
    what cannot be looked at says so.
    """
    found: dict[int, np.ndarray] = {}
    for number, one in enumerate(observables):
        swift = AT_ONCE.get(one.function)
        values = None if swift is None else swift(Seen(model, states, energies), **dict(one.parameters))
        if values is not None:
            found[number] = values
    others = [i for i in range(len(observables)) if i not in found]
    if others:
        columns = _compiled(tuple(observables[i] for i in others), model, states, times, start)
        found.update(zip(others, columns, strict=True))
    return [found[i] for i in range(len(observables))]


def _compiled(
    observables: tuple[Observable, ...], model: Model, states: np.ndarray, times: np.ndarray, start: Any
) -> list[np.ndarray]:
    room = STATES if len(states) <= STATES else 4 * STATES
    parts = []
    for first in range(0, max(1, len(states)), room):
        some, when = states[first : first + room], times[first : first + room]
        missing = room - len(some)
        padded = np.concatenate([some, np.zeros((missing, *some.shape[1:]), some.dtype)]) if missing else some
        clock = np.pad(when, (0, missing)).astype(states.dtype)
        own = np.ndim(start) == states.ndim
        begun = np.concatenate([start[first : first + room], padded[len(some) :]]) if own else start
        seen = _look(observables, model, padded, clock, begun, own, np.asarray(len(some)))
        parts.append([np.asarray(x)[: len(some)] for x in seen])
    return [np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*parts, strict=True)]


@eqx.filter_jit
def _look(
    observables: tuple[Observable, ...],
    model: Model,
    states: Any,
    times: Any,
    start: Any,
    own: bool,
    count: Any,
) -> tuple[Array, ...]:
    """One state after the other, as inside a run; the rest of the room stays zero."""

    def at(k: Any) -> tuple[Array, ...]:
        t = times[k]
        return tuple(o(Snapshot(at_time(model, t), states[k], t, start[k] if own else start)) for o in observables)

    shapes = jax.eval_shape(at, 0)
    room = tuple(jnp.zeros((states.shape[0], *s.shape), s.dtype) for s in shapes)
    put = lambda k, out: tuple(o.at[k].set(v) for o, v in zip(out, at(k), strict=True))  # noqa: E731
    return jax.lax.fori_loop(0, count, put, room)


@at_once(positions)
def _positions(seen: Seen) -> np.ndarray:
    return seen.states
