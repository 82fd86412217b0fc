"""Distances against reference values, closed forms, quadrature of quantiles and each other."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

from pathlines.claim.gaussian import reference_set as R
from pathlines.foundation.errors import ArgumentError
from pathlines.observable.distances import (
    bures,
    circle_distance,
    cloud_distance,
    conditional_distance,
    coupling_error,
    gaussian_distance,
    gelbrich,
    line_to_gaussian,
    sampling_rate,
)

RNG = np.random.default_rng(0)
STEP = np.array([0.3, 0.0, -0.4])
POINTS = np.array([-1.2, -0.4, 0.1, 0.7, 1.5])


def test_reference_values():
    other = [[0.8, -0.1], [-0.1, 0.5]]
    factors = (np.linalg.cholesky(c) for c in (R.COVARIANCE, other))
    assert bures(*factors) ** 2 == pytest.approx(0.125630593079, abs=1e-11)
    assert gaussian_distance(R.MEAN, R.COVARIANCE, [0, 0], other) == pytest.approx(0.505599241573, abs=1e-11)
    assert line_to_gaussian(POINTS, p=1) == pytest.approx(0.254107763266, abs=1e-11)
    assert line_to_gaussian(POINTS, p=2) == pytest.approx(0.352375199187, abs=1e-11)


def test_line_with_weights_vs_quadrature():
    masses = np.array([0.3, 0.1, 0.2, 0.0, 0.4])
    u = (np.arange(200_000) + 0.5) / 200_000
    order = np.argsort(POINTS)
    quantile = POINTS[order][np.searchsorted(np.cumsum(masses[order]), u)]
    gap = np.abs(quantile - norm.ppf(u, 0.2, 1.3))
    assert line_to_gaussian(POINTS, 0.2, 1.3, 1, masses) == pytest.approx(gap.mean(), abs=2e-5)
    assert line_to_gaussian(POINTS, 0.2, 1.3, 2, masses) == pytest.approx(np.sqrt(np.mean(gap**2)), abs=2e-4)


def test_singular_covariances():
    """Rank one against rank one along another line, and a point: |Σ|^{1/2}."""
    u, v = np.array([[1.0], [0.0]]), np.array([[0.6], [0.8]])
    assert bures(u, v) == pytest.approx(np.sqrt(2 - 2 * 0.6))
    assert bures(u, np.zeros((2, 1))) == pytest.approx(1.0)
    assert gaussian_distance([0, 0], u @ u.T, [3, 4], np.zeros((2, 2))) == pytest.approx(np.sqrt(26))


def test_near_covariances_keep_their_digits():
    """W_2 of factors (1+h)L and L is h|L|, also when one is rotated, padded or wide."""
    factor = np.random.default_rng(0).standard_normal((50, 50))
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((60, 60)))[0]
    wide = np.pad(factor, ((0, 0), (0, 10))) @ turn
    for h in (1e-4, 1e-8):
        exact = h * np.linalg.norm(factor)
        assert bures((1 + h) * factor, factor) == pytest.approx(exact, rel=1e-5)
        assert bures((1 + h) * wide, factor) == pytest.approx(exact, rel=1e-5)
    assert bures(factor[:, :2], factor[:, :1]) <= np.linalg.norm(factor[:, 1]) + 1e-12


def test_gelbrich_is_a_lower_bound():
    """Of W_2 on a line, with equality for the moments themselves; n E of its square at the start as derived."""
    x = RNG.standard_normal((40, 1)) ** 3
    assert gelbrich(x, [0.1], [[1.2]]) <= line_to_gaussian(x[:, 0], 0.1, np.sqrt(1.2), 2)
    lam, n = np.array([1.0, 2.0]), 400
    squares = [gelbrich(RNG.standard_normal((n, 2)) * np.sqrt(lam), [0, 0], np.diag(lam)) ** 2 for _ in range(300)]
    limit = lam.sum() + sum(a * b * (1 + (i == j)) / (a + b) / 2 for i, a in enumerate(lam) for j, b in enumerate(lam))
    error = np.std(squares) * n / np.sqrt(300)
    assert abs(n * np.mean(squares) - limit) < 4 * error


def test_clouds():
    """A translation costs its length however it is computed; assignment beats order; slices say that they are."""
    x = RNG.standard_normal((60, 3))
    moved = RNG.permutation(x + STEP)
    found = cloud_distance(x, moved)
    assert (found.method, found.exact) == ("assignment", True)
    assert found.value == pytest.approx(0.5, abs=1e-12)
    assert cloud_distance(x[:, :1], moved[:, :1], 1).method == "sorted"
    assert cloud_distance(x, moved, 1).value == pytest.approx(0.5, abs=1e-12)
    many = RNG.standard_normal((2500, 2))
    sliced = cloud_distance(many, many + np.eye(2)[0], directions=400)
    assert not sliced.exact and "400 directions, seed 0" in sliced.method
    assert sliced.value == pytest.approx(np.sqrt(0.5), rel=0.1)
    assert coupling_error(x, x + STEP) == pytest.approx(0.5)


def test_conditional():
    x, y = RNG.standard_normal((2, 6, 2))
    token_by_token = np.sqrt(np.mean(np.sum((x - y) ** 2, axis=1)))
    assert conditional_distance(np.arange(6), x, y) == pytest.approx(token_by_token)
    assert conditional_distance(np.zeros(6), x, y) == pytest.approx(cloud_distance(x, y).value)
    assert conditional_distance([0, 0, 0, 1, 1, 1], x, y) <= token_by_token + 1e-12


def test_floor():
    assert sampling_rate(10_000, 1, 1) == pytest.approx(0.01)
    assert sampling_rate(10_000, 4, 2) == pytest.approx(0.1)
    assert sampling_rate(10_000, 2, 2) > sampling_rate(10_000, 2, 1) > sampling_rate(10_000, 1, 2)


def test_bad_input():
    for masses, message in (([0.5, 0.6], "sum to 1"), ([1.5, -0.5], "at least 0")):
        with pytest.raises(ArgumentError, match=message):
            line_to_gaussian([0.0, 1.0], masses=masses)
    with pytest.raises(ArgumentError, match="eigenvalue -1"):
        gaussian_distance([0, 0], np.diag([1.0, -1.0]), [0, 0], np.eye(2))
    with pytest.raises(ArgumentError, match="points with 2 columns"):
        cloud_distance(np.zeros((3, 2)), np.zeros((4, 3)))


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_circle_distance_is_an_optimal_assignment(n):
    """Against the assignment of squared arcs, on clouds that straddle the cut and on narrow ones."""
    rng = np.random.default_rng(n)
    for width, centre in ((np.pi, 0.0), (0.3, np.pi), (2.0, 1.0)):
        a, b = (centre + width * rng.uniform(-1, 1, (2, n))).reshape(2, n)
        arcs = np.abs(np.mod(a[:, None] - b + np.pi, 2 * np.pi) - np.pi)
        rows, columns = linear_sum_assignment(arcs**2)
        assert circle_distance(a, b) == pytest.approx(np.sqrt(np.mean(arcs[rows, columns] ** 2)), abs=1e-12)
    assert circle_distance(a, a + 0.25) == pytest.approx(0.25)
