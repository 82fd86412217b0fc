"""Exponents of two tokens under common noise: reference values, the generator itself, and what is refused."""

import math

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.limit.followups.synchronisation import (
    critical_dimension,
    lyapunov_exponent,
    mean_dissipation,
    pair_mean,
    synchronisation,
    synchronisation_map,
)
from pathlines.limit.homogenized.perceptron_kernel import by_quadrature, ends, perceptron_kernel

SOFTSIGN = by_quadrature(lambda x: x / (1 + abs(x)))
RELU = by_quadrature(lambda x: np.maximum(x, 0))
LEAKY = by_quadrature(lambda x: np.where(x > 0, x, 0.2 * x))


@pytest.mark.parametrize(
    ("activation", "top", "slope", "critical"),
    [("tanh", 0.394294490398, 0.464402902448, 14.248), ("erf", 0.464559054398, 0.569410034734, 11.861)],
)
def test_reference_values(activation, top, slope, critical):
    """Numbers of an independent computation, to the digits given."""
    assert ends(activation) == pytest.approx((top, slope), abs=6e-13)
    assert critical_dimension(activation) == pytest.approx(critical, abs=6e-4)


def test_reference_slopes():
    assert lyapunov_exponent(5, "tanh") == pytest.approx(-0.648, abs=5e-4)
    assert lyapunov_exponent(40, "tanh") == pytest.approx(1.805, abs=5e-4)
    for d in (3, 8, 100):
        assert lyapunov_exponent(d, "relu", 1.3, 0.4) == pytest.approx(-(1.3**2) - (d - 1) / 2 * 0.4**2)
        assert lyapunov_exponent(d, "linear") == pytest.approx(-2)
        assert lyapunov_exponent(d, "linear", attention=0.7) == pytest.approx(-3.4)
    assert lyapunov_exponent(7, LEAKY) == pytest.approx(-2 * ends(LEAKY)[0], rel=1e-9)  # k' = k, as for relu
    assert math.isinf(critical_dimension("relu", 1.0, 0.3))


def test_bias_in_the_kernel_vs_monte_carlo():
    rng = np.random.default_rng(3)
    w, b, rho = 1.4, 0.6, 0.3
    z, other, bias = rng.standard_normal((3, 400_000))
    first, second = w * z + b * bias, w * (rho * z + np.sqrt(1 - rho**2) * other) + b * bias
    products = np.tanh(first) * np.tanh(second)
    error = products.std() / np.sqrt(z.size)
    assert abs(products.mean() - perceptron_kernel(rho, "tanh", w, b)) < 5 * error


def test_dissipation():
    """Constant kernel: f/(1-ρ) = k(d-2-ρ), least at ρ = 1; relu is coercive iff σ_b²/σ_w² > 2/(d-3)."""
    found = mean_dissipation(6, "linear", 0.0, 1.0)
    assert (found.rate, found.nearby) == pytest.approx((3.0, 3.0), abs=1e-6)
    edge = math.sqrt(2 / 5)
    assert mean_dissipation(8, "relu", 1.0, edge).nearby == pytest.approx(0, abs=1e-12)
    assert mean_dissipation(8, "relu", 1.0, 1.05 * edge).rate > 0 > mean_dissipation(8, "relu", 1.0, 0.95 * edge).rate
    # where far tokens decide: attention that hears only neighbours
    far = mean_dissipation(8, "tanh", 0.3, 0.0, attention=1.0, beta=9.0)
    assert far.at < 0.9 and far.rate < far.nearby


def test_dissipation_of_near_pairs_is_not_rounding():
    """f/(1-ρ) where its terms cancel: least for nearby pairs, whose value the ends give."""
    for kind, d, w, b in [(SOFTSIGN, 8, 1.0, 1.0), (RELU, 40, 1.0, 0.7), ("erf", 6, 30.0, 0.0)]:
        top, slope = ends(kind, w, b)
        found = mean_dissipation(d, kind, w, b)
        assert found.rate == pytest.approx((d - 3) * top - (d - 1) * slope, rel=1e-6)
    assert mean_dissipation(40, RELU, 1.0, 0.7).rate == pytest.approx(8.065)
    assert mean_dissipation(8, SOFTSIGN, 1.0, 1.0).rate == pytest.approx(0.0507, abs=5e-5)
    assert mean_dissipation(3, "linear", 0.0, 1.0).rate == 0
    near = pair_mean("log", 1e-6, [0.5, 1.0], 8, SOFTSIGN)
    rate = lyapunov_exponent(8, SOFTSIGN)
    np.testing.assert_allclose(near.values, math.log(1e-6) + rate * np.array([0.5, 1.0]), atol=1e-3)


def test_means_near_collapse_and_of_a_constant_kernel():
    times = np.array([0.0, 0.5, 2.0])
    near = pair_mean("log", 1e-8, times, 5, "erf", 1.2, 0.1)
    np.testing.assert_allclose(near.values - math.log(1e-8), times * lyapunov_exponent(5, "erf", 1.2, 0.1), atol=1e-4)
    whole = pair_mean("gap", 1.0, [0.0, 0.2], 6, "linear", 0.0, 1.0)
    assert whole.values[0] == pytest.approx(1) and whole.error < 1e-9
    assert math.exp(-5 * 0.2) < whole.values[1] < math.exp(-3 * 0.2)
    assert whole.values[1] == pytest.approx(0.46538235768, abs=1e-9)


def test_backward_equation_vs_generator():
    """d/dt E log(1-ρ_t) at t = 0 is -f/(1-ρ) - (1-ρ²)(k(1)-ρk(ρ))/(1-ρ)², from the kernel itself."""
    rho, d, h = 0.4, 7, 1e-3
    k, top = perceptron_kernel(rho, "gelu", 1.5, 0.2), ends("gelu", 1.5, 0.2)[0]
    pull = 2 * 0.3 * (1 - rho**2) / (1 + math.exp(2 * (1 - rho)))
    drift = k * (d - 2 + rho**2) - (d - 1) * top * rho + pull
    rate = -drift / (1 - rho) - (1 - rho**2) * (top - rho * k) / (1 - rho) ** 2
    before, after = pair_mean("log", 1 - rho, [0.0, h], d, "gelu", 1.5, 0.2, 0.3, 2.0).values
    assert (after - before) / h == pytest.approx(rate, rel=2e-2)


def test_the_sentence_and_the_map():
    said = synchronisation("tanh", 40)
    assert said.verdict == "separate" and "separates tokens above d = 14.2" in said.sentence and not said.coercive
    assert synchronisation("relu", 8, 1.0, 1.0).coercive
    assert synchronisation("relu", 8).critical_dimension is None
    assert (
        "while pairs are near the mean gap, carried by rare ones, grows at rate 1"
        in synchronisation("relu", 8).sentence
    )
    assert synchronisation(LEAKY, 9, name="leaky").sentence.startswith("With leaky, noise alone synchronises")
    table = synchronisation_map([5, 40], [1.0, 2.0], "tanh")
    assert table[0] * ends("tanh")[0] == pytest.approx([lyapunov_exponent(d, "tanh") for d in (5, 40)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lyapunov_exponent(1), "`d` must be an integer ≥ 2"),
        (lambda: lyapunov_exponent(5, sigma_w=0.0), "`sigma_w` must be a finite number > 0"),
        (lambda: lyapunov_exponent(5, attention=-1.0), "`attention` must be a finite number ≥ 0"),
        (lambda: pair_mean("mean", 1.0, [1.0], 5), "`seen` must be one of 'log', 'gap'"),
        (lambda: pair_mean("log", 0.0, [1.0], 5), "`gap` must be a finite number > 0"),
        (lambda: synchronisation("tanh", 40, 1000.0), "`sigma_w` must be ≤ 50, together with `sigma_b`"),
        (lambda: ends("tanh", 1e9), "`sigma_w` must be ≤ 10000"),
        (lambda: ends(by_quadrature(lambda x: 1.0)), "`function` must give a finite number for every number"),
        (lambda: ends(by_quadrature(np.log)), "`function` must give a finite number for every number"),
    ],
)
def test_bad_input(call, message):
    with np.errstate(invalid="ignore", divide="ignore"), pytest.raises(ArgumentError, match=message):
        call()


def test_unknown_activation():
    with pytest.raises(UnknownNameError, match="no activation `swish`"):
        synchronisation("swish")
