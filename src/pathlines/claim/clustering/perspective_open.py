"""Questions left open by A mathematical perspective on Transformers (arXiv:2312.10794), measured."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from scipy.special import betainc

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.perspective_phase import uniform_law
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import exactly, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, ensemble, flow
from pathlines.limit.clustering.clusters import antipodal_escape_rate
from pathlines.limit.clustering.equiangular import time_to_deficit
from pathlines.model import SelfAttention
from pathlines.observable.pairs import p_clustered
from pathlines.observable.sphere import mode_mass
from pathlines.weights import FixedWeights, goe

# --- OP-02: GOE weights


class Goe(Setting):
    """Weights of the GOE."""

    n: of.Tokens = 16
    d: of.Dimension = 3
    betas: of.Betas = (1.0,)
    draws: of.Draws = 64
    delta: of.Nearness = 0.001
    until: of.Until = 100.0
    records: of.Records = 9
    rtol: of.Rtol = 1e-6
    seed: of.Seed = 19


class LargeBeta(Setting):
    """β of the size of n²."""

    n: of.Tokens = 4
    d: of.Dimension = 3
    factor: Annotated[of.Positive, means("β over n²")] = 1.0
    delta: of.Nearness = 0.001
    runs: of.Runs = 128
    until: of.Until = 1000.0
    records: of.Records = 25
    patience: Annotated[of.Positive, means("times of escape that a run must last")] = 3.0
    seed: of.Seed = 20


def _times(s: Goe | LargeBeta) -> np.ndarray:
    return np.geomspace(s.until * 1e-2, s.until, s.records)


def _goe_runs(beta: float, s: Goe) -> list[tuple[np.ndarray, Run]]:
    """(QᵀK, run) for each draw: fresh weights QᵀK = GOE, V = QᵀK/√(d+1), and fresh uniform tokens."""
    observed = p_clustered.at(delta=s.delta)
    found = []
    for draw in range(s.draws):
        matrix_key, token_key = jax.random.split(jax.random.fold_in(jax.random.key(s.seed), draw))
        matrix = np.asarray(goe(matrix_key, s.d))
        model = SelfAttention(beta, weights=FixedWeights(matrix / np.sqrt(s.d + 1), query=matrix))
        start = Sphere(s.d).uniform(token_key, s.n)
        record = (observed, mode_mass)
        found.append((matrix, flow(model, start, times=_times(s), record=record, rtol=s.rtol, form="tokens")))
    return found


def simulate_goe(s: Goe) -> Evidence:
    """Fraction of clustered pairs; the unit of independence is one draw of weights and tokens."""
    name = p_clustered.at(delta=s.delta).name
    means, errors, curves, runs = [], [], [], []
    for beta in s.betas:
        found = [run for _, run in _goe_runs(beta, s)]
        fractions = np.stack([run[name].values for run in found])
        mean, error = mean_and_error(fractions, unit=2 / s.n)
        means.append(mean[-1])
        errors.append(error[-1])
        curves.append(Curve(f"β={beta:g}", _times(s), mean, error))
        runs += found
    near = bool(np.all(1 - np.array(means) <= ERRORS * np.array(errors)))
    advice = {"fraction": "more draws: too few to tell from one cluster"} if near else {}
    return Evidence({"fraction": means}, {"fraction": errors}, curves=tuple(curves), runs=tuple(runs), undecided=advice)


ERRORS = 5.0


def predict_goe(s: Goe) -> Evidence:
    """One cluster."""
    line = Curve("one cluster", [s.until * 1e-2, s.until], [1.0, 1.0])
    return Evidence({"fraction": np.ones(len(s.betas))}, curves=(line,), source="the theorem for Q=K=V=I, extended")


claim(
    "clustering/OP-02",
    PERSPECTIVE,
    "GOE weights: does one cluster remain? (open)",
    "With QᵀK drawn from the GOE and V = QᵀK/√(d+1), i.i.d. uniform tokens end in one cluster as they do for Q=K=V=I "
    "in d ≥ 3.",
    where="§9, general matrices: open question and phase diagram",
    models=("sa",),
    quick=Goe(),
    full=Goe(betas=(0.3, 1.0, 4.0), draws=200),
    within={"fraction": standard_errors(ERRORS, "standard error over draws of weights and tokens")},
    simulate=simulate_goe,
    predict=predict_goe,
    expected="refuted",
    corrected_by="clustering/OP-02b",
    axes=Axes("depth-time t", "P(u₁₂ ≤ δ)", x_scale="log"),
    note="Measured: most draws end in two antipodal clusters on an extreme eigenvector of QᵀK, so that about half of "
    "the pairs cluster (n=16, d=3, β=1); at larger β some draws end in three or four clusters.",
)


class Dominant(Goe):
    """Weights of the GOE with a dominant eigenvalue."""

    margin: Annotated[float, means("share by which the largest eigenvalue must exceed all others")] = 0.1


def simulate_selection(s: Dominant) -> Evidence:
    """Among draws whose top eigenvalue dominates, the share that ends on ± its eigenvector."""
    shares, curves, runs, moving = [], [], [], False
    for beta in s.betas:
        found = [run for matrix, run in _goe_runs(beta, s) if _dominated(matrix, s.margin)]
        if not found:
            few = {"share": "more draws: none has a dominant top eigenvalue"}
            return Evidence({"share": np.full(len(s.betas), np.nan)}, undecided=few)
        masses = np.stack([run["mode_mass"].values[:, -1] for run in found])
        arrived = masses[:, -1] > 1 - s.delta
        moving |= bool(np.any(~arrived & (np.abs(masses[:, -1] - masses[:, -2]) > 10 * s.rtol)))
        shares.append(float(np.mean(arrived)))
        curves.append(Curve(f"β={beta:g}, {len(found)} draws", _times(s), masses.mean(axis=0)))
        runs += found
    advice = {"share": f"until={4 * s.until:g}: some draws are still on their way"} if moving else {}
    return Evidence({"share": shares}, curves=tuple(curves), runs=tuple(runs), undecided=advice)


def _dominated(matrix: np.ndarray, margin: float) -> bool:
    """Whether λ_1 > (1 + margin)|λ_k| for every other eigenvalue."""
    *others, top = np.linalg.eigvalsh(matrix)
    return bool(top > (1 + margin) * np.abs(others).max())


def predict_selection(s: Dominant) -> Evidence:
    """All of them."""
    line = Curve("all on ±e₁", [s.until * 1e-2, s.until], [1.0, 1.0])
    return Evidence({"share": np.ones(len(s.betas))}, curves=(line,), source="conjecture")


claim(
    "clustering/OP-02b",
    PERSPECTIVE,
    "GOE weights: selection of the dominant eigenvector (open)",
    "With V ∝ QᵀK symmetric and a dominant top eigenvalue, λ₁ > |λₖ| for all k, generic tokens end on ±e₁: one "
    "cluster or two antipodal ones.",
    where="§9, general matrices: open question and phase diagram",
    models=("sa",),
    quick=Dominant(),
    full=Dominant(betas=(0.3, 1.0, 4.0), draws=200, until=300.0),
    within={"share": exactly("every draw with a dominant top eigenvalue")},
    simulate=simulate_selection,
    predict=predict_selection,
    axes=Axes("depth-time t", "mass on e₁", x_scale="log"),
    note="Draws with a gap below `margin` are left out: they converge too slowly to be judged at the last time.",
)


# --- OP-03: β ≥ C(d) n²


def simulate_frozen(s: LargeBeta) -> Evidence:
    """Fraction of clustered pairs at β = C n², from i.i.d. uniform tokens."""
    observed = p_clustered.at(delta=s.delta)
    run = ensemble(
        SelfAttention(s.factor * s.n**2),
        uniform_law(s.d, s.n),
        runs=s.runs,
        key=jax.random.key(s.seed),
        times=_times(s),
        record=observed,
    )
    mean, error = mean_and_error(run[observed.name].values, unit=2 / s.n)
    curve = Curve(f"β={s.factor * s.n**2:g}", _times(s), mean, error)
    return Evidence({"fraction": mean[-1]}, {"fraction": error[-1]}, curves=(curve,), runs=(run,))


def _lonely_pairs(s: LargeBeta) -> np.ndarray:
    """P(u_12 ≤ δ) if every pair were alone: those whose start g0 reaches 1-δ in time by the closed form at n = 2."""
    starts = np.linspace(-0.999, 1 - s.delta, 2000)
    arrivals = time_to_deficit(s.delta, 2, s.factor * s.n**2, "sa", starts)
    latest = np.interp(_times(s), arrivals[::-1], starts[::-1])
    return betainc((s.d - 1) / 2, (s.d - 1) / 2, (1 - latest) / 2)


def predict_frozen(s: LargeBeta) -> Evidence:
    """One, if the run outlasts the escape of an antipodal pair, e^{2β}/2; else the run cannot tell."""
    escape = float(np.log(1 / s.delta) / antipodal_escape_rate(s.factor * s.n**2))
    told = s.until > s.patience * escape
    curves = (
        Curve("one cluster", [s.until * 1e-2, s.until], [1.0, 1.0]),
        Curve("pairs on their own", _times(s), _lonely_pairs(s)),
    )
    return Evidence({"fraction": 1.0 if told else None}, curves=curves, source="theorem; decided only after e^{2β}")


claim(
    "clustering/OP-03",
    PERSPECTIVE,
    "one cluster for β ≥ C(d)n² (times exponential in β)",
    "For β ≥ C(d)·n² tokens of SA converge to one point from almost every start.",
    where="Theorem 5.1 (β ≥ C(d)n²)",
    models=("sa",),
    quick=LargeBeta(),
    full=LargeBeta(runs=1024, until=10000.0),
    within={"fraction": standard_errors(ERRORS, "standard error over runs")},
    simulate=simulate_frozen,
    predict=predict_frozen,
    expected="inconclusive",
    axes=Axes("depth-time t", "P(u₁₂ ≤ δ)", x_scale="log"),
    note="Merging takes times up to e^{2β}/2, some 4·10¹³ at n=4, C=1: no honest simulation reaches it. What is seen "
    "grows like ln t/β, to within some ten percent the fraction of pairs that would have merged alone (dashed). "
    "Lower `factor` to decide the claim at smaller β.",
)
