"""Markers have the moments of their laws; their attention is that of the law."""

import numpy as np
import pytest
from scipy.special import expit

from pathlines.claim.gaussian import reference_set as R
from pathlines.foundation.errors import ArgumentError
from pathlines.numerics.quadrature import gauss_hermite, gauss_legendre, trapezoid


@pytest.mark.parametrize(("rule", "size"), [(gauss_hermite, 20), (trapezoid, 0.5)])
def test_gaussian_moments_and_tilts(rule, size):
    """Mean, covariance, and E e^{hx} = e^{hα + hΣh/2}."""
    x, w = rule(R.MEAN, R.COVARIANCE, size)
    h, cov = np.array([0.7, -0.4]), np.array(R.COVARIANCE)
    np.testing.assert_allclose(w @ x, R.MEAN, atol=1e-13)
    np.testing.assert_allclose((x - w @ x).T @ ((x - w @ x) * w[:, None]), cov, atol=1e-12)
    assert w @ np.exp(x @ h) == pytest.approx(np.exp(h @ R.MEAN + h @ cov @ h / 2), rel=1e-10)


def test_box_rank_and_dropped_masses():
    x, w = gauss_legendre([-1, 0], [1, 3], 6)
    assert w @ (x[:, 0] ** 4 * x[:, 1] ** 3) == pytest.approx(0.2 * 27 / 4, rel=1e-13)
    assert gauss_hermite([0, 0], np.ones((2, 2)), 9)[0].shape == (9, 2)
    assert gauss_hermite([1.0], [[0.0]], 9)[0].shape == (1, 1)
    assert len(gauss_hermite(R.MEAN, R.COVARIANCE, 20, 1e-22)[1]) == 388


def test_poles_spoil_hermite_and_not_the_trapezoid():
    """E σ(m + √v Z) at (m, v) = (-2, 40)."""
    value = 0.3804822748605
    rules = gauss_hermite([-2.0], [[40.0]], 60), trapezoid([-2.0], [[40.0]], 0.05, 10)
    errors = [abs(w @ expit(x[:, 0]) - value) for x, w in rules]
    assert errors[0] > 1e-5
    assert errors[1] < 1e-12


def test_bad_input():
    with pytest.raises(ArgumentError, match=r"eigenvalue -0\.5"):
        gauss_hermite([0, 0], np.diag([1.0, -0.5]), 4)
    with pytest.raises(ArgumentError, match="2 × 2"):
        gauss_hermite([0, 0], np.eye(3), 4)
    with pytest.raises(ArgumentError, match="above `low`"):
        gauss_legendre([0.0], [0.0], 4)
