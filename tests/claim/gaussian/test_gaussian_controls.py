"""Modes of samples are orthonormal under their law, so that their products are controls."""

import numpy as np
import pytest

from pathlines.claim.gaussian.controls import hermite, legendre, modes, prefix_controls, sample_controls


@pytest.mark.parametrize(
    ("basis", "rule"),
    [(hermite, np.polynomial.hermite_e.hermegauss), (legendre, np.polynomial.legendre.leggauss)],
)
def test_orthonormal(basis, rule):
    x, w = rule(8)
    rows = np.array([basis(x, k) for k in range(5)])
    np.testing.assert_allclose((rows * w / w.sum()) @ rows.T, np.eye(5), atol=1e-12)


def test_controls_have_no_mean():
    """E z_k z_l = δ_kl for whole samples and for prefixes: 20 000 runs of 6 points, five standard errors."""
    found = modes(np.random.default_rng(1).standard_normal((20_000, 6, 2)), 2)
    assert found.shape == (5, 20_000, 6)
    for controls in (sample_controls(found), prefix_controls(found, 1, 6)):
        assert controls.shape == (20_000, 15)
        error = controls.std(axis=0) / np.sqrt(20_000)
        assert (np.abs(controls.mean(axis=0)) < 5 * error).all()
