"""Low temperature on the circle and the sphere: which mass goes to the wrong pole, and the plateau that it leaves.

dx/dt = P_xV A_β, A_β the softmax average with Q = K = I of a law with density ρ_t: A_β(x) = x + ∇log ρ_t/β + O(β⁻²). At
zero temperature x_t = e^{tV}x/|e^{tV}x| goes to π(x) = ±e_1, the pole on its side of the great sphere orthogonal to
e_1, where V has the eigenvalues λ_1 > λ_2 ≥ …. At finite β that separatrix is displaced, by the height

    h(ω) = -(λ_1/2β) ∂_h log ρ_0(ω) Σ_{k≥2} ω_k²/(λ_1 - λ_k) + O(β⁻²)

at its point ω: h' = (λ_1 - q)h + (λ_1/β)∂_h log ρ_t along ω_t, q its Rayleigh quotient, ∂_h log ρ_t = ∂_h log ρ_0
e^{-∫(λ_1-q)}, and e^{2∫q} = |e^{tV}ω|². The mass in between,

    mis = (λ_1/2β) ∫ |∂_hρ_0(ω)| ωᵀ(λ_1 - V)⁻¹ω dω,

goes to the other pole, and the law stays at W₂ = 2√mis from π_#ρ_0. On the circle the next order is here too. Setting:
Quantifying Concentration Phenomena of Mean-Field Transformers in the Low-Temperature Regime, arXiv:2605.10931
[derived].
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError, a_function, finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers.followups import LOW_TEMPERATURE
from pathlines.numerics.sources import semidefinite

SOURCES = (LOW_TEMPERATURE,)
GRID = 4096
STENCIL = 0.02
"""Distance of the points that derivatives are taken from: errors of its fourth power."""
CIRCLE_POINTS = 512
SPHERE_POINTS = 1 << 13
Density = Callable[[np.ndarray], np.ndarray]


class Misassignment(NamedTuple):
    """What goes to the wrong pole at inverse temperature β.

    ``mass``: the misassigned mass; ``first``: its leading order, a constant over β; ``plateau``: 2√mass; ``relative``:
    the next order over the leading one (squared it is about what is left out); ``shifts``: where the separatrix is,
    beside its place at zero temperature, at each of its points; ``gap`` λ_1 - λ_2; ``axis`` e_1.
    """

    mass: float
    first: float
    plateau: float
    relative: float
    shifts: np.ndarray
    gap: float
    axis: np.ndarray


def value_spectrum(value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric V, decreasing, and eigenvectors in columns; λ_1 must be positive and alone."""
    matrix = real_array("value", value)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] >= 2
    require(square, "value", "be a matrix d × d with d ≥ 2", value)
    symmetric = semidefinite("value", matrix + _lift(matrix) * np.eye(len(matrix)), len(matrix))
    values, vectors = np.linalg.eigh(symmetric - _lift(matrix) * np.eye(len(matrix)))
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[0] > 0:
        raise ArgumentError(f"Argument `value` must have a positive eigenvalue, but the largest is {values[0]:.4g}.")
    if not values[0] - values[1] > 1e-9 * values[0]:
        raise ArgumentError(f"Argument `value` must have a largest eigenvalue that is simple, but has {values[:2]}.")
    return values, vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), range(len(values))] < 0, -1, 1)


def _lift(matrix: np.ndarray) -> float:
    """What makes eigenvalues of either sign at least zero, so that symmetry is all that is checked."""
    return float(np.abs(matrix).sum()) + 1.0


def von_mises(kappa: float, mean: float = 0.0) -> Density:
    """e^{κ cos(θ - mean)}, not normalised but at most 1."""
    k, m = finite_number("kappa", kappa, 0.0), finite_number("mean", mean)
    return lambda theta: np.exp(k * (np.cos(np.asarray(theta) - m) - 1))


def normalised(density: Density) -> Density:
    """Divided by its integral over the circle; positive everywhere."""
    theta = 2 * np.pi * np.arange(GRID) / GRID
    values = np.asarray(a_function("density", density)(theta), float)
    fine = values.shape == theta.shape and np.isfinite(values).all() and bool((values > 0).all())
    require(fine, "density", "be a positive finite function of an array of angles", density)
    total = values.mean() * 2 * np.pi
    return lambda angles: np.asarray(density(angles), float) / total


def slopes(density: Density, at: float) -> tuple[float, float, float]:
    """First three derivatives of log ρ, by central differences of seven points."""
    h = STENCIL
    logs = np.log(density(at + h * np.arange(-3, 4)))
    first = logs @ [-1, 9, -45, 0, 45, -9, 1] / (60 * h)
    second = logs @ [2, -27, 270, -490, 270, -27, 2] / (180 * h**2)
    third = logs @ [1, -8, 13, 0, -13, 8, -1] / (8 * h**3)
    return float(first), float(second), float(third)


def displacement(slope: tuple[float, float, float], first: float, second: float) -> tuple[float, float]:
    """Coefficients of 1/β and 1/β² of the angle of a separatrix, from the derivatives of log ρ there, λ_1 and λ_2."""
    s1, s2, s3 = slope
    gap = first - second
    bend = first * (s3 - 6 * s1 + 2 * s1 * s2)
    later = s1 / (4 * gap**2) * (9 * gap - 7 * first - first * s2 / 2)
    later += bend / 8 * (1 / (first * gap) - 1 / gap**2)
    return -first * s1 / (2 * gap), -first * later


def misassignment(density: Density, beta: float, value: Any) -> Misassignment:
    """To second order on the circle: ``density`` is any positive smooth function of the angle, V any symmetric 2 × 2.

    The misassigned mass at the two ends of the diameter orthogonal to e_1, mis/β + O(β⁻²), with its next order.
    """
    cold = finite_number("beta", beta, 0.0, open_low=True)
    values, vectors = value_spectrum(value)
    require(len(values) == 2, "value", "be 2 × 2 (sphere_misassignment has the others)", value)
    rho = normalised(density)
    pole = float(np.arctan2(vectors[1, 0], vectors[0, 0]))
    leading, mass, shifts = 0.0, 0.0, []
    for at in (pole + np.pi / 2, pole - np.pi / 2):
        slope, height = slopes(rho, at), float(rho(np.array([at]))[0])
        one, two = displacement(slope, values[0], values[1])
        shift = one / cold + two / cold**2
        leading += height * abs(one) / cold
        mass += abs(height * (shift + slope[0] * (one / cold) ** 2 / 2))
        shifts.append(shift)
    relative = abs(mass - leading) / leading if leading > 0 else 0.0
    gap = float(values[0] - values[1])
    return Misassignment(
        float(mass), float(leading), float(2 * np.sqrt(mass)), float(relative), np.array(shifts), gap, vectors[:, 0]
    )


def equator(d: int, seed: int = 0) -> tuple[np.ndarray, float]:
    """Points of the unit sphere of R^{d-1} that stand for its area, and the area of each."""
    from math import gamma

    d = positive_integer("d", d, 2)
    area = 2 * np.pi ** ((d - 1) / 2) / gamma((d - 1) / 2)
    if d == 2:
        points = np.array([[1.0], [-1.0]])
    elif d == 3:
        angle = 2 * np.pi * np.arange(CIRCLE_POINTS) / CIRCLE_POINTS
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        from scipy.special import ndtri
        from scipy.stats import qmc

        normals = ndtri(np.clip(qmc.Sobol(d - 1, seed=seed).random(SPHERE_POINTS), 1e-12, 1 - 1e-12))
        points = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return points, area / len(points)


def sphere_misassignment(density: Density, beta: float, value: Any) -> Misassignment:
    """To leading order on S^{d-1}: ``density`` is a function of unit rows (n, d), a density of the area, V symmetric.

    ``shifts`` are the heights of the separatrix at 2, 512 or 8192 points of the great sphere (d = 2, 3, more), where
    ``mass`` is a sum: exact to rounding for d = 3, to about 10⁻³ beyond.
    """
    cold = finite_number("beta", beta, 0.0, open_low=True)
    values, vectors = value_spectrum(value)
    points, share = equator(len(values))
    across = points @ vectors[:, 1:].T
    h = STENCIL
    heights = [
        np.asarray(a_function("density", density)(np.cos(a) * across + np.sin(a) * vectors[:, 0]), float)
        for a in h * np.array([-2, -1, 0, 1, 2])
    ]
    fine = all(x.shape == (len(points),) and np.isfinite(x).all() and bool((x > 0).all()) for x in heights)
    require(fine, "density", "be a positive finite function of unit rows (n, d)", density)
    slope = (heights[0] - 8 * heights[1] + 8 * heights[3] - heights[4]) / (12 * h)
    reach = points**2 @ (1 / (values[0] - values[1:]))
    shifts = -values[0] / (2 * cold) * slope / heights[2] * reach
    mass = float(share * np.sum(np.abs(shifts) * heights[2]))
    plateau, gap = float(2 * np.sqrt(mass)), float(values[0] - values[1])
    return Misassignment(mass, mass, plateau, np.nan, shifts, gap, vectors[:, 0])


def zero_temperature(points: Any, times: Any, value: Any) -> np.ndarray:
    """e^{tV}x/|e^{tV}x| of unit rows (n, d) at each time, (T, n, d): the flow dx/dt = P_xVx."""
    values, vectors = value_spectrum(value)
    x, t = real_array("points", points), np.atleast_1d(real_array("times", times, 0.0))
    require(x.ndim == 2 and x.shape[1] == len(values), "points", f"be rows of length {len(values)}", points)
    grown = np.exp(t[:, None, None] * (values - values[0])) * (x @ vectors)
    return grown / np.linalg.norm(grown, axis=-1, keepdims=True) @ vectors.T


def projection(points: Any, value: Any) -> np.ndarray:
    """π(x) = ±e_1, the limit of ``zero_temperature``; the separatrix itself goes to e_1."""
    _, vectors = value_spectrum(value)
    side = np.where(np.asarray(points) @ vectors[:, 0] >= 0, 1.0, -1.0)
    return side[:, None] * vectors[:, 0]


def distances(density: Density, beta: float, value: Any, times: Any) -> np.ndarray:
    """(∫|x_t - π(x_0)|² dρ_0)^{1/2} on the circle: the zero-temperature flow about the displaced separatrix.

    tan ε_t = e^{at}(tan ε_0 - tan(shift)(1 - e^{-2at})), a = (λ_1-λ_2)(1 - 1/2β), ε the angle from a separatrix. β = ∞
    gives the flow at zero temperature.
    """
    known = misassignment(density, min(float(beta), 1e12), value)
    rho, pole = normalised(density), float(np.arctan2(known.axis[1], known.axis[0]))
    t = np.atleast_1d(real_array("times", times, 0.0))[:, None]
    rate = known.gap * (1 - 0.5 / min(float(beta), 1e12))
    total = np.zeros(len(t))
    for at, shift in zip((pole + np.pi / 2, pole - np.pi / 2), known.shifts, strict=True):
        far = np.tan(shift) * -np.expm1(-2 * rate * t)
        # an integral in the logarithm of the angle on each side of zero, and of the displaced separatrix
        knots = [-np.pi / 2, min(0.0, shift), max(0.0, shift), np.pi / 2]
        for low, high in pairwise(knots):
            if high > low:
                e, w = _graded(low, high)
                y = np.exp(rate * t) * (np.tan(e) - far)
                total += (2 - 2 * np.sign(e) * y / np.sqrt(1 + y * y)) @ (w * rho(at + e))
    return np.sqrt(total)


def _graded(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes in panels that shrink towards both ends of an interval."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = 0.5 * np.concatenate([[0.0], 2.0 ** np.arange(-40, 1)])
    edges = np.concatenate([half, 1 - half[-2::-1]])
    width = np.diff(edges)[:, None]
    u = (edges[:-1, None] + width * (nodes + 1) / 2).ravel()
    return low + (high - low) * u, (high - low) * (width * weights / 2).ravel()
