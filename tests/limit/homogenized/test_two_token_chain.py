"""Layers of two tokens at β = 0: against the matrices themselves, and against the diffusion they tend to."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.two_token_chain import uniform_chain_expectation
from pathlines.limit.homogenized.two_tokens import uniform_expectation


def simulated(layers, v, d, start, runs, seed):
    """Overlaps of two tokens moved by full Gaussian matrices V with entries of variance 1/d: x ← N(x + √v V x̄)."""
    rng = np.random.default_rng(seed)
    x = np.zeros((runs, 2, d))
    x[:, 0, 0] = 1
    x[:, 1, :2] = start, np.sqrt(1 - start**2)
    for _ in range(layers):
        matrix = rng.standard_normal((runs, d, d)) / np.sqrt(d)
        x = x + np.sqrt(v) * np.einsum("rij,rj->ri", matrix, x.mean(axis=1))[:, None]
        x /= np.linalg.norm(x, axis=2, keepdims=True)
    return np.einsum("ri,ri->r", x[:, 0], x[:, 1])


@pytest.mark.parametrize(("d", "start", "power"), [(4, 0.0, 1), (4, -0.4, 2), (3, 0.2, 1), (9, 0.5, 3)])
def test_against_full_matrices(d, start, power):
    """40000 chains of 3 layers: within 4 standard errors."""
    samples = simulated(3, 0.25, d, start, 40_000, 7) ** power
    found = uniform_chain_expectation(3, 0.25, d, start, power)
    assert abs(found - samples.mean()) < 4 * samples.std(ddof=1) / np.sqrt(len(samples))


def test_short_layers_tend_to_the_diffusion_with_order_one():
    limit = uniform_expectation(1.0, 4)
    errors = [uniform_chain_expectation(layers, 1 / layers, 4) - limit for layers in (16, 32, 64)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1, abs=0.1)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(1, abs=0.05)


def test_nothing_moves_without_layers_and_coincident_tokens_stay():
    assert uniform_chain_expectation(0, 0.3, 5, 0.2, 2) == pytest.approx(0.04)
    assert uniform_chain_expectation(5, 0.3, 5, 1.0) == pytest.approx(1.0)
    with pytest.raises(ArgumentError, match="`v`"):
        uniform_chain_expectation(2, 0.0, 4)
