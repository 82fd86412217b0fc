"""Rival theories of position bias against powers of their matrices, and random weights against random matrices."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import binom

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.causal.paths import path_influence, random_weight_influence, rollout
from pathlines.limit.causal.response import response
from pathlines.limit.causal.rivals import cesaro_density, cesaro_hops, cesaro_matrix, rollout_density


def test_harmonic_sums_vs_powers_of_the_matrix():
    n = 60
    found = cesaro_hops(n, 7, np.arange(1, n + 1))
    for k in range(8):
        np.testing.assert_allclose(found[k], n * np.linalg.matrix_power(cesaro_matrix(n), k)[-1], rtol=1e-12)


def test_order_statistics_vs_harmonic_sums():
    """N[M^k]_Ni is the mean of the limit's density at the i-th smallest of N uniform numbers (10⁵ draws, 5 s.e.)."""
    n, i, k = 12, 4, 3
    t = np.sort(np.random.default_rng(3).uniform(size=(100_000, n)), axis=1)[:, i - 1]
    seen = cesaro_density(t, k)
    expected = float(cesaro_hops(n, k, [i])[k, 0])
    assert abs(seen.mean() - expected) < 5 * seen.std() / np.sqrt(len(seen))
    assert abs(1.1 * expected - seen.mean()) > 5 * seen.std() / np.sqrt(len(seen))


@pytest.mark.parametrize("skip", [0.0, 0.3, 0.8])
def test_densities_are_limits_of_long_prompts(skip):
    """The remainder, with l = ln 1/σ, is (L-1)(1/i + 1/N)/2l + (L-1)(L-2)(1/i - 1/N)/2l²: 8e-4 at σ = 7/8, N = 10⁵."""
    layers, n, sigma = 5, 100_000, np.array([0.125, 0.5, 0.875])
    hops = cesaro_hops(n, layers, (sigma * n).astype(int))
    weights = binom.pmf(np.arange(layers + 1), layers, 1 - skip)
    np.testing.assert_allclose(weights @ hops, rollout_density(sigma, skip, layers), rtol=1e-3)
    short = rollout(cesaro_matrix(40), skip, layers)
    np.testing.assert_allclose(weights @ cesaro_hops(40, layers, np.arange(1, 41)), short, rtol=1e-12)


def test_many_layers_with_large_residuals_are_the_flow():
    """L(1-α) = x: Laguerre's polynomial becomes Bessel's function, e^{-x} times the kinetic theory without a bias."""
    x, layers, sigma = 1.3, 20_000, np.array([0.05, 0.4, 1.0])
    flow = response(1.0, 1.0, sigma, rate=x, slope=0.0)
    found = rollout_density(sigma, 1 - x / layers, layers)
    np.testing.assert_allclose(found, np.exp(-x) * flow, rtol=5 * x**2 / layers)
    n = 40
    with_self = n * expm(x * cesaro_matrix(n))[-1]
    hops = cesaro_hops(n, 30, np.arange(1, n + 1))
    weights = x ** np.arange(31) / np.cumprod([1, *range(1, 31)])
    np.testing.assert_allclose(weights @ hops, with_self, rtol=1e-12)


def test_rollout_is_euler_layers_up_to_a_constant():
    alpha, layers = 0.7, 6
    mask = np.tril(np.random.default_rng(0).uniform(size=(20, 20)), -1)
    mask[1:] /= mask[1:].sum(axis=1, keepdims=True)
    ours = path_influence(mask, layers * (1 - alpha) / alpha, layers=layers)
    np.testing.assert_allclose(rollout(mask, alpha, layers), alpha**layers * ours, rtol=1e-12)


def test_random_weights_vs_random_matrices():
    """E‖∂h_N/∂h_i‖²_F/d of h ← h + √a W M h with every matrix drawn; coherent sums would be far off."""
    n, d, layers, a, draws = 6, 8, 3, 0.7, 4000
    rng, mask = np.random.default_rng(1), cesaro_matrix(6)
    row = np.zeros((draws, n, d, d))
    row[:, -1] = np.eye(d)
    for _ in range(layers):
        w = rng.standard_normal((draws, d, d)) / np.sqrt(d)
        row = row + np.sqrt(a) * np.einsum("ji,rjxy,ryz->rixz", mask, row, w)
    seen = np.sum(row**2, axis=(2, 3)) / d
    error = seen.std(axis=0) / np.sqrt(draws)
    found = random_weight_influence(mask, a, layers)
    assert np.all(np.abs(seen.mean(axis=0) - found) < 5 * error)
    assert np.all(error < 0.015 * found)  # 10 % would be seen
    coherent = (np.linalg.matrix_power(np.eye(n) + np.sqrt(a) * mask, layers)[-1]) ** 2
    assert np.all(coherent > 1.3 * found)


def test_bad_input():
    with pytest.raises(ArgumentError, match="`positions` must be whole numbers from 1 to 5"):
        cesaro_hops(5, 2, [6])
    with pytest.raises(ArgumentError, match="`sigma`"):
        cesaro_density([0.0], 2)
    with pytest.raises(ArgumentError, match="`skip`"):
        rollout_density([0.5], 1.2, 3)
    with pytest.raises(ArgumentError, match="`step`"):
        random_weight_influence(np.eye(3), -1.0, 2)
