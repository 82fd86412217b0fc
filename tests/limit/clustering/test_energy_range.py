import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import energy_range as er
from references import clustering as ref

from .particles import tangent, usa_field


def uniform(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 51, 1024])
def test_sphere_mean_vs_bessel(d):
    with mp.workdps(40):
        for beta in (1e-10, 0.3, 4.0, 60.0, 99.9, 100.1, 650.0, 3e3, 1e5):
            x, nu = mp.mpf(beta), mp.mpf(d) / 2 - 1
            exact = mp.log(mp.gamma(mp.mpf(d) / 2) * (2 / x) ** nu * mp.besseli(nu, x))
            found = er.log_sphere_mean(d, beta)
            assert abs(found - exact) < 1e-15 + 2e-12 * min(1, abs(exact)) + 4e-16 * beta
            if beta < 600:
                assert abs(mp.mpf(float(er.sphere_mean(d, beta))) / mp.exp(exact) - 1) < 2e-12


def test_sphere_mean_digits_in_the_usual_range():
    with mp.workdps(40):
        for d in (2, 3, 16, 200):
            for beta in (0.5, 3.0, 20.0, 90.0):
                exact = mp.hyp0f1(mp.mpf(d) / 2, mp.mpf(beta) ** 2 / 4)
                assert abs(mp.mpf(float(er.sphere_mean(d, beta))) / exact - 1) < 2e-14


def test_sphere_mean_where_the_bessel_function_underflows():
    with mp.workdps(40):
        exact = mp.log(mp.hyp0f1(2500, mp.mpf(600) ** 2 / 4))
        assert er.log_sphere_mean(5000, 600.0) == pytest.approx(float(exact), rel=1e-12)


def test_sphere_mean_is_a_mean():
    g, weight = np.polynomial.legendre.leggauss(60)
    for d in (3, 5, 8):
        law = weight * (1 - g * g) ** ((d - 3) / 2)
        assert er.sphere_mean(d, 2.2) == pytest.approx((law * np.exp(2.2 * g)).sum() / law.sum(), rel=1e-6)
    assert er.sphere_mean(3, 0.0) == 1.0
    assert er.sphere_mean(1, 2.0) == pytest.approx(np.cosh(2.0), rel=1e-15)


def test_energy_minimum_table():
    for (d, beta), value in ref.ENERGY_MINIMA.items():
        assert er.energy_minimum(d, beta) == pytest.approx(value, abs=6e-14)


def test_energy_range_bounds_and_limits():
    assert er.energy_maximum(2.0) == np.exp(2.0) / 4
    assert np.all(er.energy_minimum(3, np.array([0.1, 1.0, 9.0])) < er.energy_maximum(np.array([0.1, 1.0, 9.0])))
    assert (er.energy_minimum(3, 0.0), er.energy_maximum(0.0)) == (0.0, 0.5)


def test_initial_alignment_vs_monte_carlo():
    """n = 60, d = 3, β = 1.5: the bias of a ratio is 21 standard errors here, and so is needed."""
    rng = np.random.default_rng(0)
    n, d, beta, draws = 60, 3, 1.5, 40_000
    x = uniform(rng, draws, n, d)
    g = np.einsum("sd,snd->sn", x[:, 0], x)
    weights = np.exp(beta * g)
    h = (weights * g).sum(axis=1) / weights.sum(axis=1)
    error = h.std() / np.sqrt(draws)
    found = er.initial_alignment(d, beta, n)
    # what is left out is of order 1/n²
    assert abs(h.mean() - found) < 5 * error + 2 / n**2
    without_bias = er.initial_alignment(d, beta) * (1 - np.exp(beta) / (n * er.sphere_mean(d, beta))) + np.exp(beta) / (
        n * er.sphere_mean(d, beta)
    )
    assert abs(h.mean() - without_bias) > 5 * error + 2 / n**2


def test_initial_alignment_limit():
    from scipy.special import iv

    assert er.initial_alignment(5, 2.0) == pytest.approx(iv(2.5, 2.0) / iv(1.5, 2.0), rel=1e-13)
    assert er.initial_alignment(16, 1.0, 2000) == pytest.approx(ref.INITIAL_ALIGNMENT, rel=1e-2)
    assert er.initial_alignment(4, 0.0) == 0.0


def test_initial_tangential_square_vs_monte_carlo():
    assert er.initial_tangential_square(500, 32, 1.0) == pytest.approx(ref.INITIAL_TANGENTIAL_SQUARE, rel=1e-2)
    rng = np.random.default_rng(1)
    n, d, beta, draws = 300, 3, 1.0, 8000
    x = uniform(rng, draws, n, d)
    weights = np.exp(beta * np.einsum("sd,snd->sn", x[:, 0], x))
    attended = np.einsum("sn,snd->sd", weights, x) / weights.sum(axis=1, keepdims=True)
    samples = (tangent(x[:, 0], attended) ** 2).sum(axis=1)
    found = er.initial_tangential_square(n, d, beta)
    # one token per draw, because tokens of one draw share their mean; the next order is relative O(1/n)
    assert abs(samples.mean() - found) < 5 * samples.std() / np.sqrt(draws) + 5 * found / n
    assert samples.std() / np.sqrt(draws) < 0.02 * found


def test_initial_tangential_square_at_beta_zero():
    assert er.initial_tangential_square(50, 4, 0.0) == pytest.approx(0.75 / 50, rel=1e-14)


def test_initial_pair_rate_vs_monte_carlo():
    rng = np.random.default_rng(2)
    n, d, beta = 10, 5, 2.0
    samples = []
    for x in uniform(rng, 6000, n, d):
        v = usa_field(x, beta)
        rates = v @ x.T
        samples.append((rates.sum() - np.trace(rates)) * 2 / (n * (n - 1)))
    error = np.std(samples) / np.sqrt(len(samples))
    assert er.initial_pair_rate(n, d, beta) == pytest.approx(ref.INITIAL_PAIR_RATE, abs=6e-7)
    assert abs(np.mean(samples) - er.initial_pair_rate(n, d, beta)) < 5 * error
    assert error < 0.01 * ref.INITIAL_PAIR_RATE


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: er.sphere_mean(0, 1.0), "`d` must"),
        (lambda: er.log_sphere_mean(3, -1.0), "`beta` must"),
        (lambda: er.energy_minimum(2.5, 1.0), "`d` must"),
        (lambda: er.initial_alignment(1, 1.0), "`d` must hold whole numbers ≥ 2"),
        (lambda: er.initial_alignment(3, 1.0, 1), "`n` must"),
        (lambda: er.initial_pair_rate(1, 3, 1.0), "`n` must"),
        (lambda: er.initial_tangential_square(10, 3, np.nan), "`beta` must"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
