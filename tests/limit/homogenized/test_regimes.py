import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized import regimes as rg


@pytest.mark.parametrize(
    ("a", "c", "label"),
    [
        # the six of claim C23 of the specification
        (1.2, 0.5, "static"),
        (0.6, 0.6, "ode1"),
        (0.45, 0.7, "ode2"),
        (0.5, 0.5, "sde"),
        (0.4, 0.5, "failure"),
        (0.3, 0.9, "failure"),
        # on the boundaries
        (1.0, 0.5, "ode1"),
        (0.5, 0.7, "ode2"),
        (1 / 3, 5.0, "failure"),
        (0.7, 0.3, "sde"),
        (0.9, 0.1, "sde"),
        (1.2, -0.2, "sde"),
        (1.2, -0.3, "failure"),
    ],
)
def test_asymptotic_labels(a, c, label):
    assert rg.asymptotic_regime(a, c) == label


def test_finite_labels_become_the_asymptotic_ones_as_depth_grows():
    """At L = 1e100 a power L^{-x}, x ≥ 0.02, is below any ε; on the line a+c = 1 the noise stays of order one."""
    depth = 1e100
    for a in (0.2, 0.32, 0.36, 0.45, 0.55, 0.8, 0.95, 1.1):
        for c in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9):
            if abs(a + c - 1) > 0.02:
                found = rg.regime(depth**-a, depth**-c, depth)
                assert found.label == rg.asymptotic_regime(a, c), (a, c)
        if 1 / 3 < a < 1:
            assert rg.regime(depth**-a, depth ** (a - 1), depth).label == "sde"


def test_numbers_and_conditions_are_those_of_the_definition():
    found = rg.regime(0.05, 0.02, 200)
    assert found.numbers == pytest.approx({"ηL": 10.0, "αηL": 0.2, "η²L": 0.5, "η³L": 0.025})
    assert found.label == "sde"
    assert found.conditions["η³L small"]
    assert not found.conditions["η²L small"]
    assert not found.conditions["αηL small"]
    assert found.conditions["αηL bounded"]
    assert "0.2" in found.reason
    assert any("η³L = 0.025" in line for line in found.lines())


def test_each_label_once():
    assert rg.regime(1e-4, 1e-4, 100).label == "static"
    assert rg.regime(1e-3, 1e-4, 1e4).label == "ode1"
    assert rg.regime(1e-2, 1e-4, 1e4).label == "ode2"
    assert rg.regime(1e-2, 1e-2, 1e4).label == "sde"
    assert rg.regime(1e-1, 1e-6, 1e4).label == "failure"
    assert "coarse" in rg.regime(1e-1, 1e-6, 1e4).reason
    assert rg.regime(1e-2, 1.0, 1e4).label == "failure"
    assert "noise" in rg.regime(1e-2, 1.0, 1e4).reason
    assert {*rg.LIMITS} == {*rg.LABELS}


def test_thresholds_move_the_label():
    assert rg.regime(0.05, 0.02, 200, epsilon=0.6).label == "ode1"
    assert rg.regime(0.05, 0.02, 200, epsilon=0.01).label == "failure"
    assert rg.regime(1e-2, 1.0, 1e4, bound=200).label == "sde"


def test_centred_weights_never_fail_for_small_layers():
    """η = 0.3, H = 16: η³L = 2.7 would be a failure; v = 0.006 is small, so the SDE holds at fixed τ."""
    eta, heads, depth = 0.3, 16, 100
    alpha = eta / heads
    assert rg.regime(eta, alpha, depth).label == "failure"
    centred = rg.regime(eta, alpha, depth, centred=True)
    assert centred.label == "sde"
    assert centred.conditions["v small"]
    assert "O(v)" in centred.reason
    assert rg.regime(1.0, 1.0, 10, centred=True).label == "failure"
    # the ODEs do not move centred weights
    assert rg.regime(1e-3, 1e-4, 1e4, centred=True).label == "static"


def test_boundaries_are_where_the_numbers_are_one():
    depth = 1000.0
    lines = rg.step_boundaries(depth)
    assert lines["static"] * depth == pytest.approx(1)
    assert lines["ode1"] ** 2 * depth == pytest.approx(1)
    assert lines["ode2"] ** 3 * depth == pytest.approx(1)
    eta = np.array([1e-3, 1e-2, 0.1])
    np.testing.assert_allclose(rg.noise_boundary(eta, depth) * eta * depth, 1)
    for name, value in lines.items():
        a, c = rg.exponents(value, rg.noise_boundary(value, depth), depth)
        assert a == pytest.approx(rg.EXPONENT_BOUNDARIES[name])
        assert a + c == pytest.approx(1)


def test_reachable_is_at_least_one_head():
    """α = η/H with ς = 1 and H heads: reachable exactly when H ≥ 1, and heads_needed gives H back."""
    depth, eta = 1000.0, 0.05
    for heads in (1, 4, 64):
        a, c = rg.exponents(eta, eta / heads, depth)
        assert rg.reachable(a, c)
        assert rg.heads_needed(a, c, depth) == pytest.approx(heads)
        assert eta / heads <= rg.largest_noise(eta)
    a, c = rg.exponents(eta, 2 * eta, depth)
    assert not rg.reachable(a, c)
    with pytest.raises(ArgumentError, match="`c` must be ≥ a"):
        rg.heads_needed(a, c, depth)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rg.regime(0.0, 0.1, 10), "`eta` must be a finite number > 0"),
        (lambda: rg.regime(0.1, -0.1, 10), "`alpha` must be a finite number ≥ 0"),
        (lambda: rg.regime(0.1, 0.1, 0), "`layers` must be a finite number > 0"),
        (lambda: rg.regime(0.1, 0.1, 10, epsilon=0), "`epsilon` must be a finite number > 0"),
        (lambda: rg.regime(0.1, 0.1, 10, bound=0.01), "`bound` must be a finite number ≥ 0.1"),
        (lambda: rg.asymptotic_regime(np.nan, 1), "`a` must be a finite number"),
        (lambda: rg.step_boundaries(1), "`layers` must be a finite number > 1"),
        (lambda: rg.exponents(0.1, 0.0, 10), "`alpha` must be > 0"),
        (lambda: rg.noise_boundary([0.1, 0.0], 10), "`eta` must be > 0"),
        (lambda: rg.largest_noise(0.1, 0.0), "`variance_proxy` must be a finite number > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
