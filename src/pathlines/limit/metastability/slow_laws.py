"""Laws of the slow phase in closed form: unequal masses, antipodes, the life of the first pattern, the time of a jump.

Derived for the cluster dynamics of Dynamic metastability in the self-attention model (arXiv:2410.06833) and the
patterns of Emergence of meta-stable clustering in mean-field transformer models (arXiv:2410.23228); kernel
e^{β(<x,y>-1)} throughout.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import finite_number, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import METASTABILITY, METASTABLE_EMERGENCE
from pathlines.limit.clustering.clusters import polygon_growth_rates
from pathlines.limit.metastability.growth import dominant_degree, growth_rates
from pathlines.limit.metastability.merging import log_merging_time

SOURCES = (METASTABILITY, METASTABLE_EMERGENCE)
KINDS = ("sa", "usa")


def log_merging_time_large_beta(
    beta: float, start: float, end: float, masses: tuple[float, float] = (0.5, 0.5)
) -> float:
    """ln T_SA ≃ ln T_USA - ln(m_1/m_2 + m_2/m_1), as β → ∞: unequal clusters merge faster under softmax."""
    first, second = (finite_number("masses", m, 0.0, open_low=True) for m in masses)
    return log_merging_time(beta, start, end) - float(np.log(first / second + second / first))


def log_antipodal_rate(beta: float, kind: str = "usa", masses: tuple[float, float] = (0.5, 0.5)) -> float:
    """ln of the rate at which an antipodal pair of total mass one opens.

    e^{-2β} (USA, any masses); e^{-2β}[m_2/(m_1+m_2e^{-2β}) + m_1/(m_2+m_1e^{-2β})] (SA).
    """
    beta = finite_number("beta", beta, 0.0)
    if one_of("kind", kind, KINDS) == "usa":
        return -2 * beta
    first, second = (finite_number("masses", m, 0.0, open_low=True) for m in masses)
    far = np.exp(-2 * beta)
    return float(-2 * beta + np.log(second / (first + second * far) + first / (second + first * far)))


def polygon_rates(k: int, beta: float, kind: str = "sa") -> np.ndarray:
    """Growth rates σ_0..σ_{k-1} of a regular k-gon of equal clusters, of the scaled kernel, at any β.

    σ_l^{USA} = σ_l^{SA} · (1/k) Σ_r e^{β(cos(2πr/k)-1)}. Rates below the smallest number are an error, not zero.
    """
    rates = polygon_growth_rates(k, beta, "sa")
    lost = k > 1 and beta > 0 and not np.any(rates)
    require(not lost, "beta", f"be small enough for rates of order e^(-β(1 - cos 2π/{k})) not to underflow", beta)
    if one_of("kind", kind, KINDS) == "sa":
        return rates
    return rates * float(np.mean(np.exp(-2 * beta * np.sin(np.pi * np.arange(k) / k) ** 2)))


def lifetime_ratio(beta: float, kind: str = "sa") -> float:
    """λ_{k*}/σ_max: how many formation times the first pattern of k* clusters on the circle lives."""
    k = dominant_degree(beta, 2)
    require(k >= 2, "beta", "be large enough for two clusters to form (k* ≥ 2)", beta)
    return float(growth_rates(beta, 2, k, kind)[-1] / polygon_rates(k, beta, kind).max())


def lifetime_ratio_limit(kind: str = "sa") -> float:
    """The limit of ``lifetime_ratio`` as β → ∞: a number, 189.8 (SA) or 107.1 (USA).

    At k* = √(2β) neighbours sit at β(1-cos(2π/k*)) → π², so that σ_max^{SA} → 4e^{-π²}(2π²-1) over the weight of the
    kernel, λ^{SA} → 2/e. SA divides σ by the partition function 1 + 2e^{-π²}, which is left out: 1e-4. USA has λ
    smaller by 1/√(2πβ) and σ by 1/k* = 1/√(2β), hence 1/√π of the ratio.
    """
    ratio = (2 / math.e) / (4 * np.exp(-(np.pi**2)) * (2 * np.pi**2 - 1))
    return float(ratio if one_of("kind", kind, KINDS) == "sa" else ratio / np.sqrt(np.pi))


def jump_time(beta: float, start: float, speed: float = 1.0, end: float | None = None) -> float:
    """When u' = -c ln(β) sin u from ``start`` reaches ``end``, by default √(ln β/β): one step of the staircase.

    t = [ln tan(u_0/2) - ln tan(u_1/2)]/(c ln β) → 1/(2c) as β → ∞ (the paper's lemma prints 2/c); ∞ from u_0 = π.
    """
    beta = finite_number("beta", beta, 1.0, open_low=True)
    c = finite_number("speed", speed, 0.0, open_low=True)
    u0 = finite_number("start", start, 0.0, np.pi, open_low=True)
    u1 = float(np.sqrt(np.log(beta) / beta)) if end is None else finite_number("end", end, 0.0, open_low=True)
    require(u1 <= u0, "start", f"be at least the end {u1:.4g}", start)
    if u0 == np.pi:
        return np.inf
    return float(np.log(np.tan(u0 / 2) / np.tan(u1 / 2)) / (c * np.log(beta)))


def contraction_rate(angles: ArrayLike, masses: ArrayLike, cluster: int, beta: float, kind: str = "usa") -> float:
    """At which rate a small distance inside a cluster on the circle shrinks: -dv/dθ of the velocity field there.

    m_q + Σ_p m_p e_p(cos D_p - β sin²D_p) for USA, D_p = θ_p - θ_q, e_p = e^{β(cos D_p - 1)}; for SA of the quotient
    N/Z. Far from everything: the mass m_q (USA), one (SA).
    """
    theta, m = real_array("angles", angles), real_array("masses", masses, 0.0, open_low=True)
    turn = theta - theta[cluster]
    weight = m / m.sum() * np.exp(beta * (np.cos(turn) - 1))
    slope = float(np.sum(weight * (np.cos(turn) - beta * np.sin(turn) ** 2)))
    if one_of("kind", kind, KINDS) == "usa":
        return slope
    z, pull = float(weight.sum()), float(np.sum(weight * np.sin(turn)))
    return slope / z + beta * (pull / z) ** 2


def mean_contraction_rate(
    gap: float, masses: tuple[float, float], beta: float, until: float, kind: str = "usa"
) -> float:
    """(1/T) ∫_0^T of the contraction rate inside the first of two clusters that approach from angle ``gap``."""
    first, second = (finite_number("masses", m, 0.0, open_low=True) for m in masses)
    until = finite_number("until", until, 0.0, open_low=True)

    def motion(t: float, y: np.ndarray) -> list[float]:
        e = np.exp(beta * (np.cos(y[0]) - 1))
        speed = 1.0 if kind == "usa" else second / (first + second * e) + first / (second + first * e)
        return [-np.sin(y[0]) * e * speed, contraction_rate([0.0, y[0]], masses, 0, beta, kind)]

    solved = solve_ivp(motion, (0.0, until), [gap, 0.0], "DOP853", rtol=1e-10, atol=1e-12)
    return float(solved.y[1, -1] / until)
