"""A stiff method: Rodas5P, with exact Jacobians by forward differentiation.

G. Steinebach, Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia Differential
Equations package, BIT Numerical Mathematics 63 (2023): order 5(4), eight stages, L-stable, stiffly accurate.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from pathlines.integrate.methods import METHODS, Field, Method, Retract
from pathlines.model.base import State

_GAMMA = 0.21193756319429014
_LAST = [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946]


def _rows(*rows: list[float]) -> np.ndarray:
    """Strictly lower triangular, 8 × 8, the first row empty."""
    matrix = np.zeros((8, 8))
    for i, row in enumerate(rows):
        matrix[i + 1, : len(row)] = row
    return matrix


_A = _rows(
    [3.0],
    [2.849394379747939, 0.45842242204463923],
    [-6.954028509809101, 2.489845061869568, -10.358996098473584],
    [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
    _LAST,
    [*_LAST, 1.0],
    [*_LAST, 1.0, 1.0],
)
_C = _rows(
    [-14.155112264123755],
    [-17.97296035885952, -2.859693295451294],
    [147.12150275711716, -1.41221402718213, 71.68940251302358],
    [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
    [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471],
    [30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
     -28.087943162872662],
    [37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
     -54.66780262877968, -9.48861652309627],
)  # fmt: skip
_NODES = np.array([0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0])
_SLOPES = np.array([_GAMMA, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069, 0, 0, 0])
"""Weights of ∂f/∂t in the stages."""


@dataclass(frozen=True, eq=False)
class Rosenbrock(Method):
    """(1/(hγ) - J)k_i = f(x + Σ a_ij k_j, t + c_i h) + Σ c_ij k_j/h + h d_i f_t, J the Jacobian at the start of a step.

    For stiff problems with few unknowns: m of them cost O(m) drifts and O(m³) per step.
    """

    gamma: float
    a: np.ndarray
    c: np.ndarray
    nodes: np.ndarray
    slopes: np.ndarray

    def step(
        self, field: Field, retract: Retract, x: State, slope: State, t: Array, h: Array
    ) -> tuple[State, State, tuple[State, ...]]:
        """Eight stages with one inverse; the last increment is the error estimate."""
        y, whole = ravel_pytree(x)
        flat = lambda v, at: ravel_pytree(field(whole(v), at))[0]  # noqa: E731
        jacobian = jax.jacfwd(flat)(y, t)
        over_time = jax.jvp(lambda at: flat(y, at), (t,), (jnp.ones_like(t),))[1]
        inverse = gauss_jordan(jnp.eye(y.size, dtype=y.dtype) / (h * self.gamma) - jacobian)
        a, c, nodes, slopes = (jnp.asarray(x, y.dtype) for x in (self.a, self.c, self.nodes, self.slopes))

        def stage(i: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
            """One copy of the field is compiled for all stages."""
            increments, _ = item
            u = y + a[i] @ increments
            right = flat(u, t + nodes[i] * h) + (c[i] @ increments) / h + h * slopes[i] * over_time
            return increments.at[i].set(inverse @ right), u

        increments, u = jax.lax.fori_loop(0, 8, stage, (jnp.zeros((8, y.size), y.dtype), y))
        new = whole(u + increments[-1])
        return new, field(retract(new), t + h), (whole(increments[-1]),)


def gauss_jordan(matrix: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The inverse with row pivoting, as one vector program over lanes (LAPACK in lanes is a loop over calls).

    Rows stay where they are, and only the result is put in order: moving them costs more than eliminating.
    """
    m = matrix.shape[0]
    place = jnp.arange(m)

    def eliminate(k: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
        rows, order = item
        column, here = rows[:, k], place == k
        pivot = place == jnp.argmax(jnp.where(order < m, -1.0, jnp.abs(column)))
        top = jnp.sum(jnp.where(pivot[:, None], rows, 0.0), axis=0)
        row = jnp.where(here, 1.0, top) / jnp.sum(jnp.where(pivot, column, 0.0))
        rest = jnp.where(here, 0.0, rows) - column[:, None] * row[None]
        return jnp.where(pivot[:, None], row, rest), jnp.where(pivot, k, order)

    rows, order = jax.lax.fori_loop(0, m, eliminate, (matrix, jnp.full(m, m)))
    return rows[jnp.argsort(order)][:, order]


METHODS.register("rodas5p", Rosenbrock(5, 4, _GAMMA, _A, _C, _NODES, _SLOPES))
