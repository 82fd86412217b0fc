"""When a pattern has formed: half a logarithm of N over the fastest rate (arXiv:2410.23228; formulas derived)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, at_least, standard_errors
from pathlines.domain.circle_law import QuietMoments, QuietTokens
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.integrate import ensemble
from pathlines.limit.metastability.growth import dominant_degree, growth_rates
from pathlines.limit.metastability.linear_phase import first_times, mean_first_time
from pathlines.model.circle import CircleAttention
from pathlines.observable.patterns import formation_time, fourier_moments

RECORDS = 33


def formation_times(s: Any, tokens: float) -> np.ndarray:
    """T_c of ``s.runs`` quiet starts of N tokens as quantile points, all in one program."""
    fastest = growth_rates(s.beta, 2, dominant_degree(s.beta, 2))[-1]
    # two e-folds beyond the leading order are hardly ever needed: the largest of several modes comes first
    last = (0.5 * np.log(tokens) + np.log(s.level) + 2) / fastest
    look = fourier_moments.at(modes=s.noisy)
    law = QuietTokens(QuietMoments(tokens, s.noisy), s.points)
    key = jax.random.key(s.seed)
    times = np.linspace(0, last, RECORDS)
    run = ensemble(CircleAttention(s.beta), law, runs=s.runs, key=key, times=times, record=look, rtol=1e-5, atol=1e-9)
    return formation_time(run.time, run[look.name].values, s.level)


def simulate_mean(s: Any) -> Evidence:
    """Mean T_c over quiet starts, the same draws for each N."""
    times = np.array([formation_times(s, n) for n in s.tokens])
    slopes = np.diff(times, axis=0) / np.diff(np.log(s.tokens))[:, None]
    error = lambda x: x.std(axis=-1, ddof=1) / np.sqrt(s.runs)  # noqa: E731
    return Evidence(
        {"time": times.mean(axis=-1), "slope": slopes.mean(axis=-1)},
        {"time": error(times), "slope": error(slopes)},
        curves=(Curve("quiet starts", s.tokens, times.mean(axis=-1), error(times)),),
    )


def predict_mean(s: Any) -> Evidence:
    """The mean of the first of independent modes."""
    times = np.array([mean_first_time(s.beta, n, s.level, count=s.noisy) for n in s.tokens])
    fine = np.geomspace(min(s.tokens), max(s.tokens), 40)
    fastest = growth_rates(s.beta, 2, dominant_degree(s.beta, 2))[-1]
    curves = (
        Curve("first of all modes", fine, [mean_first_time(s.beta, n, s.level, count=s.noisy) for n in fine]),
        Curve("(½ ln N + ln c)/λ*", fine, (0.5 * np.log(fine) + np.log(s.level)) / fastest),
    )
    return Evidence({"time": times, "slope": np.diff(times) / np.diff(np.log(s.tokens))}, curves=curves)


claim(
    "metastability/S1",
    METASTABLE_EMERGENCE,
    "formation time grows like ln N",
    "From N i.i.d. uniform tokens on the circle the first mode reaches amplitude c at a mean time E minₖ tₖ, "
    "tₖ = (½ ln N + ln c − ln|Zₖ|)/λₖ, whose slope in ln N decreases to 1/(2λ*).",
    models=("circle",),
    quick={"beta": 9.0, "tokens": [1e4, 1e6, 1e8], "runs": 480, "level": 0.1, "noisy": 18, "points": 200, "seed": 0},
    full={"runs": 800},
    within={
        "time": standard_errors(4.0, "means over independent starts, 0.12 with 480; second order at c = 0.1 is 0.02"),
        "slope": standard_errors(4.0, "means over the same starts at neighbouring N"),
    },
    simulate=simulate_mean,
    predict=predict_mean,
    axes=Axes("tokens N", "mean time T_c", x_scale="log"),
)


def _linear(s: Any) -> np.ndarray:
    """min_k ln(c/|m_k(0)|)/λ_k from the moments of the same starts."""
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(s.seed), i))(np.arange(s.runs))
    starts = [np.asarray(jax.vmap(QuietMoments(n, s.noisy))(keys))[:, 1:] for n in s.tokens]
    return np.array([first_times(np.hypot(*np.moveaxis(m, -1, 0)), s.beta, s.level) for m in starts])


def _reach(s: Any) -> np.ndarray:
    """For c = 0.1: 0.25 at N = 10⁴, 0.11 at 10⁶, 0.06 at 10⁸. What modes that come second add fades with N."""
    return 2.3 * s.level * (np.asarray(s.tokens) / 1e4) ** -0.2 + 2 * s.level**2


def simulate_runs(s: Any) -> Evidence:
    """T_c of each start in the nonlinear equation, and the share of starts that linear theory predicts well."""
    times = np.array([formation_times(s, n) for n in s.tokens])
    close = np.mean(np.abs(times - _linear(s)) <= _reach(s)[:, None], axis=-1)
    safe = (close * s.runs + 1) / (s.runs + 2)
    errors = {"close": np.sqrt(safe * (1 - safe) / s.runs)}
    return Evidence({"mean": times.mean(axis=-1), "close": close}, errors, curves=_scatter(s, times))


def _scatter(s: Any, times: np.ndarray) -> tuple[Curve, ...]:
    return tuple(
        Curve(f"N = {n:g}", np.arange(1, s.runs + 1), np.sort(row)) for n, row in zip(s.tokens, times, strict=True)
    )


def predict_runs(s: Any) -> Evidence:
    """min_k t_k of the same starts, to second order 2c² and four standard errors; one start is off by reach/4."""
    times = _linear(s)
    error = {"mean": 2 * s.level**2 + _reach(s) / np.sqrt(s.runs)}
    return Evidence({"mean": times.mean(axis=-1), "close": 0.98}, error, curves=_scatter(s, times))


claim(
    "metastability/S2",
    METASTABLE_EMERGENCE,
    "the linear phase predicts each run",
    "The time at which the first mode reaches c = 0.1 in the nonlinear mean-field equation is minₖ ln(c/|mₖ(0)|)/λₖ of "
    "that very start: within 0.02 on average, and for 98 of 100 starts within 0.25, 0.11, 0.06 at N = 10⁴, 10⁶, 10⁸.",
    models=("circle",),
    quick={"beta": 9.0, "tokens": [1e4, 1e8], "runs": 200, "level": 0.1, "noisy": 18, "points": 200, "seed": 0},
    full={"tokens": [1e4, 1e6, 1e8], "runs": 400},
    within={
        "mean": absolute(0.0, "second order, 2c² = 0.02, and 4 standard errors of the deviations", errors=1.0),
        "close": at_least("rare starts have two modes of the same size; 4 standard errors", errors=4.0),
    },
    simulate=simulate_runs,
    predict=predict_runs,
    axes=Axes("start, sorted", "time T_c"),
)
