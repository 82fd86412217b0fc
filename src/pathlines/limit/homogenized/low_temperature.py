"""Zero temperature, infinitely many tokens: attention points at Ax/|Ax|, and a pair of tokens forgets the rest.

When the tokens have a density and β_eff -> ∞, m_A(x) = Ax/|Ax| with A = W W'ᵀ, W, W' Gaussian of shape (d, p). Two
tokens of overlap R feel noise of covariance s_11 = 1, s_12 = K(R) = E⟨Ax/|Ax|, Ay/|Ay|⟩: R is a diffusion by itself,

    drift (1/d)[(d-2+R²)K - (d-1)R],    quadratic variation (2/d)(1-R²)(1-RK)    per unit of τ.

K is the mean cosine of two Gaussian vectors, composed twice: correlation R -> cosine c in dimension p -> mean cosine
c̄_d(c). The first cosine is a sample correlation; with Fisher's z, c = tanh(u + artanh R), its law has the density

    sech^{p-1}(u) √(1+R tanh u) ₂F₁(½, ½; p+½; (1+Rc)/2)     up to a constant,

analytic for |Im u| < π/2, so that the trapezoid rule gives K to rounding with some tens of nodes, for every d, p ≥ 2.
You will see K = R - ½(1/d+1/p)R(1-R²) + …: pairs move at speed 1/d only, and at time t = τ/d obey the SDE of
``limit.homogenized.slow_overlap``. Homogenized Transformers, arXiv:2604.01978, which has one Gaussian factor in the
place of two (its lemma is p = ∞ here); K, p ≠ d and the near-collapse rate: derived.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.overlap_diffusion import OverlapDiffusion
from pathlines.limit.homogenized.participation import whole_or_infinite

SOURCES = (HOMOGENIZED,)
_MATCH = 1e-6  # below this 1-R² the difference R-K is continued by its leading terms at R = 1


def _dimensions(d: int, qk_dim: float | None, least: int = 2) -> tuple[int, float]:
    d = positive_integer("d", d, least)
    return d, float(d) if qk_dim is None else whole_or_infinite("qk_dim", qk_dim, least)


def mean_cosine(overlap: ArrayLike, d: int) -> np.ndarray:
    """c̄_d(R) = (2R/d)[Γ((d+1)/2)/Γ(d/2)]² ₂F₁(½, ½; d/2+1; R²): mean cosine of two d-dim normals of correlation R."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    return _mean_cosine(r, positive_integer("d", d))[()]


def _mean_cosine(r: np.ndarray, d: int) -> np.ndarray:
    """By its value at R = 1, where the mean is one: the Gamma functions drop out."""
    return r * _hypergeometric(d / 2 + 1, r * r) / _hypergeometric(d / 2 + 1, np.array(1.0))


def _hypergeometric(c: float, z: np.ndarray) -> np.ndarray:
    """₂F₁(½, ½; c; z), 0 ≤ z ≤ 1; for c ≥ 20 by sixty terms of its series (SciPy gives nan for c in the hundreds)."""
    if c < 20:
        return special.hyp2f1(0.5, 0.5, c, z)
    total = np.ones_like(z)
    for k in range(60, 0, -1):
        total = 1 + (k - 0.5) ** 2 / ((c + k - 1) * k) * z * total
    return total


@cache
def _fisher_nodes(p: float) -> np.ndarray:
    """Equal steps in u over the support of sech^{p-1}(u): 0.6 of its width, and never coarser than the strip allows."""
    step = min(0.2, 0.6 / np.sqrt(p))
    reach = np.arccosh(np.exp(42.0 / (p - 1))) if p < 1e12 else 0.0
    return step * np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1)


def _pair_kernel(y: np.ndarray, d: int, p: float) -> np.ndarray:
    """K(tanh y); O(nodes) hypergeometric functions for each entry."""
    if np.isinf(p):
        return _mean_cosine(np.tanh(y), d)
    u, r = _fisher_nodes(p), np.tanh(y)[..., None]
    c = np.tanh(u + y[..., None])
    tail = _hypergeometric(p + 0.5, (1 + r * c) / 2)
    # 1 + R tanh u = cosh(u+y)/(cosh u cosh y), without the cancellation at R = 1
    log_root = 0.5 * (_log_cosh(u + y[..., None]) - _log_cosh(u) - _log_cosh(y)[..., None])
    weight = np.exp(log_root - (p - 1) * _log_cosh(u)) * tail
    return (weight * _mean_cosine(c, d)).sum(axis=-1) / weight.sum(axis=-1)


def _log_cosh(x: np.ndarray) -> np.ndarray:
    return np.abs(x) + np.log1p(np.exp(-2 * np.abs(x))) - np.log(2)


def pair_kernel(overlap: ArrayLike, d: int, qk_dim: float | None = None) -> np.ndarray:
    """K_d(R) = E⟨Ax/|Ax|, Ay/|Ay|⟩ at ⟨x, y⟩ = R; ``qk_dim`` is p, by default d, and ∞ leaves one Gaussian factor."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    d, p = _dimensions(d, qk_dim)
    inside = np.abs(r) < 1
    y = np.arctanh(np.where(inside, r, 0.0))
    return np.where(inside, _pair_kernel(np.atleast_1d(y), d, p).reshape(r.shape), r)[()]


def pair_kernel_expansion(overlap: ArrayLike, d: int, qk_dim: float | None = None) -> np.ndarray:
    """R - ½(1/d + 1/p) R(1-R²), the kernel to first order in 1/d and 1/p (the lemma in print has 1/(2d) at p = d)."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    d, p = _dimensions(d, qk_dim)
    return (r - 0.5 * (1 / d + 1 / p) * r * (1 - r * r))[()]


def kernel_slope_at_one(d: int, qk_dim: float | None = None) -> float:
    """K'(1) = (d-1)/(d-2) · (p-1)/(p-2), d, p ≥ 3."""
    d, p = _dimensions(d, qk_dim, least=3)
    return (d - 1) / (d - 2) * (1.0 if np.isinf(p) else (p - 1) / (p - 2))


def near_collapse_rate(d: int, qk_dim: float | None = None) -> float:
    """Drift of log(1-R) at R = 1: ((d-3)K'(1)-(d-1))/d = (d-1)(d-p-1)/(d(d-2)(p-2)).

    For p = d it is -(d-1)/(d(d-2)²), attracting but only just; with narrow heads, p < d-1, a pair that has nearly
    collapsed is driven apart.
    """
    d, p = _dimensions(d, qk_dim, least=3)
    if np.isinf(p):
        return -(d - 1) / (d * (d - 2))
    return (d - 1) * (d - p - 1) / (d * (d - 2) * (p - 2))


def pair_drift(overlap: ArrayLike, d: int, qk_dim: float | None = None) -> np.ndarray:
    """(1/d)[(d-2+R²)K - (d-1)R], the drift of the overlap of a pair per unit of τ."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    return (((d - 2 + r * r) * pair_kernel(r, d, qk_dim) - (d - 1) * r) / d)[()]


def pair_variation(overlap: ArrayLike, d: int, qk_dim: float | None = None) -> np.ndarray:
    """(2/d)(1-R²)(1-RK), the quadratic variation of the overlap of a pair per unit of τ."""
    r = real_array("overlap", overlap, -1.0, 1.0)
    return (2 / d * (1 - r * r) * (1 - r * pair_kernel(r, d, qk_dim)))[()]


def _defect(y: np.ndarray, d: int, p: float) -> np.ndarray:
    """(R-K)/(R(1-R²)) at R = tanh y, an even function that ends at (K'(1)-1)/2 as R -> 1.

    Near R = 1 the difference has no digits left; the leading correction there is (1-R²)^θ, θ = 1 or what the
    singularity (1-R)^{d/2} of the mean cosine leaves when d or p is below 4, matched at 1-R² = 1e-6.
    """
    y = np.maximum(np.abs(y), 1e-3)  # even and flat: (R-K)/R changes by 1e-6/d below this
    gap = np.cosh(np.minimum(y, 300.0)) ** -2.0
    match = np.arccosh(_MATCH**-0.5)
    inner = np.minimum(y, match)
    r = np.tanh(inner)
    defect = (r - _pair_kernel(inner, d, p)) / (r * np.cosh(inner) ** -2.0)
    end = (kernel_slope_at_one(d, p) - 1) / 2
    theta = min(1.0, d / 2 - 1, p / 2 - 1)
    return np.where(y > match, end + (defect - end) * (gap / _MATCH) ** theta, defect)


def pair_diffusion(d: int, qk_dim: float | None = None) -> OverlapDiffusion:
    """The pair at finite d, in y = artanh R: with q = (R-K)/(R(1-R²)), μ = (1/d)[K - (d-3)Rq], σ² = (2/d)(1 + R²q).

    The clock is τ; the slow time of the limit is t = τ/d. d, p ≥ 3.
    """
    d, p = _dimensions(d, qk_dim, least=3)

    def drift(y: np.ndarray) -> np.ndarray:
        r, q = np.tanh(y), _defect(y, d, p)
        kernel = r * (1 - q * (1 - r * r))
        return (kernel - (d - 3) * r * q) / d

    def variance(y: np.ndarray) -> np.ndarray:
        return 2 / d * (1 + np.tanh(y) ** 2 * _defect(y, d, p))

    return OverlapDiffusion(drift, variance, extent=20.0 if min(d, p) > 3 else 40.0)


def bessel_ratio(d: ArrayLike, concentration: ArrayLike) -> np.ndarray:
    """I_{d/2}(λ)/I_{d/2-1}(λ), the mean of ⟨x, e⟩ under e^{λ⟨x,e⟩} on S^{d-1}; 1e-12 or better for any d, λ.

    With uniform tokens m_A(x) = I_{d/2}/I_{d/2-1}(λ) · Ax/|Ax|, λ = β|Ax|, at every temperature.
    """
    order = real_array("d", d, 1.0) / 2 - 1
    x = real_array("concentration", concentration, 0.0)
    order, x = np.broadcast_arrays(order, x)
    top, bottom = special.ive(order + 1, x), special.ive(order, x)
    direct = (top > 1e-280) & (x < 1e8)
    safe = np.where(direct, bottom, 1.0)
    return np.where(direct, top / safe, _ratio_by_recurrence(order, x))[()]


def _ratio_by_recurrence(order: np.ndarray, x: np.ndarray, steps: int = 60) -> np.ndarray:
    """r_ν = x/(2(ν+1) + x r_{ν+1}) downwards from a bound at ν+60; each step multiplies the error by r² or less."""
    high = order + steps
    ratio = x / (high + 0.5 + np.hypot(high + 1.5, x))
    for k in range(steps - 1, -1, -1):
        ratio = x / (2 * (order + k + 1) + x * ratio)
    return ratio


def slow_motion_bound(time: float, d: int, beta_eff: float, failure: float = 0.05, constant: float = 1.0) -> float:
    """T/d + C√((T/d) log(1/δ)) + CT(d^{-3/2} + β_eff^{-1/2}): bound of sup_{[0,T]} |R - R(0)| with probability 1-δ.

    C depends on the bounds of the token density and is not known. In print the last term lacks the factor T; its β is
    β_eff.
    """
    time, d = finite_number("time", time, 0.0), positive_integer("d", d, 2)
    beta_eff = finite_number("beta_eff", beta_eff, 0.0, open_low=True)
    require(0 < failure < 1, "failure", "be > 0 and < 1", failure)
    constant = finite_number("constant", constant, 0.0)
    spread = np.sqrt(time / d * np.log(1 / failure))
    return float(time / d + constant * (spread + time * (d**-1.5 + beta_eff**-0.5)))
