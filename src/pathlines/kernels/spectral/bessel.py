"""The spectrum of e^{β(<x,y>-1)} on the unit sphere of R^d, and how much of it an answer needs.

Funk-Hecke: e^{β(<x,y>-1)} = Σ_l g_l Σ_m Y_lm(x) conj Y_lm(y) with N(d, l) harmonics of degree l and mean square one,
g_l = e^{-β} Γ(d/2) (2/β)^{d/2-1} I_{l+d/2-1}(β) > 0. At x = y: Σ_l N(d, l) g_l = 1, so what degrees above L can
change is at most the tail Σ_{l>L} N(d, l) g_l, reached at x = y (Abramowitz & Stegun 10.2.36 for d = 3; on the circle
g_k is the Skellam law, the difference of two Poisson variables of mean β/2).
"""

from __future__ import annotations

from functools import cache
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float

from pathlines.foundation.errors import finite_number, positive_integer, require

MOST_DEGREE = {"float32": 120, "float64": 1000}
"""Where d > 2: the polynomial factors of harmonics grow like e^{l/2} at the poles, where the others vanish."""
NORMALISED = 1e-17
"""The part of the spectrum that may be missing from the sum Σ N g = 1 which normalises the coefficients."""


def harmonics(d: int, degree: int) -> int:
    """N(d, l): independent harmonics of one degree; 2 on the circle (1 for l = 0), 2l + 1 on the sphere of R^3."""
    d, degree = positive_integer("d", d, 2), positive_integer("degree", degree, 0)
    return comb(degree + d - 1, d - 1) - (comb(degree + d - 3, d - 1) if degree >= 2 else 0)


def coefficients(d: int, degree: int) -> int:
    """Σ_{l≤L} N(d, l): real numbers in a series up to degree L; 2L + 1 on the circle, (L + 1)² on the sphere of R^3."""
    d, degree = positive_integer("d", d, 2), positive_integer("degree", degree, 0)
    return comb(degree + d - 1, d - 1) + (comb(degree + d - 2, d - 1) if degree >= 1 else 0)


def degree(beta: float, d: int, tolerance: float) -> int:
    """The smallest L with Σ_{l>L} N(d, l) g_l ≤ tolerance: then the kernel is wrong by at most that, everywhere.

    ~ sqrt(2β ln(1/tolerance)) for large β. The sum is of positive terms, with a geometric bound on what it leaves out.
    """
    beta = finite_number("beta", beta, low=0.0)
    tolerance = finite_number("tolerance", tolerance, low=0.0, open_low=True)
    return int(np.argmax(_tails(beta, positive_integer("d", d, 2), min(tolerance, NORMALISED)) <= tolerance))


def tail(beta: float, d: int, degree: int) -> float:
    """Σ_{l>L} N(d, l) g_l, the largest error of the kernel cut at degree L (zero where it is below 1e-34)."""
    tails = _tails(finite_number("beta", beta, low=0.0), positive_integer("d", d, 2), 1e-34)
    return float(tails[degree]) if degree < len(tails) else 0.0


@cache
def _tails(beta: float, d: int, smallest: float) -> np.ndarray:
    """Σ_{l>L} N g for L = 0, 1, ... until below ``smallest``.

    g_l/g_{l-1} and N(d, l)/N(d, l-1) decrease in l, so the terms left out are a geometric series at most. O(√β).
    """
    count = 16
    while True:
        orders = np.arange(count + 1)
        numbers = np.array([float(harmonics(d, int(k))) for k in orders])
        terms = numbers * _products(beta, d, count)
        falls = ratio_bound(beta, d, count) * numbers[-1] / numbers[-2]
        rest = terms[-1] * falls / (1 - falls) if falls < 1 else np.inf
        if rest <= 1e-3 * smallest * terms.sum():
            terms, rest = terms / terms.sum(), rest / terms.sum()
            return np.append(np.cumsum(terms[:0:-1])[::-1] + rest, rest)
        count *= 2


def ratio_bound(beta: Any, d: int, degree: int) -> Any:
    """g_l/g_{l-1} = I_ν/I_{ν-1}(β) < β/(ν-½+√((ν-½)²+β²)), ν = l + d/2 - 1 (Segura 2011), and nearly that."""
    half = degree + d / 2 - 1.5
    return beta / (half + (half * half + beta * beta) ** 0.5)


def _products(beta: float, d: int, count: int) -> np.ndarray:
    """g_l/g_0, l = 0..count."""
    ratios, ratio = np.zeros(count), ratio_bound(beta, d, count + 1)
    for k in range(count, 0, -1):
        ratios[k - 1] = ratio = beta / (2 * k + d - 2 + beta * ratio)
    return np.concatenate([[1.0], np.cumprod(ratios)])


def spectrum(beta: Float[Array, ""], d: int, degree: int, start: int) -> Float[Array, " L"]:
    """g_0..g_L for a traced β by the recurrence g_l/g_{l-1} = β/(2l + d - 2 + β g_{l+1}/g_l), downwards from ``start``.

    Accurate relative to the largest, for every β ≥ 0 whose spectrum ends before ``start``: O(start).
    """
    start = max(start, degree)
    orders = jnp.arange(start, 0, -1, dtype=beta.dtype)

    def backward(ratio: Array, k: Array) -> tuple[Array, Array]:
        ratio = beta / (2 * k + d - 2 + beta * ratio)
        return ratio, ratio

    _, ratios = jax.lax.scan(backward, ratio_bound(beta, d, start + 1), orders)
    products = jnp.concatenate([jnp.ones(1, beta.dtype), jnp.cumprod(ratios[::-1])])
    numbers = np.array([float(harmonics(d, k)) for k in range(start + 1)])
    return products[: degree + 1] / jnp.sum(products * jnp.asarray(numbers, beta.dtype))


def noise_floor(beta: float, d: int, dtype: DTypeLike) -> float:
    """What rounding does to Σ_j m_j e^{β(<x_i,y_j>-1)} with Σ m = 1, however many modes are kept.

    ε(1 + √β) on the circle: a harmonic of degree l is reached by l multiplications, so it is wrong by about lε, and
    Σ_l N(d, l) g_l l is at most √((d-1)β), the root of the mean of l(l+d-2) under that law, which is -Δ of the kernel
    at x = y. ε(1 + √((d-1)β) + β) above: near a pole a rounded component of x is amplified by P_l'(1) ~ l²/2. Forces
    below it (separated clusters of the slow phase) come out as noise of either sign: sum them directly.
    """
    beta, d = finite_number("beta", beta, low=0.0), positive_integer("d", d, 2)
    poles = beta if d > 2 else 0.0
    return float(np.finfo(np.dtype(dtype)).eps * (1 + np.sqrt((d - 1) * beta) + poles))


def admissible(beta: float, d: int, tolerance: float, dtype: DTypeLike) -> bool:
    """Whether a kernel error of ``tolerance`` is above the noise of the arithmetic, and no harmonic overflows."""
    most = MOST_DEGREE[np.dtype(dtype).name]
    return tolerance >= noise_floor(beta, d, dtype) and (d == 2 or degree(beta, d, tolerance) <= most)


def require_admissible(beta: float, d: int, tolerance: float, dtype: DTypeLike) -> None:
    """``ArgumentError`` unless ``admissible``."""
    floor, kind = noise_floor(beta, d, dtype), np.dtype(dtype).name
    few = d == 2 or degree(beta, d, max(tolerance, floor)) <= MOST_DEGREE[kind]
    require(few, "beta", f"need no harmonics of d = {d} above degree {MOST_DEGREE[kind]}, which overflow {kind}", beta)
    reason = f"be at least {floor:.2g}, the noise of {kind} sums by harmonics at beta = {beta:g}, d = {d}"
    require(tolerance >= floor, "tolerance", reason, tolerance)
