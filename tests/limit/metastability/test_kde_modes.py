"""Theory of the modes of kernel density estimators: reference values and independent integrals."""

import numpy as np
import pytest
from scipy import integrate, stats

from pathlines.limit.metastability.kde_modes import (
    belt,
    bracket,
    circle_modes_expected,
    expected_beyond,
    kernel_moments,
    last_mode,
    leading_constant,
    leading_order,
    mode_density,
    modes_between,
    two_sample_modes,
)

TABLE = [
    (50, 4, 1.049645, 2.53727, 0.5586),
    (100, 10, 1.412833, 2.62826, 0.8582),
    (100, 100, 7.980834, 2.14597, 3.1876),
    (300, 30, 2.861719, 2.82955, 1.3984),
    (1000, 10, 1.010784, 3.39307, 0.6911),
    (1000, 100, 7.326781, 3.03485, 2.4065),
    (1000, 1000, 31.818147, 2.62826, 8.5823),
    (3000, 300, 16.285388, 3.21076, 3.9716),
    (10_000, 100, 3.016876, 3.71692, 2.0166),
    (10_000, 1000, 35.796725, 3.39307, 6.9114),
    (10_000, 10_000, 117.658806, 3.03485, 24.065),
]


@pytest.mark.parametrize(("n", "beta", "bulk", "edge", "beyond"), TABLE)
def test_reference_table(n, beta, bulk, edge, beyond):
    low, high = bracket(n, beta)
    assert low == pytest.approx(bulk, abs=6e-7)
    assert last_mode(n, beta) == pytest.approx(edge, abs=6e-6)
    assert expected_beyond(n, beta) == pytest.approx(beyond, rel=1e-4)
    assert high - low == pytest.approx(expected_beyond(n, beta))


@pytest.mark.parametrize("t", [0.0, 0.7, 2.5])
@pytest.mark.parametrize("beta", [0.5, 30.0])
def test_moments_vs_quadrature(t, beta):
    g = lambda x: (t - x) * np.exp(-beta * (t - x) ** 2 / 2)  # noqa: E731
    slope = lambda x: (1 - beta * (t - x) ** 2) * np.exp(-beta * (t - x) ** 2 / 2)  # noqa: E731
    parts = (g, slope, lambda x: g(x) ** 2, lambda x: g(x) * slope(x), lambda x: slope(x) ** 2)
    for exact, part in zip(kernel_moments(t, beta), parts, strict=True):
        value, _ = integrate.quad(
            lambda x, part=part: part(x) * stats.norm.pdf(x), t - 12, t + 12, points=[t], epsabs=1e-13, limit=500
        )
        assert float(exact) == pytest.approx(value, abs=1e-11)


def test_density_vs_integral_over_rising_slopes():
    """ρ = ∫_0^∞ y p(0, y) dy for the bivariate normal law of (F, F')."""
    n, beta, t = 500, 50.0, 1.3
    m = kernel_moments(t, beta)
    mean = np.sqrt(n) * np.array([m.g, m.slope])
    cross = m.cross - m.g * m.slope
    covariance = np.array([[m.square - m.g**2, cross], [cross, m.slope_square - m.slope**2]])
    law = stats.multivariate_normal(mean, covariance)
    value, _ = integrate.quad(
        lambda y: y * law.pdf([0.0, y]), 0, 60 * np.sqrt(covariance[1, 1]), points=[1.0], limit=400
    )
    assert float(mode_density(t, n, beta)) == pytest.approx(value, rel=1e-6)


def test_leading_constants():
    assert leading_constant(1.0) == pytest.approx(0.38985, abs=5e-6)
    for b in (0.5, 1.0, 1.5):
        n = 1e80
        ratio = leading_order(n, n**b) / np.sqrt(n**b * np.log(n**b))
        assert float(ratio) == pytest.approx(leading_constant(b), rel=1e-12)


def test_the_bulk_approaches_the_leading_order():
    """KR_T over the leading order tends to one, as slowly as 1/log n."""
    ratios = [modes_between(-last_mode(n, n), last_mode(n, n), n, float(n)) / float(leading_order(n, n))
              for n in (100, 10_000, 1_000_000)]  # fmt: skip
    assert np.all(np.diff(np.abs(1 - np.array(ratios))) < 0)


def test_two_samples():
    np.testing.assert_allclose(two_sample_modes([2, 4, 25]), [1.31731051, 1.47950012, 1.77729741], atol=5e-9)


def test_rice_on_the_circle():
    found = [circle_modes_expected(b) for b in (1.0, 9.0, 25.0, 81.0)]
    np.testing.assert_allclose(found, [1.28440302868, 3.65944849031, 6.11397911013, 11.0171115505], rtol=1e-11)
    assert circle_modes_expected(1e4) == pytest.approx(np.sqrt(1.5e4), rel=1e-3)


def test_belt_is_one_interval_or_two():
    assert len(belt(1000, 1000.0)) == 1
    (_, low), (high, top) = belt(10_000, 100.0)
    assert high == -low == pytest.approx(np.sqrt(2 * np.log(1e4) - 3 * np.log(100)))
    assert top == last_mode(10_000, 100.0)
    assert belt(1000, 0.5) == ()


def test_no_theory_beyond_n_squared():
    assert np.isnan(last_mode(10, 101.0))
    assert np.isnan(bracket(10, 101.0)).all()
