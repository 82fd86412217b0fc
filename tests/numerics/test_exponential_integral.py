import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.numerics.exponential_integral import ei_minus_log, entire_e1, log_ei, scaled_e1, scaled_ei

POINTS = np.concatenate([[1e-300, 1e-12], np.geomspace(1e-4, 700.0, 241), [0.999999, 1.0, 39.999, 40.0, 41.0]])


def worst(values, exact, points):
    with mp.workdps(40):
        return max(float(abs(mp.mpf(float(v)) / exact(mp.mpf(float(x))) - 1)) for v, x in zip(values, points))


def test_ei_minus_log_vs_mpmath():
    assert worst(ei_minus_log(POINTS), lambda x: mp.ei(x) - mp.log(x), POINTS) < 4e-15


def test_ei_minus_log_at_zero_is_euler_gamma():
    assert ei_minus_log(0.0) == np.euler_gamma


def test_scaled_e1_vs_mpmath():
    points = np.append(POINTS, [1e4, 1e8])
    assert worst(scaled_e1(points), lambda x: mp.exp(x) * mp.e1(x), points) < 2e-15


def test_scaled_e1_limits():
    assert scaled_e1(np.inf) == 0.0
    assert scaled_e1(0.0) == np.inf
    assert scaled_e1(1e300) == pytest.approx(1e-300)


def test_scaled_ei_vs_mpmath():
    points = np.append(POINTS[np.abs(POINTS - 0.3725) > 0.05], [1e4, 1e8])
    assert worst(scaled_ei(points), lambda x: mp.exp(-x) * mp.ei(x), points) < 4e-15


def test_log_ei_beyond_overflow():
    points = np.array([0.5, 5.0, 700.0, 1e4, 1e6])
    assert worst(log_ei(points), lambda x: mp.log(mp.ei(x)), points) < 1e-14


def test_entire_e1_vs_quadrature():
    points = np.linspace(-2, 2, 17)[np.arange(17) != 8]
    exact = lambda x: mp.quad(lambda s: -mp.expm1(-s) / s, [0, x])  # noqa: E731
    assert worst(entire_e1(points), exact, points) < 1e-15
    assert entire_e1(0.0) == 0.0


@pytest.mark.parametrize("function", [ei_minus_log, scaled_ei, log_ei, scaled_e1])
@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_bad_input(function, bad):
    with pytest.raises(ArgumentError, match="`x` must"):
        function(bad)


def test_entire_e1_refuses_large_arguments():
    with pytest.raises(ArgumentError, match="`x` must be ≥ -2 and ≤ 2"):
        entire_e1(3.0)
