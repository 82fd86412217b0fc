"""The one-parameter orbit shared by every equiangular model, in the clock of β = 0.

n tokens with common overlap ρ have one number, ρ. Write y = 1-ρ (deficit), w = ρ + 1/(n-1), c = n/(n-1) = y + w, and
measure progress from the start (y0, w0) by the time τ that the β = 0 flow needs:

    τ = ½ ln(y0 w / (y w0)),      y(τ) = c y0 e^{-2τ} / (w0 + y0 e^{-2τ}).

Every scheme then is a change of clock dt = S(y) dτ, and the only special function that appears is

    K = ∫_0^τ (e^{βy} - 1) dτ'  = ½{Ei(βy0)-Ei(βy) + e^{βc}[E1(βw0)-E1(βw)]} - τ           (derived)

(SA: t = τ + K/n;  USA: t = e^{-β}(τ + K);  magnitudes of Pre-LN: r = r0 √(y0/y) e^{K/n}). All arrays broadcast.
The reduction itself: A mathematical perspective on Transformers, arXiv:2312.10794.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import require
from pathlines.foundation.numbers import real_array, whole_array
from pathlines.numerics.exponential_integral import ei_minus_log, entire_e1, scaled_e1, scaled_ei

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS
LARGEST_EXPONENT = 600.0  # e^600 leaves room for prefactors below the float64 limit e^709


@dataclass(frozen=True)
class Orbit:
    """An equiangular start: ``n`` tokens, inverse temperature ``beta``, ``y0`` = 1-ρ0 and ``w0`` = ρ0+1/(n-1)."""

    n: np.ndarray
    beta: np.ndarray
    y0: np.ndarray
    w0: np.ndarray

    @property
    def c(self) -> np.ndarray:
        """y + w, the same along the whole orbit."""
        return self.n / (self.n - 1)

    @property
    def stationary(self) -> np.ndarray:
        """True where the start is the regular simplex, which does not move."""
        return self.w0 <= 0

    def deficit(self, tau: np.ndarray) -> np.ndarray:
        """y(τ), with full relative precision down to underflow."""
        decay = np.exp(-2 * tau)
        return np.where(self.stationary, self.y0, self.c * self.y0 * decay / self._denominator(decay))

    def increment(self, tau: np.ndarray) -> np.ndarray:
        """ρ(τ) - ρ0 = y0 - y(τ), with full relative precision for small τ."""
        decay = np.exp(-2 * tau)
        return np.where(self.stationary, 0.0, -self.y0 * self.w0 * np.expm1(-2 * tau) / self._denominator(decay))

    def slack(self, tau: np.ndarray) -> np.ndarray:
        """w(τ) = ρ(τ) + 1/(n-1), relatively precise near the simplex; (n-1)w = 1 + (n-1)ρ."""
        decay = np.exp(-2 * tau)
        return np.where(self.stationary, self.w0, self.c * self.w0 / self._denominator(decay))

    def _denominator(self, decay: np.ndarray) -> np.ndarray:
        return np.where(self.stationary, 1.0, self.w0 + self.y0 * decay)

    def progress(self, y: np.ndarray, increment: np.ndarray) -> np.ndarray:
        """τ at deficit ``y``; ``increment`` is y0 - y, given apart because the caller may know it more precisely."""
        near = np.abs(increment) < 0.5 * self.y0
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(near, -np.log1p(-np.where(near, increment, 0.0) / self.y0), np.log(self.y0 / y))
            tau = 0.5 * (lost + np.log1p(increment / self.w0))
        return np.where(self.stationary, np.where(increment == 0, 0.0, np.inf), tau)

    def exponent(self, y: np.ndarray) -> np.ndarray:
        """The power of e taken out of K and of times, zero unless β·max(y0, y) > 600."""
        largest = self.beta * np.maximum(self.y0, y)
        return np.where(largest > LARGEST_EXPONENT, largest, 0.0)

    def boost(self, y: np.ndarray, increment: np.ndarray) -> np.ndarray:
        """K·e^{-exponent(y)} from the start to deficit ``y``.

        Short stretches by 24-point Gauss quadrature, because there the closed form is a difference of nearly equal
        numbers; hot ones (βc ≤ 1) with the logarithms of Ei and E1 cancelled on paper; all others by Ei and E1.
        """
        arrays = np.broadcast_arrays(self.beta, self.y0, np.where(self.stationary, 1.0, self.w0), y, increment, self.n)
        shape = arrays[0].shape
        beta, y0, w0, y, s = (np.ravel(a) for a in arrays[:5])
        inside = w0 + s > 0
        out = np.where(inside, 0.0, -np.inf)
        short = inside & (np.abs(s) <= np.minimum(w0, w0 + s)) & (beta * np.abs(s) <= 8.0)
        hot = inside & ~short & (beta * (y0 + w0) <= 1.0)
        cold = inside & ~short & ~hot
        for part, formula in ((short, _boost_by_quadrature), (hot, _boost_hot), (cold, _boost_by_integrals)):
            if np.any(part):
                out[part] = formula(beta[part], y0[part], w0[part], y[part], s[part])
        return np.where(self.stationary, 0.0, out.reshape(shape))

    def full_boost(self, y: np.ndarray, increment: np.ndarray) -> np.ndarray:
        """K itself, inf where it is beyond float64."""
        scaled = self.boost(y, increment)
        with np.errstate(over="ignore"):
            return scaled * np.where(scaled == 0, 1.0, np.exp(self.exponent(y)))


def _boost_by_quadrature(beta: np.ndarray, y0: np.ndarray, w0: np.ndarray, y: np.ndarray, s: np.ndarray) -> np.ndarray:
    """½ ∫_y^{y0} (e^{βη}-1)/η · c/(c-η) dη: the only singularity, η = c, is at least a panel away."""
    away = s[:, None] * _NODES
    eta = y0[:, None] - away
    largest = beta * np.maximum(y0, y)
    huge = largest > LARGEST_EXPONENT
    argument = beta[:, None] * eta
    small = np.expm1(np.where(huge[:, None], 0.0, argument))
    growth = np.where(huge[:, None], np.exp(np.where(huge[:, None], argument - largest[:, None], 0.0)), small)
    ratio = np.where(eta == 0, beta[:, None], growth / np.where(eta == 0, 1.0, eta))
    c = (y0 + w0)[:, None]
    return 0.5 * s * ((ratio * c / (w0[:, None] + away)) @ _WEIGHTS)


def _boost_hot(beta: np.ndarray, y0: np.ndarray, w0: np.ndarray, y: np.ndarray, s: np.ndarray) -> np.ndarray:
    c = y0 + w0
    steps = np.expm1(beta * c) * np.log1p(s / w0)
    return 0.5 * (
        entire_e1(-beta * y)
        - entire_e1(-beta * y0)
        + steps
        + np.exp(beta * c) * (entire_e1(beta * w0) - entire_e1(beta * (w0 + s)))
    )


def _boost_by_integrals(beta: np.ndarray, y0: np.ndarray, w0: np.ndarray, y: np.ndarray, s: np.ndarray) -> np.ndarray:
    largest = beta * np.maximum(y0, y)
    shift = np.where(largest > LARGEST_EXPONENT, largest, 0.0)
    w = w0 + s
    return 0.5 * (
        _ei_minus_log_times(beta * y0, shift)
        - _ei_minus_log_times(beta * y, shift)
        + np.exp(beta * y0 - shift) * scaled_e1(beta * w0)
        - np.exp(beta * y - shift) * scaled_e1(beta * w)
        - np.exp(-shift) * np.log1p(s / w0)
    )


def _ei_minus_log_times(x: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """(Ei(x) - ln x)·e^{-shift} without forming Ei(x) when the shift is there because it would overflow."""
    far = (shift > 0) & (x > 1)
    direct = ei_minus_log(np.where(far, 1.0, x)) * np.exp(-shift)
    inner = np.where(far, x, 1.0)
    return np.where(far, np.exp(inner - shift) * scaled_ei(inner) - np.log(inner) * np.exp(-shift), direct)


def orbit(n: ArrayLike, beta: ArrayLike, start: ArrayLike) -> Orbit:
    """Check (n, β, ρ0) and return the orbit: n ≥ 2 whole, β ≥ 0 finite, -1/(n-1) ≤ ρ0 < 1."""
    n = whole_array("n", n, 2)
    beta = real_array("beta", beta, 0.0)
    start = real_array("start", start, -1.0, 1.0, open_high=True)
    w0 = start + 1 / (n - 1)
    require(bool(np.all(w0 >= 0)), "start", "be ≥ -1/(n-1)", start)
    return Orbit(n, beta, 1.0 - start, w0)
