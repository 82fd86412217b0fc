"""Local polynomials of Gaussian sums against the sums themselves."""

import numpy as np
import pytest

from pathlines.kernels.gauss_line import REACH, expand_derivative


def direct(points, s):
    u = points - s
    return np.sum(u * np.exp(-u * u / 2))


@pytest.mark.parametrize("spread", [0.3, 3.0, 40.0])
def test_polynomials_vs_direct_sums_within_the_stated_noise(spread):
    points = np.random.default_rng(1).standard_normal((4, 300)) * spread
    local = expand_derivative(points)
    for cell in range(0, len(local.centre), 3):
        for tau in (-0.5, 0.13, 0.5):
            value = np.polyval(local.coefficients[cell, ::-1], tau)
            error = abs(value - direct(points[local.row[cell]], local.centre[cell] + tau))
            assert error <= local.noise[cell]


def test_cells_cover_everything_within_one_of_a_point():
    points = np.array([[-2.5, 0.2, 0.25, 30.0], [5.0, 5.0, 1e7, 1e7 + 0.5]])
    local = expand_derivative(points)
    for row, values in enumerate(points):
        centres = local.centre[local.row == row]
        for s in np.concatenate([values - 1, values, values + 1]):
            assert np.min(np.abs(centres - s)) <= 0.5
    assert np.all(np.diff(local.row) >= 0)


def test_neighbours_agree_at_their_common_end():
    local = expand_derivative(np.random.default_rng(2).standard_normal((1, 500)) * 5)
    right = np.array([np.polyval(c[::-1], 0.5) for c in local.coefficients])
    left = np.array([np.polyval(c[::-1], -0.5) for c in local.coefficients])
    after = np.flatnonzero(local.follows)
    assert np.allclose(local.centre[after] - local.centre[after - 1], 1)
    assert np.all(np.abs(left[after] - right[after - 1]) <= 2 * local.noise[after])


def test_groups_out_of_reach_do_not_feel_each_other():
    near = np.array([[0.1, 0.7, 1.9]])
    far = np.array([[0.1, 0.7, 1.9, 1.9 + 2 * REACH, 1e6]])
    alone, together = expand_derivative(near), expand_derivative(far)
    same = np.isin(together.centre, alone.centre)
    np.testing.assert_allclose(together.coefficients[same], alone.coefficients, atol=1e-18)
