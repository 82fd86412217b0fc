"""What a uniform start looks like: the range of the energy, the first alignment, the first speeds.

The single special function is the mean of e^{β⟨x,y⟩} over uniform y on the sphere S^{d-1} in R^d,

    M_d(β) = Γ(d/2)(2/β)^{d/2-1} I_{d/2-1}(β) = ₀F₁(; d/2; β²/4),        M_d'(β) = (β/d) M_{d+2}(β).

Energy: A mathematical perspective on Transformers, arXiv:2312.10794. Initial laws: derived; see also Quantitative
Clustering in Mean-Field Transformer Models, arXiv:2504.14697.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import require
from pathlines.foundation.numbers import real_array, whole_array
from pathlines.foundation.papers import PERSPECTIVE, QUANTITATIVE

SOURCES = (PERSPECTIVE, QUANTITATIVE)
_SERIES_LIMIT = 100.0
LARGEST = 700.0
"""β up to which e^β is a number."""


def _scaled_series(half: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """e^{-β} ₀F₁(; d/2; β²/4) by its power series: positive terms, so full precision, some β + 40 of them."""
    x = 0.25 * beta * beta
    term = np.exp(-beta)
    total = term.copy()
    for k in range(1, 400):
        term = term * x / (k * (half + k - 1))
        total += term
        if np.all(term <= 1e-18 * total):
            break
    return total


def _log_bessel(half: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """ln M_d(β) for large β: by the scaled Bessel function or, where d is so large that it underflows, term by term."""
    order = half - 1
    bessel = special.ive(order, beta)
    with np.errstate(divide="ignore"):
        direct = special.gammaln(half) + order * np.log(2 / beta) + np.log(bessel) + beta
    lost = bessel < 1e-280
    for index in zip(*np.nonzero(lost), strict=True):
        direct[index] = _log_by_terms(float(half[index]), float(beta[index]))
    return direct


def _log_by_terms(half: float, beta: float) -> float:
    peak = 0.5 * (np.hypot(half, beta) - half)
    k = np.arange(1, int(peak + 12 * np.sqrt(peak + beta) + 60))
    logs = np.concatenate([[0.0], np.cumsum(np.log(0.25 * beta * beta / (k * (half + k - 1))))])
    return float(special.logsumexp(logs))


def log_sphere_mean(d: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """ln M_d(β) for d ≥ 1, β ≥ 0, no overflow; 13 digits of M_d for β ≤ 100, 12 beyond (measured)."""
    half, b = np.broadcast_arrays(0.5 * whole_array("d", d, 1), real_array("beta", beta, 0.0))
    shape = half.shape
    half, b = np.atleast_1d(half), np.atleast_1d(b)
    out = np.empty(half.shape)
    near = b <= _SERIES_LIMIT
    out[near] = np.log(_scaled_series(half[near], b[near])) + b[near]
    out[~near] = _log_bessel(half[~near], b[~near])
    return out.reshape(shape)[()]


def sphere_mean(d: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """M_d(β), the mean of e^{β⟨x,y⟩} over the sphere in R^d (d = 1: cosh β); inf beyond float64."""
    half, b = np.broadcast_arrays(0.5 * whole_array("d", d, 1), real_array("beta", beta, 0.0))
    near = b <= _SERIES_LIMIT
    direct = _scaled_series(np.atleast_1d(half), np.atleast_1d(np.where(near, b, 0.0))).reshape(b.shape)
    with np.errstate(over="ignore"):
        far = np.exp(log_sphere_mean(d, b)) if not np.all(near) else direct
        return np.where(near, direct * np.exp(b), far)[()]


def energy_minimum(d: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """E_min = M_d(β)/(2β), the energy of the uniform measure; at β = 0, where E = ½|x̄|², it is 0."""
    b = _finite_energy(beta)
    with np.errstate(divide="ignore"):
        return np.where(b > 0, sphere_mean(d, b) / np.where(b > 0, 2 * b, 1.0), 0.0)[()]


def energy_maximum(beta: ArrayLike) -> np.ndarray:
    """E_max = e^β/(2β), the energy of one cluster; at β = 0, where E = ½|x̄|², it is ½."""
    b = _finite_energy(beta)
    return np.where(b > 0, np.exp(b) / np.where(b > 0, 2 * b, 1.0), 0.5)[()]


def _finite_energy(beta: ArrayLike) -> np.ndarray:
    b = real_array("beta", beta, 0.0)
    advice = "beyond which e^β overflows (ratios of energies do not: `energy_fraction`, `log_sphere_mean`)"
    require(bool(np.all(b <= LARGEST)), "beta", f"be at most {LARGEST:g}, {advice}", beta)
    return b


def _ratio(d: ArrayLike, beta: np.ndarray) -> np.ndarray:
    """M_d'/M_d = I_{d/2}(β)/I_{d/2-1}(β)."""
    d = whole_array("d", d, 2)
    return beta / d * np.exp(log_sphere_mean(d + 2, beta) - log_sphere_mean(d, beta))


def initial_alignment(d: ArrayLike, beta: ArrayLike, n: ArrayLike | None = None) -> np.ndarray:
    """Mean of h_i = ⟨x_i, A_i⟩ over n i.i.d. uniform tokens: I_{d/2}(β)/I_{d/2-1}(β) as n -> ∞.

    With n, the terms of order 1/n are added: + e^β(1-h)/(n M_d(β)), the token's own weight, and the bias of a ratio of
    random sums, - M_d(2β)(h(2β)-h(β))/(n M_d(β)²). (Derived; specification 03 has the first only, which is 21
    standard errors off a Monte Carlo at n = 60, d = 3, β = 1.5.) Good while e^β, M_d(2β)/M_d(β)² are small against n.
    """
    b = real_array("beta", beta, 0.0)
    h = _ratio(d, b)
    if n is None:
        return h[()]
    n = whole_array("n", n, 2)
    log_mean = log_sphere_mean(d, b)
    own = np.exp(b - log_mean) * (1 - h)
    bias = np.exp(log_sphere_mean(d, 2 * b) - 2 * log_mean) * (_ratio(d, 2 * b) - h)
    return (h + (own - bias) / n)[()]


def initial_tangential_square(n: ArrayLike, d: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """E|P A_i|² of n i.i.d. uniform tokens under SA, leading order in 1/n (derived).

    M_d(2β)/(n M_d(β)²) · (d-1)/(2β) · I_{d/2}(2β)/I_{d/2-1}(2β) = (d-1) M_{d+2}(2β)/(n d M_d(β)²)
    """
    n, d, b = whole_array("n", n, 2), whole_array("d", d, 2), real_array("beta", beta, 0.0)
    return ((d - 1) / (n * d) * np.exp(log_sphere_mean(d + 2, 2 * b) - 2 * log_sphere_mean(d, b)))[()]


def initial_pair_rate(n: ArrayLike, d: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """d/dt E⟨x_1,x_2⟩ at t = 0 for n i.i.d. uniform tokens under USA, exact for every n (derived).

    (2/n) E[e^{βg}(1-g²)] = (2/n)(d-1)/β · M_d'(β) = (2/n)(d-1)/d · M_{d+2}(β)
    """
    n, d, b = whole_array("n", n, 2), whole_array("d", d, 2), real_array("beta", beta, 0.0)
    return (2 / n * (d - 1) / d * sphere_mean(d + 2, b))[()]
