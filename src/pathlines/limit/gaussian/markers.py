"""Laws by weighted markers in NumPy, carried by their own attention field on a line where there is no closure.

    x_i' = v Σ_{s_j ≤ s_i} w_j κ(x_i, x_j) x_j,   normalised over the same j for softmax.

Nodes and weights are a quadrature of the initial law (equally spaced: the trapezoid rule converges fast for Gaussians
and is not disturbed by the poles of the sigmoid); A Unified Perspective, arXiv:2501.18322.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from pathlines.foundation.errors import finite_array, finite_number
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, root

SOURCES = (UNIFIED,)


class Moments1(NamedTuple):
    """Mean, variance, skewness and kurtosis (3 for a Gaussian)."""

    mean: float
    variance: float
    skewness: float
    kurtosis: float


def gaussian_grid(
    mean: float, deviation: float, step: float = 0.08, reach: float = 8.0
) -> tuple[np.ndarray, np.ndarray]:
    """Equally spaced nodes of N(mean, deviation²) and their weights."""
    z = np.arange(-reach, reach + step / 2, finite_number("step", step, 0.0, open_low=True))
    w = np.exp(-(z**2) / 2)
    return mean + finite_number("deviation", deviation, 0.0, open_low=True) * z, w / w.sum()


def hermite_nodes(cov: Any, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes (m, d) and weights of N(0, Σ)."""
    z, w = np.polynomial.hermite_e.hermegauss(order)
    points, weights = _product(z, w, len(cov))
    return points @ root(checked_covariance("cov", cov)), weights


def legendre_nodes(order: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes (m, d) and weights of the uniform law on [-1, 1]^d."""
    return _product(*np.polynomial.legendre.leggauss(order), d)


def _product(z: np.ndarray, w: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    index = np.indices([len(z)] * d).reshape(d, -1)
    weights = np.prod(w[index], axis=0)
    return z[index].T, weights / weights.sum()


def moments_of(x: np.ndarray, w: np.ndarray) -> Moments1:
    """Of weighted points; the weights need not sum to one."""
    w = w / w.sum()
    mean = float(w @ x)
    variance, third, fourth = (float(w @ (x - mean) ** k) for k in (2, 3, 4))
    return Moments1(mean, variance, third / variance**1.5, fourth / variance**2)


def _carried(rate: Callable[[np.ndarray], np.ndarray], start: np.ndarray, until: float) -> np.ndarray:
    found = solve_ivp(lambda _, x: rate(x), (0.0, until), start, "DOP853", rtol=1e-11, atol=1e-12, t_eval=[until])
    return found.y[:, -1]


def masked_softmax(v: float, a: float, blocks: Any, until: float, step: float = 0.08) -> list[Moments1]:
    """Blocks (mass, mean, deviation) of a masked law, each seeing itself and those before: moments at ``until``."""
    table = finite_array("blocks", blocks, ("blocks", 3)).astype(float)
    grids = [gaussian_grid(mean, deviation, step) for _, mean, deviation in table]
    place = np.repeat(np.arange(len(table)), [len(g[0]) for g in grids])
    x = np.concatenate([g[0] for g in grids])
    w = np.concatenate([m * g[1] for m, g in zip(table[:, 0], grids, strict=True)])
    seen = place[None, :] <= place[:, None]

    def rate(x: np.ndarray) -> np.ndarray:
        scores = np.where(seen, a * np.outer(x, x), -np.inf)
        weights = w * np.exp(scores - scores.max(axis=1, keepdims=True))
        return v * (weights @ x) / weights.sum(axis=1)

    end = _carried(rate, x, until)
    return [moments_of(end[place == b], w[place == b]) for b in range(len(table))]


def sigmoid_refinement(a: float, mean: float, deviation: float) -> float:
    """By how much closer (≤ 1) nodes of N(mean, deviation²) must lie for σ(axy) than spacings 0.05 … 0.1 deviations.

    The poles of σ are π/|ax| from the real axis: a node at x sees a kernel of that width.
    """
    return min(1.0, 1.5 / max(1e-300, abs(a) * deviation * (deviation + abs(mean))))


def sigmoid_law(v: float, a: float, bias: float, mean: float, deviation: float, until: float, step: float) -> Moments1:
    """Moments of N(mean, deviation²) under sigmoid attention at ``until``; it does not stay Gaussian."""
    x, w = gaussian_grid(mean, deviation, step)
    end = _carried(lambda x: v * expit(a * np.outer(x, x) + bias) @ (w * x), x, until)
    return moments_of(end, w)


def sigmoid_closure(
    v: float, a: float, bias: float, mean: float, deviation: float, until: float
) -> tuple[float, float]:
    """(α, Σ) of the moment closure: α' = EΓ(X), Σ' = 2E[Γ(X)(X - α)], X ~ N(α, Σ), expectations by a double grid."""
    z, w = gaussian_grid(0.0, 1.0, max(0.01, 0.08 * sigmoid_refinement(a, mean, deviation)))

    def rate(y: np.ndarray) -> np.ndarray:
        x = y[0] + np.sqrt(y[1]) * z
        field = v * expit(a * np.outer(x, x) + bias) @ (w * x)
        return np.array([w @ field, 2 * w @ (field * (x - y[0]))])

    alpha, sigma = _carried(rate, np.array([mean, deviation**2]), until)
    return float(alpha), float(sigma)
