"""Which pattern grows out of uniform tokens, how fast, and how likely (linear theory).

For a density 1 + f relative to the uniform law on the sphere of R^d, every harmonic of degree k grows like e^{λ_k t}
(Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228; rates derived by Funk-Hecke):

    λ_k = k(k+d-2)/β · g_k (USA, kernel e^{β(<x,y>-1)}),   λ_k = k(k+d-2)/β · I_{k+a}(β)/I_a(β) (SA),   a = d/2 - 1,

g_k = Γ(d/2)(2/β)^a e^{-β} I_{k+a}(β). All are positive: the uniform state is unstable in every mode, for every β and d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate, optimize, special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import METASTABLE_EMERGENCE

SOURCES = (METASTABLE_EMERGENCE,)
KINDS = ("sa", "usa")
EARLY = 0.01
"""Share of starts that may have a mode above the amplitude already."""


def bessel_ratios(order: float, beta: float, count: int) -> np.ndarray:
    """I_{order+k}(β)/I_order(β), k = 0..count-1, by the backward recurrence of ratios: nothing overflows."""
    start = count + 30 + int(np.sqrt(40 * beta))
    ratio, ratios = 0.0, np.zeros(start)
    for k in range(start, 0, -1):
        ratio = beta / (2 * (order + k) + beta * ratio)
        ratios[k - 1] = ratio
    return np.concatenate([[1.0], np.cumprod(ratios)])[:count]


def growth_rates(beta: float, d: int, count: int, kind: str = "sa") -> np.ndarray:
    """λ_1..λ_count; for USA of the scaled kernel e^{β(<x,y>-1)} (times e^β for e^{β<x,y>})."""
    beta, d = finite_number("beta", beta, 0.0, open_low=True), positive_integer("d", d, 2)
    count, kind = positive_integer("count", count), one_of("kind", kind, KINDS)
    k, a = np.arange(1, count + 1), d / 2 - 1
    rates = k * (k + d - 2) / beta * bessel_ratios(a, beta, count + 1)[1:]
    return rates if kind == "sa" else rates * mean_kernel(beta, d)


def mean_kernel(beta: float, d: int) -> float:
    """g_0 = Γ(d/2)(2/β)^a e^{-β} I_a(β): the mean of e^{β(<x,y>-1)} over the sphere."""
    return float(np.exp(log_mean_kernel(beta, d)))


def log_mean_kernel(beta: float, d: int) -> float:
    """ln g_0, also where g_0 or the Bessel function in it underflows."""
    a = d / 2 - 1
    size = special.ive(a, beta)
    if size > 0:
        return float(special.gammaln(d / 2) + a * np.log(2 / beta) + np.log(size))
    # E e^{β(s-1)} over s = tanh x, where the law of s is cosh(x)^{1-d} dx and the trapezoid rule spectrally accurate
    top = np.arcsinh(2 * beta / (d - 1)) / 2
    x = np.arange(-12, 12 + top * np.sqrt(d), 0.2) / np.sqrt(d)
    law = -(d - 1) * np.log(np.cosh(x))
    return float(special.logsumexp(law + beta * (np.tanh(x) - 1)) - special.logsumexp(law))


def dominant_degree(beta: float, d: int) -> int:
    """k* = argmax_k λ_k, the same for SA and USA: the number of clusters that form first on the circle."""
    count = 4 + int(2 * np.sqrt(2 * finite_number("beta", beta, 0.0, open_low=True)))
    return 1 + int(np.argmax(growth_rates(beta, d, count)))


def law_of_dominant_degree(beta: ArrayLike, d: int) -> np.ndarray:
    """k* ≃ max(1, round(√(2β+a²) - a)), a = d/2 - 1: √(2β) for β ≫ d² (derived).

    One off near the thresholds: for large d it leaves one cluster at β = 3d/4, the rates do at 2d/3. See ``threshold``.
    """
    a = positive_integer("d", d, 2) / 2 - 1
    return np.maximum(1, np.rint(np.sqrt(2 * np.asarray(beta, float) + a * a) - a)).astype(int)


def threshold(k: int, d: int) -> float:
    """β at which degree k+1 overtakes degree k: k(k+d-2) = (k+1)(k+d-1) I_{k+1+a}(β)/I_{k+a}(β).

    β_{1→2}/d → 2/3: below it one cluster forms and there is no phase with several.
    """
    k, d = positive_integer("k", k), positive_integer("d", d, 2)
    wanted = k * (k + d - 2) / ((k + 1) * (k + d - 1))
    excess = lambda beta: bessel_ratios(k + d / 2 - 1, beta, 2)[1] - wanted  # noqa: E731
    return float(optimize.brentq(excess, 1e-9, 4.0 * (k + 1) * (k + d), xtol=1e-13, rtol=1e-14))


def formation_time(beta: float, d: int, tokens: float, amplitude: float = 0.1, kind: str = "sa") -> float:
    """(½ ln N + ln c)/λ_{k*}: when the fastest mode of N i.i.d. tokens reaches the amplitude c, to leading order."""
    n = finite_number("tokens", tokens, 1.0, open_low=True)
    c = finite_number("amplitude", amplitude, 0.0, 1.0, open_low=True)
    fastest = growth_rates(beta, d, dominant_degree(beta, d), kind)[-1]
    return float((0.5 * np.log(n) + np.log(c)) / fastest)


def harmonics(d: int, count: int) -> np.ndarray:
    """ν_k = (2k+d-2)/(k+d-2) binom(k+d-2, k), k = 1..count: how many harmonics of degree k the sphere of R^d has."""
    d, k = positive_integer("d", d, 2), np.arange(1, positive_integer("count", count) + 1)
    return np.rint((2 * k + d - 2) / (k + d - 2) * special.binom(k + d - 2, k))


def quiet_margin(tokens: float, amplitude: float, count: int, d: int = 2) -> float:
    """ln(c²N) of N i.i.d. tokens, whose degrees 1..count start below the amplitude c but for one start in a hundred.

    The amplitude of degree k is a_k = √(½ Σ_m C_km²), C_km the mean of the m-th orthonormal harmonic over the tokens:
    |m_k| on the circle, |f_k|/√2 in L² for a density 1 + Σ f_k. Its N-fold square is ½χ² of ν_k degrees of freedom.
    With fewer tokens "the first degree to reach c" is noise of the start.
    """
    n = finite_number("tokens", tokens, 1.0, open_low=True)
    c = finite_number("amplitude", amplitude, 0.0, 1.0, open_low=True)
    half = harmonics(d, count) / 2
    early = lambda x: float(np.sum(special.gammaincc(half, np.exp(x)))) - EARLY  # noqa: E731
    least = float(np.exp(optimize.brentq(early, -5.0, 5 + np.log(half.max() + 100 * len(half))))) / c**2
    must = f"be at least {least:.5g} for degrees 1 to {count} to start below the amplitude c = {c:g}"
    require(n >= least * (1 - 1e-9), "tokens", must, n)
    return float(np.log(n * c * c))


def selection_probabilities(
    beta: float, tokens: float, amplitude: float = 0.1, count: int | None = None, d: int = 2
) -> np.ndarray:
    """P(degree k is the first to reach the amplitude c), k = 1.., from N i.i.d. uniform tokens on the sphere of R^d.

    The coefficients of the ν_k harmonics of degree k start as independent normals of variance 1/N, so the amplitude of
    ``quiet_margin`` has P(t_k > t) = S_k(t) = γ(ν_k/2, x)/Γ(ν_k/2), x = c²N e^{-2λ_k t} (1 - e^{-x} on the circle), and
    P_k = ∫_0^∞ -S_k'(t) Π_{j≠k} S_j(t) dt / Π_j S_j(0), given that none is above c at t = 0: an integral, not a
    simulation (derived), and the sum over k is one. Higher degrees have more harmonics, and win more often for it. SA
    and USA give the same numbers up to the clock, their rates being proportional.
    """
    most = positive_integer("count", count) if count is not None else _counted(dominant_degree(beta, d), d)
    rates, start = growth_rates(beta, d, most), quiet_margin(tokens, amplitude, most, d)
    half = harmonics(d, most) / 2

    def density(t: float) -> np.ndarray:
        logs = start - 2 * rates * t
        late = special.gammainc(half, np.exp(logs))
        arriving = 2 * rates * np.exp(half * logs - np.exp(logs) - special.gammaln(half))
        return arriving / np.maximum(late, 1e-300) * np.prod(late)

    longest = (start + 40) / (2 * rates.max())
    value, _ = integrate.quad_vec(density, 0.0, longest, epsabs=1e-12, epsrel=1e-10, limit=2000)
    return value / np.prod(special.gammainc(half, np.exp(start)))


def _counted(fastest: int, d: int) -> int:
    """Degrees that may be first: on the circle some more than in higher dimension, where each costs tokens."""
    return 6 + 3 * fastest if d == 2 else max(6, 2 * fastest + 2)
