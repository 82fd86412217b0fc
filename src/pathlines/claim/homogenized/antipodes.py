"""Two tokens under random values: do they end parallel or opposite? (arXiv:2601.21942, arXiv:2604.01978.)

With query-keys fixed to βI antipodal tokens attract once cosh²β > (d-1)/2; query-keys drawn afresh in every layer
remove that phase for d ≥ 4. Chains of layers against scale functions of the limiting diffusion.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import xarray as xr

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING
from pathlines.integrate.chain import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.two_tokens import critical_beta, fixed_antipode_probability, fixed_antipode_rate
from pathlines.limit.homogenized.two_tokens_random import random_antipode_probability
from pathlines.model.random_transformer import RandomTransformer
from pathlines.observable.analysis import mean_and_error
from pathlines.weights.gaussian import random_values

ROWS = 8


def _fixed(d: int, beta: float, v: float) -> RandomTransformer:
    """Random values of layer time v, logits β⟨x_i, x_k⟩."""
    return RandomTransformer(law=random_values(d), beta=beta, step=math.sqrt(v))


def _travelled(model: RandomTransformer, start: float, tau: float, s: Any, runs: int) -> Run:
    """Two tokens from an overlap, ``ROWS`` records until diffusive time ``tau``."""
    every = max(1, round(tau / (ROWS * model.clocks["tau"])))
    pair = Sphere(model.d).simplex(2, start)
    key = jax.random.key(s.seed)
    return chain(model, pair, depth=ROWS * every, every=every, key=key, runs=runs, record="mean_overlap")


def _antipodal(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """P(R < -0.9) at the records; a count of zero has the error 1/runs."""
    opposite = run["mean_overlap"].values < -0.9
    share = opposite.mean(axis=0)
    return share, np.sqrt((share * (1 - share) + 1 / len(opposite)) / len(opposite))


def _ends(runs: list[Run], labels: list[str]) -> Evidence:
    found = [_antipodal(run) for run in runs]
    curves = [Curve(name, run.data["tau"], *pair) for name, run, pair in zip(labels, runs, found, strict=True)]
    shares, errors = ([column[-1] for column in pair] for pair in zip(*found, strict=True))
    return Evidence({"antipodal": shares}, {"antipodal": errors}, tuple(curves), tuple(runs))


def _levels(values: Any, labels: list[str], tau: float) -> tuple[Curve, ...]:
    return tuple(Curve(name, [0.0, tau], [v, v]) for name, v in zip(labels, values, strict=True))


def simulate_fixed(s: Any) -> Evidence:
    """Layers with random values, a chain for each β."""
    runs = [_travelled(_fixed(s.d, beta, s.v), s.start, s.tau, s, s.runs) for beta in s.betas]
    return _ends(runs, [f"β = {beta:g}" for beta in s.betas])


def predict_fixed(s: Any) -> Evidence:
    """Ratio of scale integrals of the limiting diffusion."""
    values = [float(fixed_antipode_probability(s.d, beta, s.start)) for beta in s.betas]
    return Evidence({"antipodal": values}, curves=_levels(values, [f"limit, β = {b:g}" for b in s.betas], s.tau))


_ENDS = standard_errors(4.0, "binomial standard errors of the chains; the layers' O(v) and later changes are smaller")
_AXES = Axes("diffusive time τ", "P(R < −0.9)")

claim(
    "homogenized/C19",
    STOCHASTIC_CLUSTERING,
    "two tokens, fixed query-keys (derived)",
    "Two tokens with random values and query-keys βI end antipodal with the probability that the scale function of "
    "their overlap gives: 0.208287 from orthogonal tokens at d = 8, β = 3.",
    models=("random", "fixed-score-pair"),
    quick={"d": 8, "betas": [3.0], "start": 0.0, "v": 0.1, "tau": 60.0, "runs": 2000, "seed": 19},
    full={"v": 0.05, "tau": 120.0, "runs": 4000},
    within={"antipodal": _ENDS},
    simulate=simulate_fixed,
    predict=predict_fixed,
    axes=_AXES,
)


def simulate_random(s: Any) -> Evidence:
    """Layers with random values and random query-keys at p = ∞, a chain for each (d, b)."""
    models = [RandomTransformer(d, qk_dim=math.inf, logit_scale=b, step=math.sqrt(s.v)) for d, b in s.cases]
    return _ends(
        [_travelled(m, s.start, s.tau, s, s.runs) for m in models], [f"d = {d}, b = {b:g}" for d, b in s.cases]
    )


def predict_random(s: Any) -> Evidence:
    """Zero for d ≥ 4, a ratio of scale integrals for d = 3."""
    values = [float(random_antipode_probability(d, b, s.start)) for d, b in s.cases]
    labels = [f"limit, d = {d}, b = {b:g}" for d, b in s.cases]
    return Evidence({"antipodal": values}, curves=_levels(values, labels, s.tau))


claim(
    "homogenized/C20",
    HOMOGENIZED,
    "random query-keys remove antipodes (derived)",
    "With query-keys drawn afresh in every layer (p = ∞) two orthogonal tokens never end antipodal for d ≥ 4, "
    "whatever the logit scale; for d = 3 they do with positive probability.",
    models=("random", "random-score-pair"),
    quick={"cases": [[8, 4.0], [3, 2.0]], "start": 0.0, "v": 0.1, "tau": 80.0, "runs": 1000, "seed": 20},
    full={"v": 0.05, "runs": 4000},
    within={"antipodal": _ENDS},
    simulate=simulate_random,
    predict=predict_random,
    axes=_AXES,
)


def _change(run: Run) -> xr.DataArray:
    """log(1+R) at the last record minus at the first."""
    overlap = run["mean_overlap"]
    return overlap.copy(data=np.log1p(overlap.values)).isel(time=[0, -1]).diff("time")


def simulate_transition(s: Any) -> Evidence:
    """Ends of pairs on both sides of β_c, and the drift of log(1+R) of nearly opposite pairs over a short time."""
    ends = simulate_fixed(s)
    runs = [_travelled(_fixed(s.d, b, s.rate_v), s.near - 1, s.rate_tau, s, s.rate_runs) for b in s.rate_betas]
    slopes = [_change(run) / float(run.data["tau"][-1]) for run in runs]
    rates, errors = np.squeeze([mean_and_error(slope) for slope in slopes], axis=-1).T
    slope, _ = np.polyfit(s.rate_betas, rates, 1)
    crossing = float(np.interp(0.0, -rates, s.rate_betas))
    return Evidence(
        {**ends.values, "rate": rates, "critical": crossing},
        {**ends.uncertainties, "rate": errors, "critical": float(np.mean(errors) / abs(slope))},
        curves=(
            Curve("chain", s.rate_betas, rates, errors, panel="drift of log(1+R) near R = −1, against β"),
            *ends.curves,
        ),
        runs=(*ends.runs, *runs),
    )


def predict_transition(s: Any) -> Evidence:
    """Scale functions, (1/d)[(d-1)/cosh²β - 2], and β_c = arcosh √((d-1)/2)."""
    ends = predict_fixed(s)
    betas = np.linspace(min(s.rate_betas), max(s.rate_betas), 40)
    rates = [fixed_antipode_rate(s.d, b) for b in s.rate_betas]
    line = [fixed_antipode_rate(s.d, b) for b in betas]
    panel = "drift of log(1+R) near R = −1, against β"
    return Evidence(
        {**ends.values, "rate": rates, "critical": critical_beta(s.d)},
        curves=(Curve("limit", betas, line, panel=panel), *ends.curves),
    )


claim(
    "homogenized/A1",
    STOCHASTIC_CLUSTERING,
    "antipodal phase transition (derived)",
    "With random values and query-keys βI, log(1+R) of nearly opposite tokens drifts at [(d−1)/cosh²β − 2]/d, which "
    "changes sign at β_c = arcosh√((d−1)/2): below it no pair ends antipodal, above it a positive share does.",
    models=("random", "fixed-score-pair"),
    quick={
        "d": 8,
        "betas": [0.5, 2.0],
        "start": 0.0,
        "v": 0.1,
        "tau": 60.0,
        "runs": 1000,
        "seed": 1,
        "rate_betas": [0.8, 1.1, 1.4, 1.8],
        "near": 1e-4,
        "rate_v": 0.02,
        "rate_tau": 2.0,
        "rate_runs": 4000,
    },
    full={"betas": [0.5, 1.0, 2.0, 4.0], "v": 0.05, "tau": 120.0, "runs": 4000, "rate_runs": 40000, "rate_v": 0.01},
    within={
        "antipodal": _ENDS,
        "rate": absolute(0.05, "four standard errors of 4000 pairs, and O(v) of the layers"),
        "critical": absolute(0.1, "the interpolation between four β and four standard errors of the rates"),
    },
    simulate=simulate_transition,
    predict=predict_transition,
    axes=_AXES,
    note="Derived in the units of the homogenized limit; the constants of arXiv:2601.21942 were not compared.",
)
