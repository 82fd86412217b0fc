"""Moments and singular laws behind the count of modes, and statements that fail (arXiv:2412.09080).

G = (t-X)e^{-β(t-X)²/2} with X ~ N(0, 1), F_n = n^{-1/2} Σ_i G_i.
"""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array
from scipy import special

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import share_and_error
from pathlines.claim.tolerance import absolute, at_least, at_most
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KDE_MODES
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.kde_modes import kernel_moments
from pathlines.observable.kde_modes import mode_positions


def _force(t: Array, x: Array, beta: float) -> Array:
    """G as a function of t: its derivative is taken by the compiler, not by hand."""
    return (t - x) * jnp.exp(-beta * (t - x) ** 2 / 2)


def _pairs(t: Array, x: Array, beta: float) -> tuple[Array, Array]:
    return _force(t, x, beta), jax.vmap(jax.grad(_force), in_axes=(None, 0, None))(t, x, beta)


# --- K6 and ER-09: E G' at t = ±1


def _quantiles(points: int) -> Array:
    """Midpoint quantiles of N(0, 1): averages over them are integrals."""
    return ndtri((jnp.arange(points, dtype=float) + 0.5) / points)


class Slopes(Setting):
    """The mean slope at several places."""

    beta: of.Bandwidth = 10.0
    times: Annotated[of.Vector, means("places", "t")] = (0.0, 0.5, 1.0, 1.4142135623730951, 2.0)
    points: Annotated[of.Count, means("quantiles that averages are taken over")] = 200_000


def simulate_slope(s: Slopes) -> Evidence:
    """E G' (β+1)^{5/2}/(β e₁), e₁ = e^{-βt²/2(β+1)}, averaged over quantiles."""
    values, coarse = (_scaled(s, _average_slopes(s, points)) for points in (s.points, s.points // 2))
    curve = Curve("average over quantiles", s.times, values)
    return Evidence({"scaled_slope": values}, {"scaled_slope": np.abs(values - coarse)}, curves=(curve,))


def _average_slopes(s: Slopes, points: int) -> np.ndarray:
    x = _quantiles(points)
    slopes = jax.jit(lambda t: jnp.mean(_pairs(t, x, s.beta)[1]))
    return np.array([float(slopes(jnp.asarray(v))) for v in s.times])


def _scaled(s: Slopes, slope: np.ndarray) -> np.ndarray:
    t = np.asarray(s.times)
    return slope * (s.beta + 1) ** 2.5 / (s.beta * np.exp(-s.beta * t**2 / (2 * (s.beta + 1))))


def predict_slope(s: Slopes) -> Evidence:
    """1 - t² + 1/β, exactly."""
    values = _scaled(s, kernel_moments(s.times, s.beta).slope)
    return Evidence({"scaled_slope": values}, curves=(Curve("1 − t² + 1/β", s.times, values),))


def predict_printed_slope(s: Slopes) -> Evidence:
    """1 - t²."""
    values = 1 - np.asarray(s.times) ** 2
    return Evidence({"scaled_slope": values}, curves=(Curve("1 − t²", s.times, values),), source="printed asymptotics")


QUADRATURE = "midpoint rule in the quantile: what half the points change; rounding of the largest t"

K6 = claim(
    "metastability/K6",
    KDE_MODES,
    "mean slope of the estimator's derivative (corrected)",
    "E G′ = e^{−βt²/2(β+1)} (1 + β − βt²)/(β+1)^{5/2}, proportional to 1 − t² + 1/β: positive at t = ±1.",
    where="moments of the estimator's derivative, corrected (§5.2)",
    models=(),
    quick=Slopes(),
    full=Slopes(points=2_000_000),
    within={"scaled_slope": absolute(1e-11, QUADRATURE, errors=1.0)},
    simulate=simulate_slope,
    predict=predict_slope,
    axes=Axes("t", "E G′, scaled"),
)

K6.printed_as(
    "metastability/ER-09",
    "E G′ ∝ 1 − t²",
    "E G′ is asymptotic to a multiple of 1 − t² for every t, so it vanishes at t = ±1.",
    where="moments of the estimator's derivative, as printed (§5.2)",
    within={"scaled_slope": absolute(1e-2, QUADRATURE + "; a tenth of the term 1/β left out at β = 10")},
    predict=predict_printed_slope,
    note="As β → ∞ at fixed t ≠ ±1 the ratio does tend to one; at t = ±1 it does not exist.",
)


# --- K7 and ER-10: the law of (F_n, F_n') piles up at zero


Widths = Annotated[tuple[of.Positive, ...], means("what counts as small", "ε")]


class Pile(Setting):
    """How often both derivatives are small."""

    n: of.Tokens = 5
    beta: of.Bandwidth = 10.0
    t: Annotated[float, means("place", "t")] = 0.0
    widths: Widths = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
    runs: of.Runs = 200_000
    seed: of.Seed = 7


def _log_mass(s: Pile) -> tuple[np.ndarray, np.ndarray]:
    """ln P(|F|, |F'| ≤ ε) and its relative standard error, from ``runs`` samples of n."""
    x = jax.random.normal(jax.random.key(s.seed), (s.runs, s.n))
    g, slope = jax.jit(jax.vmap(lambda row: _pairs(jnp.asarray(s.t), row, s.beta)))(x)
    largest = np.asarray(jnp.maximum(jnp.abs(g.sum(1)), jnp.abs(slope.sum(1))) / np.sqrt(s.n))
    share, error = share_and_error([np.sum(largest <= e) for e in s.widths], s.runs)
    with np.errstate(divide="ignore"):
        return np.log(share), error / np.maximum(share, 1 / s.runs)


def simulate_pile(s: Pile) -> Evidence:
    """ln P(|F|, |F'| ≤ ε)."""
    found, error = _log_mass(s)
    return Evidence({"log_mass": found}, {"log_mass": error}, curves=(Curve("samples", s.widths, found, error),))


def _far(s: Pile) -> np.ndarray:
    """n ln P(|G|, |G'| ≤ ε/√n): if every sample is that far from t, F and F' are below ε."""
    found = []
    for width in np.asarray(s.widths) / np.sqrt(s.n):
        u = np.linspace(0, 60 / np.sqrt(s.beta), 200001)
        bump = np.exp(-s.beta * u**2 / 2)
        big = np.maximum(u, np.abs(1 - s.beta * u**2)) * bump > width
        radius = u[np.flatnonzero(big)[-1] + 1]
        found.append(s.n * np.log(special.ndtr(s.t - radius) + special.ndtr(-s.t - radius)))
    return np.array(found)


def predict_pile(s: Pile) -> Evidence:
    """P ≥ P(all samples far), which falls like ε^{n/β}."""
    return Evidence({"log_mass": _far(s)}, curves=(Curve("all samples far", s.widths, _far(s)),))


def simulate_density(s: Pile) -> Evidence:
    """ln of the mean density in the square |F|, |F'| ≤ ε, over that in the largest square."""
    found, error = _log_mass(s)
    density = found - 2 * np.log(np.asarray(s.widths))
    values = density[1:] - density[0]
    return Evidence({"growth": values}, curves=(Curve("samples", s.widths, density - density[0], error),))


def predict_bounded(s: Pile) -> Evidence:
    """A bounded density near its value in the largest square: no growth by more than a factor e²."""
    flat = np.zeros(len(s.widths))
    return Evidence({"growth": flat[1:]}, curves=(Curve("bounded", s.widths, flat),), source="boundedness")


K7 = claim(
    "metastability/K7",
    KDE_MODES,
    "the law of (F, F′) piles up at zero (derived)",
    "P(|F_n|, |F_n′| ≤ ε) is at least the probability that all samples are far from t, which falls only like "
    "ε^{n/β} up to logarithms: for n < 2β slower than any bounded density allows, so counts there are by Monte Carlo.",
    where="derived; on the joint density of (F_n, F_n′)",
    models=(),
    quick=Pile(),
    full=Pile(runs=4_000_000),
    within={"log_mass": at_least("five standard errors", errors=5.0)},
    simulate=simulate_pile,
    predict=predict_pile,
    axes=Axes("ε", "ln P(|F|, |F′| ≤ ε)", x_scale="log"),
)

K7.printed_as(
    "metastability/ER-10",
    "bounded joint density at every n",
    "The joint density of (F_n, F_n′) is bounded and continuous for every n ≥ 2 and β.",
    where="joint density of (F_n, F_n′), as printed",
    within={"growth": at_most("a factor e² above the mean over the largest square", slack=2.0)},
    simulate=simulate_density,
    predict=predict_bounded,
    axes=Axes("ε", "ln of mean density, relative", x_scale="log"),
    note="n = 5, β = 10 is the counterexample; a Kac–Rice integral with the exact law is singular there.",
)


# --- ER-11: modes and samples to the right of a point


class RightOf(Setting):
    """A few samples."""

    samples: Annotated[of.Vector, means("the samples")] = (0.0, 2.0)
    beta: of.Bandwidth = 2.0
    a: Annotated[float, means("modes and samples above are counted", "a")] = 0.02


def simulate_right(s: RightOf) -> Evidence:
    """Modes above a."""
    found = mode_positions(s.samples, s.beta)
    t = np.linspace(min(s.samples) - 2, max(s.samples) + 2, 300)
    height = np.exp(-s.beta * (t[:, None] - np.asarray(s.samples)) ** 2 / 2).sum(axis=1)
    return Evidence({"modes": int(np.sum(found > s.a))}, curves=(Curve("density estimator, scaled", t, height),))


def predict_right(s: RightOf) -> Evidence:
    """Samples above a."""
    curve = Curve("a", [s.a, s.a], [0.0, 1.0])
    return Evidence({"modes": int(np.sum(np.asarray(s.samples) > s.a))}, curves=(curve,), source="the statement")


claim(
    "metastability/ER-11",
    KDE_MODES,
    "modes right of a are at most samples right of a",
    "For every a the estimator has at most as many modes above a as there are samples above a.",
    where="lemma behind the estimate of the tails in §4.2",
    models=(),
    quick=RightOf(),
    within={"modes": at_most("counts")},
    simulate=simulate_right,
    predict=predict_right,
    expected="refuted",
    corrected_by="metastability/K3",
    axes=Axes("t", "P̂, scaled"),
    note="Modes are pulled inwards: those of {0, 2} at β = 2 are at 0.0425 and 1.9575. In expectation, beyond t_e, the "
    "estimate holds in every cell that was measured.",
)
