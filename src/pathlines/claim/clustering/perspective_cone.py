"""Tokens in a hemisphere: the cone never grows, everything meets in one point, and how fast.

If some w has <x_i(0), w> > 0 for all i, then min_i <x_i(t), w> never decreases and all tokens converge to one point
exponentially (A mathematical perspective on Transformers, arXiv:2312.10794, for SA, USA, and SA with V = I, any Q, K).
Next to that point token differences decay at rate exactly 1 (SA) or e^β (USA) (derived).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, at_least, at_most, exactly, relative, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.integrate import Run, ensemble, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clusters import consensus_rate
from pathlines.limit.cone import cone_residual, hemisphere, wendel_probability
from pathlines.model import MODELS, SelfAttention
from pathlines.observable.analysis import decay_rate, mean_and_error
from pathlines.observable.clusters import cluster_count
from pathlines.observable.pairs import diameter, p_clustered
from pathlines.weights import Fixed


def half_sphere(seed: int, n: int, d: int, lift: float = 1.0) -> jax.Array:
    """N(u_i + lift·e_1) with u_i i.i.d. uniform: for lift ≥ 1 all tokens are in the hemisphere <x, e_1> > 0."""
    sphere = Sphere(d)
    return sphere.retract(sphere.uniform(jax.random.key(seed), n) + lift * jnp.eye(d)[0])


# --- CL-13: monotone margin, shrinking cone


def simulate_cone(s: Any) -> Evidence:
    """min_i <x_i, w> for w = e_1 and for the best w of the start; distance from the initial cone."""
    start = half_sphere(s.seed, s.n, s.d)
    run = flow(
        MODELS[s.kind].build(s.beta),
        start,
        times=np.linspace(0.0, s.until, s.records),
        record=positions,
        method="dop853",
        rtol=s.rtol,
    )
    tokens = run["tokens"].values
    margin, best = hemisphere(np.asarray(start))
    heights = [np.min(tokens @ w, axis=1) for w in (np.eye(s.d)[0], best)]
    values = {
        "margin": margin,
        "largest_decrease": [float(np.max(-np.diff(h))) for h in heights],
        "cone_residual": max(cone_residual(x, tokens[0]) for x in tokens[1:]),
    }
    curves = tuple(Curve(f"minᵢ⟨xᵢ,w⟩, w = {w}", run.time, h) for w, h in zip(("e₁", "best"), heights, strict=True))
    return Evidence(values, curves=curves, runs=(run,))


def predict_cone(s: Any) -> Evidence:
    """A positive margin, no decrease, no excursion out of the cone."""
    return Evidence({"margin": 0.0, "largest_decrease": np.zeros(2), "cone_residual": 0.0})


claim(
    "clustering/CL-13",
    PERSPECTIVE,
    "cone collapse",
    "If all tokens start in an open hemisphere ⟨x,w⟩ > 0, minᵢ⟨xᵢ(t),w⟩ never decreases, and the tokens never leave the cone "
    "spanned by the initial ones.",
    models=("sa", "usa"),
    quick={"n": 12, "d": 4, "beta": 4.0, "seed": 4, "kind": "sa", "until": 20.0, "records": 41, "rtol": 1e-12},
    full={"n": 40, "d": 6, "until": 60.0, "records": 241},
    within={
        "margin": at_least("the start is in an open hemisphere"),
        "largest_decrease": at_most("solver tolerance 1e-12", slack=1e-12),
        "cone_residual": at_most("solver tolerance 1e-12", slack=1e-12),
    },
    simulate=simulate_cone,
    predict=predict_cone,
    axes=Axes("depth-time t", "minᵢ⟨xᵢ,w⟩"),
)


# --- CL-14, CL-15, ER-12, OP-05: the late rate


def _late_rate(model: SelfAttention, start: jax.Array, until: float, s: Any) -> tuple[float, Run]:
    """Slope of ln(diameter) in the window low < diameter < high."""
    times = np.linspace(0.0, until, s.records)
    run = flow(model, start, times=times, record=diameter, method="dop853", rtol=s.rtol, atol=s.atol, form="tokens")
    return decay_rate(run.time, run["diameter"].values, s.low, s.high), run


def _random_scores(seed: int, d: int) -> dict[str, np.ndarray]:
    """Gaussian Q, K with <Qx, Ky> of order one."""
    query, key = jax.random.normal(jax.random.key(seed), (2, d, d)) / np.sqrt(d)
    return {"query": np.asarray(query), "key": np.asarray(key)}


def _models(s: Any) -> list[tuple[str, SelfAttention, int, int]]:
    """(label, model, n, d): each case with Q = K = I, and the first cases with random Q, K as well."""
    found = [(f"n={n} d={d} β={b:g}", MODELS[s.kind].build(b), n, d) for n, d, b in s.cases]
    for n, d, b in s.cases[: s.random_scores]:
        weights = Fixed(np.eye(d), **_random_scores(s.seed, d))
        found.append((f"n={n} d={d} β={b:g}, random Q, K", SelfAttention(b, weights=weights), n, d))
    return found


def _late_rates(s: Any) -> tuple[list[float], tuple[Curve, ...], tuple[Run, ...]]:
    rates, curves, runs = [], [], []
    for label, model, n, d in _models(s):
        clock = float(np.exp(-model.beta)) if s.kind == "usa" else 1.0
        rate, run = _late_rate(model, half_sphere(s.seed, n, d, s.lift), s.until * clock, s)
        rates.append(rate * clock)
        keep = run["diameter"].values > s.low
        curves.append(Curve(label, run.time[keep] / clock, run["diameter"].values[keep]))
        runs.append(run)
    return rates, tuple(curves), tuple(runs)


def simulate_rate(s: Any) -> Evidence:
    """The decay rate of the diameter, in units of e^β for USA."""
    rates, curves, runs = _late_rates(s)
    return Evidence({"late_rate": rates}, curves=curves, runs=runs)


def predict_rate(s: Any) -> Evidence:
    """One, in the clock of the model (e^β/e^β for USA)."""
    betas = np.array([b for _, _, b in s.cases] + [b for _, _, b in s.cases[: s.random_scores]])
    clock = np.exp(-betas) if s.kind == "usa" else 1.0
    times = np.linspace(0.5 * s.until, s.until, 50)
    line = Curve("e^{−t}", times, s.high * np.exp(-(times - times[0])))
    return Evidence({"late_rate": consensus_rate(betas, s.kind) * clock}, curves=(line,))


_WINDOW = {
    "seed": 6,
    "lift": 1.5,
    "until": 30.0,
    "records": 241,
    "low": 1e-8,
    "high": 1e-4,
    "rtol": 1e-12,
    "atol": 1e-15,
}
_RATE_AXES = Axes("depth-time t", "diameter", y_scale="log")
_RATE_REASON = "curvature of ln(diameter) inside the window, of the order of the largest diameter in it squared"

claim(
    "clustering/CL-14",
    PERSPECTIVE,
    "late rate of SA (derived)",
    "From a start in a hemisphere, differences between tokens of SA with V=I decay at rate exactly 1 at late times, for "
    "every β, n, d, Q, K.",
    models=("sa",),
    quick={"kind": "sa", "cases": [[10, 3, 1.0], [10, 3, 5.0]], "random_scores": 1, **_WINDOW},
    full={
        "cases": [[10, 3, 1.0], [10, 3, 5.0], [20, 6, 2.0], [8, 12, 8.0]],
        "random_scores": 4,
        "until": 60.0,
        "records": 961,
    },
    within={"late_rate": relative(1e-5, _RATE_REASON)},
    simulate=simulate_rate,
    predict=predict_rate,
    axes=_RATE_AXES,
)

claim(
    "clustering/CL-15",
    PERSPECTIVE,
    "late rate of USA (derived)",
    "From a start in a hemisphere, differences between tokens of USA decay at rate e^β at late times.",
    models=("usa",),
    quick={"kind": "usa", "cases": [[10, 3, 2.0], [10, 3, 1.0]], "random_scores": 0, **_WINDOW},
    within={"late_rate": relative(1e-5, _RATE_REASON)},
    simulate=simulate_rate,
    predict=predict_rate,
    axes=Axes("e^β t", "diameter", y_scale="log"),
    note="Rates are in units of e^β.",
)


def predict_printed_rate(s: Any) -> Evidence:
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
    models=("sa",),
    quick={"kind": "sa", "cases": [[10, 3, 1.0]], "random_scores": 0, **_WINDOW},
    within={"late_rate": relative(0.1, "a rate would be measured to 1e-5; ten percent is generous")},
    simulate=simulate_rate,
    predict=predict_printed_rate,
    expected="refuted",
    corrected_by="clustering/CL-14",
    axes=_RATE_AXES,
    note="The constant is a valid lower bound on the rate, off by a factor 2ne^{2β}.",
)


def simulate_heads(s: Any) -> Evidence:
    """H heads with their own Gaussian Q_h, K_h and V_h = I/H, from a hemisphere."""
    shape = (2, s.heads, s.d, s.d)
    query, key = np.asarray(jax.random.normal(jax.random.key(s.seed), shape)) / np.sqrt(s.d)
    value = np.broadcast_to(np.eye(s.d) / s.heads, (s.heads, s.d, s.d))
    rates, drops, curves, runs = [], [], [], []
    for beta in s.betas:
        model = SelfAttention(beta, weights=Fixed(value, query, key))
        times = np.linspace(0.0, s.until, s.records)
        start = half_sphere(s.seed, s.n, s.d, s.lift)
        record = (diameter, positions)
        run = flow(model, start, times=times, record=record, method="dop853", rtol=s.rtol, atol=s.atol)
        width = run["diameter"].values
        rates.append(decay_rate(times, width, s.low, s.high))
        drops.append(float(np.max(-np.diff(np.min(run["tokens"].values[..., 0], axis=1)))))
        curves.append(Curve(f"H={s.heads} β={beta:g}", times[width > s.low], width[width > s.low]))
        runs.append(run)
    return Evidence({"late_rate": rates, "largest_decrease": drops}, curves=tuple(curves), runs=tuple(runs))


def predict_heads(s: Any) -> Evidence:
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
    models=("sa",),
    quick={"n": 10, "d": 3, "heads": 4, "betas": [1.0, 3.0], **_WINDOW},
    full={"n": 20, "d": 6, "heads": 8, "betas": [0.5, 1.0, 2.0, 4.0]},
    within={
        "late_rate": relative(1e-5, _RATE_REASON),
        "largest_decrease": at_most("solver tolerance 1e-12", slack=1e-12),
    },
    simulate=simulate_heads,
    predict=predict_heads,
    axes=_RATE_AXES,
    note="Not in the literature's theorems; the proof for one head carries over because Σ_h V_h = I keeps every pull in the "
    "cone of the tokens.",
)


# --- CL-16: Wendel


def simulate_wendel(s: Any) -> Evidence:
    """Frequency of a positive margin among i.i.d. uniform tokens."""
    draws = {d: _draws(s, d) for d in _dims(s)}
    frequencies = [np.mean([hemisphere(x[:n])[0] > 0 for x in draws[d]]) for n, d in s.sizes]
    errors = _binomial(predict_wendel(s).values["frequency"], s.draws)
    curves = tuple(Curve(f"d={d}", *_by_size(s, d, frequencies), _by_size(s, d, errors)[1]) for d in _dims(s))
    return Evidence({"frequency": frequencies}, {"frequency": errors}, curves=curves)


def _draws(s: Any, d: int) -> np.ndarray:
    """``draws`` samples of as many tokens as the largest n with that d needs; smaller n use the first ones."""
    n = max(m for m, e in s.sizes if e == d)
    points = Sphere(d).uniform(jax.random.fold_in(jax.random.key(s.seed), d), s.draws * n)
    return np.asarray(points).reshape(s.draws, n, d)


def _dims(s: Any) -> list[int]:
    return sorted({d for _, d in s.sizes})


def _by_size(s: Any, d: int, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """(n, value) of the sizes with that d, sorted by n."""
    return tuple(np.array(sorted((n, v) for (n, e), v in zip(s.sizes, values, strict=True) if e == d)).T)  # type: ignore[return-value]


def _binomial(p: np.ndarray, draws: int) -> np.ndarray:
    return np.sqrt(p * (1 - p) / draws)


def predict_wendel(s: Any) -> Evidence:
    """2^{-(n-1)} Σ_{k<d} C(n-1, k)."""
    exact = np.array([wendel_probability(n, d) for n, d in s.sizes])
    fine = range(1, max(n for n, _ in s.sizes) + 2)
    curves = tuple(Curve(f"Wendel, d={d}", list(fine), [wendel_probability(n, d) for n in fine]) for d in _dims(s))
    return Evidence({"frequency": exact}, curves=curves)


claim(
    "clustering/CL-16",
    PERSPECTIVE,
    "Wendel's probability of a hemisphere",
    "n i.i.d. uniform tokens lie in an open hemisphere with probability 2^{−(n−1)}Σ_{k<d}C(n−1,k).",
    models=("sa",),
    quick={"sizes": [[6, 3], [8, 4], [10, 5], [4, 3], [5, 3], [8, 3], [3, 3]], "draws": 500, "seed": 8},
    full={"draws": 2000},
    within={"frequency": standard_errors(4.0, "binomial standard error over the draws; fixed seed")},
    simulate=simulate_wendel,
    predict=predict_wendel,
    axes=Axes("tokens n", "P(hemisphere)"),
)


# --- CL-17: n ≤ d


def simulate_collapse(s: Any) -> Evidence:
    """Independent starts: margin, and clusters at the end."""
    law = partial(Sphere(s.d).uniform, n=s.n)
    key = jax.random.key(s.seed)
    record = (cluster_count.at(delta=s.delta), p_clustered.at(delta=s.delta))
    times = np.linspace(0.0, s.until, s.records)
    run = ensemble(SelfAttention(s.beta), law, runs=s.runs, key=key, times=times, record=record)
    starts = np.asarray(jax.vmap(lambda r: law(jax.random.fold_in(key, r)))(jnp.arange(s.runs)))
    counts, fractions = (run[o.name] for o in record)
    mean, error = mean_and_error(fractions)
    values = {
        "smallest_margin": min(hemisphere(x)[0] for x in starts),
        "largest_count": counts.values[:, -1].max(),
    }
    curves = (Curve("pairs within δ", times, mean, error),)
    return Evidence(values, curves=curves, runs=(run,))


def predict_collapse(s: Any) -> Evidence:
    """A hemisphere for sure, hence one cluster; nothing is known when n > d."""
    sure = s.n <= s.d
    return Evidence({"smallest_margin": 0.0 if sure else None, "largest_count": 1.0 if sure else None})


claim(
    "clustering/CL-17",
    PERSPECTIVE,
    "collapse for n ≤ d",
    "For n ≤ d almost every start lies in an open hemisphere, and all tokens converge to one point.",
    models=("sa",),
    quick={"n": 16, "d": 16, "beta": 1.0, "runs": 64, "until": 40.0, "records": 17, "delta": 1e-3, "seed": 9},
    full={"runs": 200},
    within={
        "smallest_margin": at_least("positive margin: hemisphere() returns 0 when there is none", slack=-1e-12),
        "largest_count": exactly("clusters at the end of every run"),
    },
    simulate=simulate_collapse,
    predict=predict_collapse,
    axes=Axes("depth-time t", "P(uᵢⱼ ≤ δ)"),
)
