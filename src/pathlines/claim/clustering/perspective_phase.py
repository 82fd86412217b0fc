"""Phase diagrams: the fraction of clustered pairs against depth.

P(u_12 ≤ δ), u = 1-<x_1,x_2>, for n i.i.d. uniform tokens under SA (A mathematical perspective on Transformers,
arXiv:2312.10794): one cluster in the end for d ≥ 3 (every β) and for d = 2, β ≤ 1; for larger β in low dimension a
plateau of several clusters first, long compared with the times shown.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim, known
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import ensemble
from pathlines.model import SelfAttention
from pathlines.observable.pairs import p_clustered

_TO_20 = (5.0, 7.0, 10.0, 15.0, 20.0)
_TO_30 = (*_TO_20, 30.0)

REFERENCE: dict[tuple[int, float], tuple[tuple[float, ...], list[float], list[float]]] = {
    (3, 1.0): (_TO_20, [0.114, 0.682, 0.981, 0.9992, 1.0], [0.005, 0.012, 0.004, 0.001, 0.0005]),
    (2, 1.0): (_TO_30, [0.138, 0.448, 0.847, 0.968, 0.9905, 0.9986], [0.003, 0.007, 0.007, 0.004, 0.002, 0.001]),
    (2, 4.0): (_TO_30, [0.238, 0.379, 0.451, 0.486, 0.503, 0.525], [0.003] * 6),
    (2, 9.0): (_TO_30, [0.211, 0.276, 0.306, 0.322, 0.330, 0.345], [0.003] * 6),
    (8, 4.0): (_TO_30, [0.034, 0.306, 0.603, 0.722, 0.779, 0.844], [0.010] * 6),
    (8, 9.0): (_TO_30, [0.017, 0.046, 0.091, 0.136, 0.164, 0.198], [0.010] * 6),
    (3, 4.0): (_TO_30, [0.156, 0.349, 0.459, 0.520, 0.552, 0.583], [0.010] * 6),
}
"""(d, β) -> times, fractions, standard errors at n = 32, δ = 1e-3: 1024 (d = 2) or 512 runs of another program."""


@cache
def uniform_law(d: int, n: int) -> Any:
    """One law object for each (d, n), so that its ensemble is compiled once."""
    return partial(Sphere(d).uniform, n=n)


class Phase(Setting):
    """Clustered pairs over time."""

    pairs: Annotated[tuple[tuple[of.Count, of.NonNegative], ...], means("cases", "d, β")] = ((3, 1.0),)
    times: of.Times = _TO_30
    n: of.Tokens = 32
    delta: of.Nearness = 0.001
    runs: of.Runs = 256
    seed: of.Seed = 18
    rtol: of.Rtol = 1e-6
    check_runs: of.CheckRuns = 64
    step: Annotated[of.Positive, means("step of the second opinion", unit="depth-time")] = 0.2


def simulate_fraction(s: Phase) -> Evidence:
    """An ensemble for each (d, β)."""
    observed = p_clustered.at(delta=s.delta)
    means, same, errors, curves, runs = [], [], [], [], []
    for d, beta in s.pairs:
        run = ensemble(
            SelfAttention(beta),
            uniform_law(d, s.n),
            runs=s.runs,
            key=jax.random.key(s.seed),
            times=s.times,
            record=observed,
            rtol=s.rtol,
        )
        fractions = run[observed.name].values
        mean, error = mean_and_error(fractions, unit=2 / s.n)
        means.append(mean)
        same.append(fractions[: s.check_runs].mean(axis=0))
        errors.append(error)
        curves.append(Curve(f"d={d} β={beta:g}", s.times, mean, error))
        runs.append(run)
    values = {"fraction": np.concatenate(means), "same_starts": np.concatenate(same)}
    spread = {"fraction": np.concatenate(errors)}
    return Evidence(values, spread, curves=tuple(curves), runs=tuple(runs))


def _expected(d: int, beta: float, s: Phase) -> tuple[np.ndarray, np.ndarray, str]:
    """Reference fractions where there are some; else a Monte Carlo of our own in NumPy, with other samples."""
    if (d, beta) in REFERENCE:
        times, values, errors = REFERENCE[d, beta]
        found = known({"fraction": values}, s, {"n": 32, "delta": 1e-3, "times": times})
        if found.values["fraction"] is not None:
            return np.array(values), np.array(errors), found.source
    normal = np.random.default_rng(s.seed).standard_normal((s.check_runs, s.n, d))
    starts = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    fractions = direct.clustered_fraction(starts, beta, s.times, s.delta, s.step)
    return *mean_and_error(fractions, unit=2 / s.n), "NumPy Monte Carlo"


def predict_fraction(s: Phase) -> Evidence:
    """The same fractions by somebody else, and those of the first starts by NumPy."""
    found = [_expected(d, beta, s) for d, beta in s.pairs]
    curves = tuple(
        Curve(f"{w}, d={d} β={b:g}", s.times, v, e) for (d, b), (v, e, w) in zip(s.pairs, found, strict=True)
    )
    values, errors = (np.concatenate(column) for column in list(zip(*found, strict=True))[:2])
    source = ", ".join(sorted({w for _, _, w in found}))
    same = np.concatenate([_same_starts(d, beta, s) for d, beta in s.pairs])
    return Evidence({"fraction": values, "same_starts": same}, {"fraction": errors}, curves=curves, source=source)


def _same_starts(d: int, beta: float, s: Phase) -> np.ndarray:
    """Mean fractions of the first ``check_runs`` starts of the ensemble, solved by NumPy: no sampling error."""
    keys = [jax.random.fold_in(jax.random.key(s.seed), r) for r in range(min(s.check_runs, s.runs))]
    starts = np.stack([np.asarray(uniform_law(d, s.n)(key)) for key in keys])
    return direct.clustered_fraction(starts, beta, s.times, s.delta, s.step).mean(axis=0)


_fraction_claim = partial(
    claim,
    models=("sa",),
    within={
        "fraction": standard_errors(
            5.0, "standard errors over runs (samples, not pairs), those of the reference included"
        ),
        "same_starts": absolute(
            2e-3, "two solvers: a few pairs of one run may meet on the other side of a recorded time"
        ),
    },
    simulate=simulate_fraction,
    predict=predict_fraction,
    axes=Axes("depth-time t", "P(u₁₂ ≤ δ)"),
    note="Away from the reference setting the expected fractions are those of a NumPy Monte Carlo of check_runs "
    "samples.",
)

_fraction_claim(
    "clustering/CL-18",
    PERSPECTIVE,
    "one cluster for d ≥ 3",
    "For d ≥ 3 and every β, i.i.d. uniform tokens of SA end in one cluster almost surely: at n=32, d=3, β=1 the "
    "fraction of clustered pairs rises to one as tabulated.",
    where="theorems on a single cluster; the fractions are measured",
    quick=Phase(times=_TO_20),
    full=Phase(times=_TO_20, runs=512),
)

_fraction_claim(
    "clustering/CL-19",
    PERSPECTIVE,
    "one cluster for d = 2, β ≤ 1",
    "On the circle and for β ≤ 1, i.i.d. uniform tokens of SA end in one cluster almost surely, later than on the "
    "sphere: the fraction of clustered pairs at n=32, β=1 is as tabulated.",
    where="theorems on a single cluster, on the circle; the fractions are measured",
    quick=Phase(pairs=((2, 1.0),)),
    full=Phase(pairs=((2, 1.0),), runs=1024),
)

_fraction_claim(
    "clustering/CL-20",
    PERSPECTIVE,
    "metastable plateaus at larger β",
    "At larger β and low dimension the fraction of clustered pairs stays for long times on a plateau well below one: "
    "several clusters that merge only on times exponentially long in β.",
    where="phase diagrams; metastability is posed as a question",
    quick=Phase(pairs=((2, 4.0), (2, 9.0))),
    full=Phase(pairs=((2, 4.0), (2, 9.0), (8, 4.0), (8, 9.0), (3, 4.0)), runs=1024),
    blind={"fraction": "the reference values are means of 1024 runs themselves; same_starts notices half a percent"},
)
