"""Modes of the stochastic Fokker-Planck equation, against reference values and against drawn heads."""

import numpy as np
import pytest

from pathlines.limit.homogenized.fokker_planck import mode_covariances, mode_rates, modes
from pathlines.limit.homogenized.mean_field import covariance_series, own_covariance, von_mises_nodes

LAW = von_mises_nodes(256, 0.8)


def test_reference_values():
    """κ = 0.8, b = 2, p = ∞: nine digits from an independent program (Hermite degree 80, 2-D quadrature)."""
    assert own_covariance(LAW, 2.0) == pytest.approx(0.526797643160, abs=1e-11)
    assert covariance_series(LAW, 2.0)[0] == pytest.approx(0.036849920, abs=1e-9)
    np.testing.assert_allclose(modes(LAW, [1, 2, 3]), [0.371075238, 0.072311905, 0.009515713], atol=1e-9)
    np.testing.assert_allclose(mode_rates(LAW, 2.0, 3), [-0.048870390, -0.038093741, -0.011278924], atol=1e-9)
    with_conjugate, plain = mode_covariances(LAW, 2.0, 3)
    expected = [0.035502287, 0.058957953, 0.028530794, 0.248403716, 0.137320231, 0.082631375]
    np.testing.assert_allclose(with_conjugate[np.triu_indices(3)], expected, atol=1e-9)
    np.testing.assert_allclose(plain[[0, 0, 1], [0, 1, 1]], [-0.018212331, -0.008294643, -0.003223541], atol=1e-9)


def test_covariances_vs_drawn_heads():
    """A lopsided measure, where modes are complex: E dM_k dM_l of 40000 velocities, 5 standard errors."""
    angles, b, runs = np.array([0.3, 0.8, 1.0, 2.5, -2.0]), 1.2, 40000
    rng = np.random.default_rng(3)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    weight = np.exp(b * np.einsum("nd,red,ke->rnk", x, rng.standard_normal((runs, 2, 2)), x))
    attended = weight / weight.sum(axis=2, keepdims=True) @ x
    field = attended @ np.swapaxes(rng.standard_normal((runs, 2, 2)) / np.sqrt(2), 1, 2)
    speed = field[..., 1] * x[:, 0] - field[..., 0] * x[:, 1]
    orders = np.arange(1, 4)
    moved = 1j * orders * (speed @ np.exp(1j * np.outer(angles, orders)) / len(angles))
    for found, other in zip(mode_covariances(angles, b, 3), (moved.conj(), moved), strict=True):
        products = moved[:, :, None] * other[:, None, :]
        for part in (np.real, np.imag):
            drawn = part(products)
            assert np.all(np.abs(drawn.mean(axis=0) - part(found)) < 5 * drawn.std(axis=0) / np.sqrt(runs) + 1e-12)
