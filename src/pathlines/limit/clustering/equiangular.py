"""Exact solution of self-attention from an equiangular start (all pairs share the overlap ρ), SA and USA.

    SA:   ρ' = 2(1-ρ)(1+(n-1)ρ) / (e^{β(1-ρ)} + n-1)          USA:  ρ' = (2/n) e^{βρ} (1-ρ)(1+(n-1)ρ)

n tokens on the sphere in dimension d ≥ n, inverse temperature β ≥ 0, start -1/(n-1) ≤ ρ0 < 1. You will see ρ stay near
ρ0 for a time that grows like e^{β(1-ρ0)} (SA), then rise to 1 with 1-ρ ~ C e^{-2t} (SA) or C e^{-2e^β t} (USA).
ODE and phase curve: A mathematical perspective on Transformers, arXiv:2312.10794. Closed form: derived; agrees with
40-digit quadrature to 1e-14. One evaluation costs a few exponential integrals, an inversion about ten of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import require
from pathlines.foundation.numbers import one_of, real_array, whole_array
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.limit.clustering.equiangular_orbit import Orbit, orbit

SOURCES = (PERSPECTIVE,)
KINDS = ("sa", "usa")
_LARGEST_PROGRESS = 1e4  # e^{-2τ} has underflowed long before
_FLOOR = -740.0  # ln of the smallest progress told apart from none


def overlap_rate(overlap: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str = "sa") -> np.ndarray:
    """dρ/dt at overlap ρ (equations at the top of this file)."""
    one_of("kind", kind, KINDS)
    rho = real_array("overlap", overlap, -1.0, 1.0)
    n = whole_array("n", n, 2)
    beta = real_array("beta", beta, 0.0)
    require(bool(np.all(rho + 1 / (n - 1) >= 0)), "overlap", "be ≥ -1/(n-1)", overlap)
    base = 2 * (1 - rho) * (1 + (n - 1) * rho)
    if kind == "usa":
        return (base * np.exp(beta * rho) / n)[()]
    fading = np.exp(-beta * (1 - rho))
    return (base * fading / (1 + (n - 1) * fading))[()]


def _scaled_time(path: Orbit, tau: np.ndarray, y: np.ndarray, increment: np.ndarray, kind: str) -> tuple[Any, ...]:
    """(T, E) with t = T e^E: SA τ + K/n, USA e^{-β}(τ + K), the power of e kept apart so that nothing overflows."""
    power = path.exponent(y)
    boost = path.boost(y, increment)
    reached = np.isfinite(tau)
    clock = np.where(reached, np.where(reached, tau, 0.0) * np.exp(-power), tau)
    if kind == "usa":
        return clock + boost, power - path.beta
    return clock + boost / path.n, power


def _time(path: Orbit, y: np.ndarray, increment: np.ndarray, kind: str) -> np.ndarray:
    tau = path.progress(y, increment)
    scaled, power = _scaled_time(path, tau, y, increment, kind)
    plain = (scaled == 0) | ~np.isfinite(scaled)
    with np.errstate(over="ignore"):
        # in two factors, because e^{-β} alone may underflow where the product does not
        half = np.exp(0.5 * np.where(plain, 0.0, power))
        return (scaled * half * half)[()]


def time_to_overlap(
    overlap: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0
) -> np.ndarray:
    """Time t(ρ) at which the overlap reaches ρ; all arguments broadcast.

    With y = 1-ρ, w = ρ+1/(n-1), c = n/(n-1), subscript 0 at the start (derived):

        SA   t = (n-1)/(2n) ln(y0 w/(y w0)) + {Ei(βy0)-Ei(βy)+e^{βc}[E1(βw0)-E1(βw)]}/(2n)
        USA  t = ½{e^{-β}[Ei(βy0)-Ei(βy)] + e^{β/(n-1)}[E1(βw0)-E1(βw)]},      β=0: t = ½ ln(y0 w/(y w0)).

    ρ = 1 gives inf, ρ below the start gives the (negative) time at which the backward flow was there, and the regular
    simplex ρ0 = -1/(n-1) is stationary: inf for every other ρ. Times beyond e^709 are inf: ``log_time_to_deficit``.
    """
    one_of("kind", kind, KINDS)
    rho = real_array("overlap", overlap, -1.0, 1.0)
    path = orbit(n, beta, start)
    require(bool(np.all(rho + 1 / (path.n - 1) >= 0)), "overlap", "be ≥ -1/(n-1)", overlap)
    return _time(path, 1 - rho, rho - np.asarray(start, dtype=np.float64), kind)


def time_to_deficit(
    deficit: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0
) -> np.ndarray:
    """Time at which the deficit 1-ρ has fallen to ``deficit``: ``time_to_overlap``, precise for tiny ones."""
    one_of("kind", kind, KINDS)
    path = orbit(n, beta, start)
    y, increment = _deficit_argument(deficit, path, start)
    return _time(path, y, increment, kind)


def log_time_to_deficit(
    deficit: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0
) -> np.ndarray:
    """ln of ``time_to_deficit``, finite also where the time itself overflows (β(1-ρ0) > 700); deficit ≤ 1-ρ0."""
    one_of("kind", kind, KINDS)
    path = orbit(n, beta, start)
    y, increment = _deficit_argument(deficit, path, start)
    require(bool(np.all(increment >= 0)), "deficit", "be ≤ 1-start", deficit)
    scaled, power = _scaled_time(path, path.progress(y, increment), y, increment, kind)
    with np.errstate(divide="ignore"):
        return (np.log(scaled) + power)[()]


def _deficit_argument(deficit: ArrayLike, path: Orbit, start: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The deficit y and the increment 1-ρ0-y, the latter with the rounding of 1-ρ0 put back."""
    y = real_array("deficit", deficit, 0.0)
    require(bool(np.all(y <= path.c * (1 + 1e-15))), "deficit", "be ≤ n/(n-1)", deficit)
    rounding = (1.0 - path.y0) - np.asarray(start, dtype=np.float64)
    return y, (path.y0 - y) + rounding


def _progress_at(path: Orbit, time: np.ndarray, kind: str) -> np.ndarray:
    """τ with t(τ) = time, zero where nothing moves."""
    arrays = np.broadcast_arrays(time, path.n, path.beta, path.y0, path.w0)
    shape = arrays[0].shape
    time, n, beta, y0, w0 = (np.atleast_1d(np.array(a, dtype=np.float64)).ravel() for a in arrays)
    moving = (time > 0) & (w0 > 0)
    tau = np.zeros(time.shape)
    tau[moving] = _solve(Orbit(n[moving], beta[moving], y0[moving], w0[moving]), time[moving], kind)
    return tau.reshape(shape)


def _solve(path: Orbit, time: np.ndarray, kind: str) -> np.ndarray:
    """Newton in ln τ on ln t, inside a bracket that is halved whenever Newton would leave it."""
    slowest, fastest = _clock_bounds(path, kind)
    top = np.log(_LARGEST_PROGRESS)
    low = np.clip(np.log(time) - slowest, _FLOOR, top) - 1e-9
    high = np.clip(np.log(time) - fastest, _FLOOR, top) + 1e-9
    guess = low.copy()
    active = np.arange(time.size)
    for _ in range(200):
        part = Orbit(path.n[active], path.beta[active], path.y0[active], path.w0[active])
        here = guess[active]
        miss, slope = _mismatch(part, np.exp(here), time[active], kind)
        low[active] = np.where(miss < 0, here, low[active])
        high[active] = np.where(miss > 0, here, high[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            new = here - miss / slope
        inside = (new >= low[active]) & (new <= high[active])
        new = np.where(inside, new, 0.5 * (low[active] + high[active]))
        # the mismatch itself is rounded to a few 1e-16, so a smaller one says nothing more
        exact = np.abs(miss) < 4e-16
        guess[active] = np.where(exact, here, new)
        settled = exact | (np.abs(new - here) <= 4e-16 * np.maximum(1.0, np.abs(here)))
        active = active[~settled]
        if active.size == 0:
            break
    return np.where(guess > _FLOOR + 1.0, np.exp(guess), 0.0)


def _clock_bounds(path: Orbit, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of ln(dt/dτ): SA between 0 and ln(1+(e^{βy0}-1)/n), USA between -β and -βρ0."""
    if kind == "usa":
        return path.beta * (path.y0 - 1), -path.beta
    slow = np.logaddexp(np.log1p(-1 / path.n), path.beta * path.y0 - np.log(path.n))
    return slow, np.zeros_like(slow)


def _mismatch(path: Orbit, tau: np.ndarray, time: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(ln t(τ) - ln time, d ln t/d ln τ)."""
    y = path.deficit(tau)
    scaled, power = _scaled_time(path, tau, y, path.increment(tau), kind)
    if kind == "usa":
        rate = np.exp(path.beta * (y - 1) - power)
    else:
        rate = (1 - 1 / path.n) * np.exp(-power) + np.exp(path.beta * y - power) / path.n
    # at the floor everything underflows: the slope is then not a number, and the caller bisects
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        miss = np.log(scaled / (time * np.exp(-power)))
        miss = np.where(np.isfinite(miss), miss, np.log(scaled) + power - np.log(time))
        return miss, tau * rate / scaled


def overlap_at(time: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0) -> np.ndarray:
    """Overlap ρ(t), the inverse of ``time_to_overlap``; ρ-ρ0 keeps relative precision at early times."""
    path, tau = _located(time, n, beta, kind, start)
    return (np.asarray(start, dtype=np.float64) + path.increment(tau))[()]


def deficit_at(time: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0) -> np.ndarray:
    """Deficit 1-ρ(t) with full relative precision until it underflows."""
    path, tau = _located(time, n, beta, kind, start)
    return path.deficit(tau)[()]


def _located(time: ArrayLike, n: ArrayLike, beta: ArrayLike, kind: str, start: ArrayLike) -> tuple[Orbit, np.ndarray]:
    one_of("kind", kind, KINDS)
    t = real_array("time", time, 0.0)
    path = orbit(n, beta, start)
    return path, _progress_at(path, t, kind)


def _total_boost(path: Orbit) -> np.ndarray:
    """K from the start to ρ = 1."""
    return path.full_boost(np.zeros_like(path.y0), path.y0)


def late_time_shift(n: ArrayLike, beta: ArrayLike, start: ArrayLike = 0.0) -> np.ndarray:
    """T∞ of SA, so that 1-ρ(t) ~ e^{2T∞ - 2t}: T∞ = ½ ln(y0 c/w0) + K(ρ=1)/n (derived); inf for the simplex."""
    path = orbit(n, beta, start)
    with np.errstate(divide="ignore"):
        return (0.5 * np.log(path.y0 * path.c / path.w0) + _total_boost(path) / path.n)[()]


def log_late_time_prefactor(n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0) -> np.ndarray:
    """ln C of ``late_time_prefactor``, for C beyond float64."""
    one_of("kind", kind, KINDS)
    if kind == "sa":
        return 2 * late_time_shift(n, beta, start)
    path = orbit(n, beta, start)
    with np.errstate(divide="ignore"):
        return (np.log(path.y0 * path.c / path.w0) + 2 * _total_boost(path))[()]


def late_time_prefactor(n: ArrayLike, beta: ArrayLike, kind: str = "sa", start: ArrayLike = 0.0) -> np.ndarray:
    """C of the late law: SA 1-ρ ~ C e^{-2t}, C = (y0 c/w0) e^{2K/n}; USA 1-ρ ~ C e^{-2e^β t}, C = (y0 c/w0) e^{2K}.

    K = K(ρ=1) of ``equiangular_orbit`` (derived). Beyond float64 it is inf: ``log_late_time_prefactor``.
    """
    with np.errstate(over="ignore"):
        return np.exp(log_late_time_prefactor(n, beta, kind, start))[()]


def phase_curve(
    beta: ArrayLike, n: ArrayLike, delta: ArrayLike = 1e-3, kind: str = "sa", start: ArrayLike = 0.0
) -> np.ndarray:
    """Γ: the depth t at which the overlap reaches 1-δ, as a function of β (one formula, no ODE, no root-finding)."""
    return time_to_deficit(real_array("delta", delta, 0.0, open_low=True), n, beta, kind, start)
