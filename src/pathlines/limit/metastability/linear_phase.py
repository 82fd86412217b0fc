"""The linear phase on the circle: when a pattern forms, how many maxima it has, and what the first mode drags along.

Until a mode is of order one each m_k = ∫ e^{-ikθ} dμ grows like e^{λ_k t} on its own (Emergence of meta-stable
clustering in mean-field transformer models, arXiv:2410.23228; everything below derived). N i.i.d. uniform tokens start
with m_k = Z_k/√N, Z_k independent complex normals with E|Z_k|² = 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.limit.metastability.growth import bessel_ratios, dominant_degree, growth_rates, quiet_margin

SOURCES = (METASTABLE_EMERGENCE,)


def first_times(sizes: ArrayLike, beta: float, level: float = 0.1, kind: str = "sa") -> np.ndarray:
    """min_k ln(c/|m_k(0)|)/λ_k for start sizes |m_k(0)|, k = 1.. along the last axis."""
    c = finite_number("level", level, 0.0, open_low=True)
    sizes = real_array("sizes", sizes, 0.0, open_low=True)
    return np.min(np.log(c / sizes) / growth_rates(beta, 2, sizes.shape[-1], kind), axis=-1)


def mean_first_time(
    beta: float, tokens: float, level: float = 0.1, kind: str = "sa", count: int | None = None
) -> float:
    """E min_k t_k = ∫_0^∞ Π_k P(t_k > t) dt / Π_k P(t_k > 0), P(t_k > t) = 1 - exp(-c²N e^{-2λ_k t}).

    ~ ln N/(2λ_{k*}) for large N. Given that no mode is above c at t = 0 (see ``quiet_margin``).
    """
    most = 6 + 3 * dominant_degree(beta, 2) if count is None else positive_integer("count", count)
    rates, start = growth_rates(beta, 2, most, kind), quiet_margin(tokens, level, most)

    def waiting(t: float) -> float:
        return float(np.prod(-np.expm1(-np.exp(start - 2 * rates * t))))

    middle, width = start / (2 * rates.max()), 20 / rates.max()
    value, _ = integrate.quad(waiting, 0, middle + width, points=[middle], epsabs=1e-10, limit=400)
    return value / waiting(0.0)


def mean_maxima(beta: float, t: ArrayLike = 0.0, kind: str = "sa") -> np.ndarray:
    """E #maxima of U in the linear phase: √(Σ k⁴ g_k² e^{2λ_k t}/Σ k² g_k² e^{2λ_k t}) (Rice), g_k = e^{-β}I_k(β).

    U - g_0 is a stationary Gaussian process whose modes have the variances g_k² e^{2λ_k t}/N: the number is free of N.
    √(3β/2) at t = 0 for large β; k* for t → ∞.
    """
    beta = finite_number("beta", beta, 0.0, open_low=True)
    times = real_array("t", t, 0.0)
    count = 8 + int(4 * np.sqrt(2 * beta) + 12)
    k, rates = np.arange(1, count + 1), growth_rates(beta, 2, count, kind)
    sizes = np.log(bessel_ratios(0.0, beta, count + 1)[1:]) + rates * times[..., None]
    weights = np.exp(2 * (sizes - sizes.max(axis=-1, keepdims=True)))
    return np.sqrt((k**4 * weights).sum(axis=-1) / (k**2 * weights).sum(axis=-1))


def maxima_shares(
    beta: float, t: float, draws: int, seed: int, kind: str = "sa", count: int | None = None
) -> np.ndarray:
    """P(U has j maxima in the linear phase), j = 0.., over draws of the Gaussian modes with sizes g_k e^{λ_k t}."""
    finite_number("t", t, 0.0)
    most = 6 + 3 * dominant_degree(beta, 2) if count is None else positive_integer("count", count)
    rates, draws = growth_rates(beta, 2, most, kind), positive_integer("draws", draws)
    rng = np.random.default_rng(seed)
    sizes = bessel_ratios(0.0, beta, most + 1)[1:] * np.exp(rates * t - (rates * t).max())
    series = np.zeros((draws, most + 1), complex)
    series[:, 1:] = sizes * (rng.standard_normal((draws, most)) + 1j * rng.standard_normal((draws, most)))
    values = np.fft.irfft(series, 16 * most, axis=-1)
    maxima = (values > np.roll(values, 1, axis=-1)) & (values >= np.roll(values, -1, axis=-1))
    return np.bincount(maxima.sum(axis=-1), minlength=most + 1) / draws


def slaving_ratio(beta: float, k: int, t: float, kind: str = "usa") -> float:
    """m_{2k}/m_k² while m_k is small, from m_{2k}(0) = 0: R (1 - e^{-(2λ_k - λ_2k)t}).

    R = 2λ_k/(2λ_k - λ_{2k}) for USA. Under SA the velocity is (ln U)'/β, whose quadratic term -½(g_k m_k/g_0)² in mode
    2k makes it R = 2λ_k(1 - g_k/g_0)/(2λ_k - λ_{2k}).
    """
    k = positive_integer("k", k)
    rates = growth_rates(beta, 2, 2 * k, kind)
    gap = 2 * rates[k - 1] - rates[2 * k - 1]
    require(gap > 0, "k", "have 2λ_k > λ_2k (else mode 2k outgrows what k drags along)", k)
    source = 2 * rates[k - 1]
    if kind == "sa":
        source *= 1 - bessel_ratios(0.0, beta, k + 1)[k]
    return float(source / gap * -np.expm1(-gap * finite_number("t", t, 0.0)))


def moment_velocity(moments: ArrayLike, beta: float) -> np.ndarray:
    """dm_k/dt = (k/β) Σ_{l∈Z} l g_l m_l m_{k-l}, k = 0..K, of USA with the scaled kernel, m_{-l} = conj m_l.

    The exact moment system, cut at K, summed as it stands: O(K²).
    """
    m = np.asarray(moments, complex)
    top = len(m) - 1
    beta = finite_number("beta", beta, 0.0, open_low=True)
    whole = np.concatenate([np.conj(m[:0:-1]), m])
    orders = np.arange(-top, top + 1)
    g = bessel_ratios(0.0, beta, top + 1)[np.abs(orders)] * special.ive(0, beta)
    product = np.convolve(orders * g * whole, whole)[2 * top : 3 * top + 1]
    return np.arange(top + 1) / beta * product
