"""Attention of a uniform start: exact expectations against a Monte Carlo and against their first terms in 1/n."""

import numpy as np
import pytest

from pathlines.limit.clustering.energy_range import initial_alignment, initial_tangential_square
from pathlines.limit.clustering.initial_attention import mean_alignment, mean_tangential_square


@pytest.mark.parametrize(("n", "d", "beta"), [(5, 2, 3.0), (2, 3, 1.0), (20, 8, 2.0)])
def test_against_draws(n, d, beta):
    x = np.random.default_rng(0).standard_normal((40000, n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    weights = np.exp(beta * np.einsum("ai,aji->aj", x[:, 0], x))
    attended = np.einsum("aj,aji->ai", weights, x) / weights.sum(axis=1, keepdims=True)
    h = np.sum(attended * x[:, 0], axis=1)
    square = np.sum(attended**2, axis=1) - h**2
    for found, exact in ((h, mean_alignment(n, d, beta)), (square, mean_tangential_square(n, d, beta))):
        assert abs(found.mean() - exact) < 5 * found.std() / np.sqrt(len(found))


def test_without_temperature():
    """h_i = <x_i, x̄> has mean 1/n, and |P x̄|² mean (n-1)/n²·(d-1)/d."""
    assert mean_alignment(7, 4, 0.0) == pytest.approx(1 / 7, rel=1e-12)
    assert mean_tangential_square(7, 4, 0.0) == pytest.approx(6 / 49 * 3 / 4, rel=1e-12)


def test_first_terms_in_one_over_n():
    """What is left falls like 1/n², relative to 1/n for the square."""
    left = [mean_alignment(n, 5, 1.5) - initial_alignment(5, 1.5, n) for n in (1000, 2000)]
    assert left[0] / left[1] == pytest.approx(4.0, rel=0.05)
    ratio = [mean_tangential_square(n, 5, 1.5) / initial_tangential_square(n, 5, 1.5) - 1 for n in (1000, 2000)]
    assert ratio[0] / ratio[1] == pytest.approx(2.0, rel=0.05)
