"""One-step methods on states with a retraction: Runge-Kutta with projected stages, and Lie-group alternatives.

Tableaux are read from SciPy (``RK45``: Dormand-Prince 5(4); ``DOP853``: 8(5,3)) rather than typed in again.
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
from scipy.integrate import DOP853, RK45

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

    Stages run in a loop over one buffer, so the field is compiled twice whatever the number of stages.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    estimates: tuple[np.ndarray, ...] = ()
    project_stages: bool = True

    def step(
        self, field: Field, retract: Retract, x: State, slope: State, t: Array, h: Array
    ) -> tuple[State, State, tuple[State, ...]]:
        """Stages k_i = f(N(x + h Σ_j a_ij k_j), t + c_i h); FSAL: the slope at the end is the next step's first."""
        stages = len(self.b)
        place = retract if self.project_stages else (lambda y: y)
        buffer = jax.tree.map(lambda k: jnp.zeros((stages + 1, *k.shape), k.dtype).at[0].set(k), slope)

        def combine(weights: Array, buffer: State) -> State:
            mix = lambda k: jnp.tensordot(weights.astype(k.dtype), k[: len(weights)], 1)  # noqa: E731
            return jax.tree.map(mix, buffer)

        def stage(i: Array, buffer: State) -> State:
            y = _axpy(h, combine(jnp.asarray(self.a)[i], buffer), x)
            k = field(place(y), t + jnp.asarray(self.c, t.dtype)[i] * h)
            return jax.tree.map(lambda old, new: old.at[i].set(new), buffer, k)

        buffer = jax.lax.fori_loop(1, stages, stage, buffer)
        y = _axpy(h, combine(jnp.asarray(self.b), buffer), x)
        end = field(retract(y), t + h)
        buffer = jax.tree.map(lambda old, new: old.at[stages].set(new), buffer, end)
        errors = tuple(jax.tree.map(lambda e: h * e, combine(jnp.asarray(e), buffer)) for e in self.estimates)
        return y, end, errors


def _axpy(h: Array, v: State, x: State) -> State:
    return jax.tree.map(lambda xi, vi: xi + h.astype(xi.dtype) * vi, x, v)


def _tableau(rows: list[list[float]], b: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = np.zeros((len(b), len(b)))
    for i, row in enumerate(rows):
        a[i + 1, : len(row)] = row
    return a, np.array(b), a.sum(axis=1)


def _embedded(solver: Any, estimates: tuple[np.ndarray, ...]) -> RungeKutta:
    stages = len(solver.B)
    a = np.zeros((stages, stages))
    a[:, : solver.A.shape[1]] = solver.A[:stages]
    return RungeKutta(solver.order, solver.error_estimator_order, a, solver.B, solver.C[:stages], estimates)


def _explicit(rows: list[list[float]], b: list[float], order: int, project_stages: bool = True) -> RungeKutta:
    a, weights, c = _tableau(rows, b)
    return RungeKutta(order, 0, a, weights, c, (), project_stages)


_RK4 = ([[0.5], [0.0, 0.5], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6], 4)

METHODS.register("rk45", _embedded(RK45, (RK45.E,)))
METHODS.register("dop853", _embedded(DOP853, (DOP853.E5, DOP853.E3)))
METHODS.register("rk4", _explicit(*_RK4))
METHODS.register("rk4-end", _explicit(*_RK4, project_stages=False))
METHODS.register("heun", _explicit([[1.0]], [0.5, 0.5], 2))
METHODS.register("euler", _explicit([], [1.0], 1))
