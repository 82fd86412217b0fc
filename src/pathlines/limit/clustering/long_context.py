"""Long context: β_n = γ ln n, the scaling at which a layer neither averages everything nor copies its input.

One attention layer without residual acts on n unit tokens with common correlation ρ. With y = 1-ρ, s1 = 1+(n-1)ρ:

    a = 1/(1+(n-1)n^{-γy}),   b = (1-a)/(n-1),
    ρ_out = ((a-b)²ρ + 2(a-b)b s1 + b²n s1) / ((a-b)² + 2(a-b)b s1 + b²n s1)                  (finite n: derived)

You will see, as n grows, full collapse for γ < γ_c = 1/(1-ρ), the value 4ρ/(1+3ρ) at γ_c, and the identity above.
Critical attention scaling in long-context transformers, arXiv:2510.05554; The Mean-Field Dynamics of Transformers,
arXiv:2512.01868. Everything is a ratio of sums of positive terms: accurate for any n a float can hold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import require
from pathlines.foundation.numbers import real_array, whole_array
from pathlines.foundation.papers import LONG_CONTEXT, MEAN_FIELD_DYNAMICS

SOURCES = (LONG_CONTEXT, MEAN_FIELD_DYNAMICS)


def _check(n: ArrayLike, gamma: ArrayLike, overlap: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = whole_array("n", n, 2)
    gamma = real_array("gamma", gamma, 0.0)
    rho = real_array("overlap", overlap, -1.0, 1.0)
    require(bool(np.all(rho + 1 / (n - 1) >= 0)), "overlap", "be ≥ -1/(n-1)", overlap)
    return n, gamma, rho


def self_weight(n: ArrayLike, gamma: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """a = 1/(1+(n-1)n^{-γ(1-ρ)}), the attention a token pays to itself."""
    n, gamma, rho = _check(n, gamma, overlap)
    return (1 / (1 + (n - 1) * np.exp(-gamma * (1 - rho) * np.log(n))))[()]


def _terms(n: np.ndarray, gamma: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((a-b)², 2(a-b)b s1 + b²n s1)."""
    score = gamma * (1 - rho) * np.log(n)
    fading = np.exp(-score)
    total = 1 + (n - 1) * fading
    b = fading / total
    own = -np.expm1(-score) / total
    s1 = np.maximum(1 + (n - 1) * rho, 0.0)
    return own * own, (2 * own + b * n) * b * s1


def output_overlap(n: ArrayLike, gamma: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """ρ_out after one layer without residual (equation at the top of this file), -1/(n-1) ≤ ρ ≤ 1."""
    n, gamma, rho = _check(n, gamma, overlap)
    own, shared = _terms(n, gamma, rho)
    with np.errstate(invalid="ignore"):
        return ((own * rho + shared) / (own + shared))[()]


def output_deficit(n: ArrayLike, gamma: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """1-ρ_out with full relative precision, also where the layer collapses the tokens to 1-ρ_out < 1e-16."""
    n, gamma, rho = _check(n, gamma, overlap)
    own, shared = _terms(n, gamma, rho)
    with np.errstate(invalid="ignore"):
        return (own * (1 - rho) / (own + shared))[()]


def critical_gamma(overlap: ArrayLike) -> np.ndarray:
    """γ_c = 1/(1-ρ), 0 < ρ < 1."""
    return (1 / (1 - _open_unit("overlap", overlap)))[()]


def _open_unit(name: str, value: ArrayLike) -> np.ndarray:
    return real_array(name, value, 0.0, 1.0, open_low=True, open_high=True)


def output_overlap_limit(gamma: ArrayLike, overlap: ArrayLike) -> np.ndarray:
    """ρ_out as n -> ∞: ρ/(ρ+a∞²(1-ρ)) with a∞ = 0, ½, 1 for γ below, at, above γ_c (at: γ(1-ρ) = 1 to rounding)."""
    gamma = real_array("gamma", gamma, 0.0)
    rho = _open_unit("overlap", overlap)
    excess = gamma * (1 - rho) - 1
    weight = np.where(np.abs(excess) < 1e-14, 0.5, np.where(excess > 0, 1.0, 0.0))
    return (rho / (rho + weight**2 * (1 - rho)))[()]


def freezing_time(n: ArrayLike, gamma: ArrayLike, start: ArrayLike) -> np.ndarray:
    """n^{γ(1-ρ0)-1}/(2ρ0(1-ρ0)γ ln n): how long SA with β = γ ln n stays at ρ0, for γ > 1/(1-ρ0) (derived).

    The blow-up time of ρ' = rate·e^{β(ρ-ρ0)}; the exact time to leave, ``equiangular.time_to_overlap``, differs from
    it by a relative O(1/ln n). Below the critical γ there is no freezing and ρ' -> 2ρ(1-ρ).
    """
    n = whole_array("n", n, 2)
    gamma = real_array("gamma", gamma, 0.0, open_low=True)
    rho = _open_unit("start", start)
    log_n = np.log(n)
    with np.errstate(over="ignore"):
        return (np.exp((gamma * (1 - rho) - 1) * log_n) / (2 * rho * (1 - rho) * gamma * log_n))[()]
