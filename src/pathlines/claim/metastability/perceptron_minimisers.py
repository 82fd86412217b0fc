"""Where descent should end: the unique global minimiser and its certificate (arXiv:2601.21366; closed form derived).

f ≥ ∫f dμ everywhere, for the first variation f, certifies that μ is the minimiser. The engine checks it: energies, f
and the return of displaced atoms are those of the particle model, which shares nothing with the solver.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, at_least, at_most
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.metastability.perceptron_closed_forms import half_rate, two_atoms
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import Minimiser, perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential
from pathlines.model.metastability.perceptron_landscape import PerceptronLandscape
from pathlines.observable.perceptron_landscape import kkt_gap, landscape_energy


def _circle(angles: Any) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


class Descent(Setting):
    """Descent of the energy with two neurons."""

    angles: of.Angles = (0.0, 2.0)
    strengths: of.Strengths = (1.0, -0.7)
    activation: of.Activation = "relu"
    kernel: of.EnergyKernel = "scaled"
    n: of.Tokens = 40
    until: of.Until = 200.0
    records: of.Records = 13
    points: Annotated[of.Count, means("points at which the certificate is checked")] = 4000
    rtol: of.Rtol = 1e-10


def _model(s: Descent, beta: float, masses: Any = None) -> PerceptronLandscape:
    return PerceptronLandscape(
        beta, _circle(s.angles), s.strengths, activation=s.activation, kernel=s.kernel, multiplicities=masses
    )


class Displaced(Descent):
    """The minimiser, displaced, and other starts."""

    beta: of.Beta = 1.0
    seeds: of.Seeds = (0, 1, 2)
    push: Annotated[float, means("displacement of the atoms", unit="radians")] = 0.05


def _minimiser(s: Displaced, beta: float) -> Minimiser:
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation=s.activation)
    return perceptron_minimiser(perceptron_landscape(potential, beta, s.kernel))


def _descent(s: Descent, model: PerceptronLandscape, angles: np.ndarray, until: float | None = None) -> Run:
    record = (landscape_energy, kkt_gap.at(points=s.points), positions)
    times = np.linspace(0, s.until if until is None else until, s.records)
    return flow(model, _circle(angles), times=times, record=record, method="dop853", rtol=s.rtol)


def _angles(run: Run) -> np.ndarray:
    x = run["tokens"].values[-1]
    return np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi)


# --- P2: two atoms


class TwoAtoms(Descent):
    """Two atoms at an attracting neuron, over β."""

    n: of.Tokens = 20
    until: of.Until = 600.0
    rtol: of.Rtol = 1e-12
    betas: of.Betas = (4.0, 9.0, 25.0)
    width: of.HalfWidth = 0.4


def simulate_pair(s: TwoAtoms) -> Evidence:
    """Descent of tokens placed symmetrically about the attracting neuron."""
    centre = float(s.angles[int(np.argmin(s.strengths))])
    offsets = s.width * (np.arange(s.n // 2) + 0.5) / (s.n // 2)
    start = centre + np.concatenate([-offsets, offsets])
    runs = tuple(_descent(s, _model(s, beta), start) for beta in s.betas)
    gap = kkt_gap.at(points=s.points).name
    deltas = [float(np.ptp(np.angle(np.exp(1j * (_angles(run) - centre)))) / 2) for run in runs]
    values = {
        "delta": deltas,
        "energy": [float(run["landscape_energy"].values[-1]) for run in runs],
        "kkt_gap": [float(run[gap].values[-1]) for run in runs],
    }
    curves = tuple(Curve(f"β = {b:g}", r.time, r["landscape_energy"].values) for b, r in zip(s.betas, runs))
    return Evidence(values, curves=curves, runs=runs)


def _pair_energy(s: TwoAtoms, beta: float) -> tuple[float, float, float] | None:
    """(δ, E, slowest rate) where two equal atoms at one neuron are the minimiser; elsewhere nothing is known."""
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation=s.activation)
    land = perceptron_landscape(potential, beta, s.kernel)
    at = int(np.argmin(potential.strengths))
    if s.activation != "relu" or potential.pulls()[at] <= np.exp(-2 * beta) * land.scale:
        return None
    pull = float(potential.pulls()[at])
    pair, best = two_atoms(beta, pull, scale=land.scale), perceptron_minimiser(land)
    rate = min(half_rate(beta, pull, scale=land.scale), float(best.rates[0]))
    return (pair.delta, pair.energy, rate) if abs(best.energy - pair.energy) < 1e-9 * land.scale else None


def predict_pair(s: TwoAtoms) -> Evidence:
    """cos 2δ = 1 + ln(c/κ)/β."""
    pairs = [_pair_energy(s, beta) for beta in s.betas]
    known = [p for p in pairs if p is not None]
    if len(known) < len(pairs):
        return Evidence(dict.fromkeys(("delta", "energy", "kkt_gap")), source="two atoms are not the minimiser here")
    lines = tuple(Curve(f"E*, β = {b:g}", [0, s.until], [e, e]) for b, (_, e, _) in zip(s.betas, known))
    values = {"delta": [p[0] for p in known], "energy": [p[1] for p in known], "kkt_gap": 0.0}
    needed = np.log(s.width / SETTLED) / max(min(rate for *_, rate in known), 1e-300)
    slow = f"until={needed:.3g} lets the pair settle"
    return Evidence(values, curves=lines, undecided=dict.fromkeys(values, slow) if s.until < needed else {})


SETTLED = 1e-10
"""How far from ±δ tokens may be at the end."""


claim(
    "metastability/P2",
    PERCEPTRON_LANDSCAPE,
    "two atoms at an attracting neuron (derived)",
    "One ReLU neuron of strength ω = −c, 0 < c < κ, holds the whole mass in two equal atoms at ±δ from it, "
    "cos 2δ = 1 + ln(c/κ)/β, with E = (κ+c)/(4β) − (c/4)(1+cos 2δ); where f ≥ c everywhere this is the global minimum.",
    where="derived; no statement in the paper",
    models=("perceptron",),
    quick=TwoAtoms(),
    full=TwoAtoms(n=200, until=1200.0, points=20000),
    within={
        "delta": absolute(1e-9, "solver tolerance 1e-12 over the smallest rate"),
        "energy": absolute(1e-13, "quadratic in the error of δ; rounding"),
        "kkt_gap": at_most("solver tolerance", slack=1e-9),
    },
    simulate=simulate_pair,
    predict=predict_pair,
    axes=Axes("depth-time t", "energy E"),
    note="Tokens start symmetrically: halves of equal mass. Other starts split into the masses that fall to each side.",
)


# --- P3: uniqueness and certificate


FOLDS = 14.0
"""e-folds of the slowest rate after which a push of 0.05 is below 1e-7."""
LONGEST = 20
"""How many times ``until`` displaced atoms are given for it; nothing is predicted where they need more."""


def _return_time(s: Displaced, best: Minimiser) -> float:
    return float(np.clip(FOLDS / max(best.rates[0], 1e-300), s.until, LONGEST * s.until))


def simulate_certificate(s: Displaced) -> Evidence:
    """The certified atoms, displaced and let go; and descents from random starts with equal masses."""
    best = _minimiser(s, s.beta)
    pushed = best.angles + s.push * np.sin(1.0 + np.arange(len(best.angles)))
    run = _descent(s, _model(s, s.beta, best.masses), pushed, _return_time(s, best))
    model = _model(s, s.beta)
    starts = [np.asarray(Sphere(2).uniform(jax.random.key(seed), s.n)) for seed in s.seeds]
    others = [_descent(s, model, np.arctan2(x[:, 1], x[:, 0])) for x in starts]
    gap = kkt_gap.at(points=s.points).name
    energies = np.array([r["landscape_energy"].values[-1] for r in others])
    values = {
        "angles": np.sort(_angles(run)),
        "energy": float(run["landscape_energy"].values[-1]),
        "kkt_gap": float(run[gap].values[-1]),
        "other_energies": energies,
        "lower_bounds": energies - np.array([r[gap].values[-1] for r in others]),
    }
    curves = [Curve("atoms, displaced", run.time, run["landscape_energy"].values)]
    curves += [Curve(f"seed {k}", r.time, r["landscape_energy"].values) for k, r in zip(s.seeds, others)]
    return Evidence(values, curves=tuple(curves), runs=(run, *others))


def predict_certificate(s: Displaced) -> Evidence:
    """The minimiser by Frank-Wolfe and Newton."""
    best = _minimiser(s, s.beta)
    values: dict[str, Any] = {"angles": best.angles, "energy": best.energy, "kkt_gap": 0.0}
    if best.rates[0] * _return_time(s, best) < FOLDS:
        values = dict.fromkeys(values)
    values |= dict.fromkeys(("other_energies", "lower_bounds"), best.energy)
    line = Curve("min E", [0.0, s.until], [best.energy, best.energy])
    return Evidence(values, curves=(line,), source="certified minimiser")


claim(
    "metastability/P3",
    PERCEPTRON_LANDSCAPE,
    "the unique global minimiser and its certificate",
    "E is strictly convex in the measure: the atoms with f = ∫f dμ ≤ f(x) for every x are its one global minimiser. "
    "Displaced, they return; every other run stays above, and E − (∫f dμ − min f) of any state lies below min E.",
    where="proposition on global maximisers and the minimiser; the certificate is derived",
    models=("perceptron",),
    quick=Displaced(),
    full=Displaced(n=200, until=400.0, points=20000, seeds=(0, 1, 2, 3, 4, 5, 6, 7)),
    within={
        "angles": absolute(1e-7, "what 14 e-folds leave of a push of 0.05; solver tolerance over the slowest rate"),
        "energy": absolute(1e-12, "quadratic in the error of the angles"),
        "kkt_gap": at_most("error of the angles times the slope of f", slack=1e-7),
        "other_energies": at_least("rounding", slack=1e-12),
        "lower_bounds": at_most("curvature of f times the spacing of the points squared", slack=1e-7),
    },
    simulate=simulate_certificate,
    predict=predict_certificate,
    axes=Axes("depth-time t", "energy E"),
    note="Descent of equal masses does not reach the minimum in general: mass stays in the wells it falls into.",
)
