"""Infinitely many tokens on the circle: the generator of the mean field, and nodes that carry a density through it.

Under Gaussian weights μ(τ) = (Φ_τ)_# μ_0 is transported by one random flow: d⟨μ,φ⟩ = ⟨μ, L_μφ⟩ dτ + noise with

    L_μ φ(x) = s_μ(x,x)/(2d) Δφ(x),        s_μ(x,y) = E⟨m_A(x), m_A(y)⟩.

At p = ∞, (Ax, Ay) are Gaussian vectors g, g' of correlation R = ⟨x,y⟩, so s_μ(x,y) depends on x, y through R only and
has non-negative Taylor coefficients, s_μ = Σ_k a_k R^k, a_k = the squared size of the degree-k Hermite part of m(g). In
particular s_μ(x,x) is the same for all x: L_μ is a Laplacian with one clock. Homogenized Transformers,
arXiv:2604.01978, for the equation; its form under Gaussian weights: derived.

Since nothing diffuses by itself, pushing nodes by the same heads is the exact method: equal masses at quantiles of μ_0
integrate smooth functions of a smooth density with an error smaller than any power of 1/n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.low_temperature import bessel_ratio

SOURCES = (HOMOGENIZED,)
LARGEST_SCALE = 20.0  # the grid of g needs about (68 b)² points
_REACH = 8.5


def von_mises_nodes(n: int, concentration: float) -> np.ndarray:
    """Angles θ_k with F(θ_k) = (k+½)/n, F the distribution function of the density ∝ e^{κ cos θ} on (-π, π)."""
    n, kappa = positive_integer("n", n), finite_number("concentration", concentration, 0.0, 500.0)
    orders = np.arange(1, int(40 + 10 * np.sqrt(kappa)))
    terms = special.ive(orders, kappa) / special.ive(0, kappa) / orders
    target = (np.arange(n) + 0.5) / n - 0.5
    low, high = np.full(n, -np.pi), np.full(n, np.pi)
    angle = np.zeros(n)
    for _ in range(200):
        miss = (angle + 2 * np.sin(np.outer(angle, orders)) @ terms) / (2 * np.pi) - target
        low, high = np.where(miss < 0, angle, low), np.where(miss > 0, angle, high)
        density = np.exp(kappa * (np.cos(angle) - 1)) / (2 * np.pi * special.ive(0, kappa))
        step = np.clip(miss / np.maximum(density, 1e-300), -7.0, 7.0)
        new = angle - step
        new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
        if np.max(np.abs(new - angle)) < 1e-15:
            break
        angle = np.where(miss == 0, angle, new)
    return angle


def _attended(angles: np.ndarray, masses: np.ndarray, b: float, g: np.ndarray) -> np.ndarray:
    """m(g) = Σ w_k x_k e^{b⟨g,x_k⟩}/Σ w_k e^{b⟨g,x_k⟩} on the grid g × g, of shape (2, points, points)."""
    tokens = np.stack([np.cos(angles), np.sin(angles)])
    first, second = b * np.multiply.outer(tokens[0], g), b * np.multiply.outer(tokens[1], g)
    # e^{b g·x} factorises over the two coordinates of g once each row has lost its largest |b g x|
    top = np.abs(b * g)
    left, right = np.exp(first - top), np.exp(second - top)
    total = (left * masses[:, None]).T @ right
    return np.stack([(left * (masses * x)[:, None]).T @ right for x in tokens]) / total


def _measure(angles: ArrayLike, masses: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    angles = finite_array("angles", angles, ("n",)).astype(np.float64)
    require(angles.size > 0, "angles", "hold at least one number", angles)
    if masses is None:
        return angles, np.full(angles.size, 1 / angles.size)
    masses = finite_array("masses", masses, (angles.size,)).astype(np.float64)
    require(bool(np.all(masses > 0)), "masses", "be > 0", masses)
    return angles, masses / masses.sum()


def covariance_series(
    angles: ArrayLike, logit_scale: float, masses: ArrayLike | None = None, degree: int = 60
) -> np.ndarray:
    """a_0, …, a_degree of s_μ(x,y) = Σ a_k ⟨x,y⟩^k for atoms at ``angles`` on the circle, p = ∞; O(b²n) + O(b² degree).

    The coefficients decay like e^{-c√k/b}; ``own_covariance`` is the sum of all of them.
    """
    m, g, weight = _field(angles, logit_scale, masses)
    hermite = _orthonormal_hermite(g, positive_integer("degree", degree, least=0)) * weight
    coefficients = np.einsum("ki,cij,lj->ckl", hermite, m, hermite, optimize=True)
    squares = (coefficients**2).sum(axis=0)
    flipped = squares[:, ::-1]
    return np.array([np.trace(flipped, offset=degree - k) for k in range(degree + 1)])


def _field(
    angles: ArrayLike, logit_scale: float, masses: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m on a grid of g with its normal weights; the step follows the zeros of the partition function, π/(2b) away."""
    angles, masses = _measure(angles, masses)
    b = finite_number("logit_scale", logit_scale, 0.0, LARGEST_SCALE)
    step = min(0.25, 0.25 / max(b, 1e-12))
    g = step * np.arange(-np.ceil(_REACH / step), np.ceil(_REACH / step) + 1)
    weight = np.exp(-g * g / 2)
    return _attended(angles, masses, b, g), g, weight / weight.sum()


def _orthonormal_hermite(g: np.ndarray, degree: int) -> np.ndarray:
    """He_k(g)/√k!, k = 0..degree, by the three-term recurrence."""
    rows = [np.ones_like(g), g]
    for k in range(1, degree):
        rows.append((g * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1))
    return np.array(rows[: degree + 1])


def own_covariance(angles: ArrayLike, logit_scale: float, masses: ArrayLike | None = None) -> float:
    """s_μ(x,x) = E|m(g)|², the same for every x on the circle (p = ∞)."""
    m, _, weight = _field(angles, logit_scale, masses)
    return float(weight @ (m**2).sum(axis=0) @ weight)


def uniform_own_covariance(d: int, logit_scale: float) -> float:
    """s_μ(x,x) = E[(I_{d/2}/I_{d/2-1}(b|g|))²], g a standard normal of R^d, for uniform tokens on S^{d-1} (p = ∞).

    Gauss-Legendre over the bulk of the chi law of |g|.
    """
    d, b = positive_integer("d", d, least=2), finite_number("logit_scale", logit_scale, 0.0)
    x, weight = np.polynomial.legendre.leggauss(200)
    centre = np.sqrt(d - 1)
    low, high = max(0.0, centre - _REACH), centre + _REACH
    radius = low + (high - low) * (x + 1) / 2
    log_density = (d - 1) * np.log(radius / centre) - (radius**2 - centre**2) / 2
    weight = weight * np.exp(log_density)
    return float(weight @ bessel_ratio(d, b * radius) ** 2 / weight.sum())


def generator_on_mode(order: int, own: float) -> float:
    """L_μ e^{ikθ} = -(k² s_μ/4) e^{ikθ} on the circle, ``own`` = s_μ(x,x)."""
    k = positive_integer("order", order, least=0)
    return -(k**2) * finite_number("own", own, 0.0, 1.0) / 4
