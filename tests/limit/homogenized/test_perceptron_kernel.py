from importlib import import_module

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.limit.homogenized import perceptron_collapse as pc

pk = import_module("pathlines.limit.homogenized.perceptron_kernel")  # the room's name of it is the function

FUNCTIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "erf": special.erf,
    "gelu": lambda x: x * special.ndtr(x),
    "tanh": np.tanh,
}
OVERLAPS = np.array([-1.0, -0.6, 0.0, 0.3, 0.9, 1.0])


@pytest.mark.parametrize("name", ["linear", "erf", "gelu"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_closed_form_vs_quadrature(name, sigma):
    found = pk.perceptron_kernel(OVERLAPS, name, sigma)
    by_sum = pk.perceptron_kernel(OVERLAPS, pk.by_quadrature(FUNCTIONS[name]), sigma)
    np.testing.assert_allclose(found, by_sum, atol=1e-13)
    slope = pk.perceptron_slope(OVERLAPS, pk.by_quadrature(FUNCTIONS[name]), sigma)
    np.testing.assert_allclose(pk.perceptron_slope(OVERLAPS, name, sigma), slope, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("w", "b"), [(1.3, 0.2), (6.0, 0.0)])
def test_quotient_vs_its_mean_square(name, w, b):
    """(κ(1) - κ(1-u))/u of the formulas, of ½E(φ(z) - φ(z'))², of the kernel itself, and κ'(1) as u → 0."""
    gap = np.array([0.0, 1e-14, 1e-7, 1e-3, 0.4, 1.0, 2.0])
    found = pk.kernel_quotient(gap, name, w, b)
    by_sum = pk.kernel_quotient(gap[2:], pk.by_quadrature(FUNCTIONS[name]), w, b)
    np.testing.assert_allclose(found[2:], by_sum, rtol=1e-8)
    top, slope = pk.ends(name, w, b)
    np.testing.assert_allclose(found[4:], (top - pk.perceptron_kernel(1 - gap[4:], name, w, b)) / gap[4:], rtol=1e-11)
    np.testing.assert_allclose(found[:2], slope, rtol=1e-6 if name in ("relu", "tanh") else 1e-10)


def test_kink_at_zero_costs_nothing():
    made = pk.by_quadrature(FUNCTIONS["relu"])
    np.testing.assert_allclose(
        pk.perceptron_kernel(OVERLAPS, made, 1.4, 0.5), pk.perceptron_kernel(OVERLAPS, "relu", 1.4, 0.5), atol=1e-12
    )


def test_relu_vs_angular_integral():
    """E[z⁺z'⁺] = (s/π) ∫ cos φ cos(φ-θ) over the angles where both are positive, θ = arccos ρ."""
    with mp.workdps(20):
        for rho in (-0.9, 0.2, 0.99):
            theta = mp.acos(rho)
            exact = mp.quad(lambda a, t=theta: mp.cos(a) * mp.cos(a - t), [theta - mp.pi / 2, mp.pi / 2]) / mp.pi
            assert pk.perceptron_kernel(rho, "relu", 1.5) == pytest.approx(2.25 * float(exact), rel=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernel_vs_monte_carlo(name):
    """400000 normal pairs, ρ = 0.7, σ_w = 1.7, within 5 standard errors."""
    rng = np.random.default_rng(2)
    rho, sigma = 0.7, 1.7
    z, w = rng.standard_normal((2, 400000))
    products = FUNCTIONS[name](sigma * z) * FUNCTIONS[name](sigma * (rho * z + np.sqrt(1 - rho**2) * w))
    assert abs(products.mean() - pk.perceptron_kernel(rho, name, sigma)) < 5 * products.std() / np.sqrt(z.size)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slope_is_the_derivative(name):
    h = 1e-4
    for rho in (-0.5, 0.1, 0.8):
        low, high = pk.perceptron_kernel([rho - h, rho + h], name, 1.3)
        assert (high - low) / (2 * h) == pytest.approx(pk.perceptron_slope(rho, name, 1.3), rel=1e-6)


def test_tanh_vs_one_dimensional_integrals_at_the_ends():
    """κ(1) = E tanh²(σz), κ'(1) = σ²E sech⁴(σz) at 20 digits, κ(-1) = -κ(1)."""
    with mp.workdps(20):
        for sigma in (0.5, 3.0):
            cuts = [0, 0.2, 1, 3, 12]
            top = 2 * mp.quad(lambda z, s=sigma: mp.tanh(s * z) ** 2 * mp.npdf(z), cuts)
            slope = 2 * sigma**2 * mp.quad(lambda z, s=sigma: mp.sech(s * z) ** 4 * mp.npdf(z), cuts)
            assert pk.ends("tanh", sigma) == pytest.approx((float(top), float(slope)), rel=1e-12)
            assert pk.perceptron_kernel(-1.0, "tanh", sigma) == pytest.approx(-float(top), rel=1e-12)


def test_quadrature_has_converged():
    """Twice the points change nothing, for tanh up to σ_w = 10."""
    for sigma in (1.0, 10.0):
        half = 0.5 * min(0.12, 0.25 / sigma)
        z = half * np.arange(-np.ceil(8.5 / half), np.ceil(8.5 / half) + 1)
        weight = np.exp(-z * z / 2)
        weight /= weight.sum()
        for rho in (0.4,):
            inner = np.array([weight @ np.tanh(sigma * (rho * x + np.sqrt(1 - rho * rho) * z)) for x in z])
            fine = (weight * np.tanh(sigma * z)) @ inner
            assert pk.perceptron_kernel(rho, "tanh", sigma) == pytest.approx(fine, abs=1e-14)


def test_relu_and_linear_have_equal_ends_and_saturation_raises_the_slope():
    for sigma in (0.5, 2.0):
        for name in ("relu", "linear"):
            top, slope = pk.ends(name, sigma)
            assert slope == pytest.approx(top, rel=1e-14)
        for name in ("erf", "tanh"):
            top, slope = pk.ends(name, sigma)
            assert slope > top


def test_kernel_of_a_random_layer():
    """⟨φ(W√d x), φ(W√d y)⟩/width of a drawn layer, 2·10⁵ units, W_ij of variance σ_w²/d; 5 standard errors."""
    rng = np.random.default_rng(9)
    d, width, sigma, rho = 5, 200000, 1.5, -0.4
    w = sigma / np.sqrt(d) * rng.standard_normal((width, d))
    x, y = np.eye(d)[0], rho * np.eye(d)[0] + np.sqrt(1 - rho**2) * np.eye(d)[1]
    products = FUNCTIONS["gelu"](w @ x * np.sqrt(d)) * FUNCTIONS["gelu"](w @ y * np.sqrt(d))
    exact = pk.perceptron_kernel(rho, "gelu", sigma)
    assert abs(products.mean() - exact) < 5 * products.std() / np.sqrt(width)


# ---------------------------------------------------------------- collapse


def uniform_attention(n):
    """S = P = γ + (1-γ)/n, attention at b = 0."""
    return lambda gamma: gamma + (1 - gamma) / n


def iterated(v_a, v_m, attention, activation, sigma, start=0.0, layers=4000):
    gamma = start
    for _ in range(layers):
        s = attention(gamma)
        gamma = (gamma + v_a * s) / (1 + v_a * s)
        gamma = float(pc.perceptron_step(min(gamma, 1.0), v_m, activation, sigma))
    return gamma


def test_resting_overlap_vs_iteration():
    attention = uniform_attention(48)
    # the erf example of section 7 of the specification rests at 0.525 with b = 1, p = 16; b = 0 moves it by 0.002
    rest = pc.resting_overlap(0.16, 0.64, attention, attention, "erf", 3.0)
    assert rest == pytest.approx(iterated(0.16, 0.64, attention, "erf", 3.0), abs=1e-12)
    assert rest == pytest.approx(0.525, abs=3e-3)
    from_above = pc.resting_overlap(0.16, 0.64, attention, attention, "erf", 3.0, start=0.99)
    assert from_above == pytest.approx(rest, abs=1e-12)


def test_relu_collapses_always():
    attention = uniform_attention(10)
    for v_m in (0.1, 1.0, 30.0):
        assert pc.resting_overlap(0.05, v_m, attention, attention, "relu", 1.0) == 1.0
        assert pc.collapse_margin(0.05, v_m, "relu") < 0


def test_margin_decides_collapse():
    """Just inside and just outside the criterion of the layer map, erf with σ_w = 2."""
    attention = uniform_attention(10)
    top, slope = pk.ends("erf", 2.0)
    for v_m in (0.05, 0.5):
        edge = v_m * (slope - top) / (1 + v_m * top)
        assert pc.collapse_margin(edge, v_m, "erf", 2.0) == pytest.approx(0, abs=1e-14)
        assert pc.resting_overlap(1.02 * edge, v_m, attention, attention, "erf", 2.0) == 1.0
        rest = pc.resting_overlap(0.98 * edge, v_m, attention, attention, "erf", 2.0)
        assert rest < 0.999
        assert rest == pytest.approx(iterated(0.98 * edge, v_m, attention, "erf", 2.0, start=0.9), abs=2e-3)
    # the ODE's criterion is the small-power limit of the layers'
    ratio = pc.collapse_margin(1e-6, 1e-5, "erf", 2.0) / pc.collapse_margin(1e-6, 1e-5, "erf", 2.0, "ode")
    assert ratio == pytest.approx(1, abs=1e-4)


def test_rate_is_the_small_power_limit_of_the_step():
    gamma, v = np.array([-0.3, 0.2, 0.9]), 1e-7
    for name in ("relu", "erf", "gelu"):
        step = (pc.perceptron_step(gamma, v, name) - gamma) / v
        np.testing.assert_allclose(step, pc.perceptron_rate(gamma, name), atol=1e-6)
    assert pc.perceptron_step(1.0, 3.0, "tanh", 2.0) == pytest.approx(1.0, abs=1e-15)


def test_two_kernels_give_the_rates_of_the_overlap():
    """From drift (1/d)[(d-2+R²)κ(R)-(d-1)Rκ(1)] and variation (2/d)(1-R²)(κ(1)-Rκ(R)) just below R = 1."""
    u = 1e-5
    r = 1 - u
    for name in ("linear", "erf", "gelu", "tanh"):
        for d in (2, 3, 10):
            kernel, top = pk.perceptron_kernel(r, name, 2.0), pk.ends(name, 2.0)[0]
            drift = 2.25 / d * ((d - 2 + r * r) * kernel - (d - 1) * r * top)
            variation = 2.25 * 2 / d * (1 - r * r) * (top - r * kernel)
            mean, typical = -drift / u, -drift / u - variation / (2 * u * u)
            assert pc.mean_separation_rate(d, name, 2.0, 1.5) == pytest.approx(mean, rel=2e-3, abs=2e-3)
            assert pc.typical_separation_rate(d, name, 2.0, 1.5) == pytest.approx(typical, rel=2e-3, abs=2e-3)


def test_synchronisation_condition():
    for d in (2, 3, 10, 1000):
        for name in ("relu", "linear"):
            assert pc.synchronises(d, name, 1.4)
            assert pc.typical_separation_rate(d, name, 1.4) == pytest.approx(-2 * pk.ends(name, 1.4)[0] / d, rel=1e-9)
    for sigma in (0.5, 5.0):
        top, slope = pk.ends("erf", sigma)
        for d in (4, 5, 12, 100):
            assert pc.synchronises(d, "erf", sigma) == (slope / top < (d - 1) / (d - 3))
        assert pc.synchronises(3, "erf", sigma)
    assert not pc.synchronises(100, "erf", 5.0)


def test_lyapunov_gap_of_matrix_noise():
    """Linear activation is x <- N(x + √(v/d) W x): log(1-R) falls at 2/d per unit of τ, d = 5; 5 standard errors."""
    rng = np.random.default_rng(14)
    runs, d, v = 4000, 5, 0.02
    x, y = np.zeros((2, runs, d))
    x[:, 0], y[:, 0], y[:, 1] = 1, 1, 1e-3
    for _ in range(100):
        w = np.sqrt(v / d) * rng.standard_normal((runs, d, d))
        x, y = (z + np.einsum("rij,rj->ri", w, z) for z in (x, y))
        x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    slope = (np.log(((x - y) ** 2).sum(1)) - np.log(1e-6)) / 2.0
    assert abs(slope.mean() - pc.typical_separation_rate(d, "linear")) < 5 * slope.std() / np.sqrt(runs)


def test_rates_of_layers_vs_layers():
    """One layer with linear perceptrons, x ← N(x + σ√δ W x), of a pair 1e-6 apart: 2·10⁵ layers, 5 standard errors.

    For linear κ the outputs are W x with one matrix W of variance 1/d; the rates tend to those of the diffusion with δ.
    """
    d, delta, count, rng = 5, 0.3, 200_000, np.random.default_rng(6)
    matrix = np.eye(d) + np.sqrt(delta / d) * rng.standard_normal((count, d, d))
    x, gap = matrix[:, :, 0], matrix[:, :, 1]
    across = gap - np.sum(gap * x, axis=1, keepdims=True) / np.sum(x * x, axis=1, keepdims=True) * x
    ratio = np.sum(across**2, axis=1) / np.sum(x * x, axis=1)
    typical, mean = pc.layer_separation_rates(d, delta, "linear")
    assert abs(np.log(ratio).mean() / delta - typical) < 5 * np.log(ratio).std() / delta / np.sqrt(count)
    assert abs(np.log(ratio.mean()) / delta - mean) < 5 * ratio.std() / ratio.mean() / delta / np.sqrt(count)
    limits = np.array([pc.typical_separation_rate(8, "erf", 3.0), pc.mean_separation_rate(8, "erf", 3.0)])
    off = [np.array(pc.layer_separation_rates(8, step, "erf", 3.0)) - limits for step in (2e-3, 1e-3)]
    np.testing.assert_allclose(off[0] / off[1], 2, atol=0.02)


def test_rates_of_layers_on_the_circle():
    """d = 2, layers of h = 0.1 of a constant and a linear part: 10⁶ sampled layers, 5 standard errors."""
    rng, h, count = np.random.default_rng(4), 0.1, 1_000_000
    x = np.array([1.0, 0.0]) + np.sqrt(0.5 * h) * rng.standard_normal((count, 2))
    gap = np.array([0.0, 1.0]) + np.sqrt(0.5 * h) * rng.standard_normal((count, 2))
    logs = 2 * np.log(np.abs(x[:, 0] * gap[:, 1] - x[:, 1] * gap[:, 0]) / np.sum(x * x, axis=1))
    found = pc.layer_separation_rates(2, h, "relu", 1.0, np.sqrt(2))[0]
    assert abs(logs.mean() / h - found) < 5 * logs.std() / h / np.sqrt(count)
    assert abs(found - pc.typical_separation_rate(2, "relu", 1.0, np.sqrt(2))) > 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pk.perceptron_kernel(0.5, "tanh", 1000.0), "`sigma_w` must be ≤ 50"),
        (lambda: pk.perceptron_slope(0.5, "silu", 3.0, 1000.0), "`sigma_w` must be ≤ 50"),
        (lambda: pk.kernel_quotient(2.5), "`gap` must be ≥ 0"),
        (lambda: pk.perceptron_kernel(1.5), "`overlap` must be ≥ -1 and ≤ 1"),
        (lambda: pk.perceptron_kernel(0.5, "relu", 0.0), "`sigma_w` must be a finite number > 0"),
        (lambda: pk.by_quadrature(3), "`function` must be a function of an array"),
        (lambda: pk.by_quadrature(np.tanh, 3), "`derivative` must be a function of an array"),
        (lambda: pc.perceptron_step(0.5, -1.0), "`power` must be a finite number ≥ 0"),
        (lambda: pc.collapse_margin(-1.0, 1.0), "`attention` must be a finite number ≥ 0"),
        (lambda: pc.collapse_margin(1.0, 1.0, kind="sde"), "`kind` must be one of 'layers', 'ode'"),
        (lambda: pc.resting_overlap(1.0, 1.0, abs, abs, start=2.0), "`start` must be a finite number ≥ -1 and ≤ 1"),
        (lambda: pc.typical_separation_rate(1), "`d` must be an integer ≥ 2"),
        (lambda: pc.mean_separation_rate(3, strength=-1.0), "`strength` must be a finite number ≥ 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_unknown_activation():
    with pytest.raises(UnknownNameError, match="no activation `swish`; there are linear, relu"):
        pk.perceptron_kernel(0.5, "swish")
