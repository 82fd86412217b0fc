"""The early phase against the flow itself, against direct sums, and against the speeds of uniform tokens."""

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.limit.clustering.energy_range import initial_pair_rate
from pathlines.limit.metastability.early_phase import early_phase, mode_powers
from pathlines.limit.metastability.growth import harmonics

jax.config.update("jax_enable_x64", True)


def almost_even(n, k, size):
    """Tokens of the circle whose density has one small mode."""
    angles = 2 * np.pi * np.arange(n) / n
    angles = angles + size * np.cos(k * angles)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize(("kind", "value"), [("sa", 1.0), ("sa", -0.5), ("usa", 1.0)])
@pytest.mark.parametrize("mode", [1, 3])
def test_a_small_mode_moves_as_the_flow_does(kind, value, mode):
    beta, times = 2.0, np.linspace(0, 1.5 if kind == "sa" else 0.3, 4)
    start = almost_even(64, mode, 2e-4)
    make = pl.SelfAttention if kind == "sa" else lambda b, **w: pl.MODELS["usa"].build(beta=b, **w)
    model = make(beta, weights=pl.weights.FixedWeights(value * np.eye(2))) if kind == "sa" else make(beta, d=2)
    run = pl.flow(model, start, times=times, record=["tokens"], rtol=1e-12)
    found = early_phase(start, times, beta, value, kind)
    gram = np.einsum("tic,tjc->tij", *2 * [np.asarray(run["tokens"])])
    energy = np.exp(beta * (gram - 1)).mean(axis=(1, 2))
    moved, said = energy - energy[0], found.energy_fraction - found.energy_fraction[0]
    np.testing.assert_allclose(said[1:], moved[1:], rtol=2e-3)
    overlap = (gram.sum(axis=(1, 2)) - 64) / (64 * 63)
    np.testing.assert_allclose(found.overlap, overlap, atol=1e-9)


def test_the_energy_at_the_start_is_that_of_the_tokens():
    for d in (2, 3, 5):
        x = np.random.default_rng(d).normal(size=(30, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        found = early_phase(x, 0.0, 6.0)
        assert found.energy_fraction == pytest.approx(np.exp(6 * (x @ x.T - 1)).mean(), rel=1e-9)
        assert found.overlap == pytest.approx(((x @ x.T).sum() - 30) / (30 * 29), rel=1e-9)


def test_the_first_speed_of_the_overlap_is_that_of_uniform_tokens():
    """Averaged over starts, p_1 = 1/n, and the overlap grows at the rate that is known for n → ∞."""
    n, beta, d, h = 4000, 3.0, 3, 1e-6
    x = np.random.default_rng(0).normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    found = early_phase(x, np.array([0.0, h]), beta, kind="usa")
    p1 = mode_powers(x, 1)[0]
    speed = (found.overlap[1] - found.overlap[0]) / h / (n * p1)
    assert speed == pytest.approx(float(initial_pair_rate(n, d, beta)), rel=2 / n)


def test_harmonics_are_counted_and_the_phase_ends():
    assert harmonics(2, 3).tolist() == [2, 2, 2] and harmonics(3, 4).tolist() == [3, 5, 7, 9]
    assert harmonics(4, 3).tolist() == [4, 9, 16]
    x = np.random.default_rng(0).normal(size=(50, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    found = early_phase(x, np.linspace(0, 50, 20), 1.0)
    assert np.isfinite(found.overlap[0]) and np.isnan(found.overlap[-1])
    fading = early_phase(x, np.linspace(0, 50, 20), 1.0, -1.0)
    assert fading.overlap[-1] == pytest.approx(-1 / 49)
