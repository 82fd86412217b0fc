import math

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.equiangular import overlap_at
from pathlines.limit.homogenized import logistic as lg
from pathlines.limit.homogenized.attended import uniform_attended
from pathlines.limit.homogenized.gram import gram_flow
from pathlines.limit.homogenized.overlap_curve import overlap_curve


def random_gram(n, d, seed, tilt=0.0):
    x = np.random.default_rng(seed).standard_normal((n, d))
    x[:, 0] += tilt * np.arange(n) / n
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


def test_logistic_mass_solves_its_equation():
    times, u0, h = np.linspace(0, 6, 25), 0.03, 1e-5
    u = lg.logistic_mass(times, u0)
    slope = (lg.logistic_mass(times + h, u0) - lg.logistic_mass(np.maximum(times - h, 0), u0)) / np.where(
        times > 0, 2 * h, h
    )
    np.testing.assert_allclose(slope[1:], (u * (1 - u))[1:], rtol=1e-8)
    assert u[0] == u0
    np.testing.assert_array_equal(lg.logistic_mass([1.0, 800.0], [0.0, 0.5]), [0.0, 1.0])


def test_mass_is_logistic_for_any_tokens_without_logits():
    gram = random_gram(6, 4, seed=0)
    times = np.array([0.0, 1.0, 3.0])
    flow = gram_flow(gram, uniform_attended, times)
    np.testing.assert_allclose([lg.mass(k) for k in flow], lg.logistic_mass(times, lg.mass(gram)), rtol=1e-9)


def test_drift_without_logits_vs_formula():
    gram, d = random_gram(7, 5, seed=1, tilt=1.0), 5
    m, q = np.mean(gram), np.mean(gram**2)
    assert lg.mass_drift(gram, d=d) == pytest.approx(m * ((1 - m) - (2 - m - q) / d), rel=1e-13)


def test_drift_without_logits_vs_drawn_steps():
    """E m(N(x+√v ζ)) - m over one step, ζ common to all tokens and of variance m/d, antithetic; v → 0 by Richardson."""
    n, d = 5, 4
    rng = np.random.default_rng(3)
    x = rng.standard_normal((n, d)) + 0.5
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    m = np.mean(x @ x.T)
    z = rng.standard_normal((200_000, 1, d)) * math.sqrt(m / d)

    def moved(v):
        out = 0.0
        for sign in (1, -1):
            y = x + sign * math.sqrt(v) * z
            y /= np.linalg.norm(y, axis=2, keepdims=True)
            out = out + 0.5 * np.sum(np.mean(y, axis=1) ** 2, axis=1)
        return (out - m) / v

    rate = 2 * moved(0.005) - moved(0.01)
    error = np.std(rate) / math.sqrt(len(rate))
    assert abs(np.mean(rate) - lg.mass_drift(x @ x.T, d=d)) < 5 * error + 2e-4
    assert error < 0.01 * np.mean(rate)


def test_drift_with_logits_vs_formula():
    gram, b = random_gram(8, 3, seed=2, tilt=2.0), 0.3
    m, spread = lg.mass(gram), lg.mass_spread(gram)
    assert spread > 0.01
    assert lg.mass_drift(gram, b) == pytest.approx((1 - m) * (m - 2 * b * b * spread), rel=1e-12)


def test_logits_leave_the_simplex_alone():
    gram = 0.7 * np.eye(9) + 0.3
    assert lg.mass_spread(gram) < 1e-30
    assert lg.mass_drift(gram, 0.5) == pytest.approx(lg.mass_drift(gram), rel=1e-13)


def test_logistic_law_survives_on_the_simplex_up_to_b_one():
    times, n = np.linspace(0, 10, 30), 200
    exact = overlap_curve(times, n, 1.0)
    law = lg.logistic_mass(times, 1 / n)
    assert np.max(np.abs(exact + (1 - exact) / n - law)) < 3e-3


def test_random_weights_are_half_as_fast_as_identity_weights():
    for n, start in ((32, 0.0), (5, -0.1), (5, 0.6)):
        times = np.array([0.5, 1.0, 2.0, 3.0, 5.0])
        identity = overlap_at(times, n, 0.0, start=start)
        np.testing.assert_allclose(lg.uniform_attention_overlap(2 * times, n, start), identity, rtol=1e-12)
        np.testing.assert_allclose(overlap_curve(2 * times, n, 0.0, gamma0=start), identity, rtol=1e-12)


def test_identity_weights_vs_specification():
    """Section 13 of the specification, n = 32."""
    times = np.array([0.5, 1.0, 2.0, 3.0, 5.0])
    table = {
        0: [0.050959946, 0.166429101, 0.626160145, 0.926340057, 0.998549244],
        1: [0.047255929, 0.151849336, 0.589772823, 0.914207012, 0.998284249],
        4: [0.014250871, 0.035441398, 0.118065652, 0.332986702, 0.952774850],
    }
    for beta, values in table.items():
        np.testing.assert_allclose(overlap_at(times, 32, float(beta)), values, rtol=0, atol=6e-10)


def test_spread_of_log_mass():
    np.testing.assert_allclose(lg.log_mass_std([0.0, 2.0], 512), [0.0, 2 * math.sqrt(2 / 512)], rtol=1e-15)


def test_parameters_of_the_bound():
    beta, sigma, d = 0.05, 1.0, 512
    assert lg.corrected_parameter(beta, sigma, d) == pytest.approx(1.28)  # b = 1.13, as in the figure
    assert lg.printed_parameter(beta, sigma, d) == pytest.approx(512 * 1.28)
    assert lg.corrected_parameter(beta, 2.0, d) == pytest.approx(16 * 1.28)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: lg.logistic_mass([1.0], 1.5), "mass0"),
        (lambda: lg.logistic_mass([-1.0], 0.5), "times"),
        (lambda: lg.mass_drift(np.ones((2, 3))), "gram"),
        (lambda: lg.mass_drift(np.eye(2), -0.1), "b"),
        (lambda: lg.log_mass_std([1.0], 1), "d"),
        (lambda: lg.uniform_attention_overlap([1.0], 4, -0.5), "gamma0"),
        (lambda: lg.printed_parameter(0.1, 1.0, 0), "d"),
    ],
)
def test_bad_arguments(call, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        call()
