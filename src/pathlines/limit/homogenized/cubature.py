"""Expectations of the homogenized SDE without sampling: cubature on a tree (Ninomiya and Victoir).

    E φ(X_T) = E φ(step_K ∘ … ∘ step_1(X_0)) + O(h²),   h = T/K,
    step = e^{hV_0/2} e^{√h Z_1 Σ_1} … e^{√h Z_r Σ_r} e^{hV_0/2},   Z = 0, ±√3 with weights ⅔, ⅙, ⅙,

the order of the noises reversed with probability ½, V_0 the Stratonovich drift, every flow one Runge-Kutta step. Z has
the first five moments of a normal variable, so the weak order is two, and trees of K and K' steps are extrapolated:
(r u_{K'} - u_K)/(r-1), r = (K'/K)². A tree has 3^K leaves for one noise (two atoms), (2·3^r)^K for r > 1 noises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import a_function, finite_array, finite_number, of_kind, positive_integer, require
from pathlines.foundation.numbers import flat_list
from pathlines.limit.homogenized.finite_law import FiniteLawSDE, flowed, unit

BLOCK = 2048
"""Leaves that are moved together: their fields stay in the cache."""

NODES = ((0.0, 2 / 3), (-np.sqrt(3.0), 1 / 6), (np.sqrt(3.0), 1 / 6))

Function = Callable[[np.ndarray], np.ndarray]


class Expectation(NamedTuple):
    """E φ(X_T), and how far the extrapolations from the longest and from the shorter trees are apart."""

    value: np.ndarray
    error: np.ndarray


def check_expectation(sde: Any, start: Any, function: Any) -> None:
    """What expectations over trees are taken of: a finite law, unit tokens (n, d) and a function."""
    of_kind("sde", sde, FiniteLawSDE, "a FiniteLawSDE")
    a_function("function", function)
    require(len(finite_array("start", start, ("n", "d"))) > 0, "start", "hold at least one token", start)


def sde_expectation(
    sde: FiniteLawSDE, start: np.ndarray, until: float, function: Function, steps: Sequence[int] | None = None
) -> Expectation:
    """E φ(X_T) of dX = D dt + Σ_r Σ_r dW_r from ``start`` (n, d) at T = ``until``, without sampling.

    ``function`` φ takes configurations (leaves, n, d) to numbers (leaves, …) and must be smooth. ``steps`` are the
    lengths K of the trees, ascending: the last two are extrapolated, and the error is their distance from the
    extrapolation of the two before. By default (4, 6, 9) for two atoms, 3⁹ leaves: at n = 4, d = 3, T = 1.2, η = 0.1
    good to 2e-8, in about a second; (1, 2, 3) for three, 18³ leaves, good to 3e-6; one atom is a flow without noise.
    For schemes of the SDE this is the exact answer to compare with (Homogenized Transformers, arXiv:2604.01978).
    """
    check_expectation(sde, start, function)
    noises = len(sde.probabilities) - 1
    lengths = flat_list("steps", steps) if steps is not None else {0: [8, 16, 32], 1: [4, 6, 9]}.get(noises, [1, 2, 3])
    for length in lengths:
        positive_integer("steps", length)
    require(len(lengths) == 3 and lengths == sorted(set(lengths)), "steps", "be three ascending numbers", lengths)
    x = unit(finite_array("start", start, ("n", "d")).astype(float))
    until = finite_number("until", until, 0.0, open_low=True)
    first, second, third = (tree_average(sde, x, until, function, k) for k in lengths)
    value = extrapolated(lengths[1:], second, third)
    return Expectation(value, np.abs(value - extrapolated(lengths[:2], first, second)))


def tree_average(sde: FiniteLawSDE, start: np.ndarray, until: float, function: Function, steps: int) -> np.ndarray:
    """The expectation over one tree of ``steps`` steps, second order in T/``steps``."""
    length = until / positive_integer("steps", steps)
    return leaf_average(sde, np.asarray(start, float)[..., None], np.ones(1), length, steps, function)


def leaf_average(
    sde: FiniteLawSDE, leaves: np.ndarray, weights: np.ndarray, length: float, steps: int, function: Function
) -> np.ndarray:
    """Σ_l w_l E φ after ``steps`` more steps from each leaf (n, d, leaves); depth first, in blocks."""
    total: Any = 0.0
    stack = [(leaves, weights, 0)]
    while stack:
        x, mass, done = stack.pop()
        if done == steps:
            total = total + np.tensordot(mass, function(np.moveaxis(x, -1, 0)), 1)
            continue
        x, mass = stepped(sde, x, mass, length)
        cuts = range(BLOCK, len(mass), BLOCK)
        parts = zip(np.split(x, cuts, axis=-1), np.split(mass, cuts), strict=True)
        stack.extend((block, share, done + 1) for block, share in parts)
    return np.asarray(total)


def stepped(sde: FiniteLawSDE, x: np.ndarray, weights: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of every leaf (n, d, leaves) into all its branches, and their weights."""
    y = flowed(sde.stratonovich, x, length / 2)
    noises = range(len(sde.probabilities) - 1)
    orders = [noises, noises[::-1]] if len(noises) > 1 else [noises]
    ends = [_branched(sde, y, weights / len(orders), order, np.sqrt(length)) for order in orders]
    moved = flowed(sde.stratonovich, np.concatenate([e[0] for e in ends], axis=-1), length / 2)
    return moved, np.concatenate([e[1] for e in ends])


def _branched(
    sde: FiniteLawSDE, x: np.ndarray, weights: np.ndarray, order: Sequence[int], scale: float
) -> tuple[np.ndarray, np.ndarray]:
    for r in order:
        along = lambda y, r=r: sde.noise(y)[r]  # noqa: E731
        ends = [x if z == 0 else flowed(along, x, scale * z) for z, _ in NODES]
        x = np.concatenate(ends, axis=-1)
        weights = np.concatenate([chance * weights for _, chance in NODES])
    return x, weights


def extrapolated(lengths: Sequence[int], short: np.ndarray, long: np.ndarray) -> np.ndarray:
    """The limit of values with an error ∝ K^{-2}."""
    ratio = (lengths[1] / lengths[0]) ** 2
    return (ratio * long - short) / (ratio - 1)
