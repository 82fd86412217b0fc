"""One-step methods on states with a retraction: Runge-Kutta with projected stages, and Lie-group alternatives.

``rk23`` is the pair of Bogacki and Shampine 3(2), whose weights are all positive: what only grows does so step by step;
``rk45`` that of Dormand and Prince 5(4). Long tableaux have files of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.foundation.registry import Registry
from pathlines.model.base import State

Field = Callable[[State, Array], State]
Retract = Callable[[State], State]


@dataclass(frozen=True, eq=False)
class Method(ABC):
    """One step of size h; ``error_order`` is that of the embedded estimate (0: fixed step only).

    ``spherical`` methods move (n, d) tokens on the sphere and nothing else.
    """

    spherical: ClassVar[bool] = False
    order: int
    error_order: int

    @abstractmethod
    def step(
        self, field: Field, retract: Retract, x: State, slope: State, t: Array, h: Array
    ) -> tuple[State, State, tuple[State, ...]]:
        """(un-retracted new state, its slope, error estimates); ``slope`` is field(x, t)."""


METHODS: Registry[Method] = Registry("method", "pathlines.integrate")


@dataclass(frozen=True, eq=False)
class RungeKutta(Method):
    """Explicit Runge-Kutta in the ambient space, every stage input retracted: full order on the sphere.

    Few stages are written out, so that their sums fuse; many run in a loop over one buffer, so that the field is
    compiled twice whatever their number. FSAL: the slope at the end is the next step's first.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    estimates: tuple[np.ndarray, ...] = ()
    project_stages: bool = True

    def step(
        self, field: Field, retract: Retract, x: State, slope: State, t: Array, h: Array
    ) -> tuple[State, State, tuple[State, ...]]:
        """Stages k_i = f(N(x + h Σ_j a_ij k_j), t + c_i h), then x + h Σ_i b_i k_i."""
        stages = self._written_out if len(self.b) <= 6 else self._in_a_loop
        place = retract if self.project_stages else (lambda y: y)
        combine, finish = stages(field, place, x, slope, t, h)
        y = _axpy(h, combine(self.b), x)
        end = field(retract(y), t + h)
        combine = finish(end)
        return y, end, tuple(jax.tree.map(lambda e: h * e, combine(e)) for e in self.estimates)

    def _written_out(self, field: Field, place: Retract, x: State, slope: State, t: Array, h: Array) -> tuple[Any, ...]:
        slopes = [slope]

        def combine(weights: np.ndarray) -> State:
            terms = [(float(w), k) for w, k in zip(weights, slopes) if w != 0]
            mix = lambda *ks: sum(w * k for (w, _), k in zip(terms, ks, strict=True))  # noqa: E731
            return jax.tree.map(mix, *(k for _, k in terms))

        for i in range(1, len(self.b)):
            slopes.append(field(place(_axpy(h, combine(self.a[i]), x)), t + float(self.c[i]) * h))

        def finish(end: State) -> Callable[[np.ndarray], State]:
            slopes.append(end)
            return combine

        return combine, finish

    def _in_a_loop(self, field: Field, place: Retract, x: State, slope: State, t: Array, h: Array) -> tuple[Any, ...]:
        count = len(self.b)
        buffer = jax.tree.map(lambda k: jnp.zeros((count + 1, *k.shape), k.dtype).at[0].set(k), slope)

        def mixed(weights: Array, buffer: State) -> State:
            mix = lambda k: jnp.tensordot(weights.astype(k.dtype), k[: len(weights)], 1)  # noqa: E731
            return jax.tree.map(mix, buffer)

        def stage(i: Array, buffer: State) -> State:
            y = _axpy(h, mixed(jnp.asarray(self.a)[i], buffer), x)
            k = field(place(y), t + jnp.asarray(self.c, t.dtype)[i] * h)
            return jax.tree.map(lambda old, new: old.at[i].set(new), buffer, k)

        buffer = jax.lax.fori_loop(1, count, stage, buffer)

        def finish(end: State) -> Callable[[np.ndarray], State]:
            whole = jax.tree.map(lambda old, new: old.at[count].set(new), buffer, end)
            return lambda weights: mixed(jnp.asarray(weights), whole)

        return (lambda weights: mixed(jnp.asarray(weights), buffer)), finish


def _axpy(h: Array, v: State, x: State) -> State:
    return jax.tree.map(lambda xi, vi: xi + h.astype(xi.dtype) * vi, x, v)


def _tableau(rows: list[list[float]], b: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = np.zeros((len(b), len(b)))
    for i, row in enumerate(rows):
        a[i + 1, : len(row)] = row
    return a, np.array(b), a.sum(axis=1)


def _explicit(rows: list[list[float]], b: list[float], order: int, project_stages: bool = True) -> RungeKutta:
    a, weights, c = _tableau(rows, b)
    return RungeKutta(order, 0, a, weights, c, (), project_stages)


def _embedded(rows: list[list[float]], b: list[float], c: list[float], estimate: list[float], order: int) -> RungeKutta:
    """A pair: ``estimate`` weighs the stages, and the slope at the end, to the difference of the two solutions."""
    a, weights, _ = _tableau(rows, b)
    return RungeKutta(order, order - 1, a, weights, np.array(c), (np.array(estimate),))


_RK4 = ([[0.5], [0.0, 0.5], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6], 4)
_RK23 = ([[1 / 2], [0, 3 / 4]], [2 / 9, 1 / 3, 4 / 9], [0, 1 / 2, 3 / 4], [5 / 72, -1 / 12, -1 / 9, 1 / 8], 3)
_RK45 = (
    [
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    ],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1],
    [-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40],
    5,
)

METHODS.register("rk23", _embedded(*_RK23))
METHODS.register("rk45", _embedded(*_RK45))
METHODS.register("rk4", _explicit(*_RK4))
METHODS.register("rk4-end", _explicit(*_RK4, project_stages=False))
METHODS.register("heun", _explicit([[1.0]], [0.5, 0.5], 2))
METHODS.register("euler", _explicit([], [1.0], 1))
