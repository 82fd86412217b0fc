import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import schemes as sc
from pathlines.limit.clustering.equiangular import deficit_at
from references import clustering as ref

from .particles import equiangular_tokens, integrate_field, scheme_field, scheme_layer

SETTING = {"n": 10, "beta": 2.0, "start": 0.05, "magnitude": 1.3, "alpha": 0.7, "switch": 1.0}


@pytest.mark.parametrize("scheme", sc.SCHEMES)
@pytest.mark.parametrize("column", [0, 1])
def test_state_table(scheme, column):
    n, beta, start = ref.SCHEME_SETTINGS[column]
    deficit, magnitude = sc.reduced_trajectory(scheme, ref.SCHEME_TIMES, n, beta, start)
    expected = np.array(ref.SCHEME_STATES[scheme][column])
    np.testing.assert_allclose(deficit, expected[:, 0], rtol=6e-12)
    np.testing.assert_allclose(magnitude, expected[:, 1], rtol=6e-12)


def test_terminal_constant_table():
    for (n, beta, start), value in zip(ref.SCHEME_SETTINGS, ref.TERMINAL_CONSTANTS, strict=True):
        assert sc.terminal_constant(n, beta, start) == pytest.approx(value, rel=4e-13)
    assert sc.terminal_constant(10, 2.0, 0.05, 1.3) == pytest.approx(ref.TERMINAL_CONSTANT_CL09, rel=2e-10)


@pytest.mark.parametrize("scheme", sc.SCHEMES)
def test_trajectory_vs_particles(scheme):
    s = SETTING
    times = np.array([0.5, 1.0, 3.0, 6.0])
    start = np.column_stack([equiangular_tokens(s["n"], s["start"]), np.full(s["n"], s["magnitude"])])

    def field(t, state):
        move, growth = scheme_field(scheme, t, state[:, :-1], state[:, -1], s["beta"], s["alpha"], s["switch"])
        return np.column_stack([move, growth])

    states = integrate_field(field, start, times)
    gram = states[:, 0, :-1] @ states[:, 1, :-1].T
    deficit, magnitude = sc.reduced_trajectory(scheme, times, **s)
    np.testing.assert_allclose(deficit, 1 - np.diag(gram), atol=1e-10)
    np.testing.assert_allclose(magnitude, states[:, 0, -1], rtol=1e-10)


@pytest.mark.parametrize("scheme", sc.SCHEMES)
def test_rates_are_the_slopes_of_the_trajectory(scheme):
    s = SETTING
    t, h = np.array([0.3, 2.0, 5.0]), 1e-4
    after, before = (np.array(sc.reduced_trajectory(scheme, t + e, **s)) for e in (h, -h))
    deficit, magnitude = sc.reduced_trajectory(scheme, t, **s)
    rate, growth = sc.reduced_rates(scheme, deficit, magnitude, s["n"], s["beta"], t, s["alpha"], s["switch"])
    np.testing.assert_allclose(-(after[0] - before[0]) / (2 * h), rate, rtol=1e-6)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), growth, rtol=1e-6, atol=1e-10)


def test_orbit_integral_vs_quadrature():
    for n, beta, start, rho in ((10, 2.0, 0.05, 0.9), (64, 5.0, 0.0, 1.0), (3, 1e-6, -0.3, 0.5), (50, 9.0, 0.3, 0.31)):
        with mp.workdps(30):
            kernel = lambda x: mp.expm1(beta * (1 - x)) / ((1 - x) * (1 + (n - 1) * x))  # noqa: B023, E731
            exact = mp.quad(kernel, mp.linspace(mp.mpf(start), mp.mpf(rho), 5))
            assert abs(mp.mpf(float(sc.orbit_integral(rho, n, beta, start))) / exact - 1) < 2e-14


def test_magnitude_on_orbit_vs_both_trajectories():
    for scheme in ("pre", "peri"):
        deficit, magnitude = sc.reduced_trajectory(scheme, [0.3, 2.0, 30.0], 12, 3.0, 0.1, 0.6)
        np.testing.assert_allclose(sc.magnitude_on_orbit(1 - deficit, 12, 3.0, 0.1, 0.6), magnitude, rtol=1e-12)


def test_pre_and_peri_reach_the_terminal_constant():
    for scheme in ("pre", "peri"):
        deficit, magnitude = sc.reduced_trajectory(scheme, [1e3, 1e4, 1e6], 10, 2.0, 0.05, 1.3)
        miss = np.abs(magnitude**2 * deficit / sc.terminal_constant(10, 2.0, 0.05, 1.3) - 1)
        assert np.all(miss < [1e-6, 1e-8, 1e-11])
        # t²(1-ρ) converges like 1/t only
        assert 1e6**2 * deficit[2] / sc.terminal_constant(10, 2.0, 0.05, 1.3) == pytest.approx(1, abs=1e-4)


def test_pre_at_beta_zero_conserves_the_differences():
    deficit, magnitude = sc.reduced_trajectory("pre", np.geomspace(0.01, 1e8, 9), 7, 0.0, 0.2, 1.7)
    np.testing.assert_allclose(magnitude**2 * deficit, 1.7**2 * 0.8, rtol=1e-12)


def test_sqrt_is_post_at_the_square_root_time():
    t = np.array([1e-9, 0.5, 8.0, 1e4])
    np.testing.assert_allclose(
        sc.reduced_trajectory("sqrt", t, 9, 3.0)[0], deficit_at(2 * (np.sqrt(t + 1) - 1), 9, 3.0), rtol=1e-6
    )
    # and at small t, where √(t+1)-1 loses its digits, the early expansion
    rate = sc.reduced_rates("post", 1.0, 1.0, 9, 3.0)[0]
    assert 1 - sc.reduced_trajectory("sqrt", 1e-9, 9, 3.0)[0] == pytest.approx(1e-9 * rate, rel=1e-6)


def test_initial_speeds_at_beta_zero():
    n = 25
    rates = {s: sc.reduced_rates(s, 1.0, 1.0, n, 0.0)[0] for s in sc.SCHEMES}
    for scheme in ("post", "pre", "mix", "sqrt"):
        assert rates[scheme] == pytest.approx(2 / n, rel=1e-14)
    for scheme in ("peri", "ngpt"):
        assert rates[scheme] == pytest.approx(2 / np.sqrt(n), rel=1e-14)


def test_mix_switches_continuously_even_from_deep_collapse():
    n, beta, switch = 12, 1.0, 40.0
    deficit, magnitude = sc.reduced_trajectory("mix", [switch, switch + 1e-9, switch + 10], n, beta, switch=switch)
    assert deficit[0] == deficit_at(switch, n, beta)
    assert deficit[1] == pytest.approx(deficit[0], rel=1e-8)
    # afterwards r² (1-ρ) is conserved up to (1-ρ)·β/n, and r grows at rate 1
    assert magnitude[2] == pytest.approx(11.0, rel=1e-12)
    assert deficit[2] == pytest.approx(deficit[0] / 121, rel=1e-12)


@pytest.mark.parametrize("scheme", sc.SCHEMES)
@pytest.mark.parametrize(("n", "beta", "start"), [(10, 2.0, 0.05), (64, 5.0, 0.0), (4, 0.0, -0.3)])
def test_time_to_deficit_inverts_the_trajectory(scheme, n, beta, start):
    times = np.array([0.1, 1.0, 4.0, 12.0])
    deficit, _ = sc.reduced_trajectory(scheme, times, n, beta, start, 0.8, 0.7, 1.5)
    found = sc.time_to_deficit_scheme(scheme, deficit, n, beta, start, 0.8, 0.7, 1.5)
    # where 1-ρ has hardly moved, its last digit is worth 1e-16/rate of time
    rate = np.abs(np.gradient(deficit, times)).min()
    np.testing.assert_allclose(found, times, rtol=2e-13, atol=4e-16 / rate)
    assert sc.time_to_deficit_scheme(scheme, 0.0, n, beta, start) == np.inf


@pytest.mark.parametrize("scheme", sc.SCHEMES)
def test_layers_vs_particles(scheme):
    n, beta, eta, alpha, switch = 9, 1.7, 0.3, 0.8, 1.0
    theta, r = equiangular_tokens(n, 0.1), np.full(n, 1.4)
    deficit, magnitude = np.float64(0.9), np.float64(1.4)
    for layer in range(7):
        theta, r = scheme_layer(scheme, layer * eta, theta, r, beta, eta, alpha, switch)
        deficit, magnitude = sc.layer_map(scheme, deficit, magnitude, n, beta, eta, layer * eta, alpha, switch)
        assert 1 - deficit == pytest.approx(theta[0] @ theta[1], abs=5e-15)
        assert magnitude == pytest.approx(r[0], rel=5e-15)


@pytest.mark.parametrize("scheme", ["post", "pre", "peri", "ngpt"])
def test_layer_map_keeps_a_tiny_deficit_precise(scheme):
    """Against the textbook formula for ρ₊, at 120 digits."""
    n, beta, eta, alpha, y, r = 16, 3.0, 0.2, 0.6, 1e-40, 2.5
    with mp.workdps(120):
        rho = 1 - mp.mpf(y)
        b = 1 / (mp.exp(beta * mp.mpf(y)) + n - 1)
        a = 1 - (n - 1) * b
        s1 = 1 + (n - 1) * rho
        h, q = a + (n - 1) * b * rho, a * rho + b + (n - 2) * b * rho
        m2 = a * a + 2 * a * (n - 1) * b * rho + b * b * (n - 1) * (1 + (n - 2) * rho)
        cross = (a - b) ** 2 * rho + 2 * (a - b) * b * s1 + b * b * n * s1
        if scheme in ("peri", "ngpt"):
            h, q, cross, m2 = h / mp.sqrt(m2), q / mp.sqrt(m2), cross / m2, mp.mpf(1)
        eta_, alpha_ = mp.mpf(eta), mp.mpf(alpha)
        c0, c1 = {"post": (1, eta_), "ngpt": (1 - alpha_ * eta_, alpha_ * eta_)}.get(scheme, (mp.mpf(r), eta_))
        size2 = c0**2 + 2 * c0 * c1 * h + c1**2 * m2
        expected = 1 - (c0**2 * rho + 2 * c0 * c1 * q + c1**2 * cross) / size2
        found, size = sc.layer_map(scheme, y, r, n, beta, eta, alpha=alpha)
        assert abs(mp.mpf(float(found)) / expected - 1) < 3e-15
        if scheme in ("pre", "peri"):
            assert abs(mp.mpf(float(size)) / mp.sqrt(size2) - 1) < 3e-15


def test_layer_depths_of_the_specification():
    for beta, depth in ref.LAYER_DEPTHS.items():
        found = sc.layers_to_deficit("post", 32, beta, 0.1, 1e-3)
        assert found.time == pytest.approx(depth, abs=0.06 if depth > 100 else 6e-4)
        assert found.layers == np.ceil(found.time / 0.1)


@pytest.mark.parametrize("scheme", sc.SCHEMES)
def test_thin_layers_need_the_continuous_time(scheme):
    exact = sc.time_to_deficit_scheme(scheme, 0.2, 8, 1.0, 0.1, 1.2, 0.9, 0.4)
    coarse, fine = (
        sc.layers_to_deficit(scheme, 8, 1.0, eta, 0.2, 0.1, 1.2, 0.9, 0.4).time - exact for eta in (4e-3, 2e-3)
    )
    # first order in η; Mix-LN rounds its switch to a whole layer, so only its size is checked
    assert abs(fine) < 5e-3
    if scheme != "mix":
        assert coarse / fine == pytest.approx(2, abs=0.05)


def test_too_few_layers():
    assert sc.layers_to_deficit("post", 8, 1.0, 0.1, 1e-6, max_layers=5) == (None, np.inf)
    assert sc.layers_to_deficit("post", 8, 1.0, 0.1, 1.0) == (0, 0.0)


def test_simplex_is_stationary():
    times = np.array([0.0, 1.0, 7.0])
    for scheme in sc.SCHEMES:
        for beta in (0.0, 1.5):
            deficit, magnitude = sc.reduced_trajectory(scheme, times, 4, beta, -1 / 3, switch=1.0)
            np.testing.assert_array_equal(deficit, 4 / 3)
            rate, growth = sc.reduced_rates(scheme, 4 / 3, 1.0, 4, beta, time=5.0)
            assert rate == pytest.approx(0, abs=1e-15)
            since = times - 1.0 if scheme == "mix" else times
            np.testing.assert_allclose(magnitude, 1 + growth * np.maximum(since, 0), rtol=1e-14)
        assert sc.time_to_deficit_scheme(scheme, 0.5, 4, 1.5, -1 / 3) == np.inf
        assert sc.layer_map(scheme, 4 / 3, 1.0, 4, 0.0, 0.1)[0] == pytest.approx(4 / 3)


def test_ngpt_decays_at_rate_two_alpha_and_then_underflows():
    deficit, _ = sc.reduced_trajectory("ngpt", [60.0, 110.0, 1e8], 20, 3.0, alpha=0.7)
    assert np.log(deficit[0] / deficit[1]) == pytest.approx(2 * 0.7 * 50, rel=1e-13)
    assert deficit[2] == 0.0


def test_frozen_at_low_temperature():
    """β = 100: directions stay, magnitudes grow by the self weight 1."""
    deficit, magnitude = sc.reduced_trajectory("pre", [1.0, 1e3], 32, 100.0)
    np.testing.assert_array_equal(deficit, 1.0)
    np.testing.assert_allclose(magnitude, [2.0, 1001.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sc.reduced_trajectory("batch", 1.0, 8, 1.0), "`scheme` must be one of 'post', 'pre'"),
        (lambda: sc.reduced_trajectory("pre", -1.0, 8, 1.0), "`times` must be ≥ 0"),
        (lambda: sc.reduced_trajectory("pre", 1.0, 1, 1.0), "`n` must be an integer ≥ 2"),
        (lambda: sc.reduced_trajectory("pre", 1.0, 8, -1.0), "`beta` must be a finite number ≥ 0"),
        (lambda: sc.reduced_trajectory("pre", 1.0, 8, 1.0, magnitude=0.0), "`magnitude` must be a finite number > 0"),
        (lambda: sc.reduced_trajectory("ngpt", 1.0, 8, 1.0, alpha=0.0), "`alpha` must be a finite number > 0"),
        (lambda: sc.reduced_trajectory("mix", 1.0, 8, 1.0, switch=-1.0), "`switch` must be a finite number ≥ 0"),
        (lambda: sc.reduced_trajectory("pre", 1.0, 8, 1.0, start=1.0), "`start` must be"),
        (lambda: sc.reduced_trajectory("pre", 1.0, 8, 1e4), "`beta` must be such that"),
        (lambda: sc.reduced_rates("pre", 1.5, 1.0, 8, 1.0), "`deficit` must be ≤ n/"),
        (lambda: sc.layer_map("ngpt", 0.5, 1.0, 8, 1.0, 0.6, alpha=2.0), "`step` must be ≤ 1/alpha"),
        (lambda: sc.layers_to_deficit("post", 8, 1.0, 0.0, 1e-3), "`step` must be a finite number > 0"),
        (lambda: sc.time_to_deficit_scheme("pre", 1.1, 8, 1.0), "`deficit` must be ≤ 1-start"),
        (lambda: sc.orbit_integral(0.5, 3, 1.0, -0.5), "`start` must be > -1/"),
        (lambda: sc.magnitude_on_orbit(1.0, 3, 1.0), "`overlap` must be ≥ -1 and < 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
