"""Closed forms of transport against reference values."""

import numpy as np

import pathlines as pl


def test_constants_of_target_a():
    law = pl.limit.transport.interpolation_law(256, [0.3, 0.5, 0.2], [-2.0, 0.5, 3.0], [0.5, 0.8, 0.4])
    # |z| < 8 is covered, beyond which I has a share of 1e-6
    np.testing.assert_allclose(
        [law.integral, law.kl_limit, law.tv_limit], [3.4013672331, 1.6396431131, 0.7435867618], rtol=2e-6
    )


def test_matrix_exponential_vs_reference_values():
    w, a = [[1, -0.5], [0, 1.5], [-0.6, -0.6]], [[0.8, 0.6], [1, 0], [0.6, 0.6]]
    moved, log_det = pl.limit.transport.relu_flow([0.5, 0.4], w, a, [-0.1, 0.2, 0.3], [0.7, 0.4, 0.5])
    np.testing.assert_allclose(moved, [0.602222148902, 0.514888491669], atol=5e-13)
    np.testing.assert_allclose(log_det, -0.01, atol=1e-14)
