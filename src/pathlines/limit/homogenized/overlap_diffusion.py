"""One overlap R as a scalar diffusion, solved in y = artanh R.

Two tokens under common noise have an overlap dR = D dτ + √Q dB whose coefficients vanish at R = ±1. In y

    dy = μ dτ + σ dB,   μ = D/(1-R²) + R Q/(1-R²)²,   σ² = Q/(1-R²)²,   D = (1-R²)(μ - Rσ²),   Q = (1-R²)²σ²,

μ and σ² are bounded, tend to constants as y -> ±∞, and are analytic in a strip: expectations and exit probabilities
come out to ten digits and more. log(1+R) drifts at 2μ(-∞) near R = -1, log(1-R) at -2μ(∞) near R = 1, so an end
attracts when that rate is negative. Collocation in R itself loses its digits once τ/d is of order one, because the
solution is smooth but not analytic at ±1. Derived; Homogenized Transformers, arXiv:2604.01978, for the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number
from pathlines.foundation.numbers import real_array
from pathlines.limit.homogenized.backward_equation import (
    SIGMAS,
    Function,
    in_fixed_window,
    in_moving_window,
    path_and_spread,
)

_FAR = 300.0  # e^{-2y} has vanished, e^{2y} has not overflowed


@dataclass(frozen=True)
class OverlapDiffusion:
    """dy = ``drift``(y) dτ + √``variance``(y) dB; beyond |y| = ``extent`` both are constant to 1e-15."""

    drift: Function
    variance: Function
    extent: float = 20.0

    def overlap_drift(self, overlap: ArrayLike) -> np.ndarray:
        """D(R), the drift of R per unit of τ, |R| < 1."""
        r = _inside("overlap", overlap)
        y = np.arctanh(r)
        return ((1 - r * r) * (self.drift(y) - r * self.variance(y)))[()]

    def overlap_variation(self, overlap: ArrayLike) -> np.ndarray:
        """Q(R) = d⟨R⟩/dτ, |R| < 1."""
        r = _inside("overlap", overlap)
        return ((1 - r * r) ** 2 * self.variance(np.arctanh(r)))[()]

    @property
    def rate_at_antipode(self) -> float:
        """Drift of log(1+R) as R -> -1; negative: the antipode attracts."""
        return float(2 * self.drift(np.array([-_FAR]))[0])

    @property
    def rate_at_consensus(self) -> float:
        """Drift of log(1-R) as R -> 1; negative: consensus attracts."""
        return float(-2 * self.drift(np.array([_FAR]))[0])

    def expectation(self, values: Function, time: float, start: float = 0.0) -> float:
        """E[φ(R_τ)] from R_0 = ``start``, φ = ``values`` smooth on [-1, 1]; about 1e-11 (cost: expm of ~150 nodes)."""
        t, r = finite_number("time", time, 0.0), finite_number("start", start, -1.0, 1.0)
        if t == 0 or abs(r) == 1:
            return float(values(np.array([r]))[0])
        y0 = float(np.arctanh(r))

        def of_y(y: np.ndarray) -> np.ndarray:
            return values(np.tanh(y))

        path, spread = path_and_spread(self.drift, self.variance, t, y0)
        if SIGMAS * spread < 1:
            return in_moving_window(self.drift, self.variance, of_y, t, path, SIGMAS * spread)
        return in_fixed_window(self.drift, self.variance, of_y, t, y0, self._window(y0, t))

    def _window(self, y0: float, time: float) -> tuple[float, float]:
        """What the path can reach, widened to |y| ≤ extent so that φ is flat where the window ends."""
        grid = np.linspace(-self.extent, self.extent, 401)
        drift, widest = self.drift(grid), float(np.max(self.variance(grid)))
        spread = SIGMAS * np.sqrt(widest * time)
        low = y0 + min(0.0, float(np.min(drift))) * time - spread
        high = y0 + max(0.0, float(np.max(drift))) * time + spread
        return min(low, -self.extent), max(high, self.extent)

    def antipode_probability(self, start: ArrayLike = 0.0) -> np.ndarray:
        """P(R -> -1) from R_0 = ``start``: ∫_{y0}^∞ s' / ∫_{-∞}^∞ s', s' = exp(-∫ 2μ/σ²).

        0 where the antipode does not attract, 1 where it does and consensus does not.
        """
        starts = real_array("start", start, -1.0, 1.0)
        if self.rate_at_antipode >= 0:
            return np.where(starts == -1.0, 1.0, 0.0)[()]
        if self.rate_at_consensus >= 0:
            return np.where(starts == 1.0, 0.0, 1.0)[()]
        found = [self._exit_left(float(r)) for r in starts.ravel()]
        return np.array(found).reshape(starts.shape)[()]

    def _exit_left(self, start: float) -> float:
        if abs(start) == 1:
            return 0.0 if start > 0 else 1.0
        y0 = float(np.arctanh(start))
        left = _log_scale_integral(lambda y: -self._pull(y0 - y), self.extent + max(0.0, y0))
        right = _log_scale_integral(lambda y: self._pull(y0 + y), self.extent + max(0.0, -y0))
        return float(1 / (1 + np.exp(left - right)))

    def _pull(self, y: np.ndarray) -> np.ndarray:
        return 2 * self.drift(y) / self.variance(y)


def _inside(name: str, value: ArrayLike) -> np.ndarray:
    return real_array(name, value, -1.0, 1.0, open_low=True, open_high=True)


@cache
def _panel(nodes: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss points and weights on [-1, 1], and the matrix of ∫_{-1}^{x_i} of a function given at the points."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    basis = np.polynomial.legendre.legvander(x, nodes)
    below = np.polynomial.legendre.legint(np.eye(nodes), lbnd=-1, axis=0)
    return x, w, basis @ below @ np.linalg.inv(basis[:, :-1])


def _log_scale_integral(pull: Function, length: float) -> float:
    """log ∫_0^∞ exp(-∫_0^y pull), pull constant and positive beyond ``length``."""
    x, w, running = _panel()
    panels = int(np.ceil(2 * length))
    width = length / panels
    y = width * (np.arange(panels)[:, None] + (x + 1) / 2)
    values = pull(y.ravel()).reshape(y.shape)
    totals = values @ w * (width / 2)
    before = np.concatenate([[0.0], np.cumsum(totals)])
    exponent = -(before[:-1, None] + values @ running.T * (width / 2))
    tail = -before[-1] - np.log(pull(np.array([_FAR]))[0])
    top = max(float(exponent.max()), float(tail))
    return float(top + np.log((np.exp(exponent - top) @ w).sum() * (width / 2) + np.exp(tail - top)))
