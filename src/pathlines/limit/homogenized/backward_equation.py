"""E[φ(y_τ)] of a scalar diffusion dy = μ dτ + σ dB on the line, by collocation of its backward equation.

u' = ½σ²u_yy + μu_y, u(0) = φ, read off at y0. Two windows:

* ``in_fixed_window``: everything the path can reach, Chebyshev points in s, y = 2 sinh s (dense where tanh bends,
  thinning like 1/|y|), u_y = 0 at both ends, one matrix exponential. About 1e-11 with 120-180 points.
* ``in_moving_window``: when noise is weak against drift (many dimensions) the fixed window would have to resolve
  boundary layers of width σ²/μ. A few points travel with the deterministic path instead; on so short a window
  polynomials of degree 24 are exact to rounding and no boundary condition is needed. Commutator-free Magnus steps of
  order four.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import integrate, linalg

from pathlines.foundation.errors import PathlinesError

Function = Callable[[np.ndarray], np.ndarray]
SIGMAS = 8.0  # a Gaussian leaves its window with probability 1e-15
_SCALE = 2.0
_NODES = (120, 180, 270, 400, 600)
_STEPS = (16, 32, 64, 128, 256)
_AGREE = 1e-10


@cache
def chebyshev(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Points -cos(πk/N) of [-1, 1] and their differentiation matrix, from differences written as products."""
    k = np.arange(nodes)
    angle = np.pi / (2 * (nodes - 1))
    difference = 2 * np.sin(angle * (k[:, None] + k)) * np.sin(angle * (k[:, None] - k))
    np.fill_diagonal(difference, 1.0)
    sign = (-1.0) ** k
    sign[[0, -1]] *= 2
    matrix = sign[:, None] / sign / difference
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return -np.cos(2 * angle * k), matrix


def _interpolated(nodes: np.ndarray, values: np.ndarray, at: float) -> float:
    """Barycentric interpolation at Chebyshev points."""
    gap = at - nodes
    if np.any(gap == 0):
        return float(values[gap == 0][0])
    weight = (-1.0) ** np.arange(len(nodes)) / gap
    weight[[0, -1]] *= 0.5
    return float(weight @ values / weight.sum())


def _generator(drift: np.ndarray, variance: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """½σ²∂² + μ∂ at the nodes; rows kill constants to the last digit, for a rounding there grows with time."""
    matrix = 0.5 * variance[:, None] * (slope @ slope) + drift[:, None] * slope
    np.fill_diagonal(matrix, matrix.diagonal() - matrix.sum(axis=1))
    return matrix


def _settled(solve: Callable[[int], float], sizes: tuple[int, ...], what: str) -> float:
    """The first answer that agrees with the one before it to 1e-10."""
    before = np.nan
    for size in sizes:
        now = solve(size)
        if abs(now - before) <= _AGREE * max(1.0, abs(now)):
            return now
        before = now
    raise PathlinesError(f"The backward equation is not resolved to {_AGREE:g} by {sizes[-1]} {what}.")


def in_fixed_window(
    drift: Function, variance: Function, values: Function, time: float, start: float, window: tuple[float, float]
) -> float:
    """E[φ(y_τ)] from y_0 = ``start``; the path must stay inside ``window``."""
    left, right = (float(np.arcsinh(end / _SCALE)) for end in window)

    def solve(nodes: int) -> float:
        x, matrix = chebyshev(nodes)
        s = left + (right - left) * (x + 1) / 2
        y = _SCALE * np.sinh(s)
        slope = matrix * (2 / (right - left) / (_SCALE * np.cosh(s)))[:, None]
        generator = _generator(drift(y), variance(y), slope)
        ends, inner = [0, -1], slice(1, -1)
        lift = -np.linalg.solve(slope[np.ix_(ends, ends)], slope[ends, inner])
        reduced = generator[inner, inner] + generator[inner][:, ends] @ lift
        u = linalg.expm(time * reduced) @ values(y[inner])
        u = np.concatenate([lift[:1] @ u, u, lift[1:] @ u])
        return _interpolated(s, u, float(np.arcsinh(start / _SCALE)))

    return _settled(solve, _NODES, "nodes")


def path_and_spread(drift: Function, variance: Function, time: float, start: float) -> tuple[Callable[..., Any], float]:
    """The path Y of dy = μ dτ from ``start``, and the largest standard deviation of the noise linearised around it."""
    step = 1e-4

    def rate(_: float, state: np.ndarray) -> list[float]:
        around = state[0] + np.array([-step, 0.0, step])
        low, here, high = drift(around)
        return [here, (high - low) / step * state[1] + float(variance(around)[1])]

    path = integrate.solve_ivp(
        rate, (0.0, time), [start, 0.0], method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True
    )
    return (lambda t: path.sol(t)[0]), float(np.sqrt(np.max(path.y[1])))


def in_moving_window(
    drift: Function,
    variance: Function,
    values: Function,
    time: float,
    path: Callable[..., Any],
    half_width: float,
    nodes: int = 25,
) -> float:
    """E[φ(y_τ)] from y_0 = ``path``(0), on |y - Y| ≤ ``half_width`` (at most about one) around the path Y."""
    x, matrix = chebyshev(nodes)
    slope, offset = matrix / half_width, half_width * x

    def generator(t: float) -> np.ndarray:
        centre = float(path(t))
        y = centre + offset
        return _generator(drift(y) - drift(np.array([centre])), variance(y), slope)

    root = np.sqrt(3) / 6
    near, far = 0.25 + root, 0.25 - root

    def solve(steps: int) -> float:
        h = time / steps
        u = values(float(path(time)) + offset)
        for k in range(steps - 1, -1, -1):
            late, early = generator((k + 0.5 + root) * h), generator((k + 0.5 - root) * h)
            u = linalg.expm(h * (near * late + far * early)) @ u
            u = linalg.expm(h * (far * late + near * early)) @ u
        return _interpolated(x, u, 0.0)

    return _settled(solve, _STEPS, "steps")
