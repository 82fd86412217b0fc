"""Chains of heads: gradients in all layers, training by hand, the engine's chain, and what is refused."""

import jax
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups.averaged_heads import AdamW, train_by_hand

MODEL = pl.model.followups.ResidualHeads(np.diag([0.5, -0.2]), 0.3 * np.eye(2), depth=5, heads=3)
X, TARGET = np.array([[1.0, 0.2], [-0.5, 0.8], [0.3, -1.0]]), np.array([0.6, -0.3])
WEIGHTS = MODEL.weights(jax.random.key(0))


def test_gradients_in_all_layers():
    path, slopes = MODEL.backward(WEIGHTS, X, TARGET)
    assert path.shape == slopes.shape == (6, 3, 2)

    def loss_from(layer, x):
        for heads in WEIGHTS[layer:]:
            x = MODEL.apply(x, heads)
        return 0.5 * ((x.mean(axis=0) - TARGET) ** 2).sum()

    for layer in (0, 3, 5):
        np.testing.assert_allclose(slopes[layer], jax.grad(loss_from, 1)(layer, path[layer]), atol=1e-14)


def test_training_vs_by_hand():
    found = MODEL.train(X, TARGET, WEIGHTS, steps=7)
    losses, last = train_by_hand(X, TARGET, np.asarray(WEIGHTS)[None], 7, AdamW())
    np.testing.assert_allclose(found.losses, losses[:, 0], rtol=1e-10)
    np.testing.assert_allclose(found.tokens, last[0], atol=1e-10)


def test_the_engine_runs_fresh_chains():
    run = pl.chain(MODEL, X, depth=5, key=jax.random.key(1), runs=3, every=5)
    assert run["tokens"].shape == (3, 2, 3, 2)
    assert np.ptp(run["tokens"].values[:, 1], axis=0).max() > 0.01
    assert run.data["time"].values[-1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pl.model.followups.ResidualHeads(np.eye(2), np.eye(3)), "`mean_value` must have shape"),
        (lambda: pl.model.followups.ResidualHeads(np.eye(2), np.eye(2), heads=0), "`heads` must be an integer ≥ 1"),
        (
            lambda: pl.model.followups.ResidualHeads(np.eye(2), np.eye(2), sigma_b=-1.0),
            "`sigma_b` must be a finite number ≥ 0",
        ),
        (lambda: MODEL.train(np.ones((3, 3)), TARGET, WEIGHTS), r"`tokens` must have shape \(n, 2\)"),
        (lambda: MODEL.train(X, TARGET, WEIGHTS[:2]), "`weights` must have shape"),
        (lambda: MODEL.backward(WEIGHTS, X, [1.0]), "`target` must have shape"),
        (lambda: MODEL.train(X, TARGET, WEIGHTS, eps=0.0), "`eps` must be a finite number > 0"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
