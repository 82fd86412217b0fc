"""Reference values: section 5.6 of the project's specification 01-homogenized."""

import math

import numpy as np
import pytest
from scipy import integrate

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.collapse import (
    collapse_depth,
    collapse_map,
    collapse_time,
    layer_collapse_rates,
    near_collapse_rates,
    sensitivities,
)
from pathlines.limit.homogenized.overlap_curve import layer_map_curve, overlap_curve
from pathlines.limit.homogenized.participation import mean_participation

SCALES = [0, 1, 2, 3, 4, 6, 8, math.inf]
TABLE = {
    16: ["2.83321", "2.85269", "2.99253", "3.20704", "3.42105", "3.7737", "4.0317", "5.4452"],
    128: ["4.85981", "4.87171", "5.07682", "5.63068", "6.35346", "7.8303", "9.1499", "25.2776"],
    # the specification prints 13.7230 and 16.8535 for b = 8: checked below by direct quadrature
    1024: ["6.93245", "6.93545", "7.03953", "7.60506", "8.62785", "11.1488", "13.7227", "127.649"],
    8192: ["9.01104", "9.01160", "9.04091", "9.40081", "10.4108", "13.4656", "16.8528", "709.23"],
}


@pytest.fixture(scope="module")
def times():
    return collapse_map(list(TABLE), SCALES)


def test_collapse_map_vs_specification(times):
    printed = np.array([[float(x) for x in row] for row in TABLE.values()])
    last = np.array([[10.0 ** -len(x.split(".")[1]) for x in row] for row in TABLE.values()])
    assert times.shape == printed.shape
    assert np.all(np.abs(times - printed) <= 0.501 * last)


def test_map_vs_single_times(times):
    for column in (0, 3, 7):
        assert collapse_time(128, SCALES[column]) == pytest.approx(times[1, column], rel=1e-9)


@pytest.mark.parametrize(("n", "row"), [(1024, 2), (8192, 3)])
def test_large_logits_vs_direct_quadrature(times, n, row):
    """∫ dγ/𝖻 by Gauss-Legendre in log(γ+1/n), every f and g evaluated afresh."""
    x, w = np.polynomial.legendre.leggauss(60)
    low, high = math.log(1 / n), math.log(0.5 + 1 / n)
    total = 0.0
    for node, weight in zip(0.5 * (low + high) + 0.5 * (high - low) * x, 0.5 * (high - low) * w, strict=True):
        gamma = math.exp(node) - 1 / n
        f, g = mean_participation(n, 8.0, gamma)
        total += weight * (gamma + 1 / n) / ((1 - gamma) * (gamma * (1 - f) + g))
    assert times[row, 6] == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("n", [2, 16, 10_000])
def test_uniform_attention_takes_log_of_n_plus_one(n):
    assert collapse_time(n, 0.0) == pytest.approx(math.log(n + 1), rel=1e-14)
    level = 0.9
    expected = math.log((1 + (n - 1) * level) / (1 - level))
    assert collapse_time(n, 0.0, level=level) == pytest.approx(expected, rel=1e-14)


def test_collapse_time_inverts_the_curve():
    for d in (math.inf, 64):
        tau = collapse_time(64, 3.0, level=0.7, d=d, gamma0=0.05)
        assert overlap_curve(tau, 64, 3.0, d=d, gamma0=0.05) == pytest.approx(0.7, rel=1e-10)


def test_argmax_of_two_keys():
    """g = ½ + arcsin(γ)/π, f = 1: ∫ dγ/((1-γ)g)."""
    exact = integrate.quad(lambda x: 1 / ((1 - x) * (0.5 + math.asin(x) / math.pi)), 0, 0.5, epsabs=1e-13)[0]
    assert collapse_time(2, math.inf) == pytest.approx(exact, rel=1e-11)


def test_no_collapse_where_the_drift_turns_back():
    assert collapse_time(1024, 30.0, d=5) == math.inf
    assert collapse_time(64, 0.0, d=2) == math.inf
    assert collapse_time(64, 0.0, level=0.3, gamma0=0.3) == 0.0


@pytest.mark.parametrize(("norm", "r0"), [("post", 1.0), ("pre", 0.5)])
def test_collapse_depth_vs_layer_curve(norm, r0):
    curve = layer_map_curve(80, 24, 1.0, 0.1, norm=norm, r0=r0).overlap
    depth = collapse_depth(24, 1.0, 0.1, norm=norm, r0=r0)
    assert curve[depth - 1] < 0.5 <= curve[depth]
    assert collapse_depth(24, 1.0, 0.1, norm=norm, r0=r0, gamma0=0.5) == 0
    assert collapse_depth(24, 1.0, 0.1, norm=norm, r0=r0, max_layers=depth - 1) is None


def test_bert_like_depth():
    """Section 7: post-normalisation, n = 512, weights of standard deviation 0.02 in d = 768; rule of thumb 69.2."""
    power = 768**2 * 0.02**4
    assert collapse_depth(512, 768 * 0.02**2, power) == 70
    assert math.log(512) / math.log1p(power) == pytest.approx(70, rel=0.02)


def test_small_steps_take_collapse_time_over_v():
    v = 1e-3
    assert collapse_depth(32, 2.0, v) * v == pytest.approx(collapse_time(32, 2.0), rel=2e-3)


def test_sensitivities_without_logits_vs_closed_form():
    n, d = 100, 50
    found = sensitivities(n, 0.0, d=d)

    def tau(n, d):
        """b = 0: f = g = 1/n in the finite-d drift, integrated in γ."""

        def pace(x):
            m = x + (1 - x) / n
            return 1 / ((d - 2 + x * x) / d * m - (d - 1) / d * x * m)

        return integrate.quad(pace, 0, 0.5, epsabs=1e-12, epsrel=1e-12)[0]

    h = 1e-4
    by_n = (math.log(tau(n * (1 + h), d)) - math.log(tau(n * (1 - h), d))) / (2 * h)
    by_d = (math.log(tau(n, d * (1 + h))) - math.log(tau(n, d * (1 - h)))) / (2 * h)
    assert found.time == pytest.approx(tau(n, d), rel=1e-11)
    assert found.n == pytest.approx(by_n, rel=1e-4)
    assert found.d == pytest.approx(by_d, rel=1e-3)
    assert (found.b, found.p) == (0.0, 0.0)
    wide = sensitivities(n, 0.0)
    assert wide.n == pytest.approx(n / ((n + 1) * math.log(n + 1)), rel=1e-4)
    assert wide.d == 0.0


def test_sensitivity_to_logits_vs_wider_difference():
    found = sensitivities(64, 3.0)
    wider = math.log(collapse_time(64, 3.0 * 1.05) / collapse_time(64, 3.0 / 1.05)) / (2 * math.log(1.05))
    assert found.b == pytest.approx(wider, rel=5e-3)


def test_effects_are_ordered():
    found = sensitivities(64, 3.0, d=40)
    sizes = [abs(e.exponent) for e in found.effects()]
    assert sizes == sorted(sizes, reverse=True)
    named = {e.name: e.exponent for e in found.effects()}
    assert named["residual step η"] == -2.0
    assert named["heads H"] == 1.0
    assert named["context length n"] == found.n > 0
    assert named["dimension d"] == found.d < 0


def test_near_collapse_rates():
    assert near_collapse_rates(5) == (-0.8, -0.4)
    assert near_collapse_rates(3)[1] == 0.0


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: collapse_time(1, 0.0), "n"),
        (lambda: collapse_time(4, -0.5), "b"),
        (lambda: collapse_time(4, 0.0, p=0.5), "p"),
        (lambda: collapse_time(4, 0.0, d=1), "d"),
        (lambda: collapse_time(4, 0.0, level=1.0), "level"),
        (lambda: collapse_time(4, 0.0, level=0.2, gamma0=0.3), "level"),
        (lambda: collapse_time(4, 0.0, gamma0=-0.4), "gamma0"),
        (lambda: collapse_map([4, 2.5], [0.0]), "ns"),
        (lambda: collapse_map([4], [-1.0]), "b"),
        (lambda: collapse_map([4, 100], [0.0], gamma0=-0.2), "gamma0"),
        (lambda: collapse_depth(4, 0.0, -1.0), "v"),
        (lambda: collapse_depth(4, 0.0, 1.0, norm="none"), "norm"),
        (lambda: sensitivities(4, 1.0, p=1), "p"),
        (lambda: near_collapse_rates(1), "d"),
    ],
)
def test_bad_arguments(call, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        call()


def test_layers_near_collapse():
    """v → 0, d → ∞, and one layer at d = 4, v = 0.5 by 10⁶ draws within five standard errors."""
    np.testing.assert_allclose(layer_collapse_rates(5, 1e-5), near_collapse_rates(5), atol=1e-5)
    np.testing.assert_allclose(layer_collapse_rates(10**7, 0.3), -math.log(1.3) / 0.3, rtol=1e-6)
    d, v = 4, 0.5
    w = np.random.default_rng(0).normal(0, math.sqrt(v / d), (1_000_000, d))
    w[:, 0] += 1
    square = np.sum(w**2, axis=1)
    ratio = (square - w[:, 1] ** 2) / square**2
    typical, mean = layer_collapse_rates(d, v)
    assert abs(np.log(ratio).mean() / v - typical) < 5 * np.log(ratio).std() / 1000 / v
    assert abs(math.log(ratio.mean()) / v - mean) < 5 * ratio.std() / ratio.mean() / 1000 / v


@pytest.mark.parametrize(("d", "v", "name"), [(2, 0.1, "d"), (4, 0.0, "v")])
def test_layers_near_collapse_refuse(d, v, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        layer_collapse_rates(d, v)
