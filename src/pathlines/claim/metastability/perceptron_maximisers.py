"""Where ascent ends: one point at the top of the potential (arXiv:2601.21366)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, at_most
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.metastability.perceptron_closed_forms import maximum
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential
from pathlines.model.metastability.perceptron_landscape import neurons_in_plane
from pathlines.observable.perceptron_landscape import landscape_energy


class Ascent(Setting):
    """Ascent from several starts."""

    angles: of.Angles = (0.0, 2.0)
    strengths: of.Strengths = (1.0, -0.7)
    activation: of.Activation = "relu"
    beta: of.Beta = 1.0
    kernel: of.EnergyKernel = "scaled"
    n: of.Tokens = 32
    width: Annotated[of.Positive, means("half the width of the start around a neuron", unit="radians")] = 0.5
    seeds: of.Seeds = (0, 1, 2, 3, 4, 5)
    until: of.Until = 40.0
    records: of.Records = 81
    rtol: of.Rtol = 1e-9


def simulate_ascent(s: Ascent) -> Evidence:
    """Energies of USA along ascent, from uniform starts and from one around the strongest neuron."""
    model = neurons_in_plane(
        s.beta, angles=s.angles, strengths=s.strengths, activation=s.activation, flow="ascent", kernel=s.kernel
    )
    times = np.linspace(0.0, s.until, s.records)
    starts = [np.asarray(Sphere(2).uniform(jax.random.key(seed), s.n)) for seed in s.seeds]
    gathered = s.angles[int(np.argmax(s.strengths))] + s.width * np.linspace(-1, 1, s.n) ** 3
    starts.append(np.stack([np.cos(gathered), np.sin(gathered)], axis=-1))
    runs = tuple(flow(model, x, times=times, record=landscape_energy, rtol=s.rtol) for x in starts)
    paths = np.array([run["landscape_energy"].values for run in runs])
    labels = [*(f"seed {seed}" for seed in s.seeds), "around the neuron"]
    curves = tuple(Curve(label, times, e) for label, e in zip(labels, paths, strict=True))
    drops = np.max(-np.diff(paths, axis=1), axis=1)
    return Evidence(
        {"energy": paths[:, -1], "highest": paths[:, -1].max(), "decrease": drops}, curves=curves, runs=runs
    )


def predict_ascent(s: Ascent) -> Evidence:
    """κ/(2β) + ½ max v."""
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation=s.activation)
    top = maximum(perceptron_landscape(potential, s.beta, s.kernel))
    lines = (Curve("κ/(2β) + ½ max v", [0.0, s.until], [top, top]),)
    return Evidence({"energy": np.full(len(s.seeds) + 1, top), "highest": top, "decrease": 0.0}, curves=lines)


claim(
    "metastability/P1",
    PERCEPTRON_LANDSCAPE,
    "global maximisers of the energy with a perceptron",
    "E ≤ κ/(2β) + ½ max v along ascent, with equality for one point at a maximum of v: tokens around "
    "the strongest neuron end there.",
    where="proposition on global maximisers and the minimiser",
    models=("perceptron",),
    quick=Ascent(),
    full=Ascent(n=200, seeds=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), until=80.0),
    within={
        "energy": at_most("solver tolerance", slack=1e-8),
        "highest": absolute(1e-7, "left to go after the last time: e^{-2·rate·T}, rate at least 0.25"),
        "decrease": at_most("solver tolerance", slack=1e-8),
    },
    simulate=simulate_ascent,
    predict=predict_ascent,
    axes=Axes("depth-time t", "energy E"),
    note="A random start may also stay in several clusters for very long, or come to rest in one point at a lower "
    "local maximum of v or where v is flat: one cluster alone does not make the bound an equality.",
)
