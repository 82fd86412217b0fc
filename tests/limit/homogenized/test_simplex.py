"""Reference values: section 13 and section 7 of the project's specification 01-homogenized."""

import math
from importlib import import_module

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.overlap_curve import deficit_curve, layer_map_curve, overlap_curve, simplex_layer
from pathlines.limit.homogenized.participation import mean_participation
from pathlines.limit.homogenized.simplex import simplex_table

oc = import_module("pathlines.limit.homogenized.overlap_curve")  # the room's name of it is the function

TIMES = np.array([1.0, 2.0, 4.0, 6.0, 8.0])
ODE = {
    (16, 2, math.inf): [0.091182829, 0.259482621, 0.736801854, 0.954598676, 0.993620740],
    (16, 2, 128): [0.089103880, 0.252108045, 0.721579431, 0.949048196, 0.992467094],
    (128, 4, math.inf): [0.010885678, 0.031215981, 0.135825717, 0.425344806, 0.824819268],
    (128, 4, 128): [0.010639093, 0.030256529, 0.129314690, 0.401469056, 0.800332263],
    (32, 1, math.inf): [0.050601080, 0.164414479, 0.621334809, 0.924921391, 0.989157306],
    (32, 1, 128): [0.049406039, 0.159326953, 0.604461001, 0.916630206, 0.987302455],
}
LAYERS = {
    (16, 2, "post"): [0.073905425, 0.202310402, 0.615463224, 0.906297923, 0.983031254],
    (16, 2, "pre"): [0.065392158, 0.147282423, 0.328411601, 0.487440583, 0.605306537],
    (32, 1, "post"): [0.042356085, 0.130869861, 0.508335712, 0.863020374, 0.974162920],
    (32, 1, "pre"): [0.040858381, 0.116133350, 0.361745064, 0.588055014, 0.722355015],
}
LONG_STEPS = {
    "post": [0.015041333, 0.043396769, 0.094821647, 0.181824449, 0.312916799, 0.479228005],
    "pre": [0.015041333, 0.042388795, 0.089071533, 0.161504194, 0.259832852, 0.373268820],
}


@pytest.mark.parametrize(("n", "b"), [(16, 0.3), (2, 3.0), (128, 4.0), (10_000, 8.0), (2, math.inf), (1024, math.inf)])
def test_table_vs_direct_evaluation(n, b):
    table = simplex_table(n, b)
    assert table.resolution < 1e-10
    for gamma in (-0.93 / (n - 1), 0.0, 0.0123, 0.31, 0.77, 1 - 1e-3, 1 - 1e-6, 1.0):
        f, g = mean_participation(n, b, gamma)
        assert table.f(gamma) == pytest.approx(f, rel=3e-11)
        assert table.g(gamma) == pytest.approx(g, rel=3e-11)


def test_table_of_narrow_heads():
    table = simplex_table(64, 1.0, 64)
    for gamma in (-0.005, 0.2, 0.9):
        np.testing.assert_allclose((table.f(gamma), table.g(gamma)), mean_participation(64, 1.0, gamma, 64), rtol=1e-7)


def test_table_interpolates_arrays_and_its_own_nodes():
    table = simplex_table(16, 2.0)
    gammas = np.linspace(table.low, table.high, 7)[1:-1].reshape(1, 5)
    assert table.f(gammas).shape == (1, 5)
    np.testing.assert_allclose(table.g(gammas)[0], [table.g(x) for x in gammas[0]], rtol=1e-14)
    assert table.g(1.0) == 1 / 16


def test_tables_are_kept():
    assert simplex_table(16, 2.0) is simplex_table(16, 2)


def test_drift_in_its_three_forms():
    table = simplex_table(16, 2.0)
    gamma, d = np.array([-0.05, 0.0, 0.4, 0.99]), 40
    own, pair = table.attended(gamma)
    f, g = table.f(gamma), table.g(gamma)
    np.testing.assert_allclose(table.drift(gamma), pair - gamma * own, atol=1e-14)
    np.testing.assert_allclose(table.drift(gamma), (1 - gamma) * (gamma * (1 - f) + g), rtol=1e-13)
    finite = (d - 2 + gamma**2) / d * pair - (d - 1) / d * gamma * own
    np.testing.assert_allclose(table.drift(gamma, d), finite, atol=1e-14)
    at_zero = table.drift(0.0, d) - table.drift(0.0)
    assert at_zero == pytest.approx(-2 * table.g(0.0) / d, rel=1e-12)


def test_late_drift_is_the_mean_rate_of_near_collapse():
    table = simplex_table(32, 3.0)
    for d in (5, 100, math.inf):
        expected = 1.0 if math.isinf(d) else (d - 3) / d
        assert table.closing_rate(1e-9, d) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("n", "b", "d"), list(ODE))
def test_overlap_curve_vs_specification(n, b, d):
    np.testing.assert_allclose(overlap_curve(TIMES, n, b, d=d), ODE[n, b, d], rtol=0, atol=6e-10)


@pytest.mark.parametrize(
    ("n", "b", "d", "gamma0"), [(8, 3.0, math.inf, 0.2), (64, 6.0, 20, -0.01), (32, math.inf, 50, 0.0)]
)
def test_overlap_curve_vs_runge_kutta_in_the_overlap(n, b, d, gamma0):
    table = simplex_table(n, b)
    flow = solve_ivp(lambda _, x: table.drift(x, d), (0, 8), [gamma0], "DOP853", TIMES, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(overlap_curve(TIMES, n, b, d=d, gamma0=gamma0), flow.y[0], rtol=1e-9)


def test_long_slow_curves_vs_runge_kutta():
    """Many keys and large logits, where the pace dτ/ds varies most."""
    table, times = simplex_table(8192, 8.0), np.array([10.0, 15.0, 17.0, 22.0])
    flow = solve_ivp(lambda _, x: table.drift(x), (0, 22), [0.0], "DOP853", times, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(overlap_curve(times, 8192, 8.0), flow.y[0], rtol=1e-9)


def test_overlap_curve_without_logits_is_logistic():
    times, n = np.array([0.0, 1e-9, 0.5, 3.0, 20.0]), 12
    exact = np.expm1(times) / (n - 1 + np.exp(times))
    np.testing.assert_allclose(overlap_curve(times, n, 0.0), exact, rtol=1e-13, atol=1e-17)
    np.testing.assert_allclose(deficit_curve(times, n, 0.0), n / (n - 1 + np.exp(times)), rtol=1e-13)


def test_a_time_does_not_depend_on_the_others():
    """Fewer panels serve shorter times."""
    together = overlap_curve([0.3, 2.0, 50.0], 64, 3.0, d=40)
    np.testing.assert_allclose(together, [overlap_curve(t, 64, 3.0, d=40) for t in (0.3, 2.0, 50.0)], rtol=1e-14)


def test_deficits_keep_their_digits_near_collapse():
    late = deficit_curve(np.array([40.0, 41.0]), 16, 2.0)
    assert late[0] < 1e-14
    assert late[1] / late[0] == pytest.approx(math.exp(-1), rel=1e-12)
    slower = deficit_curve(np.array([60.0, 61.0]), 16, 2.0, d=10)
    assert slower[1] / slower[0] == pytest.approx(math.exp(-0.7), rel=1e-10)


@pytest.mark.parametrize("b", [2.0, math.inf])
def test_times_far_beyond_collapse(b):
    times = np.array([90.0, 91.0, 600.0, 601.0])
    late = deficit_curve(times, 16, b)
    np.testing.assert_allclose(late[1::2] / late[::2], math.exp(-1), rtol=1e-9)
    assert late[2] == pytest.approx(late[0] * math.exp(-510), rel=1e-9)


def test_curve_stops_where_few_dimensions_stop_the_drift():
    n, b, d = 1024, 30.0, 5
    table = simplex_table(n, b)
    values = overlap_curve(np.array([0.0, 10.0, 1000.0, 10.0]), n, b, d=d)
    assert values[0] == 0.0
    assert values[1] == values[3]
    assert abs(table.drift(values[2], d)) < 1e-12
    assert 0 < values[1] < values[2] < 0.1


def test_a_drift_that_rises_is_integrated_equally_both_ways():
    table, start = simplex_table(16, 2.0), oc.progress(0.1, 16)
    runge_kutta = oc._integrated(table, start, 9, TIMES)
    np.testing.assert_allclose(oc.Passage(table, start, 8.0, 9).progress_at(TIMES), runge_kutta, rtol=1e-10)


@pytest.mark.parametrize(("n", "b", "norm"), list(LAYERS))
def test_layer_map_vs_specification(n, b, norm):
    curve = layer_map_curve(32, n, b, 0.25, norm=norm)
    np.testing.assert_allclose(curve.overlap[[4, 8, 16, 24, 32]], LAYERS[n, b, norm], rtol=0, atol=6e-10)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layer_map_of_long_steps_vs_specification(norm):
    np.testing.assert_allclose(layer_map_curve(6, 64, 1, 1.0, norm=norm).overlap[1:], LONG_STEPS[norm], atol=6e-10)


def test_layer_map_tends_to_the_ode():
    """Halving v at equal τ = 2 halves the distance, with and without the finite-d factors."""
    for d in (math.inf, 30):
        exact = overlap_curve(2.0, 16, 2.0, d=d)
        gaps = [layer_map_curve(k, 16, 2.0, 2.0 / k, d=d).overlap[-1] - exact for k in (100, 200, 400)]
        np.testing.assert_allclose(np.array(gaps[:-1]) / gaps[1:], 2.0, rtol=0.02)


def test_layer_map_conserves_the_products_of_the_mean():
    """r²γ and r² both grow by what the branch adds, so P and S can be read off two layers."""
    table = simplex_table(20, 1.5)
    gamma, power = simplex_layer(table, 0.3, 2.0, 0.7)
    own, pair = table.attended(0.3)
    assert power == pytest.approx(2.0 + 0.7 * own, rel=1e-15)
    assert power * gamma == pytest.approx(2.0 * 0.3 + 0.7 * pair, rel=1e-14)


def test_late_layers():
    """Post: 1-γ falls by 1/(1+v) a layer. Pre: r² grows by a a layer and (1-γ) like 1/ℓ."""
    post = layer_map_curve(80, 16, 1.0, 0.5)
    assert (1 - post.overlap[60]) / (1 - post.overlap[59]) == pytest.approx(1 / 1.5, rel=1e-6)
    pre = layer_map_curve(4000, 16, 1.0, 0.5, norm="pre")
    assert np.diff(pre.power)[-1] == pytest.approx(0.5, rel=1e-2)
    assert (1 - pre.overlap[2000]) / (1 - pre.overlap[4000]) == pytest.approx(2.0, rel=0.02)


def test_layers_beyond_collapse_stay_there():
    late = layer_map_curve(300, 5, 3.0, 2.0).overlap[-100:]
    assert np.all((late > 1 - 1e-15) & (late <= 1))
    assert np.all(layer_map_curve(3, 5, 3.0, 2.0, gamma0=1.0).overlap == 1.0)


def test_gpt2_like_and_bert_like_networks():
    """Attention branches at initialisation (section 7): d = 768, weights of standard deviation 0.02, b = dσ²."""
    b, sigma = 768 * 0.02**2, 0.02
    a = 768**2 * sigma**2 * sigma**2 / 24
    gpt = layer_map_curve(12, 1024, b, a, norm="pre", r0=math.sqrt(8e-4))
    expected = [0.004775, 0.031962, 0.162858, 0.499428, 0.878877, 0.972111]
    np.testing.assert_allclose(gpt.overlap[[1, 2, 3, 4, 6, 12]], expected, rtol=0, atol=6e-7)
    bert = layer_map_curve(12, 512, b, 768**2 * sigma**4)
    assert bert.overlap[12] == pytest.approx(0.003796, abs=6e-7)


def test_random_transformer_maps():
    """Maps quoted beside simulations in section 7: n = 64, p = 16, powers 0.16 and 1."""
    at = [8, 16, 24, 32]
    post = layer_map_curve(32, 64, 1.0, 0.16, p=16).overlap
    np.testing.assert_allclose(post[at], [0.035, 0.133, 0.348, 0.641], atol=6e-4)
    finite = layer_map_curve(32, 64, 1.0, 0.16, p=16, d=128).overlap
    np.testing.assert_allclose(finite[at], [0.034, 0.128, 0.335, 0.622], atol=6e-4)
    pre = layer_map_curve(32, 64, 1.0, 0.16, p=16, norm="pre").overlap
    np.testing.assert_allclose(pre[at], [0.034, 0.116, 0.263, 0.436], atol=6e-4)
    fast = layer_map_curve(12, 64, 1.0, 1.0, p=16).overlap
    np.testing.assert_allclose(fast[[4, 8, 12]], [0.185, 0.791, 0.984], atol=6e-4)
    wide = layer_map_curve(32, 64, 3.0, 1.0, norm="pre").overlap
    np.testing.assert_allclose(wide[at], [0.163, 0.398, 0.585, 0.704], atol=6e-4)


@pytest.mark.slow
def test_random_transformer_map_at_large_logits():
    """As above with b = 3; the quoted 0.688 and 0.783 are 4e-4 and 6e-4 low, so a unit of the last digit is allowed."""
    curve = layer_map_curve(32, 64, 3.0, 1.0, p=16, norm="pre").overlap
    np.testing.assert_allclose(curve[[8, 16, 24, 32]], [0.231, 0.513, 0.688, 0.783], atol=1.1e-3)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"n": 1}, "n"),
        ({"b": -1.0}, "b"),
        ({"p": 0}, "p"),
        ({"d": 1}, "d"),
        ({"gamma0": -0.2}, "gamma0"),
        ({"gamma0": 1.0}, "gamma0"),
        ({"times": [-1.0]}, "times"),
    ],
)
def test_bad_arguments_of_curves(arguments, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        overlap_curve(**{"times": [1.0], "n": 6, "b": 0.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"norm": "peri"}, "norm"), ({"v": 0.0}, "v"), ({"layers": 0}, "layers"), ({"norm": "pre", "r0": 0.0}, "r0")],
)
def test_bad_arguments_of_layers(arguments, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        layer_map_curve(**{"layers": 2, "n": 6, "b": 0.0, "v": 0.1, **arguments})


def test_table_outside_its_range():
    with pytest.raises(ArgumentError, match="`gamma`"):
        simplex_table(6, 0.0).f(-0.21)
