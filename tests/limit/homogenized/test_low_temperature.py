"""Reference values: section 13 of the project's specification 01-homogenized, unless another origin is named."""

import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized import low_temperature as lt

# the table's K_8(.5) = 0.45791096 is wrong in its last digit: 0.45791098 by the double integral below and by mpmath
KERNELS = {
    (8, 0.5): 0.45791097978450,
    (32, 0.2): 0.194310536821,
    (32, 0.5): 0.488598640085,
    (32, 0.9): 0.894380182200,
    (64, 0.2): 0.197081217540,
    (64, 0.5): 0.494220460201,
    (64, 0.9): 0.897259194646,
}


@pytest.mark.parametrize(("d", "overlap"), KERNELS)
def test_kernel_table(d, overlap):
    assert lt.pair_kernel(overlap, d) == pytest.approx(KERNELS[d, overlap], abs=6e-13)


def test_mean_cosine_table():
    assert lt.mean_cosine(0.3, 32) == pytest.approx(0.295742806164, abs=5e-13)
    assert lt.mean_cosine(0.7, 128) == pytest.approx(0.698596220609, abs=5e-13)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 36, 40, 128, 1000, 10**6])
def test_mean_cosine_vs_hypergeometric_at_thirty_digits(d):
    with mp.workdps(30):
        for r in (-0.999, -0.4, 0.05, 0.7, 0.9999, 1.0):
            gammas = mp.gammaprod([mp.mpf(d + 1) / 2], [mp.mpf(d) / 2]) ** 2
            exact = 2 * mp.mpf(r) / d * gammas * mp.hyp2f1(0.5, 0.5, mp.mpf(d) / 2 + 1, mp.mpf(r) ** 2)
            assert abs(lt.mean_cosine(r, d) / float(exact) - 1) < 3e-13  # SciPy's own error at odd d


def kernel_from_the_correlation_density(overlap, d, p):
    """∫ c̄_d(r) f(r) dr with the density of a sample correlation coefficient (Hotelling's form), in mpmath."""
    R, d, p = mp.mpf(overlap), mp.mpf(d), mp.mpf(p)

    def density(r):
        body = (1 - r * r) ** ((p - 3) / 2) / (1 - R * r) ** (p - mp.mpf(1) / 2)
        return body * mp.hyp2f1(0.5, 0.5, p + mp.mpf(1) / 2, (1 + R * r) / 2)

    constant = (p - 1) * mp.gamma(p) * (1 - R * R) ** (p / 2) / (mp.sqrt(2 * mp.pi) * mp.gamma(p + mp.mpf(1) / 2))
    gammas = (mp.gamma((d + 1) / 2) / mp.gamma(d / 2)) ** 2

    def cosine(r):
        return 2 * r / d * gammas * mp.hyp2f1(0.5, 0.5, d / 2 + 1, r * r)

    return constant * mp.quad(lambda r: density(r) * cosine(r), [-1, -0.5, 0, R, 1])


@pytest.mark.parametrize(("overlap", "d", "p"), [(0.5, 8, 8), (-0.3, 3, 5), (0.9, 12, 3)])
def test_kernel_vs_correlation_density(overlap, d, p):
    with mp.workdps(20):
        exact = float(kernel_from_the_correlation_density(overlap, d, p))
    assert lt.pair_kernel(overlap, d, p) == pytest.approx(exact, abs=1e-13)


def kernel_from_the_sphere(R, d, p, nodes=60):
    """Two Gaussian vectors of R^p by two coordinates (x, y) of a point on S^p: cosine (R+x)/√((1+Rx)²-(1-R²)y²)."""
    from scipy.special import roots_gegenbauer, roots_jacobi

    x, wx = roots_gegenbauer(nodes, (p - 1) / 2)
    t, wt = roots_jacobi(nodes, (p - 3) / 2, -0.5)
    y2 = (1 - x[:, None] ** 2) * (1 + t) / 2
    cosine = (R + x[:, None]) / np.sqrt((1 + R * x[:, None]) ** 2 - (1 - R * R) * y2)
    return wx @ lt.mean_cosine(cosine, d) @ wt / (wx.sum() * wt.sum())


@pytest.mark.parametrize("p", [8, 20, 100])
@pytest.mark.parametrize("d", [8, 50])
def test_kernel_vs_double_integral(d, p):
    for overlap in (-0.8, 0.1, 0.6, 0.97):
        tolerance = 3e-10 if p == 8 else 1e-13  # a kink at the boundary of the disc slows the reference at small p
        assert lt.pair_kernel(overlap, d, p) == pytest.approx(kernel_from_the_sphere(overlap, d, p), abs=tolerance)


@pytest.mark.parametrize(("d", "p"), [(2, 2), (3, 3), (10, 10), (10, 4)])
def test_kernel_vs_monte_carlo(d, p):
    """Mean of ⟨Ax/|Ax|, Ay/|Ay|⟩ over drawn W, W', within 5 standard errors."""
    rng = np.random.default_rng(11)
    runs, overlap = 60000, 0.6
    w, w2 = rng.standard_normal((2, runs, d, p))
    x, y = np.eye(d)[0], overlap * np.eye(d)[0] + np.sqrt(1 - overlap**2) * np.eye(d)[1]
    ax, ay = (np.einsum("rip,rp->ri", w, np.einsum("rjp,j->rp", w2, z)) for z in (x, y))
    cosine = (ax * ay).sum(1) / np.linalg.norm(ax, axis=1) / np.linalg.norm(ay, axis=1)
    assert abs(cosine.mean() - lt.pair_kernel(overlap, d, p)) < 5 * cosine.std() / np.sqrt(runs)


def test_first_order_of_the_kernel_counts_two_factors():
    """d(K_d-R)/(R(1-R²)) at R = ½: -0.97292 (d = 32), -0.98637 (d = 64) of claim C13, -1 in the limit and not -½."""
    for d, value in ((32, -0.97292), (64, -0.98637)):
        assert d * (lt.pair_kernel(0.5, d) - 0.5) / (0.5 * 0.75) == pytest.approx(value, abs=6e-6)
    big = 10**5
    assert big * (lt.pair_kernel(0.5, big) - 0.5) / (0.5 * 0.75) == pytest.approx(-1, abs=3e-5)
    assert big * (lt.pair_kernel(0.5, big, np.inf) - 0.5) / (0.5 * 0.75) == pytest.approx(-0.5, abs=3e-5)
    r = np.linspace(-1, 1, 9)
    for d, p in ((300, 300), (300, 900), (300, np.inf)):
        gap = lt.pair_kernel(r, d, p) - lt.pair_kernel_expansion(r, d, p)
        assert np.max(np.abs(gap)) < 2 / 300**2


def test_kernel_is_odd_and_ends_at_one():
    r = np.array([-1.0, -0.3, 0.0, 0.3, 1.0])
    values = lt.pair_kernel(r, 6)
    np.testing.assert_allclose(values, -values[::-1], atol=1e-15)
    assert values[-1] == 1.0
    assert values[2] == pytest.approx(0.0, abs=1e-16)


@pytest.mark.parametrize(("d", "p"), [(7, 7), (12, 5), (6, np.inf), (40, 30)])
def test_slope_at_one_vs_difference(d, p):
    """(1-K(1-u))/u at two u, extrapolated: K'(1) = (d-1)/(d-2)·(p-1)/(p-2)."""
    u = 1e-4
    first, second = ((1 - lt.pair_kernel(1 - h, d, p)) / h for h in (u, u / 2))
    assert 2 * second - first == pytest.approx(lt.kernel_slope_at_one(d, p), rel=2e-5)


def test_near_collapse_rate():
    for d, p in ((5, 5), (64, 64), (10, 4), (9, np.inf)):
        slope = lt.kernel_slope_at_one(d, p)
        assert lt.near_collapse_rate(d, p) == pytest.approx(((d - 3) * slope - (d - 1)) / d, abs=1e-15)
        law = lt.pair_diffusion(d, p)
        assert law.rate_at_consensus == pytest.approx(lt.near_collapse_rate(d, p), abs=1e-9)
        assert law.rate_at_antipode == pytest.approx(law.rate_at_consensus, abs=1e-12)
    assert lt.near_collapse_rate(64) == pytest.approx(-(63 / 64) / 62**2, rel=1e-13)
    # narrow heads drive a nearly collapsed pair apart
    assert lt.near_collapse_rate(64, 16) > 0


def test_pair_diffusion_is_the_diffusion_of_the_overlap():
    r = np.array([-0.999, -0.5, 1e-5, 0.2, 0.9, 0.9999])
    for d, p in ((3, 3), (4, 8), (16, 16), (500, np.inf)):
        law = lt.pair_diffusion(d, p)
        kernel = lt.pair_kernel(r, d, p)
        drift = ((d - 2 + r * r) * kernel - (d - 1) * r) / d
        np.testing.assert_allclose(lt.pair_drift(r, d, p), drift, atol=1e-15)
        np.testing.assert_allclose(law.overlap_drift(r), drift, atol=1e-10)
        np.testing.assert_allclose(law.overlap_variation(r), lt.pair_variation(r, d, p), atol=1e-10)
        np.testing.assert_allclose(lt.pair_variation(r, d, p), 2 / d * (1 - r * r) * (1 - r * kernel), atol=1e-15)


def test_pair_diffusion_is_continuous_where_the_kernel_loses_its_digits():
    y = np.arccosh(1e3) + np.array([-1e-3, 1e-3])
    for d in (3, 4, 5, 64):
        law = lt.pair_diffusion(d)
        low, high = law.drift(y)
        assert high == pytest.approx(low, abs=1e-7)


def simulated_pairs(d, time, v, pairs, seed):
    """R² of pairs x <- N(x + V Ax/|Ax|), V_ij of variance v/d, from R = 0; the cosine of (Ax, Ay) is drawn."""
    rng = np.random.default_rng(seed)

    def cosine(r):
        a, b = rng.standard_normal((2, pairs, d))
        b = r[:, None] * a + np.sqrt(1 - r * r)[:, None] * b
        return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))

    x, y = np.zeros((2, pairs, d))
    x[:, 0], y[:, 1] = 1, 1
    for _ in range(round(time / v)):
        c = cosine(cosine((x * y).sum(1)))[:, None]
        first, second = np.sqrt(v / d) * rng.standard_normal((2, pairs, d))
        x, y = x + first, y + c * first + np.sqrt(1 - c * c) * second
        x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    return (x * y).sum(1) ** 2


def test_pair_diffusion_vs_chain_of_pairs():
    """E R² at d = 6, τ = 3; 5 standard errors (0.012) cover the O(v) bias of the chain as well."""
    squares = simulated_pairs(6, 3.0, 0.05, 15000, seed=3)
    expected = lt.pair_diffusion(6).expectation(lambda r: r * r, 3.0)
    assert abs(squares.mean() - expected) < 5 * squares.std() / np.sqrt(squares.size)


BESSEL = {(3, 1): 0.313035285499, (8, 5): 0.494449764064, (128, 50): 0.344762234110}


@pytest.mark.parametrize(("d", "concentration"), BESSEL)
def test_bessel_table(d, concentration):
    assert lt.bessel_ratio(d, concentration) == pytest.approx(BESSEL[d, concentration], abs=5e-13)


@pytest.mark.parametrize("d", [1, 2, 3, 17, 600, 5000])
def test_bessel_ratio_vs_thirty_digits(d):
    with mp.workdps(30):
        for x in (1e-6, 0.3, 20.0, 900.0, 2e4):
            exact = mp.besseli(mp.mpf(d) / 2, x, maxterms=10**6) / mp.besseli(mp.mpf(d) / 2 - 1, x, maxterms=10**6)
            assert abs(lt.bessel_ratio(d, x) / float(exact) - 1) < 1e-12


def test_bessel_ratio_at_the_extremes():
    """coth x - 1/x in three dimensions; large d against x/(ν+½+√((ν+3/2)²+x²)) ≤ r ≤ x/(ν+½+√((ν+½)²+x²)) (Amos)."""
    x = np.array([50.0, 1e7, 1e9, 1e15])
    np.testing.assert_allclose(lt.bessel_ratio(3, x), 1 - 1 / x, rtol=1e-15)
    for d in (1e6, 1e8):
        for x in (1e-3, 1e3, 1e8, 1e12):
            nu = d / 2 - 1
            low = x / (nu + 0.5 + np.hypot(nu + 1.5, x))
            high = x / (nu + 0.5 + np.hypot(nu + 0.5, x))
            assert low * (1 - 1e-14) <= lt.bessel_ratio(d, x) <= high * (1 + 1e-14)
    assert lt.bessel_ratio(5, 0.0) == 0.0
    assert lt.bessel_ratio([2, 3], [[1.0], [2.0], [3.0]]).shape == (3, 2)


def test_bessel_ratio_is_a_mean_on_the_sphere():
    """∫ t e^{λt}(1-t²)^{(d-3)/2} dt / ∫ e^{λt}(1-t²)^{(d-3)/2} dt."""
    from scipy.special import roots_gegenbauer

    for d, lam in ((4, 2.5), (11, 7.0)):
        t, w = roots_gegenbauer(60, (d - 2) / 2)
        weight = w * np.exp(lam * t)
        assert lt.bessel_ratio(d, lam) == pytest.approx(weight @ t / weight.sum(), rel=1e-13)


def test_slow_motion_bound():
    assert lt.slow_motion_bound(0.0, 64, 1e4) == 0.0
    by_hand = 2 / 64 + 3 * (np.sqrt(2 / 64 * np.log(10)) + 2 * (64**-1.5 + 0.01))
    assert lt.slow_motion_bound(2.0, 64, 1e4, 0.1, 3.0) == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lt.pair_kernel(1.2, 8), "`overlap` must be ≥ -1 and ≤ 1"),
        (lambda: lt.pair_kernel(0.5, 1), "`d` must be an integer ≥ 2"),
        (lambda: lt.pair_kernel(0.5, 8, 1), "`qk_dim` must be a whole number ≥ 2 or inf"),
        (lambda: lt.pair_kernel(0.5, 8, 3.5), "`qk_dim` must be a whole number ≥ 2 or inf"),
        (lambda: lt.mean_cosine(np.nan, 8), "`overlap` must be finite"),
        (lambda: lt.kernel_slope_at_one(2), "`d` must be an integer ≥ 3"),
        (lambda: lt.pair_diffusion(8, 2), "`qk_dim` must be a whole number ≥ 3 or inf"),
        (lambda: lt.bessel_ratio(3, -1.0), "`concentration` must be ≥ 0"),
        (lambda: lt.bessel_ratio(0, 1.0), "`d` must be ≥ 1"),
        (lambda: lt.slow_motion_bound(-1.0, 8, 10.0), "`time` must be a finite number ≥ 0"),
        (lambda: lt.slow_motion_bound(1.0, 8, 10.0, 1.5), "`failure` must be > 0 and < 1"),
        (lambda: lt.slow_motion_bound(1.0, 8, 0.0), "`beta_eff` must be a finite number > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
