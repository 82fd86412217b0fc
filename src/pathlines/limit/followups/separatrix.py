"""Low temperature on the circle and the sphere: which mass goes to the wrong pole, and the plateau that it leaves.

dx/dt = P_xV A_β, A_β the softmax average with Q = K = I of a law with density ρ_t: A_β(x) = x + ∇log ρ_t/β + O(β⁻²). At
zero temperature x_t = e^{tV}x/|e^{tV}x| goes to π(x) = ±e_1, the pole on its side of the great sphere orthogonal to
e_1, where V has the eigenvalues λ_1 > λ_2 ≥ …. At finite β that separatrix is displaced, by the height

    h(ω) = -(λ_1/2β) ∂_h log ρ_0(ω) Σ_{k≥2} ω_k²/(λ_1 - λ_k) + O(β⁻²)

at its point ω: h' = (λ_1 - q)h + (λ_1/β)∂_h log ρ_t along ω_t, q its Rayleigh quotient, ∂_h log ρ_t = ∂_h log ρ_0
e^{-∫(λ_1-q)}, and e^{2∫q} = |e^{tV}ω|². The mass in between,

    mis = (λ_1/2β) ∫ |∂_hρ_0(ω)| ωᵀ(λ_1 - V)⁻¹ω dω,

goes to the other pole: particle by particle, the law stays at distance 2√mis from π_#ρ_0. What goes over at one ω may
come back at another, and W₂ sees only what e_1 gains: W₂ = 2√|net|, net = (λ_1/2β) ∫ ∂_hρ_0(ω) ωᵀ(λ_1 - V)⁻¹ω dω. They
are equal where ∂_hρ_0 keeps its sign, as for von Mises laws. On the circle the next order is here too. Setting:
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

SOURCES = (LOW_TEMPERATURE,)
GRID = 4096
MOST_KAPPA = 300.0
ROUNDING = 1e-9
STENCIL = 0.02
"""Distance of the points that derivatives are taken from: errors of its fourth power."""
CIRCLE_POINTS = 512
SPHERE_POINTS = 1 << 13
Density = Callable[[np.ndarray], np.ndarray]


class Misassignment(NamedTuple):
    """What goes to the wrong pole at inverse temperature β.

    ``mass``: the misassigned mass; ``first``: its leading order, a constant over β; ``plateau``: 2√mass, the distance
    particle by particle; ``net``: the mass that e_1 gains, at most ``mass`` in size; ``relative``: the next order over
    the leading one, where it is largest (squared it is about what is left out); ``far``: what the poles, heard with
    weight e^{-β}, may add to the mass, over its leading order; ``shifts``: where the separatrix is, beside its place
    at zero temperature, at each of its points; ``gap`` λ_1 - λ_2; ``axis`` e_1.
    """

    mass: float
    first: float
    plateau: float
    net: float
    relative: float
    far: float
    shifts: np.ndarray
    gap: float
    axis: np.ndarray

    @property
    def w2(self) -> float:
        """2√|net|: the distance W₂ of the law from the projected start, at most ``plateau``."""
        return float(2 * np.sqrt(abs(self.net)))

    @property
    def reliable(self) -> bool:
        """Whether β is large enough: no correction above a fifth, no mass above one, no shift past a pole."""
        small = not max(self.relative, self.far) > 0.2  # of the sphere the next order is not known: nan
        return bool(small and self.mass <= 1 and np.abs(self.shifts).max() < np.pi / 2)


def value_spectrum(value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric V, decreasing, and eigenvectors in columns; λ_1 must be positive and alone."""
    matrix = real_array("value", value)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] >= 2
    require(square, "value", "be a matrix d × d with d ≥ 2", value)
    symmetric = bool(np.abs(matrix - matrix.T).max() <= ROUNDING * np.abs(matrix).max())
    require(symmetric, "value", "be symmetric", value)
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    if not values[0] > 0:
        raise ArgumentError(f"Argument `value` must have a positive eigenvalue, but the largest is {values[0]:.4g}.")
    if not values[0] - values[1] > 1e-9 * values[0]:
        raise ArgumentError(f"Argument `value` must have a largest eigenvalue that is simple, but has {values[:2]}.")
    return values, vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), range(len(values))] < 0, -1, 1)


def von_mises(kappa: float, mean: float = 0.0) -> Density:
    """e^{κ cos(θ - mean)}, not normalised but at most 1; κ ≤ 300, so that e^{-2κ} is still a number."""
    k, m = finite_number("kappa", kappa, 0.0, MOST_KAPPA), finite_number("mean", mean)
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
    """First three derivatives of log ρ, by central differences of seven points; odd ones of rounding alone are zero."""
    h = STENCIL
    logs = np.log(density(at + h * np.arange(-3, 4)))
    first = logs @ [-1, 9, -45, 0, 45, -9, 1] / (60 * h)
    second = logs @ [2, -27, 270, -490, 270, -27, 2] / (180 * h**2)
    third = logs @ [1, -8, 13, 0, -13, 8, -1] / (8 * h**3)
    size = 1e-14 * (1 + float(np.abs(logs).max()))
    # rounding over h and h³: a symmetric start has no slope, and no quotient of two of them
    sure = (float(x) if abs(x) > 2 * size / h**k else 0.0 for x, k in ((first, 1), (third, 3)))
    return next(sure), float(second), next(sure)


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
    gap = float(values[0] - values[1])
    leading, mass, net, relative, shifts = 0.0, 0.0, 0.0, 0.0, []
    # beyond +π/2 from e_1 the separatrix moves away from e_1 when its angle grows, before -π/2 towards it
    for at, away in ((pole + np.pi / 2, 1), (pole - np.pi / 2, -1)):
        slope, height = slopes(rho, at), float(rho(np.array([at]))[0])
        one, two = displacement(slope, values[0], values[1])
        shift = one / cold + two / cold**2
        later = two / cold**2 + slope[0] * (one / cold) ** 2 / 2
        leading += height * abs(one) / cold
        mass += height * abs(one / cold + later)
        net += away * height * (one / cold + later)
        if later != 0:  # two ends may cancel in the sum: the quotient is that of the worse
            relative = max(relative, abs(later) / (abs(one) / cold) if one else np.inf)
        shifts.append(shift)
    far = _heard_from_poles(cold, float(values[0]) / gap) / leading if leading > 0 else 0.0
    plateau, relative = float(2 * np.sqrt(mass)), float(relative)
    mass, leading, net, far = float(mass), float(leading), float(net), float(far)
    return Misassignment(mass, leading, plateau, net, relative, far, np.array(shifts), gap, vectors[:, 0])


def _heard_from_poles(beta: float, ratio: float) -> float:
    """Mass that unequal poles may add: ``ratio`` λ_1/(λ_1-λ_2) times 2√(β/2π)(1+β)e^{-β}.

    A token at the separatrix hears its neighbours, ρe^{-gap t}√(2π/β), and the poles, e^{-β}: from then on, gap t = β
    + log(ρ√(2π/β)), it is pushed by λ_1 times their difference, at most 1, and h' = gap h + λ_1 min(1, e^{gap(t-t*)}).
    """
    return float(2 * ratio * np.sqrt(beta / (2 * np.pi)) * (1 + beta) * np.exp(-beta))


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
    ``mass`` is a sum: for d = 3 to 10⁻⁷ of itself where ∂_hρ keeps its sign (h by differences, ``STENCIL``) and to 10⁻⁵
    where it changes (|∂_hρ| has corners), to about 10⁻³ beyond. The next order is not known: ``relative`` is nan.
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
    mass, net = float(share * np.sum(np.abs(shifts) * heights[2])), float(-share * np.sum(shifts * heights[2]))
    plateau, gap = float(2 * np.sqrt(mass)), float(values[0] - values[1])
    return Misassignment(mass, mass, plateau, net, np.nan, np.nan, shifts, gap, vectors[:, 0])


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
