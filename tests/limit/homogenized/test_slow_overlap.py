"""Reference values: section 13 of the project's specification 01-homogenized, unless another origin is named."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized import slow_overlap as so

TIMES = (0.25, 0.5, 1.0, 2.0)
# κ = 3/2 at t = 1, 2 is 2e-12 and 5e-12 above the table: recomputed in 80-bit floats, Chebyshev with 90 and 120 nodes
SQUARES = {
    1.0: (0.310046571717, 0.469573891615, 0.648245010015, 0.813578423850),
    1.5: (0.291382521956, 0.430991268557, 0.583725732728, 0.728873511557),
    2.0: (0.273676307937, 0.394294490398, 0.519975745664, 0.635261234257),
}


@pytest.mark.parametrize("kappa", SQUARES)
def test_mean_square_table(kappa):
    np.testing.assert_allclose(so.expected_overlap_power(TIMES, kappa), SQUARES[kappa], rtol=0, atol=2e-12)


@pytest.mark.parametrize("start", [0.0, 0.4, -0.95])
def test_kappa_two_is_a_brownian_motion(start):
    """The solver against the Gaussian integral, from early times to t = 500."""
    for values in (lambda r: r, lambda r: r * r, lambda r: np.exp(2 * r)):
        for t in (1e-3, 0.3, 4.0, 500.0):
            exact = so.brownian_expectation(values, t, start)
            assert so.slow_diffusion(2.0).expectation(values, t, start) == pytest.approx(exact, abs=2e-11)


def test_gaussian_integral_vs_dense_sum():
    z = np.linspace(-9, 9, 200001)
    weight = np.exp(-z * z / 2)
    for t in (0.01, 1.0, 50.0):
        dense = weight @ np.tanh(0.3 + np.sqrt(2 * t) * z) ** 3 / weight.sum()
        assert so.brownian_expectation(lambda r: r**3, t, np.tanh(0.3)) == pytest.approx(dense, abs=1e-13)


def test_kappa_zero_is_a_tilted_brownian_motion():
    """μ = 2 tanh y is the cosh transform of √2 B: E φ(y_t) = e^{-t} E[cosh(y0+√(2t)Z) φ]/cosh y0."""
    z = np.linspace(-12, 12, 20001)
    weight = np.exp(-z * z / 2)
    for start in (0.0, 0.6):
        y0 = np.arctanh(start)
        for t in (0.1, 1.0, 3.0):
            y = y0 + np.sqrt(2 * t) * z
            exact = np.exp(-t) * (weight * np.cosh(y)) @ np.tanh(y) ** 2 / weight.sum() / np.cosh(y0)
            assert so.expected_overlap_power(t, 0.0, start) == pytest.approx(exact, abs=2e-11)


def test_kappa_one_makes_the_arcsine_a_martingale():
    """So the limit is ±1 with the probabilities of an arcsine law; against the scale-function integrals."""
    law = so.slow_diffusion(1.0)
    for start in (0.5, -0.2):
        by_scale = law.antipode_probability(start)
        assert by_scale == pytest.approx(0.5 - np.arcsin(start) / np.pi, abs=1e-13)
        assert so.consensus_probability(start, 1.0) == pytest.approx(0.5 + np.arcsin(start) / np.pi, abs=1e-14)


@pytest.mark.parametrize("kappa", [-1.0, 0.5, 1.5, 1.9])
def test_consensus_probability_vs_scale_function(kappa):
    start = np.array([-0.9, -0.3, 0.0, 0.5, 0.99])
    found = so.slow_diffusion(kappa).antipode_probability(start)
    np.testing.assert_allclose(1 - found, so.consensus_probability(start, kappa), atol=1e-12)


def test_expectation_tends_to_the_consensus_probability():
    """E R -> P(1) - P(-1); at κ = 1, t = 40 what has not decided yet is below 1e-10."""
    for start in (0.0, 0.5):
        late = so.expected_overlap_power(40.0, 1.0, start, power=1)
        assert late == pytest.approx(2 * np.arcsin(start) / np.pi, abs=1e-6)


def test_euler_paths_agree():
    """Claim C21: κ = 1 from R = 0.5, 10⁴ paths in y, t = 8, P(R > 0) = 2/3 within 5 standard errors (0.024)."""
    rng = np.random.default_rng(1)
    y, h = np.full(10000, np.arctanh(0.5)), 0.01
    for _ in range(800):
        y += np.tanh(y) * h + np.sqrt(2 * h) * rng.standard_normal(y.size)
    assert np.mean(y > 0) == pytest.approx(2 / 3, abs=5 * np.sqrt(2 / 9 / y.size))


def test_rates_at_the_ends():
    """log(1-R) drifts at -2(2-κ): attracting below κ = 2, repelling above."""
    for kappa in (1.0, 2.0, 3.0):
        law = so.slow_diffusion(kappa)
        assert law.rate_at_consensus == pytest.approx(-2 * (2 - kappa))
        assert law.rate_at_antipode == pytest.approx(-2 * (2 - kappa))
    # neither end attracts: no convergence, so no probability of one
    assert so.slow_diffusion(2.0).antipode_probability(0.3) == 0.0


def test_kappa_from_the_kernel():
    assert so.kappa_of(64) == 2.0
    assert so.kappa_of(64, np.inf) == 1.5
    assert so.kappa_of(64, 32) == 2.5


def test_kappa_is_the_limit_of_the_pair():
    """d·drift -> -κR(1-R²), d·variation -> 2(1-R²)² at large d, for p = d, p = d/2 and p = ∞."""
    from pathlines.limit.homogenized.low_temperature import pair_drift, pair_variation

    d, r = 20000, np.array([-0.7, 0.3, 0.9])
    for p in (d, d // 2, np.inf):
        drift = d * pair_drift(r, d, p) / (r * (1 - r * r))
        np.testing.assert_allclose(drift, -so.kappa_of(d, p), rtol=1e-3)
        np.testing.assert_allclose(d * pair_variation(r, d, p) / (1 - r * r) ** 2, 2, rtol=1e-3)


def test_ends_stay():
    law = so.slow_diffusion(1.0)
    assert law.expectation(lambda r: r, 3.0, 1.0) == 1.0
    assert law.expectation(lambda r: r * r, 0.0, 0.5) == 0.25
    np.testing.assert_array_equal(law.antipode_probability([-1.0, 1.0]), [1.0, 0.0])
    assert so.brownian_expectation(lambda r: r, 3.0, -1.0) == -1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: so.expected_overlap_power(-1.0), "`time` must be ≥ 0"),
        (lambda: so.expected_overlap_power(1.0, np.nan), "`kappa` must be a finite number"),
        (lambda: so.expected_overlap_power(1.0, start=1.5), "`start` must be a finite number ≥ -1 and ≤ 1"),
        (lambda: so.expected_overlap_power(1.0, power=0), "`power` must be an integer ≥ 1"),
        (lambda: so.consensus_probability(0.0, 2.0), "`kappa` must be < 2"),
        (lambda: so.consensus_probability(1.1, 1.0), "`start` must be ≥ -1 and ≤ 1"),
        (lambda: so.kappa_of(0), "`d` must be an integer ≥ 1"),
        (lambda: so.kappa_of(4, 0), "`qk_dim` must be ≥ 1 or inf"),
        (lambda: so.slow_diffusion(1.0).overlap_drift(1.0), "`overlap` must be > -1 and < 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
