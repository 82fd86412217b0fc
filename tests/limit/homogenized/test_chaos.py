import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.chaos import response
from pathlines.limit.homogenized.mean_field import von_mises_nodes

RNG = np.random.default_rng(4)
NODES, STARTS = von_mises_nodes(12, 0.8), RNG.uniform(-3, 3, 5)
VALUES, SCORES = RNG.standard_normal((2, 3, 2, 2))
STEP, SCALE = 0.4, 1.5


def carried(theta, masses):
    """Tokens with masses of any sign through the layers, written out."""
    for value, score in zip(VALUES, SCORES, strict=True):
        x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        weight = masses * np.exp(SCALE * x @ score.T @ x.T)
        y = x + STEP * (weight / weight.sum(axis=1, keepdims=True)) @ x @ value.T
        theta = np.arctan2(y[:, 1], y[:, 0])
    return theta


def test_response_is_the_derivative_in_the_masses():
    """Masses (1 - h)/m at the nodes and h/n at the tokens, h = ±1e-5: central differences to 1e-9."""
    theta = np.concatenate([NODES, STARTS])
    masses = lambda h: np.concatenate([np.full(12, (1 - h) / 12), np.full(5, h / 5)])  # noqa: E731
    slope = (carried(theta, masses(1e-5)) - carried(theta, masses(-1e-5)))[12:] / 2e-5
    found = response(NODES, STARTS[None], VALUES[None], SCORES[None], STEP, SCALE)
    assert found.shape == (1, 3, 5)
    assert np.abs(slope).max() > 0.1
    np.testing.assert_allclose(found[0, -1], slope, atol=1e-9)


def test_tokens_that_are_the_law_do_not_stray():
    assert np.abs(response(NODES, NODES[None], VALUES[None], SCORES[None], STEP, SCALE)).max() < 1e-14


def test_the_square_does_not_depend_on_n():
    """n E δ² of the last layer for n = 4 and 64 of the same heads and 4000 starts: 5 standard errors and the term of a
    token's own mass, 1/n.
    """
    found, error = [], []
    for n in (4, 64):
        starts = np.random.default_rng(n).choice(NODES, (4000, n))
        heads = (np.broadcast_to(h, (4000, 3, 2, 2)) for h in (VALUES, SCORES))
        squares = n * np.mean(response(NODES, starts, *heads, STEP, SCALE)[:, -1] ** 2, axis=1)
        found.append(squares.mean())
        error.append(squares.std() / np.sqrt(4000))
    assert abs(found[0] - found[1]) < 5 * np.hypot(*error) + found[1] / 4


def test_bad_input():
    with pytest.raises(ArgumentError, match="`starts` must have shape"):
        response(NODES, STARTS, VALUES[None], SCORES[None], STEP, SCALE)
