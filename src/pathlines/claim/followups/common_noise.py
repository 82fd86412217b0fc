"""Synchronisation by the common noise of random perceptrons (arXiv:2604.26898; constants derived)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import numpy as np
from msgspec import Meta

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import controlled_mean
from pathlines.claim.fitting import simulated_at
from pathlines.claim.slopes import several
from pathlines.claim.tolerance import at_least, at_most, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import SYNCHRONIZATION
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.integrate.observe import Observable
from pathlines.limit.followups.synchronisation import (
    critical_dimension,
    lyapunov_exponent,
    mean_dissipation,
    pair_mean,
)
from pathlines.limit.homogenized.perceptron_collapse import layer_separation_rates, mean_separation_rate
from pathlines.limit.homogenized.perceptron_kernel import ends
from pathlines.model.followups.synchronising_pair import CONVENTION, SynchronisingPair

ERRORS = 5.0
RECORDS = 12
LANE = 8
"""Dimensions are rounded up to a multiple of this, so that several share a compiled program."""
FAR = 0.5
"""Orthogonal pairs of N3 lose 0.2 to 0.25 (k d h)² kt, at d = 6, h = 0.1 and 0.05."""
MARTINGALE = Observable("martingale", "martingale of log(1-⟨x,y⟩)", "M", lambda snapshot: snapshot.state.martingale)
MARKS = ("abstract", "assumed", "derived")
EXTRAPOLATED = "standard errors over pairs, of steps h and h/2 extrapolated to h = 0; what that leaves is estimated"

Step = Annotated[of.Positive, means("time of one layer, to which half of it is extrapolated", "h")]
Gap = Annotated[float, Meta(gt=0, lt=2), means("1 − overlap at the start", "1 − ρ₀")]
Name = Annotated[str, means("activation: linear, relu, erf, gelu, tanh or silu", "φ")]
Weight = Annotated[of.NonNegative, means("standard deviation of the entries of W₁", "σ_w")]
Bias = Annotated[of.NonNegative, means("standard deviation of the biases", "σ_b")]


class Nearby(Setting):
    """Pairs of tokens that start close together."""

    dims: of.Dimensions = (3, 5, 8)
    activation: Name = "relu"
    sigma_w: Weight = 1.0
    sigma_b: Bias = 0.0
    gap: Gap = 1e-6
    since: Annotated[of.NonNegative, means("when the window of the slope begins", "t₁")] = 1.0
    until: Annotated[of.Positive, means("when it ends", "t₂")] = 3.0
    width: Annotated[of.Count | None, means("hidden units; none for infinitely many", "m")] = None
    attention: Annotated[of.NonNegative, means("strength of attention", "v")] = 0.0
    beta: of.Beta = 1.0
    time_step: Step = 0.01
    runs: of.Runs = 600
    seed: of.Seed = 1


def layers_of(s: Nearby, refined: int = 1) -> int:
    """Layers between two of the twelve records, at the step or a fraction of it."""
    return refined * max(1, round(s.until / (RECORDS * s.time_step)))


def record_times(s: Nearby) -> np.ndarray:
    """0 and twelve times until the end."""
    return s.until * np.arange(RECORDS + 1) / RECORDS


def slope_weights(s: Nearby) -> np.ndarray:
    """Weights over the records whose sum is the least-squares slope over the window (at least the last two)."""
    times = record_times(s)
    inside = times >= min(s.since, times[-2]) - 1e-9
    away = np.where(inside, times - times[inside].mean(), 0.0)
    return away / (away @ away)


def walked(s: Nearby, d: int, refined: int = 1) -> tuple[np.ndarray, np.ndarray, Any]:
    """(1-ρ at the records, its martingale, run) of pairs in R^d, in layers of the step over ``refined``."""
    every = layers_of(s, refined)
    model = SynchronisingPair(
        s.activation,
        s.sigma_w,
        s.sigma_b,
        width=s.width,
        attention=s.attention,
        beta=s.beta,
        time_step=s.until / (RECORDS * every),
        dimension=d,
    )
    tokens = np.zeros((2, LANE * -(-d // LANE)))
    tokens[:, :2] = [[1.0, 0.0], [1.0 - s.gap, math.sqrt(s.gap * (2 - s.gap))]]
    key = jax.random.fold_in(jax.random.key(s.seed), 1000 * d + refined)
    run = chain(
        model, tokens, depth=RECORDS * every, every=every, key=key, runs=s.runs, record=["deficits", MARTINGALE]
    )
    return run["deficits"].values[:, :, 0, 1], run["martingale"].values, run


def extrapolated(coarse: tuple[float, float], fine: tuple[float, float]) -> tuple[float, float]:
    """2 f(h/2) - f(h), whose error is O(h²) (Talay and Tubaro), with its standard error."""
    return 2 * fine[0] - coarse[0], math.hypot(2 * fine[1], coarse[1])


def simulate_slopes(s: Nearby) -> Evidence:
    """Slopes of E log(1-ρ) at steps h and h/2, the martingale as control variate."""
    weights, found, fine, curves, runs = slope_weights(s), [], [], [], []
    for d in s.dims:
        both = []
        for refined in (1, 2):
            gap, martingale, run = walked(s, d, refined)
            logs = np.log(gap)
            both.append(controlled_mean(logs @ weights, (martingale @ weights)[:, None]))
        found.append(extrapolated(*both))
        fine.append(both[1])
        curves.append(Curve(f"d = {d}", record_times(s), (logs - martingale).mean(axis=0)))
        runs.append(run)
    (slope, error), (layer, layer_error) = np.array(found).T, np.array(fine).T
    values, errors = {"slope": slope, "layer_slope": layer}, {"slope": error, "layer_slope": layer_error}
    return Evidence(values, errors, tuple(curves), tuple(runs))


def predict_slopes(s: Nearby) -> Evidence:
    """The backward equation of the pair; for layers of step h/2 the quadrature of a layer beside it."""
    weights, slopes, layers, left, apart, curves, advice = slope_weights(s), [], [], [], [], [], {}
    fields = (s.activation, s.sigma_w, s.sigma_b, s.attention, s.beta)
    for d in s.dims:
        mean = pair_mean("log", s.gap, record_times(s), d, *fields)
        slope, rate = float(mean.values @ weights), lyapunov_exponent(d, *fields[:4])
        coarse, fine = (_layer_rate(s, d, refined) - rate for refined in (1, 2))
        slopes.append(slope)
        layers.append(slope + fine)
        left.append((1.5 * abs(2 * fine - coarse) + mean.error) / ERRORS)
        apart.append((abs(slope - rate) + mean.error) / ERRORS)
        curves.append(Curve(f"limit, d = {d}", record_times(s), mean.values))
        if mean.error > 0.01 * abs(slope):
            advice["slope"] = f"a shorter time: means at d = {d} are known to {mean.error:.2g} only"
    known = None if s.width or s.attention else np.array(layers)
    uncertainties = {"slope": np.array(left), "layer_slope": np.array(apart)}
    values = {"slope": np.array(slopes), "layer_slope": known}
    return Evidence(values, uncertainties, tuple(curves), source="backward equation", undecided=advice)


def _layer_rate(s: Nearby, d: int, refined: int) -> float:
    """Drift of log(1-ρ) per unit of time in infinitely wide layers (attention comes in between, and adds -2v)."""
    step, pull = s.until / (RECORDS * layers_of(s, refined)), 2 * s.attention
    return layer_separation_rates(d, step, s.activation, s.sigma_w, math.sqrt(d), s.sigma_b)[0] - pull


def simulate_critical(s: Nearby) -> Evidence:
    """The slopes, and where the line through them over d is zero."""
    found = simulate_slopes(s)
    d, slope, error = np.array(s.dims, float), np.asarray(found.values["slope"]), found.uncertainties["slope"]
    several("dims", s.dims)
    weight = 1 / np.asarray(error) ** 2
    centre, level = np.average(d, weights=weight), np.average(slope, weights=weight)
    rise = np.sum(weight * (d - centre) * slope) / np.sum(weight * (d - centre) ** 2)
    root = centre - level / rise
    spread = np.sqrt(1 / weight.sum() + (root - centre) ** 2 / np.sum(weight * (d - centre) ** 2)) / abs(rise)
    values, errors = {"critical_dimension": root}, {"critical_dimension": spread}
    return Evidence({**found.values, **values}, {**found.uncertainties, **errors}, found.curves, found.runs)


def predict_critical(s: Nearby) -> Evidence:
    """(3k'(1) - k(1) + 2v)/(k'(1) - k(1)), where there is one."""
    found = predict_slopes(s)
    root = critical_dimension(s.activation, s.sigma_w, s.sigma_b, s.attention)
    rates = np.array([lyapunov_exponent(d, s.activation, s.sigma_w, s.sigma_b, s.attention) for d in s.dims])
    far = np.abs(np.asarray(found.values["slope"]) - rates).max() > 0.01 * np.abs(rates).max()
    advice = {"critical_dimension": "a smaller gap or a shorter time: the pairs feel their distance"} if far else {}
    values = {**found.values, "critical_dimension": root if math.isfinite(root) else None}
    undecided = {**found.undecided, **advice}
    return Evidence(values, found.uncertainties, found.curves, source=found.source, undecided=undecided)


AXES = Axes("t", "E log(1 − ρ)")
SLOPES = {
    "slope": standard_errors(ERRORS, EXTRAPOLATED),
    "layer_slope": standard_errors(ERRORS, "standard errors over pairs; what finite gaps change is computed"),
}

claim(
    "followups/N1",
    SYNCHRONIZATION,
    "relu noise synchronises nearby tokens in every dimension",
    "Under the noise of random relu perceptrons alone, E log(1−ρ) of nearby tokens has the slope Λ = (d−3)k′(1) − "
    "(d−1)k(1) = −σ_w² − ½(d−1)σ_b², which is −1 at σ_w = 1, σ_b = 0 for every d; layers of step h have that of one "
    "layer's quadrature.",
    where="abstract: synchronisation by noise; the exponent is derived",
    models=("synchronising-pair",),
    quick=Nearby(),
    full=Nearby(dims=(3, 5, 8, 16), time_step=0.005, runs=10_000),
    within=SLOPES,
    simulate=simulate_slopes,
    predict=predict_slopes,
    axes=AXES,
    marks=MARKS,
    convention=CONVENTION,
)

claim(
    "followups/N2",
    SYNCHRONIZATION,
    "tanh noise synchronises below d = 14.2 and separates above",
    "For φ = tanh, σ_w = 1, σ_b = 0 the slope Λ of E log(1−ρ) is −0.648 at d = 5 and +1.805 at d = 40: noise separates "
    "tokens beyond d_c = (3k′(1) − k(1))/(k′(1) − k(1)) = 14.248.",
    where="derived; no statement in the abstract",
    models=("synchronising-pair",),
    quick=Nearby(dims=(5, 40), activation="tanh", since=0.0, until=1.0, time_step=0.005, runs=800),
    full=Nearby(dims=(5, 14, 40), activation="tanh", since=0.0, until=1.0, time_step=0.005, runs=10_000),
    within={
        **SLOPES,
        "critical_dimension": standard_errors(ERRORS, "standard errors of the slopes, carried to the root"),
    },
    simulate=simulate_critical,
    predict=predict_critical,
    axes=AXES,
    marks=MARKS,
    convention=CONVENTION,
)

claim(
    "followups/N4",
    SYNCHRONIZATION,
    "the limit forgets the width of the perceptrons",
    "Perceptrons of m = 32 hidden units have the slope of the Gaussian field, −1 for relu, as layers get short: the "
    "noise of a layer is conditionally Gaussian, and its mean covariance is the kernel at every width.",
    where="abstract: diffusive scaling limit; the exponent is derived",
    models=("synchronising-pair",),
    quick=Nearby(dims=(5,), width=32, since=0.5),
    full=Nearby(dims=(5, 8), width=32, time_step=0.005, runs=8000, since=0.5),
    within={"slope": standard_errors(ERRORS, EXTRAPOLATED)},
    simulate=simulate_slopes,
    predict=predict_slopes,
    axes=AXES,
    marks=MARKS,
    convention=CONVENTION,
    note="What is left after extrapolation is that of infinitely wide layers; finite width adds a share 1/m of it.",
)

claim(
    "followups/N5",
    SYNCHRONIZATION,
    "attention beside the noise adds −2v",
    "With attention of strength v between the perceptrons E log(1−ρ) of nearby tokens has the slope (d−3)k′(1) − "
    "(d−1)k(1) − 2v; far tokens follow the backward equation of the pair at every β.",
    where="abstract: attention with noise; the exponent is derived",
    models=("synchronising-pair",),
    quick=Nearby(dims=(5, 8), gap=0.5, attention=1.0, beta=2.0, since=0.0, until=1.2),
    full=Nearby(dims=(5, 8), gap=0.5, attention=1.0, beta=2.0, since=0.0, until=1.2, runs=10_000),
    within={"slope": standard_errors(ERRORS, EXTRAPOLATED)},
    simulate=simulate_slopes,
    predict=predict_slopes,
    axes=AXES,
    marks=MARKS,
    convention=CONVENTION,
)


# --- the mean gap


class Mean(Setting):
    """Pairs whose gap is averaged, under biases alone: k(ρ) = σ_b²/2 for relu, the same push on all tokens."""

    dims: of.Dimensions = (6,)
    activation: Name = "relu"
    sigma_w: Weight = 0.0
    sigma_b: Bias = math.sqrt(2)
    gap: Gap = 1.0
    until: Annotated[of.Positive, means("when the gap is averaged", "t")] = 0.2
    attention: Annotated[of.NonNegative, means("strength of attention", "v")] = 0.0
    beta: of.Beta = 1.0
    time_step: Step = 0.01
    runs: of.Runs = 10_000
    seed: of.Seed = 3


def as_nearby(s: Mean) -> Nearby:
    """The same pairs, as the slopes have them."""
    return Nearby(since=0.0, **{name: getattr(s, name) for name in Mean.__struct_fields__})


def simulate_mean(s: Mean) -> Evidence:
    """E(1-ρ) at the end, extrapolated from steps h and h/2, with its martingale as control variate."""
    found, curves, runs = [], [], []
    for d in s.dims:
        both = []
        for refined in (1, 2):
            gap, martingale, run = walked(as_nearby(s), d, refined)
            both.append(controlled_mean(gap[:, -1], martingale[:, -1:]))
        found.append(extrapolated(*both))
        curves.append(Curve(f"d = {d}", record_times(as_nearby(s)), gap.mean(axis=0)))
        runs.append(run)
    mean, error = np.array(found).T
    names = ("mean_gap", "lower", "upper")
    return Evidence(dict.fromkeys(names, mean), dict.fromkeys(names, error), tuple(curves), tuple(runs))


def predict_mean(s: Mean) -> Evidence:
    """The backward equation; e^{-ct} with c = inf f/(1-ρ), and for a constant kernel e^{-(d-1)k(1)t}."""
    fields, found, curves, advice = (s.activation, s.sigma_w, s.sigma_b, s.attention, s.beta), [], [], {}
    nearby = as_nearby(s)
    top = ends(s.activation, s.sigma_w, s.sigma_b)[0]
    for d in s.dims:
        mean = pair_mean("gap", s.gap, record_times(nearby), d, *fields)
        last = mean.values[-1]
        left = _left_over(s, d) * last + mean.error
        if left > 0.03 * last:
            advice = dict.fromkeys(("mean_gap", "lower", "upper"), f"a shorter step or time would decide at d = {d}")
        upper = s.gap * math.exp(-mean_dissipation(d, *fields).rate * s.until)
        found.append((last, s.gap * math.exp(-(d - 1) * top * s.until), upper, left / ERRORS))
        curves.append(Curve(f"limit, d = {d}", record_times(nearby), mean.values))
    exact, low, high, left = np.array(found).T
    known = low if s.sigma_w == 0 and s.attention == 0 else None
    values = {"mean_gap": exact, "lower": known, "upper": high}
    uncertainties = {"mean_gap": left, "lower": left, "upper": left}
    return Evidence(values, uncertainties, tuple(curves), source="backward equation", undecided=advice)


def _left_over(s: Mean, d: int) -> float:
    """What steps h and h/2, extrapolated, leave of the mean gap, as a share of it.

    Layers multiply that of nearby pairs by e^{r_h t}: |2e^{(r_{h/2}-r)t} - e^{(r_h-r)t} - 1|. Of far pairs FAR (k d h)²
    min(kt, 1), an estimate.
    """
    fields = (s.activation, s.sigma_w, math.sqrt(d), s.sigma_b)
    rate, step = mean_separation_rate(d, *fields), s.until / (RECORDS * layers_of(as_nearby(s)))
    coarse, fine = ((layer_separation_rates(d, h, *fields)[1] - rate) * s.until for h in (step, step / 2))
    top = ends(s.activation, s.sigma_w, s.sigma_b)[0]
    far = FAR * (top * d * step) ** 2 * min(top * s.until, 1.0)
    return max(far, abs(2 * math.exp(min(fine, 500.0)) - math.exp(min(coarse, 500.0)) - 1))


UPPER = at_most("an upper bound", errors=ERRORS)
SHORTER = simulated_at(
    "pairs followed for {:.0%} less time", (0.1, 0.3, 0.6, 0.9), until=lambda t, size: t * (1 - size)
)
LONGER = simulated_at("pairs followed for {:.0%} more time", (0.1, 0.3, 0.6, 1.0), until=lambda t, size: t * (1 + size))

claim(
    "followups/N3",
    SYNCHRONIZATION,
    "noise that is the same everywhere dissipates the mean gap",
    "For a constant kernel k (biases alone) e^{−(d−1)kt}(1−ρ₀) ≤ E(1−ρ_t) ≤ e^{−(d−3)kt}(1−ρ₀), and E(1−ρ_t) solves "
    "the backward equation of the pair: 0.4654 at k = 1, d = 6, t = 0.2.",
    where="abstract: noise that is sufficiently coercive; our reading",
    models=("synchronising-pair",),
    quick=Mean(),
    full=Mean(dims=(6, 12), time_step=0.005, runs=200_000),
    within={
        "mean_gap": standard_errors(ERRORS, EXTRAPOLATED),
        "lower": at_least("a lower bound", errors=ERRORS),
        "upper": UPPER,
    },
    simulate=simulate_mean,
    predict=predict_mean,
    axes=Axes("t", "E(1 − ρ)"),
    marks=MARKS,
    convention=CONVENTION,
    mistakes=(SHORTER, LONGER),
)

claim(
    "followups/N6",
    SYNCHRONIZATION,
    "coercive noise: E(1−ρ_t) ≤ e^{−ct}(1−ρ₀)",
    "With c = inf_ρ [k(ρ)(d−2+ρ²) − (d−1)k(1)ρ]/(1−ρ) > 0 the mean gap of every pair decays at least like e^{−ct}; for "
    "relu that takes σ_b²/σ_w² > 2/(d−3).",
    where="abstract: noise that is sufficiently coercive; our reading",
    models=("synchronising-pair",),
    quick=Mean(dims=(8,), sigma_w=1.0, sigma_b=1.0, until=0.3, time_step=0.0125),
    full=Mean(dims=(8, 16), sigma_w=1.0, sigma_b=1.0, until=0.3, time_step=0.005, runs=200_000),
    within={"mean_gap": standard_errors(ERRORS, EXTRAPOLATED), "upper": UPPER},
    simulate=simulate_mean,
    predict=predict_mean,
    axes=Axes("t", "E(1 − ρ)"),
    marks=MARKS,
    convention=CONVENTION,
    mistakes=(SHORTER,),
)
