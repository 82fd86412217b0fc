"""Does common noise bring tokens together? Two tokens of a random perceptron network, with and without attention.

Layers x ← N(x + √h W_2φ(W_1x + b)/√m), resampled and shared by all tokens, tend to a Gaussian field with kernel k(ρ) =
E φ(g)φ(g') (``perceptron_kernel``). Two tokens at overlap ρ, 1-ρ = ½|x-y|², attention of values v·I beside it, obey

    dρ = f(ρ)dt + √(2(1-ρ²)(k(1) - ρk(ρ))) dW,   f = k(ρ)(d-2+ρ²) - (d-1)k(1)ρ + 2v(1-ρ²)/(1 + e^{β(1-ρ)}),

so log(1-ρ) of nearby tokens drifts at Λ = (d-3)k'(1) - (d-1)k(1) - 2v, and E(1-ρ) decays at least like e^{-ct} with
c = inf f/(1-ρ): the noise is coercive if c > 0. All derived; the setting is that of Stochastic Scaling Limits and
Synchronization by Noise in Deep Transformer Models, arXiv:2604.26898, whose own condition was not available.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy.linalg import expm
from scipy.optimize import minimize_scalar

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import SYNCHRONIZATION
from pathlines.limit.homogenized.perceptron_collapse import typical_separation_rate
from pathlines.limit.homogenized.perceptron_kernel import Activation, ends, kernel_quotient

SOURCES = (SYNCHRONIZATION,)
NODES = 96
"""Chebyshev points in the angle at which means over pairs are followed."""
LEVEL = 1e-9
"""Rates below this share of k(1) count as zero."""
SEEN = ("log", "gap")


def lyapunov_exponent(
    d: int, activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0, attention: float = 0.0
) -> float:
    """Λ = (d-3)k'(1) - (d-1)k(1) - 2v: drift of log(1-ρ) at ρ = 1; nearby tokens synchronise iff Λ < 0."""
    pull = finite_number("attention", attention, 0.0)
    return typical_separation_rate(d, activation, sigma_w, math.sqrt(positive_integer("d", d, 2)), sigma_b) - 2 * pull


def critical_dimension(
    activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0, attention: float = 0.0
) -> float:
    """d_c = (3k'(1) - k(1) + 2v)/(k'(1) - k(1)), beyond which noise separates nearby tokens; ∞ if k'(1) ≤ k(1)."""
    top, slope = ends(activation, sigma_w, sigma_b)
    pull = finite_number("attention", attention, 0.0)
    return (3 * slope - top + 2 * pull) / (slope - top) if slope - top > LEVEL * top else math.inf


class Dissipation(NamedTuple):
    """``rate`` c = inf f/(1-ρ) with E(1-ρ_t) ≤ e^{-ct}(1-ρ_0), the overlap ``at`` which it is taken, and the value of
    f/(1-ρ) for nearby tokens, ``nearby`` = (d-3)k(1) - (d-1)k'(1) + 2v.
    """

    rate: float
    at: float
    nearby: float


def mean_dissipation(
    d: int,
    activation: str | Activation = "relu",
    sigma_w: float = 1.0,
    sigma_b: float = 0.0,
    attention: float = 0.0,
    beta: float = 1.0,
) -> Dissipation:
    """The noise is coercive where the rate is positive: our reading of the condition of arXiv:2604.26898."""
    motion = _Motion(d, activation, sigma_w, sigma_b, attention, beta)
    angles = np.linspace(0, math.pi, 721)
    rates = motion.closing(angles)
    low = int(np.argmin(rates))
    near = angles[max(low - 1, 0)], angles[min(low + 1, 720)]
    found = minimize_scalar(lambda a: float(motion.closing(np.array([a]))[0]), bounds=near, method="bounded")
    at, rate = (found.x, found.fun) if found.fun < rates[low] else (angles[low], rates[low])
    return Dissipation(float(rate), float(np.cos(at)), float(rates[0]))


class _Motion:
    """Coefficients of the two-point motion as functions of the angle θ, ρ = cos θ, with their limits at the ends."""

    def __init__(
        self, d: int, activation: str | Activation, sigma_w: float, sigma_b: float, attention: float, beta: float
    ) -> None:
        self.d = positive_integer("d", d, least=2)
        self.pull, self.beta = finite_number("attention", attention, 0.0), finite_number("beta", beta, 0.0)
        self.top, self.slope = ends(activation, sigma_w, sigma_b)
        self.quotient = chebyshev.chebinterpolate(  # type: ignore[type-var]
            lambda place: kernel_quotient(2 * np.sin((place + 1) * math.pi / 4) ** 2, activation, sigma_w, sigma_b),
            NODES,
        )

    @property
    def open(self) -> bool:
        """Whether opposite tokens part again: k(-1) > -k(1)."""
        return self.top - float(self.fall(np.array(math.pi))) > 5e-10 * self.top

    def fall(self, angle: np.ndarray) -> np.ndarray:
        """q = (k(1) - k(ρ))/(1-ρ), which is k'(1) at θ = 0."""
        return np.where(angle == 0, self.slope, chebyshev.chebval(2 * angle / math.pi - 1, self.quotient))

    def closing(self, angle: np.ndarray) -> np.ndarray:
        """f/(1-ρ) = k(1)(d-2-ρ) - q(d-2+ρ²) + 2v(1+ρ)/(1 + e^{β(1-ρ)}), which subtracts no kernels."""
        rho, gap = np.cos(angle), 2 * np.sin(angle / 2) ** 2
        heard = 2 * self.pull * (1 + rho) / (1 + np.exp(np.minimum(self.beta * gap, 700.0)))
        return self.top * (self.d - 2 - rho) - self.fall(angle) * (self.d - 2 + rho * rho) + heard

    def spread(self, angle: np.ndarray) -> np.ndarray:
        """(k(1) - ρk(ρ))/(1-ρ) = k(1) + ρq."""
        return self.top + np.cos(angle) * self.fall(angle)


class PairMean(NamedTuple):
    """E log(1-ρ_t) (or E(1-ρ_t)) at each time, and how far a grid of two thirds as many points was from it."""

    values: np.ndarray
    error: float


def pair_mean(
    seen: str,
    gap: float,
    times: ArrayLike,
    d: int,
    activation: str | Activation = "relu",
    sigma_w: float = 1.0,
    sigma_b: float = 0.0,
    attention: float = 0.0,
    beta: float = 1.0,
) -> PairMean:
    """E log(1-ρ_t) for ``seen`` = "log", E(1-ρ_t) for "gap", from 1-ρ_0 = ``gap``, at any distance.

    The backward equation ∂W = LW + g of W = E log(1-ρ_t) - log(1-ρ_0), L the generator and g = L log(1-ρ) (of W =
    E(1-ρ_t) directly), by Chebyshev collocation in the angle and the exponential of its matrix. At θ = 0, and at θ = π
    for odd φ, L vanishes; else W'(π) = 0. Cost O(NODES³) per time.
    """
    one_of("seen", seen, SEEN)
    start = finite_number("gap", gap, 0.0, 2.0, open_low=True)
    when = np.atleast_1d(real_array("times", times, 0.0))
    motion = _Motion(d, activation, sigma_w, sigma_b, attention, beta)
    fine, coarse = (_followed(motion, seen, start, when, n) for n in (NODES, 2 * NODES // 3))
    return PairMean(fine, float(np.abs(fine - coarse).max()))


def _followed(motion: _Motion, seen: str, start: float, times: np.ndarray, n: int) -> np.ndarray:
    angle, slope = _collocation(n)
    rho, gap, closing, wide = np.cos(angle), 2 * np.sin(angle / 2) ** 2, motion.closing(angle), motion.spread(angle)
    along, spread = -(closing + rho * wide) * np.tan(angle / 2), gap * wide
    along[-1] = 0.0
    source = -closing - (1 + rho) * wide
    bend = slope @ slope
    matrix = spread[:, None] * bend + along[:, None] * slope
    matrix[0] = 0.0
    keep = np.eye(n + 1)
    if motion.open:
        matrix[-1] = (motion.d - 1) * spread[-1] * bend[-1]
        keep = np.vstack([np.eye(n), -slope[-1, :-1] / slope[-1, -1]])
    else:
        matrix[-1] = 0.0
    rows = keep.shape[1]
    whole = np.zeros((rows + 1, rows + 1))
    whole[:-1, :-1], begin = matrix[:rows] @ keep, np.zeros(rows + 1)
    if seen == "log":
        whole[:-1, -1], begin[-1] = source[:rows], 1.0
    else:
        begin[:-1] = gap[:rows]
    there = _barycentric(angle, 2 * math.asin(math.sqrt(start / 2))) @ keep
    moved = np.array([there @ (expm(whole * t) @ begin)[:-1] for t in times])
    return moved + math.log(start) if seen == "log" else moved


def _collocation(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles 0..π at Chebyshev points, and the matrix that differentiates there."""
    points = np.cos(math.pi * np.arange(n + 1) / n)
    ends_ = np.where((np.arange(n + 1) % n) == 0, 2.0, 1.0) * (-1.0) ** np.arange(n + 1)
    matrix = np.outer(ends_, 1 / ends_) / (points[:, None] - points + np.eye(n + 1))
    matrix -= np.diag(matrix.sum(axis=1))
    angle = math.pi * (1 - points) / 2
    angle[-1] = math.pi
    return angle, -2 / math.pi * matrix


def _barycentric(angle: np.ndarray, place: float) -> np.ndarray:
    """The row that interpolates at ``place``."""
    away = place - angle
    if np.any(away == 0):
        return np.asarray(away == 0, float)
    weight = (-1.0) ** np.arange(len(angle)) / away
    weight[[0, -1]] /= 2
    return weight / weight.sum()


class Synchronisation(msgspec.Struct, frozen=True):
    """What common noise does to tokens; ``verdict`` is "synchronise", "separate" or "neither", ``sentence`` says it."""

    activation: str
    d: int
    sigma_w: float
    sigma_b: float
    attention: float
    beta: float
    kernel: float
    kernel_slope: float
    lyapunov_exponent: float
    mean_rate: float
    critical_dimension: float | None
    dissipation: float
    dissipation_at: float
    coercive: bool
    verdict: str
    sentence: str


def synchronisation(
    activation: str | Activation = "relu",
    d: int = 40,
    sigma_w: float = 1.0,
    sigma_b: float = 0.0,
    attention: float = 0.0,
    beta: float = 1.0,
    name: str = "",
) -> Synchronisation:
    """Λ, the critical dimension, the mean dissipation, and a sentence.

    Args:
        activation: φ: "linear", "relu", "erf", "gelu", "tanh", "silu", or one made by ``by_quadrature`` from a function
            of an array. What counts is k'(1)/k(1): the larger, the lower the dimension from which noise separates.
        d: d ≥ 2, the width. The larger, the more k'(1) - k(1) decides.
        sigma_w: σ_w ≥ 0, of the entries of W_1 (of |x| = 1). The larger, the more a saturating φ separates.
        sigma_b: σ_b ≥ 0, of the biases. The larger, the more tokens synchronise.
        attention: v ≥ 0, the strength of attention, values v·I; 0: noise alone. The larger, the sooner tokens meet.
        beta: β ≥ 0, the inverse temperature of attention; it enters c only. The larger, the later far tokens
            hear each other.
        name: what to call a φ of your own.
    """
    top, slope = ends(activation, sigma_w, sigma_b)
    rate = lyapunov_exponent(d, activation, sigma_w, sigma_b, attention)
    critical = critical_dimension(activation, sigma_w, sigma_b, attention)
    dissipation = mean_dissipation(d, activation, sigma_w, sigma_b, attention, beta)
    called = activation if isinstance(activation, str) else name or "this activation"
    verdict = "neither" if abs(rate) <= LEVEL * top else "synchronise" if rate < 0 else "separate"
    coercive = dissipation.rate > LEVEL * top
    return Synchronisation(
        called,
        d,
        float(sigma_w),
        float(sigma_b),
        float(attention),
        float(beta),
        top,
        slope,
        rate,
        -dissipation.nearby,
        critical if math.isfinite(critical) else None,
        dissipation.rate,
        dissipation.at,
        coercive,
        verdict,
        _sentence(called, d, rate, critical, dissipation, coercive, attention),
    )


def _sentence(
    name: str, d: int, rate: float, critical: float, dissipation: Dissipation, coercive: bool, attention: float
) -> str:
    who = "attention and noise together" if attention else "noise alone"
    if math.isinf(critical):
        first = f"With {name}, {who} synchronise{'' if attention else 's'} nearby tokens in every dimension"
    else:
        first = f"With {name}, {who} separate{'' if attention else 's'} tokens above d = {critical:.1f}"
    if rate:
        change = math.log(2) / abs(rate)
        what = "halves" if rate < 0 else "doubles"
        first += f"; at d = {d} the typical gap of a nearby pair {what} every {change:.3g} of time (Λ = {rate:+.4g})"
    else:
        first += f"; at d = {d} the typical gap of a nearby pair stays as it is (Λ = 0)"
    if coercive:
        return f"{first}, and the mean gap of every pair decays at least like e^(-{dissipation.rate:.3g} t)."
    if rate < 0 and dissipation.nearby < 0:
        rise = f"while pairs are near the mean gap, carried by rare ones, grows at rate {-dissipation.nearby:.3g}"
        return f"{first}, but {rise}."
    return f"{first}; the noise is not coercive (c = {dissipation.rate:.3g} at overlap {dissipation.at:.2f})."


def synchronisation_map(
    dims: ArrayLike,
    sigmas: ArrayLike,
    activation: str | Activation = "relu",
    sigma_b: float = 0.0,
    attention: float = 0.0,
) -> np.ndarray:
    """Λ/k(1) over σ_w (rows) and d (columns): per unit of time in which noise moves a token by about √(d-1)."""
    columns, rows = real_array("dims", dims, 2.0), real_array("sigmas", sigmas, 0.0, open_low=True)
    require(columns.ndim == 1 and rows.ndim == 1, "dims", "be a list, as `sigmas`", dims)
    pull, found = finite_number("attention", attention, 0.0), []
    for sigma in rows:
        top, slope = ends(activation, sigma, sigma_b)
        found.append((columns - 3) * slope / top - (columns - 1) - 2 * pull / top)
    return np.array(found)
