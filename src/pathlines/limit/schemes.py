"""Six ways to normalise, reduced to two numbers: the overlap ρ of directions and the magnitude r of the tokens.

From an equiangular start with equal magnitudes, every scheme of Normalization in Attention Dynamics (arXiv:2510.22026)
keeps that form. With y = 1-ρ, b = 1/(e^{βy}+n-1), a = 1-(n-1)b, s1 = 1+(n-1)ρ (derived):

    h = ⟨θ,A⟩ = (a-b) + b s1,   m = |A| = √((a-b)² + 2(a-b)b s1 + b² n s1),   F = 2b y s1,
    ρ' = F/s,  (s, r') = post (1,0)  pre (r,h)  peri (rm,h/m)  ngpt (m/α,0)  sqrt (√(t+1),0);  mix: post to τ, then pre.

You will see post and ngpt collapse like e^{-2t}, e^{-2αt}, sqrt like e^{-4√t}, and pre, peri, mix only like C∞/t².
A direction that is attended to nowhere (A = 0: β = 0 on the regular simplex) is normalised to 0, so it does not move.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS, NORMALIZATION
from pathlines.limit.arguments import one_of, real_array
from pathlines.limit.clock import Clock
from pathlines.limit.equiangular import deficit_at, time_to_deficit
from pathlines.limit.orbit import LARGEST_EXPONENT, Orbit, orbit, orbit_from_deficit

SOURCES = (NORMALIZATION, MEAN_FIELD_DYNAMICS)
SCHEMES = ("post", "pre", "mix", "peri", "ngpt", "sqrt")


def attention_numbers(deficit: np.ndarray, slack: np.ndarray, n: ArrayLike, beta: ArrayLike) -> tuple:
    """(a-b, b, h, m) at y = ``deficit``, w = ``slack`` = ρ+1/(n-1); sums of positive terms only, nothing cancels."""
    y, n, beta = np.asarray(deficit), np.asarray(n, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    fading = np.exp(-beta * y)
    total = 1 + (n - 1) * fading
    b = fading / total
    own = -np.expm1(-beta * y) / total
    s1 = (n - 1) * slack
    h = own + b * s1
    m = np.sqrt(own * own + 2 * own * b * s1 + b * b * n * s1)
    return own, b, h, m


def _state(deficit: ArrayLike, magnitude: ArrayLike, n: int, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check (1-ρ, r, n, β); return y, w = n/(n-1) - y and r."""
    positive_integer("n", n, 2)
    finite_number("beta", beta, 0.0)
    y = real_array("deficit", deficit, 0.0)
    slack = n / (n - 1) - y
    require(bool(np.all(slack >= -1e-15)), "deficit", "be ≤ n/(n-1)", deficit)
    return y, np.maximum(slack, 0.0), real_array("magnitude", magnitude, 0.0, open_low=True)


def reduced_rates(
    scheme: str,
    deficit: ArrayLike,
    magnitude: ArrayLike,
    n: int,
    beta: float,
    time: ArrayLike = 0.0,
    alpha: float = 1.0,
    switch: float = 2.0,
) -> tuple[np.ndarray, np.ndarray]:
    """(ρ', r') at deficit 1-ρ and magnitude r: the right-hand side at the top of this file, elementwise."""
    one_of("scheme", scheme, SCHEMES)
    y, slack, r = _state(deficit, magnitude, n, beta)
    t = real_array("time", time, 0.0)
    _, b, h, m = attention_numbers(y, slack, n, beta)
    rate = 2 * b * y * (n - 1) * slack
    unit = np.where(m > 0, m, 1.0)
    still = np.zeros(np.broadcast_shapes(rate.shape, r.shape, t.shape))
    after = still + (t > switch)
    speed, growth = {
        "post": (1.0, still),
        "pre": (1 / r, h + still),
        "mix": (np.where(after > 0, 1 / r, 1.0), h * after),
        "peri": (1 / (r * unit), h / unit + still),
        "ngpt": (alpha / unit, still),
        "sqrt": (1 / np.sqrt(t + 1), still),
    }[scheme]
    return (rate * speed + still)[()], growth[()]


def orbit_integral(overlap: ArrayLike, n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0) -> np.ndarray:
    """J(ρ) = ∫_{ρ0}^{ρ} (e^{β(1-x)}-1)/((1-x)(1+(n-1)x)) dx, in closed form (derived; J = 2K/n of ``limit.orbit``).

    J = {Ei(βy0)-Ei(βy) + e^{βc}[E1(βw0)-E1(βw)] - ln(y0 w/(y w0))}/n; finite at ρ = 1.
    """
    path = orbit(n, beta, start)
    rho = real_array("overlap", overlap, -1.0, 1.0)
    require(bool(np.all(rho > -1 / (path.n - 1))), "overlap", "be > -1/(n-1)", overlap)
    require(not np.any(path.stationary), "start", "be > -1/(n-1)", start)
    y = 1 - rho
    with np.errstate(over="ignore"):
        boost = path.boost(y, rho - np.asarray(start, dtype=np.float64)) * np.exp(path.exponent(y))
    return (2 * boost / path.n)[()]


def magnitude_on_orbit(
    overlap: ArrayLike, n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0, magnitude: ArrayLike = 1.0
) -> np.ndarray:
    """r(ρ) = r0 √((1-ρ0)/(1-ρ)) e^{J(ρ)/2}, the same path for Pre-LN and Peri-LN (derived); ρ < 1."""
    rho = real_array("overlap", overlap, -1.0, 1.0, open_high=True)
    r0 = real_array("magnitude", magnitude, 0.0, open_low=True)
    ratio = (1 - np.asarray(start, dtype=np.float64)) / (1 - rho)
    with np.errstate(over="ignore"):
        return (r0 * np.sqrt(ratio) * np.exp(0.5 * orbit_integral(rho, n, beta, start)))[()]


def log_terminal_constant(
    n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0, magnitude: ArrayLike = 1.0
) -> np.ndarray:
    """ln C∞, for constants beyond float64."""
    r0 = real_array("magnitude", magnitude, 0.0, open_low=True)
    y0 = 1 - np.asarray(start, dtype=np.float64)
    return (2 * np.log(r0) + np.log(y0) + orbit_integral(1.0, n, beta, start))[()]


def terminal_constant(
    n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0, magnitude: ArrayLike = 1.0
) -> np.ndarray:
    """C∞ = r0²(1-ρ0)e^{J(1)}: r²(1-ρ) -> C∞ and t²(1-ρ) -> C∞ for Pre-LN and Peri-LN alike (derived).

    r²(1-ρ) converges like t^{-2}, t²(1-ρ) only like 1/t.
    """
    with np.errstate(over="ignore"):
        return np.exp(log_terminal_constant(n, beta, start, magnitude))[()]


def _log_growth(path: Orbit, tau: np.ndarray) -> np.ndarray:
    """ln(r/r0) = ½ ln(y0/y) + K/n along the orbit of Pre-LN and Peri-LN."""
    increment = path.increment(tau)
    boost = path.boost(path.deficit(tau), increment)
    return 0.5 * np.log1p(-(path.w0 / path.c) * -np.expm1(2 * tau)) + boost / path.n


def _clock(scheme: str, path: Orbit, magnitude: float, alpha: float) -> Clock:
    """The clock dt/dτ = s·(1 + (e^{βy}-1)/n) of pre, peri or ngpt along the orbit."""

    def speed(tau: np.ndarray) -> np.ndarray:
        y = path.deficit(tau)
        base = 1 + np.expm1(path.beta * y) / path.n
        if scheme != "ngpt":
            base = base * magnitude * np.exp(_log_growth(path, tau))
        if scheme != "pre":
            base = base * attention_numbers(y, path.slack(tau), path.n, path.beta)[3]
        return base / alpha if scheme == "ngpt" else base

    def width(tau: float) -> float:
        y = float(path.deficit(np.float64(tau)))
        steep = 1 + float(path.beta) * y * (1 - y * float(1 / path.c)) * 2 + np.expm1(float(path.beta) * y) / path.n
        return 0.5 / float(steep)

    return Clock(speed, width)


def _moving(scheme: str, path: Orbit, times: np.ndarray, magnitude: float, alpha: float) -> tuple:
    """(deficit, magnitude) of pre, peri or ngpt at the times, from the start of ``path``."""
    if bool(path.stationary):
        _, _, h, m = attention_numbers(path.y0, path.w0, path.n, path.beta)
        growth = {"pre": h, "peri": h / m if m > 0 else 0.0, "ngpt": 0.0}[scheme]
        return np.full(times.shape, float(path.y0)), magnitude + growth * times
    exponent = float(path.beta * path.y0)
    require(exponent <= LARGEST_EXPONENT, "beta", f"be such that beta·(1-start) ≤ {LARGEST_EXPONENT:g}", exponent)
    tau = _clock(scheme, path, magnitude, alpha).progress_at(times)
    growth = np.zeros_like(tau) if scheme == "ngpt" else _log_growth(path, tau)
    return path.deficit(tau), magnitude * np.exp(growth)
