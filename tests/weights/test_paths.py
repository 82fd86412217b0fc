"""Paths of heads as weights of the engine."""

import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.observable.head_energy import head_work
from pathlines.weights.paths import Decaying, Oscillating, PiecewiseLinear, ornstein_uhlenbeck

BASE, SWING = np.stack([np.eye(2), 2 * np.eye(2)]), np.stack([np.ones((2, 2)), np.eye(2)])


def test_values():
    np.testing.assert_allclose(Oscillating(BASE, SWING, [1.0, 2.0])(0.5)[1], (2 + np.cos(1.0)) * np.eye(2))
    np.testing.assert_allclose(Decaying(BASE, SWING, 2.0)(0.5), BASE + SWING * np.exp(-1.0))
    knots = np.stack([BASE, SWING, BASE])
    line = PiecewiseLinear(knots, 0.5)
    for t, value in ((0.0, BASE), (0.25, (BASE + SWING) / 2), (0.5, SWING), (1.0, BASE), (7.0, BASE)):
        np.testing.assert_allclose(line(jnp.asarray(t)), value)


def test_ornstein_uhlenbeck_is_stationary_and_symmetric():
    knots = ornstein_uhlenbeck(np.zeros((1, 2, 2)), 0.5, 1.0, 20_000, 0.1, seed=1)
    np.testing.assert_array_equal(knots, np.swapaxes(knots, -1, -2))
    off = knots[:, 0, 0, 1]
    assert off.std() == pytest.approx(0.5, rel=0.1)  # 2000 relaxation times: 5 standard errors
    assert np.corrcoef(off[10:], off[:-10])[0, 1] == pytest.approx(np.exp(-1), abs=0.1)


def test_bad_input():
    with pytest.raises(ArgumentError, match="`swing`"):
        Oscillating(BASE, np.eye(2), [1.0, 2.0])
    with pytest.raises(ArgumentError, match="`spacing`"):
        PiecewiseLinear(np.stack([BASE, BASE]), 0.0)


def test_work_of_constant_weights_is_none():
    import pathlines as pl

    model = pl.SelfAttention(
        1.0,
        attention="unnormalised",
        weights=pl.weights.VaryingWeights(Decaying(BASE, SWING), query=Decaying(BASE, SWING)),
    )
    x = np.array([[1.0, 0.0], [0.6, 0.8]])
    h = 1e-3
    assert abs(float(head_work(model, x, 0.3))) > h
    still = Decaying(BASE, 0 * SWING)
    model = pl.SelfAttention(1.0, attention="unnormalised", weights=pl.weights.VaryingWeights(still, query=still))
    assert float(head_work(model, x, 0.3)) == 0.0
