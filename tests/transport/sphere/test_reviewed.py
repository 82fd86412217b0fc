"""What an independent derivation found wrong: groups of unequal weights, near tokens, prompts about the origin."""

import numpy as np
import pytest
from scipy.optimize import brentq

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.collinear import break_collinear
from pathlines.transport.sphere.disentangle import merged
from pathlines.transport.sphere.gate import gate, gate_flow_and_jacobian
from pathlines.transport.sphere.grouping import grouping
from pathlines.transport.sphere.mean_attention import boosted
from pathlines.transport.sphere.measure import Measure


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def test_repeated_tokens_are_grouped_by_weight():
    x = unit(np.random.default_rng(0).standard_normal((5, 3)))
    found = pl.MeasureInterpolator().fit([x[[0, 0, 1, 2]]], [x[[3, 3, 4, 4]]])
    assert max(found.report_["w2"]) < 1e-5


@pytest.mark.parametrize("seed", range(20))
def test_exact_groups_of_unequal_weights_are_found(seed):
    rng = np.random.default_rng(seed)
    x, y = unit(rng.standard_normal((4, 3))), unit(rng.standard_normal((2, 3)))
    found = grouping(Measure(x, np.array([0.1, 0.2, 0.3, 0.4])), Measure(y, np.array([0.5, 0.5])))
    assert found.residual == 0
    assert np.allclose(np.bincount(found.to, [0.1, 0.2, 0.3, 0.4]), 0.5)


def test_groups_are_exact_after_attention_too():
    rng = np.random.default_rng(152)
    shared, weights = unit(rng.standard_normal((2, 3))), np.array([0.1, 0.2, 0.3, 0.4])
    inputs = [(np.vstack([shared, unit(rng.standard_normal((2, 3)))]), weights) for _ in range(2)]
    targets = [(unit(rng.standard_normal((2, 3))), np.array([0.5, 0.5])) for _ in range(2)]
    found = pl.MeasureInterpolator(error=1e-5).fit(inputs, targets)
    assert max(found.report_["w2"]) < 1e-4


@pytest.mark.parametrize("gap", [0.009, 0.002])
def test_near_tokens_are_matched_as_they_are(gap):
    e = np.eye(4)
    found = pl.MeasureInterpolator().fit([[e[0], np.cos(gap) * e[0] + np.sin(gap) * e[1]]], [[-e[2], -e[3]]])
    assert max(found.report_["w2"]) < 1e-9


def test_barycentres_that_stay_collinear_are_refused():
    e = np.eye(3)
    prompts = [Measure(np.vstack([e[:k], -e[:k]]), np.full(2 * k, 0.5 / k)) for k in (1, 3)]
    with pytest.raises(ArgumentError, match="collinear barycentres that no ball breaks"):
        break_collinear(prompts)


def test_long_boosts_do_not_overflow():
    x = unit(np.random.default_rng(3).standard_normal((5, 4)))
    axis = np.eye(4)[0]
    moved, log_det = boosted(x, axis, 800.0)
    assert np.allclose(moved, axis)
    assert np.allclose(log_det, -3 * (800 + np.log((1 + x[:, 0]) / 2)))


@pytest.mark.parametrize(("time", "exact"), [(60.0, -28.951), (70.0, -33.51), (80.0, -38.07), (200.0, -92.75)])
def test_volumes_next_to_the_rim(time, exact):
    """Values of the formula in many digits."""
    piece = gate(np.eye(3)[2], -0.2, unit(np.array([1.0, 0.0, -0.3])), time)
    x = unit(np.array([[0.2, 0.5, 0.8]]))
    assert gate_flow_and_jacobian(piece, x)[1][0] == pytest.approx(exact, abs=0.006)


def test_volumes_are_continuous_where_the_rule_changes():
    """Second differences in time die away: no jump where ln g is followed instead of computed."""
    times = np.linspace(5.0, 60.0, 400)
    x = unit(np.array([[0.2, 0.5, 0.8]]))
    pieces = [gate(np.eye(3)[2], -0.2, unit(np.array([1.0, 0.0, -0.3])), t) for t in times]
    values = np.array([gate_flow_and_jacobian(p, x)[1][0] for p in pieces])
    bends = np.diff(values, 2)[60:]
    assert np.all(np.abs(bends[1:]) < np.abs(bends[:-1]) + 1e-9)


def test_means_on_one_line_are_enough():
    """Prompts about the origin that share ±e₁: one mean stays there, the other is moved away from it."""
    e, rng = np.eye(3), np.random.default_rng(0)
    inputs = [np.array([e[0], -e[0]]), np.array([e[0], -e[0], e[1], -e[1]])]
    targets = [unit(rng.standard_normal((n, 3))) for n in (2, 4)]
    found = pl.MeasureInterpolator().fit(inputs, targets)
    assert max(pl.verify_schedule(found.schedule_, inputs, targets).w2) < 1e-9


def test_tokens_given_twice_are_one_wherever_rounding_puts_them():
    p = np.array([0.5 + 5e-13, np.sqrt(0.75), 0.0])
    rounded = np.array([p, p + np.array([1e-15, 0, 0]), p - np.array([1e-15, 0, 0]), [0, 0, 1]])
    found = merged(Measure(rounded, np.full(4, 0.25)))
    np.testing.assert_allclose(found.weights, [0.75, 0.25])
    np.testing.assert_array_equal(found.points, rounded[[0, 3]])


def test_every_input_has_its_row_in_the_report():
    rng = np.random.default_rng(1)
    x, y, u, v = (unit(rng.standard_normal((3, 3))) for _ in range(4))
    found = pl.MeasureInterpolator().fit([x, u, x], [y, v, y])
    assert len(found.report_["w2"]) == len(found.report_["residual_w2"]) == 3
    assert found.report_["w2"][0] == found.report_["w2"][2]


def test_equal_targets_of_different_inputs_are_refused():
    rng = np.random.default_rng(1)
    x, y, u = (unit(rng.standard_normal((3, 3))) for _ in range(3))
    with pytest.raises(ArgumentError, match="`targets` 0 and 1 are equal and their inputs are not"):
        pl.MeasureInterpolator().fit([x, u], [y, y[::-1]])


def test_a_cap_may_be_the_whole_sphere():
    """c' = (c + 1)²(1 - c): ∫dc/c' = ½(½ ln((1 + c)/(1 - c)) - 1/(1 + c)), inverted by bisection in one line each."""
    x, w = np.polynomial.legendre.leggauss(400)
    clock = lambda c: 0.25 * np.log((1 + c) / (1 - c)) - 0.5 / (1 + c)  # noqa: E731
    ends = [brentq(lambda c, c0=c0: clock(c) - clock(c0) - 1.0, c0, 1 - 1e-15, xtol=1e-15) for c0 in x]
    expected = np.sqrt(w @ (1 - np.array(ends)))
    np.testing.assert_allclose(pl.limit.transport.cap_distance([1.0], np.pi), expected, rtol=1e-9)
    np.testing.assert_allclose(pl.limit.transport.cap_distance([1.0], np.pi - 1e-7), expected, rtol=1e-6)
