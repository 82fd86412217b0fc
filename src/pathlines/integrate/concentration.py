"""Concentration at low temperature, simulated: distance to the projected start, and the mass at the wrong pole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from pathlines.foundation.errors import a_function, finite_array, finite_number, require
from pathlines.foundation.numbers import real_array
from pathlines.integrate.flow import flow
from pathlines.integrate.run import Run
from pathlines.model.self_attention import SelfAttention
from pathlines.numerics.graded import GradedCircle, graded_circle
from pathlines.weights.fixed import FixedWeights


class Concentration(NamedTuple):
    """``distance`` (T,) of the law to that of π(x_0), particle by particle; ``misassigned`` mass at the last time, by
    the place of the separatrix between particles, and ``net``, what e_1 gains of it (in the end W₂ is 2√|net|);
    ``shifts``, where the separatrix is beside its place at zero temperature: nan, as both masses, if there is none.
    """

    times: np.ndarray
    distance: np.ndarray
    misassigned: float
    net: float
    shifts: np.ndarray
    run: Run
    start: GradedCircle


def concentrate(
    density: Callable[[Any], Any], beta: float, value: Any, times: Any, n: int = 2000, *, rtol: float = 1e-6
) -> Concentration:
    """Softmax attention with Q = K = I and a symmetric V on the circle, from weighted particles of ``density``.

    Cells are geometric towards the separatrix, so that the last particles that are still between the poles weigh next
    to nothing. Cost: O(nK) per drift by K ~ 6√β harmonics; n = 2000 and β = 100 take a second or two.
    """
    matrix = finite_array("value", value, (2, 2)).astype(float)
    require(np.allclose(matrix, matrix.T, rtol=1e-9), "value", "be symmetric", value)
    beta = finite_number("beta", beta, 0.0, open_low=True)
    values, vectors = np.linalg.eigh(matrix)
    leading = vectors[:, -1] * np.sign(vectors[np.abs(vectors[:, -1]).argmax(), -1])
    pole = float(np.arctan2(leading[1], leading[0]))
    start = graded_circle(a_function("density", density), pole, n, max(1e-6, min(0.02, 0.02 / beta)))
    x = np.stack([np.cos(start.angles), np.sin(start.angles)], axis=1)
    model = SelfAttention(beta, weights=FixedWeights(matrix), multiplicities=start.masses)
    asked = np.unique(real_array("times", times, 0.0))
    require(len(asked) > 0, "times", "hold at least one number", times)
    # the separatrix stands still (to e^{-2 gap t} = 2.5e-5) while the tangents beside it are still small
    settled = min(float(asked[-1]), np.log(200) / (values[-1] - values[-2]))
    grid = np.union1d(asked, [settled])
    run = flow(model, jnp.asarray(x), times=grid, record="tokens", rtol=rtol)
    paths = run["tokens"].values
    axis = np.array([np.cos(pole), np.sin(pole)])
    side = np.where(x @ axis >= 0, 1.0, -1.0)
    distance = np.sqrt(np.sum((paths - side[:, None] * axis) ** 2, axis=-1) @ start.masses)
    places = [
        _root(start, paths[np.searchsorted(grid, settled)], axis, at) for at in (pole + np.pi / 2, pole - np.pi / 2)
    ]
    ends = zip((pole + np.pi / 2, pole - np.pi / 2), places, strict=True)
    beyond, before = (_mass_between(density, start, at, place) for at, place in ends)
    kept = np.isin(grid, asked)
    wrong, net = abs(beyond) + abs(before), beyond - before
    return Concentration(grid[kept], distance[kept], wrong, net, np.array(places), run, start)


def _root(start: GradedCircle, last: np.ndarray, axis: np.ndarray, at: float) -> float:
    """Where x·e_1 changes sign: between two neighbours, linearly in the tangent, which the flow stretches evenly."""
    beside = np.mod(start.angles - at + np.pi, 2 * np.pi) - np.pi
    near = np.flatnonzero(np.abs(beside) < np.pi / 4)
    near = near[np.argsort(beside[near])]
    along = last[near] @ axis
    tangent = along / np.sqrt(np.maximum(1 - along**2, 1e-300))
    change = np.flatnonzero(tangent[:-1] * tangent[1:] <= 0)
    if len(change) != 1:
        return np.nan
    k = change[0]
    a, b = beside[near[k]], beside[near[k + 1]]
    return float(a + (b - a) * tangent[k] / (tangent[k] - tangent[k + 1]))


def _mass_between(density: Callable[[Any], Any], start: GradedCircle, at: float, shift: float) -> float:
    """∫ρ from the separatrix at zero temperature to the displaced one, negative if that is before it."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    total = np.sum(np.diff(start.edges) * density((start.edges[1:] + start.edges[:-1]) / 2))
    return float(shift / 2 * weights @ density(at + shift * (nodes + 1) / 2) / total)
