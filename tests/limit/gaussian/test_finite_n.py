"""Mean-square error of the softmax field at finite n: against sampling, its limit and its exponent."""

import numpy as np
import pytest

from pathlines.claim.gaussian.reference_set import COVARIANCE, A, V
from pathlines.limit.gaussian.context import error_prefactor, rate_exponent
from pathlines.limit.gaussian.finite_n import field_errors, last_slope, line_errors, token_errors


@pytest.mark.parametrize(("v", "n"), [(0.3, 12), (4.0, 40)])
def test_against_sampling(v, n):
    """F and G of 40 000 contexts, five standard errors."""
    z = np.random.default_rng(3).standard_normal((40_000, n))
    g = np.exp(np.sqrt(v) * z)
    squares = np.sum((z - np.sqrt(v)) * g, axis=1) ** 2 / g.sum(axis=1) ** 2
    shares = np.sum(g**2, axis=1) / g.sum(axis=1) ** 2
    for found, exact in zip((squares, shares), token_errors(v, [n]), strict=True):
        assert abs(found.mean() - exact[0]) < 5 * found.std() / 200


def test_equal_weights():
    """v = 0: the mean of n normals, F = G = 1/n."""
    F, G = token_errors(0.0, [5, 50])
    np.testing.assert_allclose(F, [0.2, 0.02], rtol=1e-7)
    np.testing.assert_allclose(G, [0.2, 0.02], rtol=1e-7)


def test_many_tokens_reach_the_prefactor():
    """nF → (1+v)e^v, nG → e^v; in the plane and on the line the closed prefactor below θ = 1/√2."""
    F, G = token_errors(0.7, [1e12])
    assert 1e12 * F[0] == pytest.approx(1.7 * np.exp(0.7), rel=1e-7)
    assert 1e12 * G[0] == pytest.approx(np.exp(0.7), rel=1e-7)
    score = 0.8 * np.asarray(A)
    assert 1e12 * field_errors(score, V, COVARIANCE, [1e12], 12)[0] == pytest.approx(
        error_prefactor(score, V, COVARIANCE), rel=1e-6
    )
    one = [[1.0]]
    assert 1e12 * line_errors(0.3, [1e12])[0] == pytest.approx(error_prefactor([[0.3]], one, one), rel=1e-6)


def test_line_is_the_plane_of_one_dimension():
    """Trapezoid rule against Gauss-Hermite nodes."""
    one = [[1.0]]
    np.testing.assert_allclose(line_errors(0.4, [30, 3000]), field_errors([[0.4]], one, one, [30, 3000]), rtol=1e-6)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_exponent(strength):
    """√(1/θ² + 1/4) - 1/2 beyond θ = 1/√2: extrapolated from n = e^25 and e^50, 1 % for the next order."""
    assert last_slope(strength) == pytest.approx(float(rate_exponent(strength)), rel=0.01)


@pytest.mark.parametrize(("strength", "low", "within"), [(0.3, 1e4, 0.02), (0.45, 1e8, 0.055), (0.55, 1e8, 0.055)])
def test_order_of_the_remainder(strength, low, within):
    """n · MSE is within O(1/n) of its limit below θ = 1/√6, within n^{-(p-1)} up to 1/√2; logarithms: 1/ln n of it."""
    order = min(1.0, np.sqrt(strength**-2 + 0.25) - 1.5)
    sizes = np.array([low, 10 * low])
    left = error_prefactor([[strength]], [[1.0]], [[1.0]]) - sizes * line_errors(strength, sizes)
    assert np.log10(left[0] / left[1]) == pytest.approx(order, abs=within)
