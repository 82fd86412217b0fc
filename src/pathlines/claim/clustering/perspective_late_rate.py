"""How fast tokens meet once they are in one hemisphere: the late rate.

All tokens converge to one point (A mathematical perspective on Transformers, arXiv:2312.10794). Next to it all rows of
the attention matrix agree up to second order, so token differences decay at rate exactly 1 (SA, V = I, any Q, K) or e^β
(USA) (derived).
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.perspective_cone import half_sphere
from pathlines.claim.fitting import REVERSED
from pathlines.claim.tolerance import at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.clusters import consensus_rate
from pathlines.model import MODELS, Model, SelfAttention
from pathlines.observable.analysis import decay_rate
from pathlines.observable.pairs import diameter
from pathlines.weights import FixedWeights

# --- CL-14, CL-15, ER-12


class Window(Setting):
    """A start in a hemisphere, and the range of diameters that the rate is read from."""

    seed: of.Seed = 6
    lift: Annotated[of.NonNegative, means("shift of the tokens along e₁")] = 1.5
    until: of.Until = 30.0
    records: of.Records = 241
    low: Annotated[of.Positive, means("smallest diameter that counts")] = 1e-8
    high: Annotated[of.Positive, means("largest diameter that counts")] = 0.001
    rtol: of.Rtol = 1e-12
    atol: of.Atol = 1e-15


Cases = Annotated[tuple[tuple[of.Count, of.Count, of.NonNegative], ...], means("clouds", "n, d, β")]


class LateRate(Window):
    """Late rates of several clouds."""

    kind: of.Kind = "sa"
    cases: Cases = ((10, 3, 1.0), (10, 3, 5.0))
    random_scores: Annotated[of.Whole, means("first cases that run with random Q, K as well")] = 0


def _late_rate(model: Model, start: jax.Array, until: float, s: LateRate) -> tuple[float, Run]:
    """Slope of ln(diameter) in the window low < diameter < high."""
    times = np.linspace(0.0, until, s.records)
    run = flow(model, start, times=times, record=diameter, method="dop853", rtol=s.rtol, atol=s.atol, form="tokens")
    return _slope(run.time, run["diameter"].values, s), run


def _slope(times: np.ndarray, width: np.ndarray, s: Window) -> float:
    """The rate, or NaN (nothing can be said) when the run ends before the window."""
    inside = (width > s.low) & (width < s.high)
    return decay_rate(times, width, s.low, s.high) if inside.sum() >= 3 else float("nan")


def _random_scores(seed: int, d: int) -> dict[str, np.ndarray]:
    """Gaussian Q, K with <Qx, Ky> of order one."""
    query, key = jax.random.normal(jax.random.key(seed), (2, d, d)) / np.sqrt(d)
    return {"query": np.asarray(query), "key": np.asarray(key)}


def _models(s: LateRate) -> list[tuple[str, Model, int, int, float]]:
    """(label, model, n, d, β): each case with Q = K = I, and the first cases with random Q, K as well."""
    require(s.kind == "sa" or s.random_scores == 0, "random_scores", "be 0 for USA", s.random_scores)
    found = [(f"n={n} d={d} β={b:g}", MODELS[s.kind].build(b), n, d, b) for n, d, b in s.cases]
    for n, d, b in s.cases[: s.random_scores]:
        weights = FixedWeights(np.eye(d), **_random_scores(s.seed, d))
        found.append((f"n={n} d={d} β={b:g}, random Q, K", SelfAttention(b, weights=weights), n, d, b))
    return found


def _late_rates(s: LateRate) -> tuple[list[float], tuple[Curve, ...], tuple[Run, ...]]:
    rates, curves, runs = [], [], []
    for label, model, n, d, beta in _models(s):
        clock = float(np.exp(-beta)) if s.kind == "usa" else 1.0
        rate, run = _late_rate(model, half_sphere(s.seed, n, d, s.lift), s.until * clock, s)
        rates.append(rate * clock)
        keep = run["diameter"].values > s.low
        curves.append(Curve(label, run.time[keep] / clock, run["diameter"].values[keep]))
        runs.append(run)
    return rates, tuple(curves), tuple(runs)


def simulate_rate(s: LateRate) -> Evidence:
    """The decay rate of the diameter, in units of e^β for USA."""
    rates, curves, runs = _late_rates(s)
    return Evidence({"late_rate": rates}, curves=curves, runs=runs)


def predict_rate(s: LateRate) -> Evidence:
    """One, in the clock of the model (e^β/e^β for USA)."""
    betas = np.array([b for _, _, b in s.cases] + [b for _, _, b in s.cases[: s.random_scores]])
    clock = np.exp(-betas) if s.kind == "usa" else 1.0
    times = np.linspace(0.5 * s.until, s.until, 50)
    line = Curve("e^{−t}", times, s.high * np.exp(-(times - times[0])))
    return Evidence({"late_rate": consensus_rate(betas, s.kind) * clock}, curves=(line,))


_RATE_AXES = Axes("depth-time t", "diameter", y_scale="log")
_RATE_REASON = "curvature of ln(diameter) inside the window: the largest diameter in it squared"

claim(
    "clustering/CL-14",
    PERSPECTIVE,
    "late rate of SA (derived)",
    "From a start in a hemisphere, differences between tokens of SA with V=I decay at rate exactly 1 at late times, "
    "for every β, n, d, Q, K.",
    where="derived; the proof of cone collapse (§6) has a lower bound on the rate",
    models=("sa",),
    quick=LateRate(random_scores=1),
    full=LateRate(
        until=60.0, records=961, cases=((10, 3, 1.0), (10, 3, 5.0), (20, 6, 2.0), (8, 12, 8.0)), random_scores=4
    ),
    within={"late_rate": relative(1e-6, _RATE_REASON)},
    simulate=simulate_rate,
    predict=predict_rate,
    axes=_RATE_AXES,
)

claim(
    "clustering/CL-15",
    PERSPECTIVE,
    "late rate of USA (derived)",
    "From a start in a hemisphere, differences between tokens of USA decay at rate e^β at late times.",
    where="derived; the proof of cone collapse (§6) has a lower bound on the rate",
    models=("usa",),
    quick=LateRate(kind="usa", cases=((10, 3, 2.0), (10, 3, 1.0))),
    within={"late_rate": relative(1e-6, _RATE_REASON)},
    simulate=simulate_rate,
    predict=predict_rate,
    axes=Axes("e^β t", "diameter", y_scale="log"),
    note="Rates are in units of e^β.",
)


def predict_printed_rate(s: LateRate) -> Evidence:
    """The constant of the exponential bound in the proof, 1/(2n e^{2β})."""
    cases = s.cases + s.cases[: s.random_scores]
    rates = np.array([1 / (2 * n * np.exp(2 * b)) for n, _, b in cases])
    times = np.linspace(0.0, s.until, 50)
    return Evidence({"late_rate": rates}, curves=(Curve("e^{−t/(2ne^{2β})}", times, np.exp(-rates[0] * times)),))


claim(
    "clustering/ER-12",
    PERSPECTIVE,
    "rate in the proof of cone collapse, read as the rate",
    "From a start in a hemisphere, tokens of SA approach their common limit at rate 1/(2ne^{2β}).",
    where="§6, rate in the proof of cone collapse",
    models=("sa",),
    quick=LateRate(cases=((10, 3, 1.0),)),
    within={"late_rate": relative(0.1, "a rate would be measured to 1e-5; ten percent is generous")},
    simulate=simulate_rate,
    predict=predict_printed_rate,
    expected="refuted",
    corrected_by="clustering/CL-14",
    axes=_RATE_AXES,
    note="The constant is a valid lower bound on the rate, off by a factor 2ne^{2β}.",
)


# --- OP-05: several heads


class ManyHeads(Window):
    """Several heads."""

    n: of.Tokens = 10
    d: of.Dimension = 3
    heads: of.Heads = 4
    betas: of.Betas = (1.0, 3.0)


def simulate_heads(s: ManyHeads) -> Evidence:
    """H heads with their own Gaussian Q_h, K_h and V_h = I/H, from a hemisphere."""
    shape = (2, s.heads, s.d, s.d)
    query, key = np.asarray(jax.random.normal(jax.random.key(s.seed), shape)) / np.sqrt(s.d)
    value = np.broadcast_to(np.eye(s.d) / s.heads, (s.heads, s.d, s.d))
    rates, drops, curves, runs = [], [], [], []
    for beta in s.betas:
        model = SelfAttention(beta, weights=FixedWeights(value, query, key))
        times = np.linspace(0.0, s.until, s.records)
        start = half_sphere(s.seed, s.n, s.d, s.lift)
        record = (diameter, positions)
        run = flow(model, start, times=times, record=record, method="dop853", rtol=s.rtol, atol=s.atol)
        width = run["diameter"].values
        rates.append(_slope(times, width, s))
        drops.append(float(np.max(-np.diff(np.min(run["tokens"].values[..., 0], axis=1)))))
        curves.append(Curve(f"H={s.heads} β={beta:g}", times[width > s.low], width[width > s.low]))
        runs.append(run)
    return Evidence({"late_rate": rates, "largest_decrease": drops}, curves=tuple(curves), runs=tuple(runs))


def predict_heads(s: ManyHeads) -> Evidence:
    """One head's answers."""
    times = np.linspace(0.5 * s.until, s.until, 50)
    line = Curve("e^{−t}", times, s.high * np.exp(-(times - times[0])))
    count = len(s.betas)
    return Evidence({"late_rate": np.ones(count), "largest_decrease": np.zeros(count)}, curves=(line,))


claim(
    "clustering/OP-05",
    PERSPECTIVE,
    "cone collapse with several heads (open)",
    "With H heads of arbitrary Q_h, K_h and V_h = I/H, tokens that start in the hemisphere ⟨x,e₁⟩ > 0 stay there with "
    "minᵢ⟨xᵢ,e₁⟩ non-decreasing, and differences decay at late rate exactly 1.",
    where="several heads: not covered by the theorems of §4–6",
    models=("sa",),
    quick=ManyHeads(),
    full=ManyHeads(n=20, d=6, heads=8, betas=(0.5, 1.0, 2.0, 4.0)),
    within={
        "late_rate": relative(1e-6, _RATE_REASON),
        "largest_decrease": at_most("solver tolerance 1e-12", slack=1e-12),
    },
    simulate=simulate_heads,
    predict=predict_heads,
    axes=_RATE_AXES,
    note="Not in the literature's theorems; the proof for one head carries over because Σ_h V_h = I keeps every pull "
    "in the cone of the tokens.",
    mistakes=(REVERSED,),
)
