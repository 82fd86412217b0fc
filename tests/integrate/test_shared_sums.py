"""Energy and dissipation of many tokens from the sums of their drift: the same numbers as by sums of their own."""

from dataclasses import replace
from importlib import import_module

import jax
import numpy as np
import pytest

import pathlines as pl

pl.enable_float64()
T0 = np.zeros(())


def start(n, d):
    return pl.Sphere(d).uniform(jax.random.key(1), n=n)


SCORE = np.diag([1.0, 2.0, 0.5])
MODELS = {
    "harmonics": (lambda: pl.SelfAttention(2.0, summation="spectral"), 3),
    "pairs": (lambda: pl.SelfAttention(2.0, summation="dense"), 3),
    "no interaction": (lambda: pl.SelfAttention(0.0), 5),
    "repulsive": (lambda: pl.SelfAttention(2.0, weights=pl.weights.IdentityWeights(-1.0)), 3),
    "opposed": (lambda: pl.SelfAttention(2.0, weights=pl.weights.FixedWeights(-SCORE, SCORE)), 3),
    "circle": (lambda: pl.model.metastability.CircleAttention(4.0), 2),
    "circle, unnormalised": (lambda: pl.model.metastability.CircleAttention(2.0, unnormalised=True, shift=1.0), 2),
}


@pytest.mark.parametrize("name", MODELS)
def test_one_sum_gives_all_three(name):
    build, d = MODELS[name]
    model, x = build(), start(600, d)
    state = model.initial(x)
    velocity, power, energy = model.moving(state, T0)
    assert energy is not None
    np.testing.assert_allclose(velocity, model.drift(state, T0), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(power, model.power(state, T0), rtol=1e-12)
    np.testing.assert_allclose(energy, model.energy_deficit(state, T0), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", ["circle", "pairs"])
def test_runs_are_the_same(name, monkeypatch):
    build, d = MODELS[name]
    entry = import_module("pathlines.integrate.flow")
    monkeypatch.setattr("pathlines.integrate.journey.native_run", lambda *_: None)
    monkeypatch.setattr(entry, "native_run", lambda *_: None)
    settings = {"times": [0.0, 0.2, 0.5], "method": "rk4", "step": 0.1, "record": "variance", "progress": False}
    model, x = build(), start(600, d)
    found, programs = [], []
    program = entry._program
    for shared in (True, False):

        def posed(*given, shared=shared):
            programs.append(program(*given))
            return replace(programs[-1], shared=programs[-1].shared and shared)

        monkeypatch.setattr(entry, "_program", posed)
        found.append(pl.flow(model, x, **settings))
    assert programs[0].shared
    for key in found[0].data.data_vars:
        np.testing.assert_allclose(found[0].data[key], found[1].data[key], rtol=1e-12, atol=1e-13)
    assert np.abs(found[0]["dissipation_residual"].values).max() < 1e-3


def test_a_changed_drift_is_not_shared(monkeypatch):
    drift = pl.SelfAttention.drift
    monkeypatch.setattr(pl.SelfAttention, "drift", lambda self, x, t: 2 * drift(self, x, t))
    model, x = pl.SelfAttention(2.0), start(600, 3)
    velocity, _, energy = model.moving(x, T0)
    assert energy is None
    np.testing.assert_allclose(velocity, 2 * drift(model, x, T0))
