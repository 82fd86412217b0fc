"""Layers: reference values, Lorentz and rank-one forms against the integrated layer, divergences, cross-ratios."""

import numpy as np
import pytest

from pathlines.transport.sphere.attention import divergence, integrated_layer, velocity
from pathlines.transport.sphere.layer import layer
from pathlines.transport.sphere.mean_attention import (
    apply_lorentz,
    boosted,
    latitudes,
    lorentz_matrix,
    rank_one,
    rapidity,
)

AXIS, EVEN = np.array([1, 2, 2]) / 3, np.full(3, 1 / 3)
BENT = np.array([[1.0, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]])


def unit(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_reference_rank_one():
    """RV5."""
    tau = rapidity(1.0, latitudes(np.eye(3), AXIS), EVEN, 1.0)
    assert abs(tau - 0.727715197431) < 6e-13
    ends = [
        [0.840429076364, 0.38319640369, 0.38319640369],
        [0.18055241389, 0.914879297608, 0.361104827781],
        [0.18055241389, 0.361104827781, 0.914879297608],
    ]
    np.testing.assert_allclose(boosted(np.eye(3), AXIS, tau)[0], ends, rtol=0, atol=6e-13)


@pytest.mark.parametrize(
    ("beta", "ends"),
    [
        (0.0, [[0.902057755762, 0.371505746719, 0.21971637496], [0.673989142928, 0.707232037018, 0.213451355186],
               [0.429343248275, 0.665805696813, 0.610218935507]]),
        (2.0, [[0.95284723749, 0.285010464526, 0.104168983475], [0.678320714808, 0.718539828048, 0.153562766878],
               [0.279589260852, 0.689103526968, 0.668555288915]]),
    ],
)  # fmt: skip
def test_reference_attention(beta, ends):
    """RV6."""
    piece = layer(3, 1.0, V=np.eye(3), B=beta * np.eye(3))
    np.testing.assert_allclose(integrated_layer(piece, BENT, EVEN, BENT[:0])[0], ends, rtol=0, atol=2e-12)
    first = {
        0.0: [0.889021540691, 0.323759710424, 0.323759710424],
        2.0: [0.981598370487, 0.135027106644, 0.135027106644],
    }
    np.testing.assert_allclose(integrated_layer(piece, np.eye(3), EVEN, BENT[:0])[0][0], first[beta], atol=2e-12)


@pytest.mark.parametrize("seed", range(4))
def test_lorentz_vs_integrated_layer(seed):
    rng = np.random.default_rng(seed)
    x, probes, value = unit(rng, 6, 4), unit(rng, 3, 4), rng.standard_normal((4, 4))
    weights = rng.dirichlet(np.ones(6))
    matrix = lorentz_matrix(value, x, weights, 1.7)
    moved, seen, logdet = integrated_layer(layer(4, 1.7, V=value), x, weights, probes)
    np.testing.assert_allclose(apply_lorentz(matrix, x)[0], moved, atol=1e-10)  # both at 1e-12, over the run
    np.testing.assert_allclose(apply_lorentz(matrix, probes)[0], seen, atol=1e-10)
    np.testing.assert_allclose(apply_lorentz(matrix, probes)[1], logdet, atol=1e-9)
    metric = np.diag([-1.0, 1, 1, 1, 1])
    np.testing.assert_allclose(matrix.T @ metric @ matrix, metric, atol=1e-13 * np.abs(matrix).max() ** 2 * 100)


def test_rank_one_vs_lorentz_with_either_sign():
    rng = np.random.default_rng(0)
    x, weights, axis = unit(rng, 5, 4), rng.dirichlet(np.ones(5)), unit(rng, 1, 4)[0]
    for strength in (1.3, -0.8):
        value = strength * np.outer(axis, axis)
        found = rank_one(value)
        assert found is not None
        c, line = found
        one = boosted(x, line, rapidity(c, latitudes(x, line), weights, 2.0))
        other = apply_lorentz(lorentz_matrix(value, x, weights, 2.0), x)
        np.testing.assert_allclose(one[0], other[0], atol=1e-11)
        np.testing.assert_allclose(one[1], other[1], atol=1e-10)
    assert rank_one(np.eye(3)) is None
    assert rank_one(np.zeros((3, 3))) is None
    assert rank_one(np.outer([1, 0, 0], [0, 1, 0])) is None


def test_cross_ratios_are_conserved_for_any_value_matrix():
    rng = np.random.default_rng(2)
    x, value = unit(rng, 4, 5), rng.standard_normal((5, 5))

    def ratio(p):
        gap = lambda i, j: np.sum((p[i] - p[j]) ** 2)  # noqa: E731
        return gap(0, 1) * gap(2, 3) / (gap(0, 2) * gap(1, 3))

    moved = integrated_layer(layer(5, 1.0, V=value), x, np.full(4, 0.25), x[:0])[0]
    np.testing.assert_allclose(ratio(moved), ratio(x), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_divergence_vs_differences(seed):
    rng = np.random.default_rng(seed)
    d = 4
    V, B, W, U = rng.standard_normal((4, d, d))
    piece = layer(d, 1.0, V, B, W, U, rng.standard_normal(d))
    tokens, x, weights = unit(rng, 6, d), unit(rng, 1, d), rng.dirichlet(np.ones(6))
    h, total = 1e-6, 0.0
    for e in np.linalg.svd(x)[2][1:]:
        ends = [velocity(piece, (x + s * h * e) / np.linalg.norm(x + s * h * e), tokens, weights)[0] for s in (1, -1)]
        total += (ends[0] - ends[1]) @ e / (2 * h)
    np.testing.assert_allclose(divergence(piece, x, tokens, weights)[0], total, atol=1e-7)  # rounding over the step
