"""The six normalisation schemes on an equiangular start: exact orbits, exact clocks, terminal constants, layers.

In the clock τ of ``equiangular_orbit`` each scheme is a quadrature dt = s·(1+(e^{βy}-1)/n) dτ: post and sqrt are
closed forms, ngpt has s = m/α, pre has s = r and peri has s = rm, where r(ρ) is a closed form too (all derived). You
will see post and ngpt collapse like e^{-2t} and e^{-2αt}, sqrt like e^{-4√(t+1)}, pre, peri and mix only like C∞/t².
Schemes: Normalization in Attention Dynamics, arXiv:2510.22026; The Mean-Field Dynamics of Transformers,
arXiv:2512.01868. Equations of ρ and r: ``reduction``; layers: ``layers``; both are re-exported here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS, NORMALIZATION
from pathlines.limit.clustering.clock import Clock
from pathlines.limit.clustering.equiangular import deficit_at, time_to_deficit
from pathlines.limit.clustering.equiangular_orbit import LARGEST_EXPONENT, Orbit, orbit
from pathlines.limit.clustering.layers import CollapseDepth, layer_map, layers_to_deficit
from pathlines.limit.clustering.reduction import SCHEMES, attention_numbers, check_scheme, reduced_rates

__all__ = [
    "SCHEMES",
    "CollapseDepth",
    "layer_map",
    "layers_to_deficit",
    "log_terminal_constant",
    "magnitude_on_orbit",
    "orbit_integral",
    "reduced_rates",
    "reduced_trajectory",
    "terminal_constant",
    "time_to_deficit_scheme",
]
SOURCES = (NORMALIZATION, MEAN_FIELD_DYNAMICS)


def orbit_integral(overlap: ArrayLike, n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0) -> np.ndarray:
    """J(ρ) = ∫_{ρ0}^{ρ} (e^{β(1-x)}-1)/((1-x)(1+(n-1)x)) dx, closed (derived; J = 2K/n of ``equiangular_orbit``).

    J = {Ei(βy0)-Ei(βy) + e^{βc}[E1(βw0)-E1(βw)] - ln(y0 w/(y w0))}/n; finite at ρ = 1.
    """
    path = orbit(n, beta, start)
    rho = real_array("overlap", overlap, -1.0, 1.0)
    require(bool(np.all(rho > -1 / (path.n - 1))), "overlap", "be > -1/(n-1)", overlap)
    require(not np.any(path.stationary), "start", "be > -1/(n-1)", start)
    boost = path.full_boost(1 - rho, rho - np.asarray(start, dtype=np.float64))
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
    total = orbit_integral(1.0, n, beta, start)
    return (2 * np.log(r0) + np.log1p(-np.asarray(start, dtype=np.float64)) + total)[()]


def terminal_constant(n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0, magnitude: ArrayLike = 1.0) -> np.ndarray:
    """C∞ = r0²(1-ρ0)e^{J(1)}: r²(1-ρ) -> C∞ and t²(1-ρ) -> C∞ for Pre-LN and Peri-LN alike (derived).

    r²(1-ρ) converges like t^{-2}, t²(1-ρ) only like 1/t.
    """
    with np.errstate(over="ignore"):
        return np.exp(log_terminal_constant(n, beta, start, magnitude))[()]


def _log_growth(path: Orbit, tau: np.ndarray) -> np.ndarray:
    """ln(r/r0) = ½ ln(y0/y) + K/n along the orbit of Pre-LN and Peri-LN."""
    early = tau < 1
    near = 0.5 * np.log1p(path.w0 / path.c * np.expm1(2 * np.where(early, tau, 0.0)))
    far = tau + 0.5 * np.log((path.w0 + path.y0 * np.exp(-2 * tau)) / path.c)
    return np.where(early, near, far) + path.boost(path.deficit(tau), path.increment(tau)) / path.n


def _clock(scheme: str, path: Orbit, magnitude: float, alpha: float) -> Clock:
    """The clock dt/dτ = s·(1+(e^{βy}-1)/n) of pre, peri or ngpt along the orbit."""
    n, beta, c = float(path.n), float(path.beta), float(path.c)

    def speed(tau: np.ndarray) -> np.ndarray:
        y = path.deficit(tau)
        base = 1 + np.expm1(beta * y) / n
        if scheme != "ngpt":
            base = base * magnitude * np.exp(_log_growth(path, tau))
        if scheme != "pre":
            base = base * attention_numbers(y, path.slack(tau), n, beta)[3]
        return base / alpha if scheme == "ngpt" else base

    def width(tau: float) -> float:
        y = float(path.deficit(np.asarray(tau)))
        if scheme == "ngpt" and y < 1e-18:
            return max(1.0, tau)  # the speed is constant to rounding from here on
        growth = 0.0 if scheme == "ngpt" else np.expm1(beta * y) / n
        return float(0.5 / (1 + 2 * beta * y * (1 - y / c) + growth))

    return Clock(speed, width)


def _check_exponent(path: Orbit) -> None:
    exponent = float(path.beta * path.y0)
    require(exponent <= LARGEST_EXPONENT, "beta", f"be such that beta·(1-start) ≤ {LARGEST_EXPONENT:g}", path.beta)


def _moved(scheme: str, path: Orbit, times: np.ndarray, magnitude: float, alpha: float) -> tuple[Any, ...]:
    """(deficit, magnitude) of pre, peri or ngpt after the times, from the start of ``path``."""
    if path.stationary:
        _, _, h, m = attention_numbers(path.y0, path.w0, path.n, path.beta)
        growth = {"pre": h, "peri": h / m if m > 0 else 0.0, "ngpt": 0.0}[scheme]
        return np.full(times.shape, float(path.y0)), magnitude + growth * times
    _check_exponent(path)
    tau = _clock(scheme, path, magnitude, alpha).progress_at(times)
    growth = np.zeros_like(tau) if scheme == "ngpt" else _log_growth(path, tau)
    return path.deficit(tau), magnitude * np.exp(growth)


def _square_root_time(times: np.ndarray) -> np.ndarray:
    """2(√(t+1)-1), written so that small times keep their digits."""
    return 2 * times / (np.sqrt(times + 1) + 1)


def _after_switch(n: int, beta: float, start: float, switch: float) -> Orbit:
    """The orbit on from the Mix-LN switch; its deficit may be far below 1e-16, so it does not go through ρ."""
    y = np.asarray(deficit_at(switch, n, beta, "sa", start))
    return Orbit(np.asarray(float(n)), np.asarray(float(beta)), y, np.maximum(n / (n - 1) - y, 0.0))


def reduced_trajectory(
    scheme: str,
    times: ArrayLike,
    n: int,
    beta: float,
    start: float = 0.0,
    magnitude: float = 1.0,
    alpha: float = 1.0,
    switch: float = 2.0,
) -> tuple[np.ndarray, np.ndarray]:
    """(1-ρ(t), r(t)) of a scheme at the given times, 12 digits or more, 1-ρ with full relative precision.

    Start: overlap ρ0 = ``start`` and magnitude r0. ``alpha`` is nGPT's α, ``switch`` Mix-LN's τ (r = r0 up to τ).
    Cost: post, sqrt a few exponential integrals a time; the others some hundred quadrature panels, once.
    """
    check_scheme(scheme, n, beta, alpha, switch)
    t = real_array("times", times, 0.0)
    r0 = finite_number("magnitude", magnitude, 0.0, open_low=True)
    path = orbit(n, beta, start)
    require(path.y0.ndim == 0, "start", "be one number", start)
    if scheme in ("post", "sqrt"):
        clock = t if scheme == "post" else _square_root_time(t)
        return deficit_at(clock, n, beta, "sa", start), np.full(t.shape, r0)[()]
    if scheme != "mix":
        deficit, size = _moved(scheme, path, t, r0, alpha)
        return deficit[()], size[()]
    before = t <= switch
    deficit, size = _moved("pre", _after_switch(n, beta, start, switch), np.maximum(t - switch, 0.0), r0, alpha)
    early = deficit_at(np.minimum(t, switch), n, beta, "sa", start)
    return np.where(before, early, deficit)[()], np.where(before, r0, size)[()]


def time_to_deficit_scheme(
    scheme: str,
    deficit: ArrayLike,
    n: int,
    beta: float,
    start: float = 0.0,
    magnitude: float = 1.0,
    alpha: float = 1.0,
    switch: float = 2.0,
) -> np.ndarray:
    """Depth time at which 1-ρ has fallen to ``deficit`` (≤ 1-ρ0) under a scheme; inf for 0 and for the simplex."""
    check_scheme(scheme, n, beta, alpha, switch)
    y = real_array("deficit", deficit, 0.0)
    r0 = finite_number("magnitude", magnitude, 0.0, open_low=True)
    path = orbit(n, beta, start)
    require(bool(np.all(y <= path.y0)), "deficit", "be ≤ 1-start", deficit)
    post = time_to_deficit(y, n, beta, "sa", start)
    if scheme == "post":
        return post
    if scheme == "sqrt":
        return (post + 0.25 * post**2)[()]
    if scheme != "mix":
        return _clock_time(scheme, path, y, r0, alpha)[()]
    later = _after_switch(n, beta, start, switch)
    rest = _clock_time("pre", later, np.minimum(y, later.y0), r0, alpha)
    return np.where(post <= switch, post, switch + rest)[()]


def _clock_time(scheme: str, path: Orbit, y: np.ndarray, magnitude: float, alpha: float) -> np.ndarray:
    tau = path.progress(y, path.y0 - y)
    out = np.where(np.isfinite(tau), 0.0, np.inf)
    reached = np.isfinite(tau) & (tau > 0)
    if np.any(reached):
        _check_exponent(path)
        out[reached] = _clock(scheme, path, magnitude, alpha).time_at(tau[reached])
    return out
