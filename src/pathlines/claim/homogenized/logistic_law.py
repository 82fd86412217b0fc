"""High temperature: m = |x̄|² grows logistically in diffusive time, from random tokens (arXiv:2604.01978).

In d dimensions the log-odds of m fluctuate by 2√(τ/d), which costs their mean 2τ/d (Itô), and their drift is smaller
by another 2τ/d: beside these the query-keys, through tokens that are nearer to the mean than others, count little.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Annotated, Any

import jax
import numpy as np
from scipy.special import logit

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.logistic import corrected_parameter, logistic_mass
from pathlines.limit.homogenized.overlap_law import OverlapLaw, attention_branch, overlap_law
from pathlines.limit.homogenized.simplex import simplex_table
from pathlines.model.homogenized.random_transformer import RandomTransformer

ERRORS = 5.0
WIDE = 0.25
"""Variance 4τ/d of the log-odds up to which an expansion in 1/d is trusted."""


@cache
def _tokens(d: int, n: int) -> Any:
    """One law object for each (d, n), so that its chain is compiled once."""
    return partial(Sphere(d).uniform_span if n <= d else Sphere(d).uniform, n=n)


class HighTemperature(Setting):
    """A chain of random tokens at a small logit scale."""

    n: of.Tokens = 24
    d: of.Dimension = 512
    beta: of.Beta = 0.05
    sigma_a: Annotated[of.Positive, means("standard deviation of the entries of the query-key factors", "σ_A")] = 1.0
    eta: of.Step = 0.25
    depth: of.Depth = 80
    every: of.Every = 8
    runs: of.Runs = 64
    seed: of.Seed = 12


def _run(s: HighTemperature) -> Run:
    net = RandomTransformer(s.d, step=s.eta, beta=s.beta, sigma_a=s.sigma_a)
    return chain(
        net,
        _tokens(s.d, s.n),
        depth=s.depth,
        every=s.every,
        key=jax.random.key(s.seed),
        runs=s.runs,
        record="mean_square",
    )


def _clock(s: HighTemperature) -> np.ndarray:
    return s.eta**2 * np.arange(0, s.depth + 1, s.every)


def _early(s: HighTemperature) -> np.ndarray:
    """Recorded times with m < 1/5 in the mean, the first excepted."""
    typical = 1 / (1 + (s.n - 1) * np.exp(-_clock(s)))
    return np.flatnonzero((typical < 0.2) & (_clock(s) > 0))


def _advance(s: HighTemperature, tau: np.ndarray) -> np.ndarray:
    """ℓ log(1+v): the time of the logistic law after ℓ = τ/v layers, for m' = (1+v)m/(1+vm) at β = 0."""
    return np.log1p(s.eta**2) / s.eta**2 * tau


def simulate(s: HighTemperature) -> Evidence:
    """The mean of m, and of the growth of its log-odds while m is small, over runs."""
    run = _run(s)
    m = run["mean_square"].values
    growth = logit(m) - logit(m[:, :1])
    return Evidence(
        {"growth": growth.mean(axis=0)[_early(s)], "mass": m.mean(axis=0)},
        curves=(Curve("chain", _clock(s), *mean_and_error(m)),),
        runs=(run,),
    )


def _law(s: HighTemperature, preference: bool) -> OverlapLaw:
    """The chain to first order in 1/d, with or without what tokens nearer to the mean lose."""
    b = math.sqrt(corrected_parameter(s.beta, s.sigma_a, s.d))
    branch = attention_branch(simplex_table(s.n, b), s.eta**2, preference=preference)
    return overlap_law(s.depth, s.n, s.d, [branch], random_start=True)


def _undecided(s: HighTemperature) -> dict[str, str]:
    advice = {}
    if corrected_parameter(s.beta, s.sigma_a, s.d) > 2 * math.log(s.n):
        advice = {"beta": f"beta={math.sqrt(math.log(s.n) / s.d) / s.sigma_a**2:.2g} would make logits small enough"}
    if 4 * _clock(s)[-1] > WIDE * s.d:
        advice = {"d": f"d={math.ceil(4 * _clock(s)[-1] / WIDE)} would make the fluctuations small enough"}
    return {name: text for text in advice.values() for name in ("growth", "mass")}


def predict(s: HighTemperature) -> Evidence:
    """Mean log-odds and mean of m of the law to first order in 1/d; errors are its spread over runs, and all that the
    query-keys do through tokens nearer to the mean, whose next order in b is not known.
    """
    tau, early, each = _clock(s), _early(s), slice(None, None, s.every)
    law, plain = _law(s, True), _law(s, False)
    growth, other = ((x.log_odds - x.log_odds[0])[each] for x in (law, plain))
    mass, near = ((1 / s.n + (1 - 1 / s.n) * x.mean)[each] for x in (law, plain))
    runs = math.sqrt(s.runs)
    fine = np.linspace(0, tau[-1], 200)
    return Evidence(
        {"growth": growth[early], "mass": mass},
        {
            "growth": np.hypot(law.log_odds_spread[each] / runs, (growth - other) / ERRORS)[early],
            "mass": np.hypot((1 - 1 / s.n) * law.spread[each] / runs, (mass - near) / ERRORS),
        },
        curves=(
            Curve("mean of m to first order in 1/d", tau, mass),
            Curve("logistic from 1/n, in ℓ log(1+v)", fine, logistic_mass(_advance(s, fine), 1 / s.n)),
            Curve("logistic from 1/n, in τ", fine, logistic_mass(fine, 1 / s.n)),
        ),
        undecided=_undecided(s),
    )


claim(
    "homogenized/C09",
    HOMOGENIZED,
    "logistic law at high temperature",
    "From random tokens, m = |x̄|² follows u' = u(1−u), u(0) = m(0), while the logit scale is about one or less: its "
    "log-odds grow by log(1+v) per layer, the diffusive time v as v → 0, less (4−3m)v/d in the mean over runs, half of "
    "it because they fluctuate by 2√(τ/d).",
    where="§2.3.5, theorem on the logistic law at high temperature",
    models=("random",),
    quick=HighTemperature(),
    full=HighTemperature(n=200, d=4096, beta=0.0177, eta=0.3, depth=88, every=11, runs=16),
    within={
        "growth": standard_errors(ERRORS, "the spread of the law over runs, and its term of unknown next order in b"),
        "mass": standard_errors(ERRORS, "the same"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("diffusive time τ = vℓ", "m = |x̄|²"),
    note="The law in τ itself is ahead by 0.043τ in log m at v = 0.09, and the law of layers, log(1+v), by 4τ/d in the "
    "mean: refuted with 320 runs at d = 512.",
)
