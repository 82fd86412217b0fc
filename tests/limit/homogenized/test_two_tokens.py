"""Reference values: section 13 of the project's specification 01-homogenized, unless another origin is named."""

import mpmath as mp
import numpy as np
import pytest
from scipy import linalg

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.limit.homogenized import backward_equation
from pathlines.limit.homogenized import two_tokens as tt
from pathlines.limit.homogenized import two_tokens_random as tr

ANTIPODAL = {(3, 1.0): 0.22242256, (8, 2.0): 0.09286270, (8, 3.0): 0.20828696, (16, 4.0): 0.20324167, (8, 1.0): 0.0}
CRITICAL = {4: 0.6584789485, 8: 1.2389443651, 32: 2.0470333343}


# ---------------------------------------------------------------- uniform attention


def test_uniform_attention_table():
    assert tt.uniform_expectation(1.0, 4) == pytest.approx(0.2118357210, abs=6e-11)
    assert tt.uniform_expectation(1.0, 4, power=2) == pytest.approx(0.2201507493, abs=6e-11)


def collocation_in_the_overlap(values, d, tau, start, nodes=49):
    """The backward equation in R itself, no boundary condition: drift (1-R²)(d-2-R)/2d, variation (1-R²)²/d."""
    x = -np.cos(np.pi * np.arange(nodes) / (nodes - 1))
    c = np.where(np.isin(np.arange(nodes), (0, nodes - 1)), 2.0, 1.0) * (-1.0) ** np.arange(nodes)
    slope = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(nodes))
    slope -= np.diag(slope.sum(axis=1))
    generator = ((1 - x * x) * (d - 2 - x) / (2 * d))[:, None] * slope
    generator += ((1 - x * x) ** 2 / (2 * d))[:, None] * (slope @ slope)
    solution = np.polynomial.Chebyshev.fit(x, linalg.expm(tau * generator) @ values(x), nodes - 1, domain=[-1, 1])
    return solution(start)


@pytest.mark.parametrize("d", [4, 6, 10])
def test_uniform_attention_vs_collocation_in_the_overlap(d):
    """What limits the agreement at τ = 1 is the reference: its solution is not analytic at R = ±1."""
    for tau, digits in ((0.3, 1e-9), (1.0, 2e-8)):
        for start in (-0.5, 0.0, 0.7):
            for power in (1, 2, 3):
                exact = collocation_in_the_overlap(lambda r, k=power: r**k, d, tau, start)
                assert tt.uniform_expectation(tau, d, start, power) == pytest.approx(exact, abs=digits)


def test_uniform_attention_vs_chain_of_tokens():
    """E R of N(x + ζ), one ζ for both, v = 1/64, τ = 1, d = 4; 5 standard errors (0.007) cover the bias of 6e-4."""
    rng = np.random.default_rng(4)
    runs, d, v = 100000, 4, 1 / 64
    x, y = np.zeros((2, runs, d))
    x[:, 0], y[:, 1] = 1, 1
    for _ in range(64):
        mean = (x + y) / 2
        kick = np.sqrt(v / d) * np.linalg.norm(mean, axis=1, keepdims=True) * rng.standard_normal((runs, d))
        x, y = (z + kick for z in (x, y))
        x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    r = (x * y).sum(1)
    assert abs(r.mean() - tt.uniform_expectation(1.0, d)) < 5 * r.std() / np.sqrt(runs)


def test_moving_and_fixed_windows_agree():
    """d = 65τ is where the solver changes hands: E R as a function of d has no jump there."""
    values = np.array([tt.uniform_expectation(1.0, d, -0.5) for d in range(58, 72)])
    assert np.max(np.abs(np.diff(values, 6))) < 1e-8


def test_moving_window_is_of_order_four(monkeypatch):
    """Halving the step divides the error by sixteen; the finest of 64 steps is the reference."""
    law, values = tt.fixed_diffusion(2000, 2.0), []
    for steps in (4, 8, 16, 64):
        monkeypatch.setattr(backward_equation, "_STEPS", (steps, steps))
        values.append(law.expectation(lambda r: r, 4.0, 0.3))
    errors = np.abs(np.array(values[:3]) - values[3])
    np.testing.assert_allclose(errors[:2] / errors[1:], 16, rtol=0.1)


def test_an_unresolved_expectation_is_an_error(monkeypatch):
    monkeypatch.setattr(backward_equation, "_NODES", (12, 18))
    with pytest.raises(PathlinesError, match="not resolved to 1e-10 by 18 nodes"):
        tt.uniform_expectation(3.0, 4)


def test_weak_noise_tends_to_the_ode():
    """d -> ∞: y' = ½, so R = tanh(y0 + τ/2), with a correction of order 1/d."""
    for start, tau in ((-0.5, 1.0), (-0.9, 5.0), (0.3, 0.2)):
        limit = np.tanh(np.arctanh(start) + tau / 2)
        gaps = [d * (tt.uniform_expectation(tau, d, start) - limit) for d in (10**4, 10**5, 10**7)]
        assert gaps[1] == pytest.approx(gaps[2], rel=1e-2)
        assert gaps[0] == pytest.approx(gaps[2], rel=1e-1)


def test_coefficients_of_uniform_attention():
    r = np.array([-0.99, 0.0, 0.4])
    law = tt.uniform_diffusion(5)
    np.testing.assert_allclose(law.overlap_drift(r), (1 - r * r) * (3 - r) / 10, rtol=1e-12)
    np.testing.assert_allclose(law.overlap_variation(r), (1 - r * r) ** 2 / 5, rtol=1e-12)
    # near collapse, claim C16: log(1-R) drifts at -(d-1)/d
    assert law.rate_at_consensus == pytest.approx(-0.8)
    assert law.antipode_probability(-0.99) == 0.0


# ---------------------------------------------------------------- fixed query-keys


@pytest.mark.parametrize(("d", "beta"), ANTIPODAL)
def test_antipodal_table(d, beta):
    assert tt.fixed_antipode_probability(d, beta) == pytest.approx(ANTIPODAL[d, beta], abs=6e-9)


@pytest.mark.parametrize("d", CRITICAL)
def test_critical_beta_table(d):
    assert tt.critical_beta(d) == pytest.approx(CRITICAL[d], abs=6e-11)


def test_antipode_attracts_above_the_critical_beta_only():
    for d in (4, 8, 100):
        edge = tt.critical_beta(d)
        assert tt.fixed_antipode_rate(d, edge) == pytest.approx(0, abs=1e-14)
        assert tt.fixed_antipode_probability(d, 0.99 * edge) == 0.0
        assert tt.fixed_antipode_probability(d, 1.01 * edge) > 0.0
        assert tt.fixed_antipode_rate(d, 1.01 * edge) < 0
    assert tt.critical_beta(3) == 0.0
    assert tt.fixed_antipode_probability(3, 0.05) > 0
    assert tt.fixed_antipode_probability(3, 0.0) == 0.0
    # ½ ln 2d for many dimensions
    assert tt.critical_beta(10**6) == pytest.approx(0.5 * np.log(2e6), rel=1e-6)


def test_rates_are_those_of_the_diffusion():
    for d, beta in ((2, 0.3), (3, 1.0), (8, 2.0), (16, 30.0)):
        law = tt.fixed_diffusion(d, beta)
        assert law.rate_at_antipode == pytest.approx(tt.fixed_antipode_rate(d, beta), abs=1e-14)
        assert law.rate_at_consensus == pytest.approx(-(d - 1) / d, abs=1e-14)


def test_layers_near_the_antipode_tend_to_the_diffusion():
    """First order in v: halving v halves the difference, up to the next order."""
    for d, beta in ((4, 0.7), (8, 1.4), (30, 3.0)):
        gaps = [tt.layer_antipode_rate(d, beta, v) - tt.fixed_antipode_rate(d, beta) for v in (0.01, 0.005)]
        assert gaps[0] / gaps[1] == pytest.approx(2, abs=0.05)
        assert abs(gaps[0]) < 0.02
    assert tt.layer_critical_beta(8, 1e-4) == pytest.approx(tt.critical_beta(8), abs=1e-3)


def test_layer_near_the_antipode_vs_drawn_values():
    """One layer of v = 0.3 at d = 5 on a pair with 1+R = 5e-9: 200 000 values V and -V, 5 standard errors."""
    d, beta, v = 5, 1.2, 0.3
    rng = np.random.default_rng(7)
    angle = 1e-4
    x = np.zeros((2, d))
    x[0, 0], x[1, 0], x[1, 1] = 1.0, -np.cos(angle), np.sin(angle)
    weights = np.exp(beta * x @ x.T)
    weights /= weights.sum(axis=1, keepdims=True)
    values = rng.standard_normal((200_000, d, d)) / np.sqrt(d)
    step = np.sqrt(v) * np.einsum("mab,ib->mia", values, weights @ x)
    rates = []
    for sign in (1, -1):
        y = x + sign * step
        y /= np.linalg.norm(y, axis=-1, keepdims=True)
        rates.append(np.log(np.sum((y[:, 0] + y[:, 1]) ** 2, axis=-1) / np.sum((x[0] + x[1]) ** 2)) / v)
    both = np.mean(rates, axis=0)
    error = both.std(ddof=1) / np.sqrt(len(both))
    assert tt.layer_antipode_rate(d, beta, v) == pytest.approx(both.mean(), abs=5 * error)


def test_fixed_coefficients_vs_attention_written_out():
    """s = ΠKΠᵀ with the softmax of βK, then the general drift and variation of an overlap."""
    d, beta = 6, 1.7
    law = tt.fixed_diffusion(d, beta)
    for r in (-0.95, -0.2, 0.5, 0.99):
        gram = np.array([[1, r], [r, 1]])
        weights = np.exp(beta * gram)
        weights /= weights.sum(axis=1, keepdims=True)
        s = weights @ gram @ weights.T
        np.testing.assert_allclose(tt.fixed_covariance(r, beta), (s[0, 0], s[0, 1]), atol=1e-15)
        drift = (d - 2 + r * r) / d * s[0, 1] - (d - 1) / (2 * d) * r * (s[0, 0] + s[1, 1])
        variation = (1 - r * r) / d * (s[0, 0] + s[1, 1] - 2 * r * s[0, 1])
        assert law.overlap_drift(r) == pytest.approx(drift, abs=1e-14)
        assert law.overlap_variation(r) == pytest.approx(variation, abs=1e-14)
        t = tt.self_preference(r, beta)
        assert law.overlap_variation(r) == pytest.approx((1 - r * r) ** 2 * (1 + t * t) / d, rel=1e-12)


@pytest.mark.parametrize(("d", "beta", "start"), [(3, 1.0, 0.3), (8, 2.0, -0.5), (16, 4.0, 0.0)])
def test_antipodal_probability_vs_running_sums(d, beta, start):
    """∫ s' by plain running trapezoid sums over |y| ≤ 60, step 3e-4, from the drift and variation in R."""
    y = np.linspace(-60, 60, 400001)
    h, near = y[1] - y[0], np.clip(y, -9, 9)  # beyond, 1-R² has no digits and the pull is constant to 1e-7
    r, square = np.tanh(near), np.cosh(near) ** -2.0
    own, cross = tt.fixed_covariance(r, beta)
    drift = ((d - 2 + r * r) * cross - (d - 1) * r * own) / d
    variation = 2 / d * square * (own - r * cross)
    pull = 2 * (drift / square + r * variation / square**2) / (variation / square**2)
    exponent = -np.concatenate([[0.0], np.cumsum((pull[1:] + pull[:-1]) * h / 2)])
    scale = np.exp(exponent - exponent.max())
    total = np.concatenate([[0.0], np.cumsum((scale[1:] + scale[:-1]) * h / 2)])
    expected = 1 - np.interp(np.arctanh(start), y, total) / total[-1]
    assert tt.fixed_antipode_probability(d, beta, start) == pytest.approx(expected, abs=1e-6)


def test_antipodal_probability_solves_the_backward_equation():
    """½σ²P'' + μP' = 0 in y, P from -1 to 1 decreasing from 1 to 0."""
    law = tt.fixed_diffusion(8, 2.5)
    h = 1e-3
    for y in (-2.0, 0.0, 1.5):
        low, here, high = law.antipode_probability(np.tanh([y - h, y, y + h]))
        first, second = (high - low) / (2 * h), (high - 2 * here + low) / h**2
        at = np.array([y])
        balance = 0.5 * law.variance(at)[0] * second + law.drift(at)[0] * first
        assert balance == pytest.approx(0, abs=1e-6)
    start = np.array([-1, -0.9999, -0.5, 0, 0.5, 0.9999, 1])
    values = law.antipode_probability(start)
    assert np.all(np.diff(values) < 0)
    assert values[0] == 1.0
    assert values[-1] == 0.0


def test_antipodal_probability_near_the_ends():
    """Deep in a tail P and 1-P follow the power of the end's rate, without cancellation: 1-R = 1e-12 and beyond."""
    law = tt.fixed_diffusion(8, 3.0)
    rate = 2 * law.drift(np.array([300.0]))[0] / law.variance(np.array([300.0]))[0]
    near = law.antipode_probability(1 - np.array([1e-8, 1e-10]))
    # P ~ e^{-rate·y} and e^{-2y} ~ (1-R)/2
    assert np.log(near[0] / near[1]) / np.log(100) == pytest.approx(rate / 2, rel=1e-6)


def test_expectation_tends_to_the_antipodal_probability():
    law = tt.fixed_diffusion(8, 3.0)
    for start in (0.0, -0.6):
        late = law.expectation(lambda r: r, 2000.0, start)
        assert late == pytest.approx(1 - 2 * law.antipode_probability(start), abs=1e-8)


def test_antipodal_probability_vs_euler_paths():
    """Paths in y, d = 3, β = 1: P(y < 0 at τ = 80) within 5 standard errors (0.033)."""
    rng = np.random.default_rng(8)
    law, h = tt.fixed_diffusion(3, 1.0), 0.05
    y = np.zeros(4000)
    for _ in range(1600):
        y += law.drift(y) * h + np.sqrt(law.variance(y) * h) * rng.standard_normal(y.size)
    p = ANTIPODAL[3, 1.0]
    assert abs(np.mean(y < 0) - p) < 5 * np.sqrt(p * (1 - p) / y.size)


# ---------------------------------------------------------------- random query-keys


def test_criterion_has_its_minimum_above_two():
    """2.107 at b ≈ 1.78 for d = 4 (appendix A1); the minimum is flat, its place is 1.7705 to four digits."""
    b, value = tr.smallest_criterion(4)
    assert value == pytest.approx(2.107, abs=5e-4)
    assert b == pytest.approx(1.77, abs=0.015)
    for d in (5, 8, 64):
        assert tr.smallest_criterion(d)[1] > 2
    grid = np.linspace(0, 6, 61)
    assert min(tr.antipode_criterion(4, float(x)) for x in grid) >= value - 1e-12
    for x in (0.01, 1.0, 10.0):
        assert tr.antipode_criterion(3, x) < 2
        assert tr.antipode_criterion(2, x) < 2


def test_sech_moments_vs_quadrature_at_twenty_digits():
    with mp.workdps(20):
        for b in (0.0, 0.4, 1.0, 1.001, 3.0, 40.0):
            for power in (2, 4):
                cuts = [0, *(z for z in (0.1, 0.5, 1.5, 4) if b > 3 or z > 1), 12]
                exact = 2 * mp.quad(lambda z, b=b, k=power: mp.sech(b * z) ** k * mp.npdf(z), cuts)
                assert tr.sech_power(b, power) == pytest.approx(float(exact), rel=1e-13)


# f and g of two tokens at p = ∞: s_11 = γ+(1-γ)f, s_12 = γ+(1-γ)g
PARTICIPATION = {(1.0, 0.0): (0.636838153968, 0.5), (3.0, 0.5): (0.770324190452, 0.621737194117)}


@pytest.mark.parametrize(("b", "overlap"), PARTICIPATION)
def test_random_covariance_table(b, overlap):
    f, g = PARTICIPATION[b, overlap]
    own, cross = tr.random_covariance(overlap, b)
    assert own == pytest.approx(overlap + (1 - overlap) * f, abs=1e-12)
    assert cross == pytest.approx(overlap + (1 - overlap) * g, abs=1e-12)


def drawn_attention(x, y, b, rng):
    """m_A(x), m_A(y) at p = ∞ in coordinates: β Ax is b times a standard normal vector, of correlation ⟨x,y⟩."""
    r = (x * y).sum(-1, keepdims=True)
    first, second = rng.standard_normal((2, *x.shape))
    second = r * first + np.sqrt(np.maximum(1 - r * r, 0)) * second
    attended = []
    for g in (first, second):
        difference = b * (g * (x - y)).sum(-1, keepdims=True)
        weight = 1 / (1 + np.exp(-difference))
        attended.append(weight * x + (1 - weight) * y)
    return attended


@pytest.mark.parametrize("b", [0.7, 4.0, 25.0])
def test_random_covariance_vs_drawn_attention(b):
    rng = np.random.default_rng(10)
    runs = 200000
    for overlap in (-0.9, 0.0, 0.8):
        x = np.broadcast_to([1.0, 0.0, 0.0], (runs, 3))
        y = np.broadcast_to([overlap, np.sqrt(1 - overlap**2), 0.0], (runs, 3))
        first, second = drawn_attention(x, y, b, rng)
        for drawn, exact in zip(
            ((first**2).sum(1), (first * second).sum(1)), tr.random_covariance(overlap, b), strict=True
        ):
            assert abs(drawn.mean() - exact) < 5 * drawn.std() / np.sqrt(runs)


@pytest.mark.parametrize("b", [0.0, 0.5, 2.0, 10.0, 40.0])
def test_random_diffusion_vs_covariance(b):
    r = np.array([-0.999, -0.3, 0.5, 0.99])
    for d in (2, 3, 9):
        law = tr.random_diffusion(d, b)
        own, cross = tr.random_covariance(r, b)
        drift = ((d - 2 + r * r) * cross - (d - 1) * r * own) / d
        np.testing.assert_allclose(law.overlap_drift(r), drift, atol=1e-11)
        np.testing.assert_allclose(law.overlap_variation(r), 2 / d * (1 - r * r) * (own - r * cross), atol=1e-11)
        assert law.rate_at_antipode == pytest.approx((tr.antipode_criterion(d, b) - 2) / d, abs=1e-10)
        assert law.rate_at_consensus == pytest.approx(-(d - 1) / d, abs=1e-10)


def test_random_query_keys_at_zero_scale_are_uniform_attention():
    assert tr.random_diffusion(4, 0.0).expectation(lambda r: r, 1.0) == pytest.approx(0.2118357210, abs=6e-11)


def test_random_query_keys_remove_the_antipodal_phase():
    """Claim C20: none at d = 8, b = 4, where fixed query-keys of β = 4 send a quarter of the pairs to the antipode."""
    assert tr.random_antipode_probability(8, 4.0) == 0.0
    assert tt.fixed_antipode_probability(8, 4.0) > 0.2
    np.testing.assert_array_equal(tr.random_antipode_probability(4, 1.77, [-0.999, 0.0]), 0.0)
    assert 0.12 < tr.random_antipode_probability(3, 2.0) < 0.18
    # in the plane b = 0 treats both ends alike
    assert tr.random_antipode_probability(2, 0.0) == pytest.approx(0.5, abs=1e-12)


def test_antipodal_probability_vs_chain_of_tokens():
    """Two tokens in R³, random V and A, b = 2, v = 0.05, τ = 80: P(R < -0.9) within 5 standard errors (0.034)."""
    rng = np.random.default_rng(12)
    runs, v, d = 3000, 0.05, 3
    x, y = np.zeros((2, runs, d))
    x[:, 0], y[:, 1] = 1, 1
    for _ in range(1600):
        m, w = drawn_attention(x, y, 2.0, rng)
        value = np.sqrt(v / d) * rng.standard_normal((runs, d, d))
        x, y = (z + np.einsum("rij,rj->ri", value, a) for z, a in ((x, m), (y, w)))
        x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    p = tr.random_antipode_probability(3, 2.0)
    assert abs(np.mean((x * y).sum(1) < -0.9) - p) < 5 * np.sqrt(p * (1 - p) / runs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tt.uniform_expectation(-1.0, 4), "`time` must be ≥ 0"),
        (lambda: tt.uniform_expectation(1.0, 1), "`d` must be an integer ≥ 2"),
        (lambda: tt.uniform_expectation(1.0, 4, 1.2), "`start` must be a finite number ≥ -1 and ≤ 1"),
        (lambda: tt.fixed_antipode_probability(8, -1.0), "`beta` must be a finite number ≥ 0"),
        (lambda: tt.fixed_antipode_probability(8, 1.0, [0.0, 2.0]), "`start` must be ≥ -1 and ≤ 1"),
        (lambda: tt.critical_beta(1), "`d` must be an integer ≥ 2"),
        (lambda: tt.self_preference(2.0, 1.0), "`overlap` must be ≥ -1 and ≤ 1"),
        (lambda: tr.random_diffusion(3, -1.0), "`logit_scale` must be a finite number ≥ 0 and ≤ 100"),
        (lambda: tr.random_diffusion(3, 1e3), "`logit_scale` must be a finite number ≥ 0 and ≤ 100"),
        (lambda: tr.random_covariance(1.5, 1.0), "`overlap` must be ≥ -1 and ≤ 1"),
        (lambda: tr.smallest_criterion(3), "`d` must be an integer ≥ 4"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
