"""A point at an attracting neuron falls apart, or does not (arXiv:2601.21366; rates derived)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.metastability.perceptron_closed_forms import splitting_rate
from pathlines.limit.metastability.perceptron_landscape import landscape
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential
from pathlines.model.perceptron_landscape import neurons_in_plane


def simulate_splitting(s: Any) -> Evidence:
    """Spread and mean of tokens within ``width`` of the neuron, under descent."""
    model = neurons_in_plane(s.beta, angles=[0.0], strengths=[s.strength], activation=s.activation, kernel=s.kernel)
    offsets = s.width * np.random.default_rng(s.seed).uniform(-1, 1, s.n)
    offsets += s.width * 0.5
    start = np.stack([np.cos(offsets), np.sin(offsets)], axis=-1)
    times = np.linspace(0.0, s.until, s.records)
    run = flow(model, start, times=times, record=positions, method="dop853", rtol=s.rtol, atol=s.rtol * s.width)
    angles = np.arctan2(run["tokens"].values[..., 1], run["tokens"].values[..., 0])
    spread, mean = angles.std(axis=1), angles.mean(axis=1)
    values = {
        "spread_rate": np.log(spread[-1] / spread[0]) / s.until,
        "mean_rate": np.log(mean[0] / mean[-1]) / s.until,
    }
    curves = (Curve("spread", times, spread / spread[0]), Curve("mean", times, mean / mean[0]))
    return Evidence(values, curves=curves, runs=(run,))


def predict_splitting(s: Any) -> Evidence:
    """κ - c and c, c = -ωσ(1)."""
    potential = perceptron_potential(on_circle([0.0]), [s.strength], activation=s.activation)
    pull, times = float(potential.pulls()[0]), np.linspace(0.0, s.until, 61)
    rate = splitting_rate(pull, scale=landscape(potential, s.beta, s.kernel).scale)
    curves = (Curve("e^{(κ−c)t}", times, np.exp(rate * times)), Curve("e^{−ct}", times, np.exp(-pull * times)))
    return Evidence({"spread_rate": rate, "mean_rate": pull}, curves=curves)


claim(
    "metastability/P4",
    PERCEPTRON_LANDSCAPE,
    "splitting of an atom (derived)",
    "Near a neuron that attracts with c = −ωσ(1), descent makes the spread of a cluster of mass one grow at rate κ − c "
    "while its mean relaxes at rate c: a single atom is stable iff κ < c.",
    models=("perceptron",),
    quick={
        "beta": 4.0,
        "strength": -0.7,
        "activation": "relu",
        "kernel": "scaled",
        "n": 50,
        "width": 1e-5,
        "seed": 0,
        "until": 6.0,
        "records": 31,
        "rtol": 1e-11,
    },
    full={"n": 500, "width": 1e-7, "until": 10.0},
    within={
        "spread_rate": absolute(1e-6, "width² and solver tolerance"),
        "mean_rate": absolute(1e-6, "width² and solver tolerance"),
    },
    simulate=simulate_splitting,
    predict=predict_splitting,
    axes=Axes("depth-time t", "relative to the start", y_scale="log"),
)
