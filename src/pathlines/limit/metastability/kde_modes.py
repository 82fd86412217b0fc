"""How many modes a Gaussian kernel density estimator of n normal samples has, and where (theory).

P̂(t) = √β/(n√(2π)) Σ_i e^{-β(t-X_i)²/2}, X_i i.i.d. N(0, 1) (On the number of modes of Gaussian kernel density
estimators, arXiv:2412.09080). With G = (t-X)e^{-β(t-X)²/2}, F_n = n^{-1/2} Σ_i G_i is a negative multiple of P̂', and
modes are the zeros at which F_n rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, special

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import KDE_MODES

SOURCES = (KDE_MODES,)

INNER = 0.75
"""Of ``last_mode``: up to there a bandwidth holds some samples, and Gaussian (F, F') err by less than a hundredth
(measured on seven cells from n = 50, β = 4 to n = 10⁴, β = 10³)."""


class Moments(NamedTuple):
    """E G, E G', E G², E GG', E G'² at each t."""

    g: np.ndarray
    slope: np.ndarray
    square: np.ndarray
    cross: np.ndarray
    slope_square: np.ndarray


def kernel_moments(t: ArrayLike, beta: float) -> Moments:
    """Exact moments: Gaussian integrals, with s² = 1/(1+2β) and m = ts² the law of X - t tilted by e^{-β(t-X)²}."""
    t, beta = np.asarray(t, float), finite_number("beta", beta, 0.0, open_low=True)
    e1 = np.exp(-beta * t**2 / (2 * (beta + 1)))
    s2 = 1 / (1 + 2 * beta)
    m, z = t * s2, np.exp(-beta * t**2 / (1 + 2 * beta)) * np.sqrt(s2)
    return Moments(
        e1 * t / (beta + 1) ** 1.5,
        e1 * (1 + beta - beta * t**2) / (beta + 1) ** 2.5,
        z * (m**2 + s2),
        z * (m - beta * (m**3 + 3 * m * s2)),
        z * (1 - 2 * beta * (m**2 + s2) + beta**2 * (m**4 + 6 * m**2 * s2 + 3 * s2**2)),
    )


def mode_density(t: ArrayLike, n: int, beta: float) -> np.ndarray:
    """Kac-Rice density of modes with (F_n, F_n') replaced by the Gaussian of the same mean and covariance.

    ρ = e^{-a²/2v}/√(2πv) [s φ(μ/s) + μ Φ(μ/s)], μ = b - ca/v, s² = w - c²/v, for means a, b and covariances v, c, w.
    True only for |t| ≤ ``last_mode(n, beta)``: beyond, few samples are near t and the proxy is several times too large.
    """
    one, n = kernel_moments(t, beta), positive_integer("n", n, 2)
    a, b = np.sqrt(n) * one.g, np.sqrt(n) * one.slope
    v, c, w = one.square - one.g**2, one.cross - one.g * one.slope, one.slope_square - one.slope**2
    mu, s = b - c * a / v, np.sqrt(np.maximum(w - c**2 / v, 0.0))
    rising = s * np.exp(-((mu / s) ** 2) / 2) / np.sqrt(2 * np.pi) + mu * special.ndtr(mu / s)
    return np.exp(-(a**2) / (2 * v)) / np.sqrt(2 * np.pi * v) * rising


def last_mode(n: int, beta: float) -> float:
    """t_e = √(2 ln n - ln β), the edge of the region that many samples fill (NaN when n² < β: there is none)."""
    square = 2 * np.log(positive_integer("n", n, 2)) - np.log(finite_number("beta", beta, 0.0, open_low=True))
    return float(np.sqrt(square)) if square >= 0 else np.nan


def inner_edge(n: int, beta: float) -> float:
    """√(2 ln n - 3 ln β), or zero where that is negative."""
    return float(np.sqrt(max(2 * np.log(n) - 3 * np.log(beta), 0.0)))


def belt(n: int, beta: float) -> tuple[tuple[float, float], ...]:
    """Where almost all modes are as n → ∞: 2 ln n - 3 ln β ≤ t² ≤ 2 ln n - ln β.

    Two intervals when 2 ln n > 3 ln β, otherwise one around zero; none for β ≤ 1 (the bounds would be reversed).
    """
    outer, gap = last_mode(n, beta), inner_edge(n, beta)
    if beta <= 1:
        return ()
    return ((-outer, -gap), (gap, outer)) if gap > 0 else ((-outer, outer),)


def modes_between(low: float, high: float, n: int, beta: float) -> float:
    """∫ρ over [low, high]; both ends within ± ``last_mode`` to be meaningful."""
    value, _ = integrate.quad(
        mode_density,
        low,
        high,
        args=(n, beta),
        epsabs=1e-10,
        epsrel=1e-10,
        limit=2000,
        points=_turns(low, high, n, beta),
    )
    return float(value)


def _turns(low: float, high: float, n: int, beta: float) -> list[float] | None:
    """Where the density changes its scale: the peak of the bulk at zero and the inner edges of the belt."""
    inner = inner_edge(n, beta)
    marks = [-inner, 0.0, inner]
    return sorted({x for x in marks if low < x < high}) or None


def expected_in_bulk(n: int, beta: float) -> float:
    """KR_T = ∫ρ over |t| ≤ t_e, a lower bound on the expected number of modes (measured, not proved)."""
    edge = last_mode(n, beta)
    return modes_between(-edge, edge, n, beta)


def expected_beyond(n: int, beta: float) -> float:
    """2n(1 - Φ(t_e)), the expected number of samples beyond t_e: no more modes are there in expectation."""
    return float(2 * n * special.ndtr(-last_mode(n, beta)))


def bracket(n: int, beta: float) -> tuple[float, float]:
    """KR_T ≤ E[#modes] ≤ KR_T + 2n(1 - Φ(t_e)); NaN when n² < β."""
    if np.isnan(last_mode(n, beta)):
        return np.nan, np.nan
    low = expected_in_bulk(n, beta)
    return low, low + expected_beyond(n, beta)


def leading_order(n: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """E[#modes] ~ π^{-1}√(3β/2) (√(2 ln n - ln β) - √(2 ln n - 3 ln β)_+), the zeros of a stationary field on the belt.

    Derived; the paper has the order √(β log β) for n^c < β < n^{2-c}. Corrections are of relative order 1/log.
    """
    log_n, log_beta = np.log(np.asarray(n, float)), np.log(np.asarray(beta, float))
    outer, inner = (np.sqrt(np.maximum(2 * log_n - k * log_beta, 0.0)) for k in (1, 3))
    return np.sqrt(1.5 * np.asarray(beta, float)) * (outer - inner) / np.pi


def leading_constant(exponent: float) -> float:
    """lim E[#modes]/√(β log β) along β = n^b: π^{-1}√(3/2) (√(2/b - 1) - √(2/b - 3)_+); 0.38985 for b = 1."""
    b = finite_number("exponent", exponent, 0.0, 2.0, open_low=True)
    return float(np.sqrt(1.5) / np.pi * (np.sqrt(2 / b - 1) - np.sqrt(max(2 / b - 3, 0.0))))


def two_sample_modes(beta: ArrayLike) -> np.ndarray:
    """n = 2 exactly: two modes if and only if |X_1 - X_2| > 2h, so 1 + erfc(β^{-1/2}); one at β = 0."""
    with np.errstate(divide="ignore"):
        return 1 + special.erfc(1 / np.sqrt(real_array("beta", beta, 0.0)))


def circle_modes_expected(beta: float) -> float:
    """Maxima of U(θ) = Σ_j e^{β(cos(θ-θ_j)-1)} for many uniform θ_j: √(Σk⁴g_k²/Σk²g_k²) → √(3β/2), g_k = e^{-β}I_k(β).

    Rice's formula for the stationary Gaussian limit of U' (derived).
    """
    beta = finite_number("beta", beta, 0.0, open_low=True)
    k = np.arange(1, 40 + int(14 * np.sqrt(beta)))
    weights = special.ive(k, beta) ** 2
    return float(np.sqrt(np.sum(k**4.0 * weights) / np.sum(k**2.0 * weights)))


def count_by_signs(sample: np.ndarray, beta: float, parts: int = 12) -> int:
    """Modes of one sample by the signs of P̂' on a grid of step h/``parts``: O(range/h · parts · neighbours).

    Slow and plain, to check faster counts with. Sums run over samples within 9h and are scaled by the nearest, so they
    do not underflow; groups more than 18h apart are counted on their own.
    """
    y = np.sort(np.asarray(sample, float)) * np.sqrt(beta)
    groups = np.split(y, np.flatnonzero(np.diff(y) > 18) + 1)
    return sum(_falls(group, parts) for group in groups)


def _falls(y: np.ndarray, parts: int) -> int:
    grid = np.concatenate([y[:1], np.arange(y[0], y[-1], 1 / parts), y[-1:]])
    signs = np.empty(len(grid))
    for k, s in enumerate(grid):
        near = y[np.searchsorted(y, s - 9) : np.searchsorted(y, s + 9)]
        pull = near - s
        signs[k] = np.sign(np.sum(pull * np.exp(-(pull**2 - np.min(pull**2)) / 2)))
    signs[0], signs[-1] = 1, -1
    signs = signs[signs != 0]
    return int(np.sum((signs[:-1] > 0) & (signs[1:] < 0)))
