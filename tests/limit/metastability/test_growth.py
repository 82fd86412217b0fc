"""Reference values: section 9 of the project's specification 04-metastability-and-modes, unless said."""

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability import growth

RATES = [
    (2, 1, 1, 0.20791041534971, 0.44638996589653),
    (2, 5, 3, 0.1252993361028, 0.68267833361675),
    (2, 9, 4, 0.09507858414351, 0.7044970292996),
    (2, 100, 14, 0.029286264350395, 0.73317610297821),
    (3, 25, 7, 0.014412011462984, 0.72060057314918),
    (8, 16, 3, 6.3118999699967e-4, 0.71571328988014),
    (64, 49, 2, 2.0853535502495e-15, 0.75822805982296),
]
THRESHOLDS = {
    2: (1.04445686211, 3.1654344427, 6.21129837943, 10.228483163, 15.2362767285),
    3: (1.81615452544, 4.4252930124, 7.96237985155, 12.4774331094, 17.9848939527),
    8: (5.25111070404, 10.5003416829, 16.5950434151, 23.6427038967, 31.6706318872),
    64: (42.618439455, 77.7365985202, 112.63663686),
}
BETAS = (1, 2, 4, 5, 7, 9, 16, 25, 49, 81, 100, 200, 400)
DOMINANT = {
    2: (1, 2, 3, 3, 4, 4, 6, 7, 10, 13, 14, 20, 28),
    3: (1, 2, 2, 3, 3, 4, 5, 7, 9, 12, 14, 20, 28),
    8: (1, 1, 1, 1, 2, 2, 3, 5, 7, 10, 11, 17, 25),
    64: (1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 3, 6, 11),
}


@pytest.mark.parametrize(("d", "beta", "k", "usa", "sa"), RATES)
def test_rates(d, beta, k, usa, sa):
    assert growth.growth_rates(beta, d, k, "usa")[-1] == pytest.approx(usa, rel=2e-13)
    assert growth.growth_rates(beta, d, k)[-1] == pytest.approx(sa, rel=2e-13)


def test_rates_by_quadrature_of_the_kernel():
    """Funk-Hecke by Gauss-Gegenbauer: g_k = ∫ e^{β(t-1)} C_k(t)/C_k(1) dμ(t), another route than Bessel functions."""
    d, beta, k = 5, 7.0, 3
    t, w = special.roots_gegenbauer(60, d / 2 - 1)
    legendre = special.eval_gegenbauer(k, d / 2 - 1, t) / special.eval_gegenbauer(k, d / 2 - 1, 1.0)
    coefficient = np.sum(w * np.exp(beta * (t - 1)) * legendre) / np.sum(w)
    assert growth.growth_rates(beta, d, k, "usa")[-1] == pytest.approx(k * (k + d - 2) / beta * coefficient, rel=1e-12)


@pytest.mark.parametrize("d", DOMINANT)
def test_dominant_degrees_and_their_law(d):
    found = [growth.dominant_degree(beta, d) for beta in BETAS]
    assert tuple(found) == DOMINANT[d] == tuple(growth.law_of_dominant_degree(BETAS, d))


@pytest.mark.parametrize("d", THRESHOLDS)
def test_thresholds(d):
    for k, value in enumerate(THRESHOLDS[d], start=1):
        assert growth.threshold(k, d) == pytest.approx(value, rel=1e-11)
        low, high = growth.growth_rates(value, d, k + 1)[-2:]
        assert low == pytest.approx(high, rel=1e-10)


def test_one_cluster_below_two_thirds_of_the_dimension():
    """β_{1→2}/d for d = 100, 1000, 10000 (claim G4 of the specification)."""
    for d, share in ((100, 0.66619829), (1000, 0.66662199), (10_000, 0.66666222)):
        assert growth.threshold(1, d) / d == pytest.approx(share, abs=1e-8)


def test_selection_probabilities():
    """The table of section 3.3 (200 000 draws, so ±0.0045 at four standard errors), and a sum of one."""
    table = {(5, 1e4): 0.585, (5, 1e9): 0.898, (9, 1e6): 0.596, (25, 1e4): 0.301, (81, 1e12): 0.361}
    for (beta, n), probability in table.items():
        found = growth.selection_probabilities(beta, n)
        assert found.sum() == pytest.approx(1, abs=1e-6)
        assert found[growth.dominant_degree(beta, 2) - 1] == pytest.approx(probability, abs=0.005)


def test_selection_against_draws():
    """40 000 draws of the modes: within 4 standard errors."""
    rng = np.random.default_rng(5)
    rates = growth.growth_rates(9.0, 2, 18)
    sizes = np.sqrt(rng.exponential(size=(40_000, 18)))
    first = np.argmin((0.5 * np.log(1e5) + np.log(0.1) - np.log(sizes)) / rates, axis=1)
    exact = growth.selection_probabilities(9.0, 1e5, count=18)
    shares = np.bincount(first, minlength=18) / 40_000
    assert np.all(np.abs(shares - exact) < 4 * np.sqrt(exact / 40_000) + 1e-4)


@pytest.mark.parametrize(("d", "beta", "count"), [(2, 4.0, 5), (3, 6.0, 4), (5, 4.0, 3)])
def test_selection_against_tokens(d, beta, count):
    """300 starts of 300 uniform tokens, powers by the addition theorem, P_k = ν_k/N² Σ_ij C_k(<x_i, x_j>)/C_k(1).

    Within 5 standard errors; the fourth cumulant moves the law of a power by 1/N.
    """
    rng, n, level = np.random.default_rng(d), 300, 0.3
    rates, sizes = growth.growth_rates(beta, d, count), growth.harmonics(d, count)
    a = d / 2 - 1
    first = []
    for _ in range(300):
        x = rng.standard_normal((n, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        inner = np.clip(x @ x.T, -1, 1)
        cosines = [special.eval_chebyt(k, inner) if d == 2 else special.eval_gegenbauer(k, a, inner)
                   / special.eval_gegenbauer(k, a, 1.0) for k in range(1, count + 1)]  # fmt: skip
        amplitudes = np.sqrt(sizes * np.mean(cosines, axis=(1, 2)) / 2)
        first.append(np.argmin(np.log(level / amplitudes) / rates))
    shares = np.bincount(first, minlength=count) / len(first)
    exact = growth.selection_probabilities(beta, n, level, count, d)
    assert exact.sum() == pytest.approx(1, abs=1e-9) and np.sum(exact > 0.1) > 1
    assert np.all(np.abs(shares - exact) < 5 * np.sqrt(exact * (1 - exact) / len(first)) + 1 / len(first))


def test_harmonics():
    """2 on the circle, 2k + 1 on S², (k + 1)² on S³."""
    k = np.arange(1, 8)
    for d, exact in ((2, np.full(7, 2)), (3, 2 * k + 1), (4, (k + 1) ** 2)):
        np.testing.assert_array_equal(growth.harmonics(d, 7), exact)


def test_mean_kernel_where_bessel_functions_underflow():
    exact = integrate.quad(lambda t: np.exp(3 * (t - 1)) * (1 - t * t) ** 298.5, -1, 1)[0]
    exact /= integrate.quad(lambda t: (1 - t * t) ** 298.5, -1, 1)[0]
    assert growth.mean_kernel(3.0, 600) == pytest.approx(exact, rel=1e-9)


def test_mean_kernel_in_high_dimension():
    """ln g_0 at d = 10⁴, β = 5000 by mpmath, 30 digits."""
    exact = log_kernel_mpmath(5000, 10_000)
    assert growth.log_mean_kernel(5000.0, 10_000) == pytest.approx(exact, rel=1e-13)
    assert growth.log_mean_kernel(3.0, 600) == pytest.approx(log_kernel_mpmath(3, 600), rel=1e-13)


def log_kernel_mpmath(beta, d):
    mpmath.mp.dps = 30
    a = mpmath.mpf(d) / 2 - 1
    return float(mpmath.loggamma(a + 1) + a * mpmath.log(mpmath.mpf(2) / beta)
                 + mpmath.log(mpmath.besseli(a, beta)) - beta)  # fmt: skip


def test_selection_of_few_tokens_sums_to_one():
    """N = 800, c = 0.1, where one start in 170 has a mode above c: 40 000 draws of the others, 4 standard errors."""
    rng = np.random.default_rng(6)
    sizes = np.sqrt(rng.exponential(size=(40_000, 18)) / 800)
    below = sizes[(sizes < 0.1).all(axis=1)]
    first = np.argmin(np.log(0.1 / below) / growth.growth_rates(9.0, 2, 18), axis=1)
    exact = growth.selection_probabilities(9.0, 800.0)
    assert exact.sum() == pytest.approx(1, abs=1e-9)
    assert np.all(np.abs(np.bincount(first, minlength=18) / len(below) - exact) < 4 * np.sqrt(exact / 4e4) + 1e-4)


def test_refusals():
    with pytest.raises(ArgumentError, match="`beta`"):
        growth.growth_rates(0.0, 2, 3)
    with pytest.raises(ArgumentError, match="`tokens`"):
        growth.selection_probabilities(5.0, 50.0)
    with pytest.raises(ArgumentError, match="start below the amplitude"):
        growth.selection_probabilities(9.0, 150.0)
