"""Distances between laws of tokens: exact where that is affordable, and saying so where it is not.

    W_p(μ, ν)^p = min over couplings of E|X - Y|^p.

Between two samples of one law W_p does not vanish: the rate of ``sampling_rate`` is a floor to compare any estimate
with. Where copies of the same points can be driven by the mean field, ``coupling_error`` has no such floor.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from scipy.special import ndtr, ndtri

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer, require
from pathlines.numerics.quadrature import covariance_factor
from pathlines.observable.plans import lengths, plan_cost

LARGEST_ASSIGNMENT = 2000
"""Points up to which an optimal assignment or plan, O(n³), is computed."""


class Distance(msgspec.Struct, frozen=True):
    """A distance, the method that found it ("sorted", "assignment", "sliced, …"), whether it is exact, and the rate at
    which the distance of two samples of one law would vanish (without its constant).
    """

    value: float
    method: str
    exact: bool
    sampling_rate: float


def bures(one: Any, other: Any) -> float:
    """W_2 of centred Gaussians with covariances Σ = LLᵀ given by *factors* L (d × r, any r).

    B = |L_1 - L_2O| (Frobenius) with O = UWᵀ from L_2ᵀL_1 = UsWᵀ, the best rotation: no matrix roots, singular
    covariances are no case, and near ones lose no digits (as |L_1|² + |L_2|² - 2Σs would). O(d²r + d³).
    """
    a, b = (np.atleast_2d(finite_array(n, x)).astype(float) for n, x in (("one", one), ("other", other)))
    for name, factor in (("one", a), ("other", b)):
        require(factor.ndim == 2, name, "be a matrix d × r", factor)
    require(len(a) == len(b), "other", f"have {len(a)} rows", b)
    a, b = (_square_factor(x) for x in (a, b))
    left, _, right = np.linalg.svd(b.T @ a)
    return float(np.linalg.norm(a - b @ left @ right))


def _square_factor(factor: np.ndarray) -> np.ndarray:
    """A d × d factor of the same covariance."""
    d, r = factor.shape
    return np.linalg.qr(factor.T)[1].T if r > d else np.pad(factor, ((0, 0), (0, d - r)))


def gaussian_distance(mean: Any, covariance: Any, other_mean: Any, other_covariance: Any) -> float:
    """W_2 of N(m_1, Σ_1) and N(m_2, Σ_2): √(|m_1 - m_2|² + B²)."""
    a, b = (np.atleast_1d(finite_array(n, x)).astype(float) for n, x in (("mean", mean), ("other_mean", other_mean)))
    require(a.ndim == 1, "mean", "be a number or a row of numbers", a)
    require(a.shape == b.shape, "other_mean", f"have {len(a)} entries", b)
    factors = (
        covariance_factor(n, c, len(a)) for n, c in (("covariance", covariance), ("other_covariance", other_covariance))
    )
    return float(np.hypot(np.linalg.norm(a - b), bures(*factors)))


def gelbrich(tokens: Any, mean: Any, covariance: Any, masses: Any = None) -> float:
    """A lower bound of W_2(μ, N(mean, covariance)): the distance of the Gaussian with the moments of μ. O(nd² + d³)."""
    x = finite_array("tokens", tokens, ("n", "d")).astype(float)
    m = _masses(masses, len(x))
    centre = m @ x
    factor = ((x - centre) * np.sqrt(m)[:, None]).T
    other = finite_array("mean", mean, (x.shape[1],)).astype(float)
    sigma = covariance_factor("covariance", covariance, x.shape[1])
    return float(np.hypot(np.linalg.norm(centre - other), bures(factor, sigma)))


def line_to_gaussian(points: Any, mean: float = 0.0, deviation: float = 1.0, p: int = 1, masses: Any = None) -> float:
    """W_1 or W_2 of points on a line and N(mean, deviation²), exactly, in O(n log n).

    Points take the quantiles of their cells [u_{i-1}, u_i]; ∫z du = φ(z_a) - φ(z_b) and ∫z² du = u_b - u_a -
    z_bφ_b + z_aφ_a over a cell, z = Φ^{-1}(u); for W_1 each cell is split where the quantile passes the point.
    """
    require(p in (1, 2), "p", "be 1 or 2", p)
    sigma = finite_number("deviation", deviation, 0.0, open_low=True)
    x = (finite_array("points", points, ("n",)).astype(float) - finite_number("mean", mean)) / sigma
    order = np.argsort(x)
    x, m = x[order], _masses(masses, len(x))[order]
    x, m = x[m > 0], m[m > 0]
    u = np.concatenate([[0.0], np.cumsum(m)[:-1], [1.0]])
    a, b = u[:-1], u[1:]
    if p == 2:
        squares = m * x * x - 2 * x * _first(a, b) + _second(a, b)
        return sigma * float(np.sqrt(max(0.0, squares.sum())))
    cut = np.clip(ndtr(x), a, b)
    below = x * (cut - a) - _first(a, cut)
    above = _first(cut, b) - x * (b - cut)
    return sigma * float(np.sum(below + above))


def cloud_distance(
    one: Any,
    other: Any,
    p: int = 2,
    directions: int = 256,
    seed: int = 0,
    masses: Any = None,
    other_masses: Any = None,
    metric: str = "line",
) -> Distance:
    """W_p of two clouds of any masses and numbers: by quantiles for d = 1, exactly up to n = 2000, else sliced.

    Equally many tokens of equal mass are sorted (d = 1) or assigned; others get an exact plan of POT (``plans.py``).
    ``metric="arc"`` measures along the unit sphere instead of straight lines. Sliced W_p averages W_p^p over
    ``directions`` random projections: it is smaller than W_p, by about √d.
    """
    x, y = (finite_array(n, c, ("n", "d")).astype(float) for n, c in (("one", one), ("other", other)))
    require(len(x) > 0 and x.shape[1] > 0, "one", "have points", x)
    require(len(y) > 0 and x.shape[1] == y.shape[1], "other", f"have points with {x.shape[1]} columns", y)
    a, b = checked_masses("masses", masses, len(x)), checked_masses("other_masses", other_masses, len(y))
    p, d, n = positive_integer("p", p), x.shape[1], max(len(x), len(y))
    positive_integer("directions", directions)
    positive_integer("seed", seed, 0)
    rate = sampling_rate(min(len(x), len(y)), d, p)
    alike = len(x) == len(y) and masses is None and other_masses is None
    if d == 1 and metric == "line":
        return Distance(_on_line(x[:, 0], y[:, 0], a, b, p), "sorted", True, rate)
    if n <= LARGEST_ASSIGNMENT:
        costs = lengths(x, y, metric) ** p
        if alike:
            from scipy.optimize import linear_sum_assignment

            rows, columns = linear_sum_assignment(costs)
            return Distance(float(np.mean(costs[rows, columns]) ** (1 / p)), "assignment", True, rate)
        return Distance(max(0.0, plan_cost(costs, a, b)) ** (1 / p), "plan", True, rate)
    require(metric == "line", "metric", f"be 'line' for more than {LARGEST_ASSIGNMENT} points", metric)
    ways = np.random.default_rng(seed).standard_normal((directions, d))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    values = [_on_line(x @ way, y @ way, a, b, p) ** p for way in ways]
    name = f"sliced, {directions} directions, seed {seed} (n > {LARGEST_ASSIGNMENT})"
    return Distance(float(np.mean(values) ** (1 / p)), name, False, rate)


def circle_distance(one: Any, other: Any) -> float:
    """W_2 of equally many points of the circle of equal mass, for the length of arcs, exactly, in O(n²).

    Both are given by their angles. The best plan keeps the order around the circle: a shift of the sorted angles, and
    the arcs that it turns through add up as on the line.
    """
    a, b = (
        np.sort(np.mod(finite_array(n, x, ("n",)).astype(float), 2 * np.pi))
        for n, x in (("one", one), ("other", other))
    )
    require(len(a) == len(b), "other", f"have {len(a)} angles", b)
    n = len(a)
    around = np.concatenate([b - 2 * np.pi, b, b + 2 * np.pi])
    shifted = around[np.arange(n) + np.arange(2 * n + 1)[:, None]]
    return float(np.sqrt(np.min(np.mean((shifted - a) ** 2, axis=1))))


def conditional_distance(positions: Any, one: Any, other: Any, p: int = 2) -> float:
    """d_p = (∫ W_p(μ^s, ν^s)^p dθ(s))^{1/p} of masked states with the same positions s (token i of both has s_i).

    Distinct positions compare token with token: (n^{-1} Σ_i |x_i - y_i|^p)^{1/p}. States with other positions are
    infinitely far. How Smooth Is Attention?, arXiv:2312.14820.
    """
    x, y = _clouds(one, other)
    places = finite_array("positions", positions, (len(x),))
    total = 0.0
    for place in np.unique(places):
        here = places == place
        total += here.sum() / len(x) * cloud_distance(x[here], y[here], p).value ** p
    return float(total ** (1 / p))


def coupling_error(one: Any, other: Any, masses: Any = None) -> float:
    """C = (Σ_i m_i |x_i - y_i|²)^{1/2} ≥ W_2: the error of n tokens against copies that the mean field drives."""
    x, y = _clouds(one, other)
    return float(np.sqrt(_masses(masses, len(x)) @ np.sum((x - y) ** 2, axis=1)))


def sampling_rate(n: int, d: int, p: int) -> float:
    """How E W_p of n samples and their law decays, without its constant: Gaussian tails for p = 2, d ≤ 2.

    W_1: n^{-1/2}, √(ln n/n), n^{-1/d} for d = 1, 2, ≥ 3; W_2: √(ln ln n/n), ln n/√n, n^{-1/d}.
    """
    n = max(3, positive_integer("n", n))
    if d >= 3:
        return float(n ** (-1 / d))
    log = np.log(n)
    factor = {(1, 1): 1.0, (2, 1): np.sqrt(log), (1, 2): np.sqrt(np.log(log)), (2, 2): log}[(d, min(p, 2))]
    return float(factor / np.sqrt(n))


def _on_line(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray, p: int) -> float:
    """W_p on the line: quantile functions are constant between the joint levels of both clouds."""
    if len(x) == len(y) and np.ptp(a) == 0 and np.ptp(b) == 0:
        return float(np.mean(np.abs(np.sort(x) - np.sort(y)) ** p) ** (1 / p))
    i, j = np.argsort(x), np.argsort(y)
    one, other = np.cumsum(a[i]), np.cumsum(b[j])
    levels = np.sort(np.concatenate([[0.0], one[:-1], other[:-1], [1.0]]))
    middle = (levels[1:] + levels[:-1]) / 2
    left, right = (v[k][np.minimum(np.searchsorted(c, middle), len(v) - 1)] for v, k, c in ((x, i, one), (y, j, other)))
    return float((np.diff(levels) @ np.abs(left - right) ** p) ** (1 / p))


def _quantiles(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(z, φ(z)) at z = Φ^{-1}(u); (0, 0) at u = 0 and 1, where zφ(z) and φ(z) vanish."""
    inside = (u > 0) & (u < 1)
    z = ndtri(np.where(inside, u, 0.5))
    return z, np.where(inside, np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), 0.0)


def _first(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """∫ Φ^{-1}(u) du from a to b."""
    return _quantiles(a)[1] - _quantiles(b)[1]


def _second(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """∫ Φ^{-1}(u)² du from a to b."""
    (za, fa), (zb, fb) = _quantiles(a), _quantiles(b)
    return (b - a) - (zb * fb - za * fa)


def _clouds(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = (finite_array(n, c, ("n", "d")).astype(float) for n, c in (("one", one), ("other", other)))
    require(x.shape == y.shape, "other", f"have the shape of `one` {x.shape}", y)
    return x, y


def _masses(masses: Any, n: int) -> np.ndarray:
    return checked_masses("masses", masses, n)


def checked_masses(name: str, masses: Any, n: int) -> np.ndarray:
    """Masses of n points, which must be at least 0 and sum to one; equal ones by default."""
    if masses is None:
        return np.full(n, 1 / n)
    m = finite_array(name, masses, (n,)).astype(float)
    require(bool((m >= 0).all()), name, "be at least 0", m)
    if abs(m.sum() - 1) > 1e-9:
        raise ArgumentError(f"Argument `{name}` must sum to 1, but sums to {m.sum():.9g}; divide by the sum.")
    return m
