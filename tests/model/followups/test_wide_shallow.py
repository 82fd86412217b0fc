"""Particles that learn: against gradients by hand, invariances, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.limit.followups.wide_training import features_of, loss_and_velocity
from pathlines.numerics.teachers import head_teacher, tanh_teacher

WideShallow = pl.model.followups.WideShallow


@pytest.mark.parametrize("features", ["tanh", "heads"])
def test_drift_vs_by_hand(features):
    x, y = (tanh_teacher if features == "tanh" else head_teacher)(20)
    masses = np.array([1.0, 2.0, 0.0])
    model = WideShallow(x, y, features, masses)
    theta = np.random.default_rng(0).standard_normal((3, model.width))
    loss, velocity = loss_and_velocity(features_of(x), y, theta, masses / 3)
    np.testing.assert_allclose(model.drift(jnp.asarray(theta), 0.0), velocity, atol=1e-14)
    assert float(model.loss(jnp.asarray(theta))) == pytest.approx(float(loss), rel=1e-13)


def test_split_particles_are_one():
    """Two particles at one place are one of their mass."""
    x, y = tanh_teacher(10)
    theta = np.random.default_rng(1).standard_normal((2, 5))
    one = pl.layers(WideShallow(x, y), theta, depth=50, step=0.2, record="training_loss")
    two = pl.layers(WideShallow(x, y), theta[[0, 1, 0, 1]], depth=50, step=0.2, record="training_loss")
    np.testing.assert_allclose(one["training_loss"], two["training_loss"], rtol=1e-12)


def test_a_flow_never_climbs():
    model = WideShallow(*head_teacher(15), "heads")
    start = np.random.default_rng(2).standard_normal((4, model.width))
    losses = pl.flow(model, start, until=5.0, record="training_loss")["training_loss"].values
    assert np.all(np.diff(losses) < 0)


X, Y = tanh_teacher(6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: WideShallow(X, Y, "relu"), "`features` must be 'tanh' or 'heads'"),
        (lambda: WideShallow(X, Y[:3]), "`targets` must have shape"),
        (lambda: WideShallow(X, Y, "heads"), r"`inputs` must have shape \(N, n, d\)"),
        (lambda: pl.flow(WideShallow(X, Y), np.ones((4, 3)), until=1.0), r"`tokens` must have shape \(m, 5\)"),
        (lambda: WideShallow(X, Y, multiplicities=[1.0, -1.0]), "`multiplicities` must be at least 0"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_only_what_learns_has_a_loss():
    with pytest.raises(FormError, match="not trained"):
        pl.flow(pl.SelfAttention(1.0), np.eye(3), until=0.1, record="training_loss")
