"""A point at an attracting neuron falls apart, or does not (arXiv:2601.21366; rates derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.metastability.perceptron_closed_forms import splitting_rate
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential
from pathlines.model.metastability.perceptron_landscape import neurons_in_plane

FARTHEST = 2e-4
"""Of tokens from the neuron, in units of 1/√β: nonlinear terms are of relative size β·spread²."""
FOLDS = np.log(1e5)
"""e-folds of decay after which the solver tolerance 1e-11 shows in a rate."""


class Splitting(Setting):
    """A narrow cluster at one neuron."""

    beta: of.Beta = 4.0
    strength: Annotated[float, means("strength of the neuron", "ω")] = -0.7
    activation: of.Activation = "relu"
    kernel: of.EnergyKernel = "scaled"
    n: of.Tokens = 50
    width: Annotated[of.Positive, means("half the width of the cluster", unit="radians")] = 1e-5
    seed: of.Seed = 0
    until: of.Until = 6.0
    records: of.Records = 31
    rtol: of.Rtol = 1e-11


def _until(s: Splitting) -> float:
    """The depth asked for, or that at which the cluster has grown to ``FARTHEST`` or decayed by ``FOLDS``."""
    potential = perceptron_potential(on_circle([0.0]), [s.strength], activation=s.activation)
    pull, scale = float(potential.pulls()[0]), perceptron_landscape(potential, s.beta, s.kernel).scale
    grows, decays = max(scale - pull, -pull, 0.0), max(pull, pull - scale, 0.0)
    room = np.log(FARTHEST / np.sqrt(s.beta) / s.width)
    require(room > 0, "width", f"be below {FARTHEST / np.sqrt(s.beta):.3g} = 2e-4/√β for linear theory", s.width)
    return float(min(s.until, room / max(grows, 1e-300), FOLDS / max(decays, 1e-300)))


def simulate_splitting(s: Splitting) -> Evidence:
    """Spread and mean of tokens within ``width`` of the neuron, under descent."""
    model = neurons_in_plane(s.beta, angles=[0.0], strengths=[s.strength], activation=s.activation, kernel=s.kernel)
    offsets = s.width * np.random.default_rng(s.seed).uniform(-1, 1, s.n)
    offsets += s.width * 0.5
    start = np.stack([np.cos(offsets), np.sin(offsets)], axis=-1)
    until = _until(s)
    times = np.linspace(0.0, until, s.records)
    run = flow(model, start, times=times, record=positions, method="dop853", rtol=s.rtol, atol=s.rtol * s.width)
    angles = np.arctan2(run["tokens"].values[..., 1], run["tokens"].values[..., 0])
    spread, mean = angles.std(axis=1), angles.mean(axis=1)
    values = {
        "spread_rate": np.log(spread[-1] / spread[0]) / until,
        "mean_rate": np.log(mean[0] / mean[-1]) / until,
    }
    curves = (Curve("spread", times, spread / spread[0]), Curve("mean", times, mean / mean[0]))
    return Evidence(values, curves=curves, runs=(run,))


def predict_splitting(s: Splitting) -> Evidence:
    """κ - c and c, c = -ωσ(1)."""
    potential = perceptron_potential(on_circle([0.0]), [s.strength], activation=s.activation)
    pull, times = float(potential.pulls()[0]), np.linspace(0.0, _until(s), 61)
    rate = splitting_rate(pull, scale=perceptron_landscape(potential, s.beta, s.kernel).scale)
    curves = (Curve("e^{(κ−c)t}", times, np.exp(rate * times)), Curve("e^{−ct}", times, np.exp(-pull * times)))
    return Evidence({"spread_rate": rate, "mean_rate": pull}, curves=curves)


LINEAR = "β·spread² ≤ 4e-8; solver tolerance 1e-11 after 11 e-folds of decay"

claim(
    "metastability/P4",
    PERCEPTRON_LANDSCAPE,
    "splitting of an atom (derived)",
    "Near a neuron that attracts with c = −ωσ(1), descent makes the spread of a cluster of mass one grow at rate κ − c "
    "while its mean relaxes at rate c: a single atom is stable iff κ < c.",
    where="derived; no statement in the paper",
    models=("perceptron",),
    quick=Splitting(),
    full=Splitting(n=500, width=1e-7, until=10.0),
    within={
        "spread_rate": absolute(2e-7, LINEAR),
        "mean_rate": absolute(2e-7, LINEAR),
    },
    simulate=simulate_splitting,
    predict=predict_splitting,
    axes=Axes("depth-time t", "relative to the start", y_scale="log"),
)
