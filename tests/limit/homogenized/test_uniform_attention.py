"""Random attention to the uniform measure against sampling and against its low-temperature law."""

import numpy as np
import pytest

from pathlines.limit.clustering.energy_range import initial_alignment
from pathlines.limit.homogenized.uniform_attention import effective_temperature, uniform_attention


@pytest.mark.parametrize(("d", "beta", "sigma"), [(2, 3.0, 1.0), (5, 2.0, 0.7), (32, 40.0, 0.2)])
def test_against_products_of_gaussian_matrices(d, beta, sigma):
    rng = np.random.default_rng(d)
    vectors = sigma**2 * np.einsum("kij,kj->ki", rng.standard_normal((4000, d, d)), rng.standard_normal((4000, d)))
    squares = np.asarray(initial_alignment(d, beta * np.linalg.norm(vectors, axis=1))) ** 2
    assert abs(squares.mean() - uniform_attention(d, beta, sigma)) < 5 * squares.std() / np.sqrt(4000)


@pytest.mark.parametrize(("d", "constant"), [(8, 1.22), (32, 1.03)])
def test_low_temperature_law(d, constant):
    """1 - s_11 = c_d(d-1)/β_eff at β_eff = 1000, measured by an independent program to 0.3 %."""
    beta = 1000.0
    assert effective_temperature(d, beta, d**-0.5) == pytest.approx(1000.0)
    deficit = 1 - uniform_attention(d, beta, d**-0.5)
    assert deficit * 1000 / (d - 1) == pytest.approx(constant, rel=0.01)
