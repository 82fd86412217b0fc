"""Two tokens under random values: do they end parallel or opposite? (arXiv:2601.21942, arXiv:2604.01978.)

With query-keys fixed to βI antipodal tokens attract once cosh²β > (d-1)/2; query-keys drawn afresh in every layer
remove that phase for d ≥ 4. Chains of layers against the limiting diffusion: E(1-R)/2 at a time τ tends to the
probability of an antipodal end, which scale functions give, faster than the share beyond any level does.
"""

from __future__ import annotations

import math
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.slopes import several
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.overlap_diffusion import OverlapDiffusion
from pathlines.limit.homogenized.two_tokens import (
    critical_beta,
    fixed_antipode_rate,
    fixed_diffusion,
    layer_antipode_rate,
    layer_critical_beta,
)
from pathlines.limit.homogenized.two_tokens_random import random_diffusion
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.weights.gaussian import random_values

ROWS = 8
ERRORS = 5.0


def _fixed(d: int, beta: float, v: float) -> RandomTransformer:
    """Random values of layer time v, logits β⟨x_i, x_k⟩."""
    return RandomTransformer(law=random_values(d), beta=beta, step=math.sqrt(v))


def _travelled(model: RandomTransformer, start: float, tau: float, seed: int, runs: int) -> Run:
    """Two tokens from an overlap, ``ROWS`` records until diffusive time ``tau``."""
    every = max(1, round(tau / (ROWS * model.clocks["tau"])))
    pair = Sphere(model.d).simplex(2, start)
    key = jax.random.key(seed)
    return chain(model, pair, depth=ROWS * every, every=every, key=key, runs=runs, record="mean_overlap")


class Ends(Setting):
    """Pairs of tokens and where they end."""

    starts: Annotated[tuple[of.Cosine, ...], means("overlaps at the start", "R₀")] = (0.0, -0.9)
    v: of.LayerTime = 0.1
    tau: of.Tau = 20.0
    runs: of.Runs = 2000
    seed: of.Seed = 20


def _ends(cases: list[tuple[str, RandomTransformer]], s: Ends) -> Evidence:
    """Mean of (1-R)/2 at the last record for each model and start; a mean of rare events has the error of a count."""
    labels = [f"{name}, R₀ = {start:g}" for name, _ in cases for start in s.starts]
    every = [(model, start) for _, model in cases for start in s.starts]
    runs = [_travelled(model, start, s.tau, s.seed + k, s.runs) for k, (model, start) in enumerate(every)]
    found = [mean_and_error((1 - run["mean_overlap"].values) / 2, unit=1.0) for run in runs]
    curves = [Curve(name, run.data["tau"], *pair) for name, run, pair in zip(labels, runs, found, strict=True)]
    means, errors = ([column[-1] for column in pair] for pair in zip(*found, strict=True))
    return Evidence({"antipodal": means}, {"antipodal": errors}, tuple(curves), tuple(runs))


def _limits(cases: list[tuple[str, OverlapDiffusion, float]], s: Ends) -> Evidence:
    """E(1-R)/2 of each diffusion at the time of the last record, where its layers may be off by so many v."""
    time = ROWS * max(1, round(s.tau / (ROWS * s.v))) * s.v
    every = [(name, law, start, size) for name, law, size in cases for start in s.starts]
    values = [law.expectation(lambda r: (1 - r) / 2, time, start) for _, law, start, _ in every]
    levels = [float(law.antipode_probability(start)) for _, law, start, _ in every]
    curves = tuple(
        Curve(f"P(antipodal), {name}, R₀ = {start:g}", [0.0, time], [p, p])
        for (name, _, start, _), p in zip(every, levels, strict=True)
    )
    allowed = [size * s.v / ERRORS for *_, size in every]
    return Evidence({"antipodal": values}, {"antipodal": allowed}, curves, source="backward equation; scale functions")


class FixedKeys(Ends):
    """Query-keys βI."""

    seed: of.Seed = 19
    d: of.Dimension = 8
    betas: of.Betas = (3.0,)


def simulate_fixed(s: FixedKeys) -> Evidence:
    """Layers with random values, a chain for each β and start."""
    return _ends([(f"β = {beta:g}", _fixed(s.d, beta, s.v)) for beta in s.betas], s)


def predict_fixed(s: FixedKeys) -> Evidence:
    """The diffusion with logits β⟨x_i, x_k⟩."""
    return _limits([(f"β = {beta:g}", fixed_diffusion(s.d, beta), 0.1) for beta in s.betas], s)


_FIXED = standard_errors(ERRORS, "standard errors over pairs, and v/10 for the layers (below 0.005 seen at v = 0.2)")
_AXES = Axes("diffusive time τ", "E(1−R)/2")

claim(
    "homogenized/C19",
    STOCHASTIC_CLUSTERING,
    "two tokens, fixed query-keys (derived)",
    "Two tokens with random values and query-keys βI end antipodal with the probability that the scale function of "
    "their overlap gives: 0.208287 from orthogonal tokens at d = 8, β = 3; E(1−R)/2 tends to it as in their diffusion.",
    where="abstract: antipodal pairs with positive probability; formulas derived",
    models=("random", "fixed-score-pair"),
    quick=FixedKeys(),
    full=FixedKeys(v=0.05, tau=40.0, runs=20000),
    within={"antipodal": _FIXED},
    simulate=simulate_fixed,
    predict=predict_fixed,
    axes=_AXES,
)


Cases = Annotated[tuple[tuple[of.Count, of.NonNegative], ...], means("dimensions and logit scales", "d, b")]


class RandomKeys(Ends):
    """Query-keys drawn in every layer."""

    v: of.LayerTime = 0.025
    tau: of.Tau = 8.0
    runs: of.Runs = 3500
    cases: Cases = ((8, 4.0), (3, 2.0))


def simulate_random(s: RandomKeys) -> Evidence:
    """Layers with random values and random query-keys at p = ∞, a chain for each (d, b) and start."""
    models = [RandomTransformer(d, qk_dim=math.inf, logit_scale=b, step=math.sqrt(s.v)) for d, b in s.cases]
    return _ends([(f"d = {d}, b = {b:g}", model) for (d, b), model in zip(s.cases, models, strict=True)], s)


def predict_random(s: RandomKeys) -> Evidence:
    """The diffusion with random query-keys: it ends antipodal for d = 3 only."""
    return _limits([(f"d = {d}, b = {b:g}", random_diffusion(d, b), (1 + b * b) / 15) for d, b in s.cases], s)


claim(
    "homogenized/C20",
    HOMOGENIZED,
    "random query-keys remove antipodes (derived)",
    "With query-keys drawn afresh in every layer (p = ∞) two tokens never end antipodal for d ≥ 4, whatever the logit "
    "scale: E(1−R)/2 goes to zero as their diffusion says; for d = 3 they do with positive probability.",
    where="derived; two tokens in the Gaussian case of §2.3.3",
    models=("random", "random-score-pair"),
    quick=RandomKeys(),
    full=RandomKeys(v=0.01, tau=20.0, runs=20000),
    within={
        "antipodal": standard_errors(
            ERRORS, "standard errors over pairs, and (1+b²)v/15 for the layers (0.28 v seen at d = 3, b = 2)"
        )
    },
    simulate=simulate_random,
    predict=predict_random,
    axes=_AXES,
    blind={"antipodal": "the tolerance is 3 % of the largest share; what one draw deviates comes on top of it"},
)


def _rate(run: Run) -> tuple[float, float]:
    """Change of log(1+R) over the whole time, its mean over pairs and standard error."""
    overlap = run["mean_overlap"].values
    mean, error = mean_and_error((np.log1p(overlap[:, -1]) - np.log1p(overlap[:, 0])) / float(run.data["tau"][-1]))
    return float(mean), float(error)


def _crossing(betas: tuple[float, ...], rates: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """β of rate zero, from a straight line in 1/cosh²β, in which the limit is one; nothing where it does not cross."""
    fading = np.cosh(betas) ** -2.0
    weights = 1 / errors**2
    centre = np.average(fading, weights=weights)
    spread = float(weights @ (fading - centre) ** 2)
    slope = float(weights @ ((fading - centre) * rates)) / spread
    zero = centre - np.average(rates, weights=weights) / slope
    if not 0 < zero < 1:
        return math.nan, math.nan
    error = math.sqrt(1 / weights.sum() + (zero - centre) ** 2 / spread) / abs(slope)
    return float(np.arccosh(zero**-0.5)), float(error / (2 * zero * math.sqrt(1 - zero)))


RateBetas = Annotated[tuple[of.NonNegative, ...], means("inverse temperatures at which rates are measured", "β")]


class Transition(FixedKeys):
    """Query-keys βI on both sides of the critical β, and rates next to antipodes."""

    starts: Annotated[tuple[of.Cosine, ...], means("overlaps at the start", "R₀")] = (-0.9,)
    seed: of.Seed = 1
    betas: of.Betas = (0.5, 2.0)
    rate_betas: RateBetas = (0.3, 0.8, 1.4, 2.0)
    near: Annotated[of.Positive, means("1 + R at the start of the rates")] = 0.0001
    rate_v: Annotated[of.Positive, means("time of one layer, for the rates", "v", unit="diffusive time")] = 0.05
    rate_tau: Annotated[of.Positive, means("where the rates end", "τ", unit="diffusive time")] = 2.0
    rate_runs: Annotated[of.Count, means("runs for each rate")] = 6000


def simulate_transition(s: Transition) -> Evidence:
    """Ends of pairs on both sides of β_c, and the drift of log(1+R) of nearly opposite pairs over a short time."""
    several("rate_betas", s.rate_betas)
    ends = simulate_fixed(s)
    runs = [
        _travelled(_fixed(s.d, b, s.rate_v), s.near - 1, s.rate_tau, s.seed + 100 + k, s.rate_runs)
        for k, b in enumerate(s.rate_betas)
    ]
    rates, errors = np.array([_rate(run) for run in runs]).T
    critical, spread = _crossing(s.rate_betas, rates, errors)
    return Evidence(
        {**ends.values, "rate": rates, "layer_rate": rates, "critical": critical},
        {**ends.uncertainties, "rate": errors, "layer_rate": errors, "critical": spread},
        curves=(
            Curve("chain", s.rate_betas, rates, errors, panel="drift of log(1+R) near R = −1, against β"),
            *ends.curves,
        ),
        runs=(*ends.runs, *runs),
    )


def predict_transition(s: Transition) -> Evidence:
    """The diffusions; (1/d)[(d-1)/cosh²β - 2], what layers of this v do instead, and where they change sign."""
    ends = predict_fixed(s)
    betas = np.linspace(min(s.rate_betas), max(s.rate_betas), 40)
    rates = np.array([fixed_antipode_rate(s.d, b) for b in s.rate_betas])
    layers = np.array([layer_antipode_rate(s.d, b, s.rate_v) for b in s.rate_betas])
    line = [fixed_antipode_rate(s.d, b) for b in betas]
    panel = "drift of log(1+R) near R = −1, against β"
    inside = s.d > 3 and min(s.rate_betas) < critical_beta(s.d) < max(s.rate_betas)
    advice = (
        {} if inside else {"critical": f"rate_betas on both sides of {critical_beta(s.d):.3g} would show it (d ≥ 4)"}
    )
    return Evidence(
        {
            **ends.values,
            "rate": rates,
            "layer_rate": layers,
            "critical": layer_critical_beta(s.d, s.rate_v) if s.d > 3 else math.nan,
        },
        {**ends.uncertainties, "rate": 1.5 * np.abs(layers - rates) / ERRORS},
        curves=(Curve("limit", betas, line, panel=panel), *ends.curves),
        source="closed form; backward equation; quadrature of a layer",
        undecided=advice,
    )


claim(
    "homogenized/A1",
    STOCHASTIC_CLUSTERING,
    "antipodal phase transition (derived)",
    "With random values and query-keys βI, log(1+R) of nearly opposite tokens drifts at [(d−1)/cosh²β − 2]/d, which "
    "changes sign at β_c = arcosh√((d−1)/2): below it no pair ends antipodal, above it a positive share does.",
    where="abstract: phase transition of two tokens; constants derived",
    models=("random", "fixed-score-pair"),
    quick=Transition(),
    full=Transition(v=0.05, tau=40.0, runs=12000, betas=(0.5, 1.0, 2.0, 4.0), rate_v=0.02, rate_runs=40000),
    within={
        "antipodal": _FIXED,
        "rate": standard_errors(ERRORS, "standard errors over pairs, and 1.5 times what layers of this v differ by"),
        "layer_rate": standard_errors(ERRORS, "standard errors over pairs"),
        "critical": standard_errors(ERRORS, "standard errors of the rates at their crossing; that of layers of this v"),
    },
    simulate=simulate_transition,
    predict=predict_transition,
    axes=_AXES,
    note="Derived in the units of the homogenized limit; the constants of arXiv:2601.21942 were not compared.",
)
