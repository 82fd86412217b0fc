"""How far interpolated transport of N(0, 1) to a mixture of Gaussians is from its target, for many knots.

With n(z) knots per unit length, ∫n = K - 1 intervals, and L = log T' [derived]:

    KL ≈ (1/24) ∫ φ (L')²/n² dz,        TV ≈ (1/8) ∫ φ|L'|/n dz,

and KL is least for n ∝ (φ(L')²)^{1/3}: K²·KL → I³/24, K·TV → (I/8)∫φ^{2/3}|L'|^{1/3}, I = ∫(φ(L')²)^{1/3}; TV alone
would be a little less for n ∝ (φ|L'|)^{1/2}.
Everything is a function of y: z = Φ^{-1}(F(y)), dz = ρ(y)dy/φ(z), L' = -z - (log ρ)'(y) φ(z)/ρ(y). No quantile is
solved for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from pathlines.foundation.errors import positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers.transport import NORMALIZING_FLOWS

SOURCES = (NORMALIZING_FLOWS,)


class InterpolationLaw(NamedTuple):
    """K²·KL and K·TV of K knots, for the rule with a floor and for the best rule as K → ∞, and I."""

    kl: float
    tv: float
    kl_limit: float
    tv_limit: float
    integral: float


def _slopes(weights: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> tuple[np.ndarray, ...]:
    """z, dz and L' along a grid of y that covers |z| < 8."""
    low, high = (means - 9 * deviations).min(), (means + 9 * deviations).max()
    y, step = np.linspace(low, high, 400_001, retstep=True)
    s = (y[:, None] - means) / deviations
    parts = weights * np.exp(-(s**2) / 2) / (deviations * np.sqrt(2 * np.pi))
    density = parts.sum(1)
    left, right = ndtr(s) @ weights, ndtr(-s) @ weights
    z = np.where(left < 0.5, ndtri(left), -ndtri(right))
    inside = np.abs(z) < 8
    y, z, density, parts, s = (v[inside] for v in (y, z, density, parts, s))
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    score = -(parts * s / deviations).sum(1) / density
    return z, density / normal * step, -z - score * normal / density, normal


def interpolation_law(
    knots: int, weights: ArrayLike, means: ArrayLike, deviations: ArrayLike, floor: float = 1e-3, reach: float = 1.5
) -> InterpolationLaw:
    """The law at K knots on |z| ≤ min(7.5, √(2 ln K) + reach), with density (φ(L')²)^{1/3} + floor · max."""
    K = positive_integer("knots", knots, 2)
    law = (real_array("weights", weights), real_array("means", means), real_array("deviations", deviations))
    z, dz, slope, normal = _slopes(*law)
    best = np.cbrt(normal * slope**2)
    integral = float(best @ dz)
    limit = (integral**3 / 24, integral / 8 * float(np.cbrt(normal**2 * np.abs(slope)) @ dz))
    inside = np.abs(z) <= min(7.5, np.sqrt(2 * np.log(K)) + reach)
    used = np.cbrt(np.exp(-(z**2) / 2) * slope**2)[inside]
    used, dz, slope, normal = used + floor * used.max(), dz[inside], slope[inside], normal[inside]
    each = used * (K - 1) / float(used @ dz)
    kl, tv = float((normal * slope**2 / each**2) @ dz) / 24, float((normal * np.abs(slope) / each) @ dz) / 8
    return InterpolationLaw(K * K * kl, K * tv, *limit, integral)
