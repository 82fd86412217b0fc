"""When a pattern has formed: half a logarithm of N over the fastest rate (arXiv:2410.23228; formulas derived)."""

from __future__ import annotations

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error, share_and_error
from pathlines.claim.metastability.quiet_runs import QuietStarts, quiet_runs, start_moments
from pathlines.claim.tolerance import at_least, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.limit.metastability.growth import dominant_degree, growth_rates
from pathlines.limit.metastability.linear_phase import first_times, mean_first_time
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.patterns import fourier_moments, measured_formation_time

RECORDS = 33


class Formation(QuietStarts):
    """When the first mode reaches a level."""

    runs: of.Runs = 240
    beta: of.Beta = 9.0
    tokens: of.TokenNumbers = (10000.0, 1000000.0, 100000000.0)
    level: of.FormationLevel = 0.1


def _linear(s: Formation, tokens: float) -> np.ndarray:
    """min_k ln(c/|m_k(0)|)/λ_k from the moments of the same starts."""
    return first_times(np.abs(start_moments(s, tokens)), s.beta, s.level)


def _fastest(s: Formation) -> float:
    return float(growth_rates(s.beta, 2, dominant_degree(s.beta, 2))[-1])


def formation_times(s: Formation, tokens: float) -> np.ndarray:
    """T_c of ``s.runs`` quiet starts of N tokens as quantile points, all in one program.

    They are followed an e-fold beyond the latest time of linear theory: NaN for a start that needs more.
    """
    look = fourier_moments.at(modes=s.noisy)
    times = np.linspace(0, _linear(s, tokens).max() + 1 / _fastest(s), RECORDS)
    run = quiet_runs(CircleAttention(s.beta), s, tokens, times, look)
    return measured_formation_time(run.time, run[look.name].values, s.level)


def _late(times: np.ndarray, *quantities: str) -> dict[str, str]:
    """Nothing is decided where a start has not formed a pattern an e-fold after linear theory."""
    late = int(np.isnan(times).sum())
    advice = f"{late} starts reach the level more than an e-fold after linear theory: lower `level`"
    return dict.fromkeys(quantities, advice) if late else {}


def simulate_mean(s: Formation) -> Evidence:
    """Mean T_c over quiet starts that begin below the level, the same draws for each N."""
    below = np.all([_linear(s, n) > 0 for n in s.tokens], axis=0)
    times = np.array([formation_times(s, n) for n in s.tokens])[:, below]
    slopes = np.diff(times, axis=0) / np.diff(np.log(s.tokens))[:, None]
    (time, time_error), (slope, slope_error) = (mean_and_error(x, axis=-1) for x in (times, slopes))
    return Evidence(
        {"time": time, "slope": slope},
        {"time": time_error, "slope": slope_error},
        curves=(Curve("quiet starts", s.tokens, time, time_error),),
        undecided=_late(times, "time", "slope"),
    )


def predict_mean(s: Formation) -> Evidence:
    """The mean of the first of independent modes."""
    times = np.array([mean_first_time(s.beta, n, s.level, count=s.noisy) for n in s.tokens])
    fine = np.geomspace(min(s.tokens), max(s.tokens), 40)
    curves = (
        Curve("first of all modes", fine, [mean_first_time(s.beta, n, s.level, count=s.noisy) for n in fine]),
        Curve("(½ ln N + ln c)/λ*", fine, (0.5 * np.log(fine) + np.log(s.level)) / _fastest(s)),
    )
    values = {"time": times, "slope": np.diff(times) / np.diff(np.log(s.tokens))}
    return Evidence(values, {"time": s.level**2}, curves=curves)


claim(
    "metastability/S1",
    METASTABLE_EMERGENCE,
    "formation time grows like ln N",
    "From N i.i.d. uniform tokens on the circle the first mode reaches amplitude c at a mean time E minₖ tₖ, "
    "tₖ = (½ ln N + ln c − ln|Zₖ|)/λₖ, whose slope in ln N decreases to 1/(2λ*).",
    where="time of formation, of order ln N; constants derived",
    models=("circle",),
    quick=Formation(),
    full=Formation(runs=800),
    within={
        "time": standard_errors(5.0, "means over independent starts, 0.2 with 240; second order in c is 2c²"),
        "slope": standard_errors(5.0, "means over the same starts at neighbouring N"),
    },
    simulate=simulate_mean,
    predict=predict_mean,
    axes=Axes("tokens N", "mean time T_c", x_scale="log"),
)


def _reach(s: Formation) -> np.ndarray:
    """For c = 0.1: 0.25 at N = 10⁴, 0.11 at 10⁶, 0.06 at 10⁸. What modes that come second add fades with N."""
    return 2.3 * s.level * (np.asarray(s.tokens) / 1e4) ** -0.2 + 2 * s.level**2


def simulate_runs(s: Formation) -> Evidence:
    """T_c of each start in the nonlinear equation, and the share of starts that linear theory predicts well."""
    times = np.array([formation_times(s, n) for n in s.tokens])
    off = times - [_linear(s, n) for n in s.tokens]
    close, error = share_and_error((np.abs(off) <= _reach(s)[:, None]).sum(axis=-1), s.runs)
    return Evidence(
        {"mean": times.mean(axis=-1), "close": close},
        {"mean": mean_and_error(off, axis=-1)[1], "close": error},
        curves=_scatter(s, times),
        undecided=_late(times, "mean", "close"),
    )


def _scatter(s: Formation, times: np.ndarray) -> tuple[Curve, ...]:
    return tuple(
        Curve(f"N = {n:g}", np.arange(1, s.runs + 1), np.sort(row)) for n, row in zip(s.tokens, times, strict=True)
    )


def predict_runs(s: Formation) -> Evidence:
    """min_k t_k of the same starts, to second order: 3c² is five of its standard errors."""
    times = np.array([_linear(s, n) for n in s.tokens])
    values = {"mean": times.mean(axis=-1), "close": 0.98}
    return Evidence(values, {"mean": 0.6 * s.level**2}, curves=_scatter(s, times))


claim(
    "metastability/S2",
    METASTABLE_EMERGENCE,
    "the linear phase predicts each run",
    "The time at which the first mode reaches c = 0.1 in the nonlinear mean-field equation is minₖ ln(c/|mₖ(0)|)/λₖ of "
    "that very start: within 0.02 on average, and for 98 of 100 starts within 0.25, 0.11, 0.06 at N = 10⁴, 10⁶, 10⁸.",
    where="linear phase; prediction of each run derived",
    models=("circle",),
    quick=Formation(runs=200, tokens=(10000.0, 100000000.0)),
    full=Formation(runs=400),
    within={
        "mean": standard_errors(5.0, "second order, below 3c², and the deviations of single starts"),
        "close": at_least("rare starts have two modes of the same size; 5 standard errors", errors=5.0),
    },
    simulate=simulate_runs,
    predict=predict_runs,
    axes=Axes("start, sorted", "time T_c"),
)
