"""The increasing map T = F_*^{-1} ∘ Φ from N(0, 1) to a law on the line, accurate far into both tails.

The left half solves log F_*(y) = log Φ(z), the right half log(1 - F_*)(y) = log Φ(-z): no digits are lost to 1 - 1.
Roots are found by bisection in s = arsinh y, which holds 10^{±150}, and polished by Newton's method. Some 25
evaluations of the law for all points at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from scipy.special import log_ndtr, ndtr

from pathlines.foundation.errors import ArgumentError, a_function

FARTHEST = 345.0
"""arsinh of 10^150, the largest number that is looked at."""
FEW, MANY, NEWTON = 20, 44, 4


class LineLaw(msgspec.Struct, frozen=True):
    """A law on the line by its log-density, distribution function and survival function, each of arrays."""

    logpdf: Callable[[np.ndarray], Any]
    cdf: Callable[[np.ndarray], Any]
    sf: Callable[[np.ndarray], Any]

    def log_mass(self, y: np.ndarray, right: bool) -> np.ndarray:
        """log F(y), or log(1 - F(y)) if ``right``."""
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            return np.log(self.sf(y) if right else self.cdf(y))


def checked_law(logpdf: Any, cdf: Any, sf: Any) -> LineLaw:
    """The law of three functions; without ``sf`` it is 1 - cdf. A cdf that does not go from 0 to 1 is refused."""
    for name, function in (("logpdf", logpdf), ("cdf", cdf)):
        a_function(name, function)
    law = LineLaw(logpdf, cdf, (lambda y: 1 - np.asarray(cdf(y))) if sf is None else a_function("sf", sf))
    probes = np.array([-1e100, -1.0, 0.0, 1.0, 1e100])
    try:
        with np.errstate(all="ignore"):
            low, high, density = (np.asarray(f(probes), float) for f in (cdf, law.sf, logpdf))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"Arguments `logpdf`, `cdf` and `sf` must be functions of arrays, but: {error}.") from None
    if low.shape != probes.shape or density.shape != probes.shape or np.isnan([*low, *high]).any():
        raise ArgumentError("Arguments `logpdf`, `cdf` and `sf` must return one number, not NaN, for each point.")
    if np.abs(low + high - 1).max() > 1e-9 or low[0] > 1e-9 or abs(low[-1] - 1) > 1e-9:
        raise ArgumentError(
            f"Argument `cdf` must rise from 0 to 1 and be 1 - `sf`, but goes from {low[0]:.3g} to {low[-1]:.3g}."
        )
    return _normalised(law)


def _normalised(law: LineLaw) -> LineLaw:
    """Refuse a density that is not the slope of the distribution function between the levels Φ(±3), by 5 %.

    Density times width over mass, cell by cell, and its median by mass: a spike inside a cell spoils few.
    """
    z = np.linspace(-3, 3, 801)
    y = quantile_map(law, z)
    with np.errstate(all="ignore"):
        density = np.exp(np.asarray(law.logpdf(y), float))
        share = np.diff(ndtr(z))
        ratio = (density[1:] + density[:-1]) / 2 * np.diff(y) / share
    order = np.argsort(ratio)
    mass = float(ratio[order][np.searchsorted(np.cumsum(share[order]), share.sum() / 2)])
    if not abs(mass - 1) < 0.05:
        raise ArgumentError(f"Argument `logpdf` must be that of `cdf`, but integrates to {mass:.3g} instead of 1.")
    return law


def quantile_map(law: LineLaw, z: np.ndarray) -> np.ndarray:
    """T(z), increasing."""
    out = np.empty(np.shape(z))
    for right in (False, True):
        here = (z > 0) == right
        if here.any():
            out[here] = _solved(law, log_ndtr(-np.abs(z[here])), right)
    return out


def _solved(law: LineLaw, wanted: np.ndarray, right: bool) -> np.ndarray:
    """y with log F(y) = wanted (or of 1 - F): halvings, then Newton; those it does not serve are halved on."""
    low, high = _halved(law, wanted, right, np.full(wanted.shape, -FARTHEST), np.full(wanted.shape, FARTHEST), FEW)
    y = np.sinh((low + high) / 2)
    for _ in range(NEWTON):
        with np.errstate(all="ignore"):
            mass = law.log_mass(y, right)
            step = (mass - wanted) * np.exp(mass - law.logpdf(y)) * (1 if right else -1)
            y = np.clip(np.where(np.isfinite(step), y + step, y), np.sinh(low), np.sinh(high))
    left = ~(np.abs(step) <= 1e-14 * (1 + np.abs(y)))
    if left.any():
        ends = _halved(law, wanted[left], right, low[left], high[left], MANY)
        y[left] = np.sinh((ends[0] + ends[1]) / 2)
    return y


def _halved(
    law: LineLaw, wanted: np.ndarray, right: bool, low: np.ndarray, high: np.ndarray, times: int
) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(times):
        middle = (low + high) / 2
        beyond = (law.log_mass(np.sinh(middle), right) > wanted) != right
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low, high


def log_slope(law: LineLaw, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """L = log T'(z) = log φ(z) - log ρ_*(T(z))."""
    return -0.5 * z**2 - 0.5 * np.log(2 * np.pi) - np.asarray(law.logpdf(y), float)
