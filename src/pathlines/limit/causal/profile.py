"""The retrieval profile S_t(σ0) of the last token: primacy, recency, the worst position, and when recency is lost.

With M codewords and weights w_n (soft or hard decoder) S_t(σ0) = Σ_n w_n g_{a_n}(t,1;σ0); the soft accuracy of
retrieving the token at σ0 is √(π/2)/M + √(2π)/(MN) S_t(σ0) + … (Kinetic theory for Transformers and the
lost-in-the-middle phenomenon, arXiv:2605.09213), the hard one 1/M + (2/N) H_t(σ0) + … (derived).

The shape (derived). Put q = 1-e^{-λ}, x_n = a_n t. S_t is proportional to F(Y) = Σ w_n x_n ₀F₁(;2;x_nY)(1-q+qe^{-Y})
with Y from 0 (σ0 = 1) to ∞ (σ0 = 0), and F' has the sign of

    G(Y) = Σ_n w_n x_n [ ½x_n ₀F₁(;3;x_nY)((1-q)e^Y+q) - q ₀F₁(;2;x_nY) ].

Recency is lost at t_rec = 2q Σw_na_n/Σw_na_n², where G(0) = 0; the profile is monotone from t_mono ≥ t_rec on, where
min G = 0. Between them an interior maximum lies to the right of the minimum ("buried recency").
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.limit.causal.rates import hard_weights, modes_needed, retrieval_rates, word_weights
from pathlines.limit.causal.response import bessel_quotient, log_odds, positional_kernel, scaled_bessel_quotient

REGIMES = ("U", "buried recency", "primacy", "several extrema")
GRID = 2000


class Profile(msgspec.Struct, frozen=True):
    """S_t as a function of the source position: weights w_n and rates a_n of the modes, ALiBi slope λ, depth t."""

    weights: tuple[float, ...]
    rates: tuple[float, ...]
    slope: float
    t: float

    def __call__(self, source: ArrayLike) -> np.ndarray:
        """S_t(σ0) for σ0 in (0, 1]. O(modes) each."""
        source = real_array("source", source, 0.0, 1.0, open_low=True)
        return positional_kernel(1.0, source, self.slope) * self._modes(2, log_odds(1.0, source, self.slope))

    def _modes(self, order: int, y: np.ndarray, power: int = 1, scaled: bool = False) -> np.ndarray:
        """Σ_n w_n x_n^power ₀F₁(;order;x_n y), times e^{-2√(x_max y)} if ``scaled``: nothing overflows then."""
        w, x = np.asarray(self.weights), np.asarray(self.rates) * self.t
        z = np.multiply.outer(np.asarray(y, float), x)
        if not scaled:
            return bessel_quotient(order, z) @ (w * x**power)
        less = 2 * np.sqrt(z) - 2 * np.sqrt(z.max(axis=-1, keepdims=True))
        return (scaled_bessel_quotient(order, z) * np.exp(less)) @ (w * x**power)

    def at_depth(self, t: float) -> Profile:
        """The same at another depth."""
        return msgspec.structs.replace(self, t=finite_number("t", t, 0.0, open_low=True))

    @property
    def slope_at_end(self) -> float:
        """S_t'(1⁻) = κ Σ w_n x_n (λ - κx_n/2), κ = k_λ(1,1): positive while the last tokens are retrieved best."""
        kappa = float(positional_kernel(1.0, 1.0, self.slope))
        zero = np.zeros(())
        return float(kappa * (self.slope * self._modes(2, zero) - kappa / 2 * self._modes(2, zero, 2)))

    @property
    def recency_lost(self) -> float:
        """t_rec = 2(1-e^{-λ}) Σw_na_n/Σw_na_n², the depth at which S_t'(1⁻) vanishes; 0 for λ ≤ 0."""
        w, a = np.asarray(self.weights), np.asarray(self.rates)
        return float(max(0.0, -2 * math.expm1(-self.slope)) * (w @ a) / (w @ a**2)) if w @ a**2 > 0 else math.inf

    def decline(self, y: ArrayLike) -> np.ndarray:
        """G(Y) from the head of this file up to a positive factor, for λ > 0: positive where S_t falls with σ0."""
        y = np.asarray(y, float)
        rest, q = math.exp(-self.slope), -math.expm1(-self.slope)
        falling = 0.5 * self._modes(3, y, 2, scaled=True) * (rest * np.exp(np.minimum(y, 700.0)) + q)
        return falling - q * self._modes(2, y, scaled=True)

    @property
    def farthest(self) -> float:
        """A Y beyond which ``decline`` is positive: every mode's is, by ₀F₁(;2;z) ≤ (1+√z) ₀F₁(;3;z)."""
        x = np.asarray(self.rates) * self.t
        x = x[np.asarray(self.weights) * x > 1e-14 * (np.asarray(self.weights) * x).max()]
        y = 1.0
        while np.any(np.log(x / 2) - self.slope + y < np.log1p(np.sqrt(x * y))):
            y *= 1.25
        return y

    def _grid(self) -> np.ndarray:
        return np.linspace(0, 1, GRID) ** 2 * self.farthest

    def extrema(self) -> tuple[np.ndarray, np.ndarray]:
        """(minima, maxima) of S_t inside (0, 1), by sign changes of G on a graded grid, each refined to rounding."""
        if self.slope <= 0:
            return np.zeros(0), np.zeros(0)
        grid = self._grid()
        sign = np.sign(self.decline(grid))
        places = np.flatnonzero(sign[:-1] * sign[1:] < 0)
        roots = [_zero(self.decline, grid[k], grid[k + 1]) for k in places]
        # F falls before a zero of G that ends a negative stretch, so that there S_t has its minimum
        kinds = sign[places] < 0
        sources = np.asarray([self.source_at(y) for y in roots])
        return np.sort(sources[kinds]), np.sort(sources[~kinds])

    def source_at(self, y: float) -> float:
        """σ0 with Y(σ0) = y, for λ > 0."""
        # ln(1 + (e^λ-1)e^{-y})/λ, for slopes of any size
        return float(np.logaddexp(0.0, self.slope + math.log(-math.expm1(-self.slope)) - y) / self.slope)

    @property
    def worst(self) -> float:
        """Position σ* of the interior minimum of S_t; NaN when there is none, and the last position is the worst."""
        low, _ = self.extrema()
        return float(low[np.argmin(self(low))]) if len(low) else math.nan

    @property
    def regime(self) -> str:
        """U: one interior minimum; buried recency: a minimum and, to its right, a maximum; primacy: S_t falls.

        With one mode, and for the decoders of the paper's range, there is nothing else; low temperatures and few
        codewords (β = 30, M = 2, λ = 50) can have "several extrema", and so can the hard decoder, whose weights change
        sign.
        """
        low, high = self.extrema()
        if self.slope_at_end > 0:
            return REGIMES[0] if len(low) == 1 and not len(high) else REGIMES[3]
        if not len(low) and not len(high):
            return REGIMES[2]
        return REGIMES[1] if len(low) == len(high) == 1 else REGIMES[3]

    @property
    def monotone_from(self) -> float:
        """t_mono: the depth from which S_t falls with σ0 everywhere; equal to t_rec where no maximum is buried."""
        start = self.recency_lost
        if start == 0 or not math.isfinite(start) or min(self.weights) < 0:
            return start if min(self.weights) >= 0 else math.nan
        deepest = lambda t: self.at_depth(t)._deepest()  # noqa: E731
        if deepest(start * (1 + 1e-7)) >= 0:
            return start
        end = 2 * start
        while deepest(end) < 0:
            end *= 2
        return float(optimize.brentq(deepest, start, end, xtol=1e-10 * start))

    def _deepest(self) -> float:
        """The smallest value of ``decline`` over Y > 0, over its size at 0."""
        grid = self._grid()[1:]
        values = self.decline(grid)
        k = int(np.argmin(values))
        around = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
        best = optimize.minimize_scalar(
            lambda y: float(self.decline(y)), bounds=around, method="bounded", options={"xatol": 1e-12}
        )
        return float(min(values[k], best.fun) / self._modes(2, np.zeros(())))


def _zero(function: Callable[[float], np.ndarray], low: float, high: float) -> float:
    """A zero between two points of different sign, by bisection: the ends may round to one sign when asked again."""
    falling = float(function(low)) > float(function(high))
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (float(function(middle)) > 0) == falling else (low, middle)
    return (low + high) / 2


def retrieval_profile(
    beta: float,
    slope: float,
    vocabulary: int,
    t: float,
    *,
    decoder: str = "soft",
    softmax: bool = False,
    rates: ArrayLike | None = None,
) -> Profile:
    """S_t (``decoder="soft"``) or H_t ("hard") for β, ALiBi slope λ, M codewords, depth t.

    ``softmax`` takes the rates of softmax attention; ``rates`` any others (``retrieval_rates`` on a sphere, say).
    """
    slope, t = finite_number("slope", slope), finite_number("t", t, 0.0, open_low=True)
    one_of("decoder", decoder, ("soft", "hard"))
    count = modes_needed(finite_number("beta", beta, 0.0, open_low=True)) if rates is None else len(np.ravel(rates))
    a = retrieval_rates(beta, count, softmax=softmax) if rates is None else real_array("rates", rates, 0.0).ravel()
    w = (word_weights if decoder == "soft" else hard_weights)(vocabulary, count)
    return Profile(tuple(w.tolist()), tuple(a.tolist()), slope, t)


def soft_accuracy(profile: ArrayLike, vocabulary: int, n: int) -> np.ndarray:
    """√(π/2)/M + √(2π)/(MN) S: the chance level and what retrieval adds; exact for the simulated S_N."""
    m, n = positive_integer("vocabulary", vocabulary, 2), positive_integer("n", n, 2)
    return math.sqrt(math.pi / 2) / m + math.sqrt(2 * math.pi) / (m * n) * np.asarray(profile, float)


def hard_accuracy(profile: ArrayLike, vocabulary: int, n: int) -> np.ndarray:
    """1/M + (2/N) H (derived)."""
    m, n = positive_integer("vocabulary", vocabulary, 2), positive_integer("n", n, 2)
    return 1 / m + 2 / n * np.asarray(profile, float)


def u_shape_depth(beta: float, slope: float) -> float:
    """The largest t with t sup_n a_n ≤ min{3-√3, 2(1-e^{-λ})}, the theorem's condition: sufficient, not necessary."""
    require(slope > 0, "slope", "be above 0: without recency bias there is no U", slope)
    return min(3 - math.sqrt(3), -2 * math.expm1(-slope)) / float(retrieval_rates(beta, modes_needed(beta)).max())
