"""The softmax field of n Gaussian tokens against that of their law: the mean-square error, exact at every n (derived).

With Z = Σ_j e^{h·y_j}, h = Ax, and the tilted mean m = α + Σh of the law, Γ_n - Γ = V Σ_j (y_j - m)e^{h·y_j}/Z. Since
1/Z² = ∫_0^∞ s e^{-sZ} ds and tokens are independent, the mean square is an integral over one Laplace variable of
expectations over one token. Along h and across it, with v = hᵀΣh and z standard normal,

    E|Γ_n - Γ|² = |VΣh|²/v · F(v, n) + tr V(Σ - ΣhhᵀΣ/v)Vᵀ · G(v, n),
    F = ∫[n E(z-√v)²w²e^{-w} φ^{n-1} + n(n-1)(E(z-√v)we^{-w})² φ^{n-2}] d ln s,  G = ∫ n E w²e^{-w} φ^{n-1} d ln s,

w = s e^{√v z}, φ = E e^{-w}. nF → (1+v)e^v and nG → e^v as n → ∞ at fixed v: the prefactor of ``context``; averaged
over Gaussian queries the limit is exchanged with the integral only below θ = 1/√2. All integrands are analytic in
strips of half-width π/2 in ln w, so trapezoid rules of spacing 0.4 give 1e-9.
System: A Unified Perspective, arXiv:2501.18322.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.foundation.errors import finite_array
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.markers import hermite_nodes
from pathlines.limit.gaussian.matrices import checked_covariance, square

SOURCES = (UNIFIED,)
SPACING = 0.4


def token_errors(v: float, sizes: Any) -> tuple[np.ndarray, np.ndarray]:
    """(F(v, n), G(v, n)) for each n ≥ 2, up to e^60, where rounding shows."""
    n = finite_array("sizes", sizes, ("sizes",)).astype(float)[:, None]
    deviation, logs = np.sqrt(v), np.log(n)
    reach = 9 + np.sqrt(2 * logs.max())
    step = min(SPACING, SPACING / max(deviation, 1e-300))
    z = np.arange(-9.0, reach + step, step)
    mass = np.exp(-(z**2) / 2) * step / np.sqrt(2 * np.pi)
    low = -logs.max() - min(v / 2, deviation * reach) - 12
    log_s = np.arange(low, 6 + 6 * deviation, SPACING)
    w = np.exp(np.minimum(log_s[:, None] + deviation * z, 6.6))  # e^{-w} is nothing beyond w = 735
    kept = np.exp(-w)
    first = (w * kept) @ (mass * (z - deviation))
    second, plain = (w**2 * kept) @ (mass * (z - deviation) ** 2), (w**2 * kept) @ mass
    log_phi = np.log1p(-np.minimum(-np.expm1(-w) @ mass, 1 - 1e-16))
    one = np.exp(logs + (n - 1) * log_phi)
    two = np.exp(2 * logs + np.log1p(-1 / n) + (n - 2) * log_phi)
    return SPACING * (one @ second + two @ first**2), SPACING * one @ plain


def line_errors(strength: float, sizes: Any) -> np.ndarray:
    """E|Γ_n - Γ|² for standard normal tokens and queries on a line, A = θ, V = 1, at each n."""
    far = 8 + np.sqrt(2 * np.log(np.max(np.asarray(sizes, float))))
    x = np.arange(0.0, far, 0.25)
    masses = np.where(x > 0, 2.0, 1.0) * np.exp(-(x**2) / 2)  # F depends on x² only
    return masses @ np.array([token_errors((strength * q) ** 2, sizes)[0] for q in x]) / masses.sum()


def field_errors(A: Any, V: Any, cov: Any, sizes: Any, order: int = 24) -> np.ndarray:
    """E|Γ_n - Γ|² for tokens and queries from N(0, Σ) at each n; queries are Gauss-Hermite nodes."""
    score, value, sigma = square("A", A), square("V", V), checked_covariance("cov", cov)
    nodes, masses = hermite_nodes(sigma, order)
    total = np.zeros(len(np.atleast_1d(sizes)))
    across = float(np.trace(value @ sigma @ value.T))
    for x, mass in zip(nodes, masses, strict=True):
        h = score @ x
        v, along = float(h @ sigma @ h), value @ sigma @ h
        share = float(along @ along) / v if v > 0 else 0.0
        F, G = token_errors(v, sizes)
        total += mass * (share * F + (across - share) * G)
    return total


def last_slope(strength: float, low: float = 25.0, high: float = 50.0) -> float:
    """-d ln MSE/d ln n as n → ∞ on a line: slopes at ln n = ``low`` and ``high`` extrapolated in 1/ln n."""

    def slope(at: float) -> float:
        ends = line_errors(strength, np.exp([at - 2, at + 2]))
        return float(np.log(ends[0] / ends[1]) / 4)

    return (high * slope(high) - low * slope(low)) / (high - low)
