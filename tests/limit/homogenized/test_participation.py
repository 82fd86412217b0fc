import math

import mpmath
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.coincidence import Sums, pair_coincidence, row_coincidence
from pathlines.limit.homogenized.participation import mean_participation, pair_average, participations
from pathlines.limit.homogenized.wishart import chi_square_rule, gauss_rule, node_counts, pair_rule, size_rule

# reference values of the specification of the homogenized family (section 13), p = ∞: n, b, γ, f, g
WIDE = [
    (2, 1, 0.0, 0.636838153968, 0.5),
    (2, 3, 0.5, 0.770324190452, 0.621737194117),
    (8, 2, 0.3, 0.368855152858, 0.178877078669),
    (16, 2, 0.0, 0.316450520652, 0.0625),
    (16, 4, 0.5, 0.453330054912, 0.183134290444),
    (32, 1, -0.02, 0.073827358297, 0.030690071162),
    (128, 4, 0.1, 0.379181800537, 0.013263425628),
    (1024, 4, 0.2, 0.215467148485, 0.004085911256),
    (1024, 8, 0.7, 0.320466351449, 0.078193057662),
]


@pytest.mark.parametrize(("n", "b", "gamma", "f", "g"), WIDE)
def test_wide_heads_vs_specification(n, b, gamma, f, g):
    np.testing.assert_allclose(mean_participation(n, b, gamma), (f, g), rtol=0, atol=3e-12)


def two_key_f(scale):
    """E[p² + (1-p)²] = (1 + E tanh²(D/2))/2 for p = logistic(D), D of variance 2B²."""
    root = mpmath.sqrt(2) * scale / 2
    density = lambda z: mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)  # noqa: E731
    mean = 2 * mpmath.quad(lambda z: mpmath.tanh(root * z) ** 2 * density(z), [0, 1, 3, 6, 12])
    return float((1 + mean) / 2)


def two_key_g(first, second, c, h=0.02):
    """(1 + E tanh(D/2) tanh(D'/2))/2 by a two-dimensional trapezoid sum, exact to rounding."""
    z = np.arange(-9.0, 9.0 + h / 2, h)
    weight = h * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    other = np.tanh(second / math.sqrt(2) * (c * z[:, None] + math.sqrt(1 - c * c) * z))
    return 0.5 * (1 + (weight * np.tanh(first / math.sqrt(2) * z)) @ other @ weight)


@pytest.mark.parametrize(("b", "gamma"), [(0.1, 0.9), (1, 0.0), (3, 0.5), (3, -0.7), (8, 0.95), (8, -0.99)])
def test_two_keys_vs_logistic_normal_integral(b, gamma):
    scale = b * math.sqrt(1 - gamma)
    f, g = mean_participation(2, b, gamma)
    assert f == pytest.approx(two_key_f(scale), rel=2e-12)
    # the factor in tanh(D/2) varies over 1/scale: the check itself needs a step below 0.3/scale
    assert g == pytest.approx(two_key_g(scale, scale, gamma), rel=2e-12, abs=1e-12)


def test_two_keys_with_unequal_scales():
    for first, second, c in ((0.3, 2.0, 0.4), (4.0, 1.5, -0.6), (6.0, 3.0, 0.97)):
        (g,) = pair_coincidence(np.array([2.0]), (first, second), c)
        assert g == pytest.approx(two_key_g(first, second, c), rel=2e-12)


@pytest.mark.parametrize(("n", "value"), [(16, 0.23680399), (128, 0.0983972), (1024, 0.0439010)])
def test_argmax_coincidence_vs_specification(n, value):
    f, g = mean_participation(n, math.inf, 0.5)
    assert f == 1.0
    assert g == pytest.approx(value, abs=5e-8 if n > 16 else 5e-9)


@pytest.mark.parametrize("gamma", [-0.9999, -0.9, -0.3, 0.0, 0.2, 0.9, 0.999999])
def test_argmax_of_two_keys_is_the_arcsine_law(gamma):
    expected = 0.5 + math.asin(gamma) / math.pi
    assert mean_participation(2, math.inf, gamma).g == pytest.approx(expected, rel=1e-12)


def test_large_logit_scales_tend_to_the_argmax():
    hard = mean_participation(64, math.inf, 0.4).g
    gaps = [abs(mean_participation(64, b, 0.4).g - hard) for b in (500.0, 1000.0, 2000.0)]
    np.testing.assert_allclose(np.array(gaps[:-1]) / gaps[1:], 4.0, rtol=0.02)  # smooth in the temperature 1/b


@pytest.mark.parametrize(("n", "scales", "c"), [(8, (3.0, 4.0), 0.6), (500, (7.0, 7.0), 0.8), (3, (20.0, 20.0), -0.95)])
def test_grid_vs_ridge(n, scales, c):
    keys = np.array([float(n)])
    grid, ridge = (pair_coincidence(keys, scales, c, method=m)[0] for m in ("grid", "ridge"))
    assert grid == pytest.approx(ridge, rel=1e-12)


@pytest.mark.parametrize(
    ("n", "b", "gamma"), [(2, 0.3, 0.5), (16, 2, 0.01), (1024, 8, 0.4), (10_000, 8, 0.95), (64, 64, 0.9)]
)
def test_halving_every_step_changes_nothing(n, b, gamma):
    keys, scale = np.array([float(n)]), b * math.sqrt(1 - gamma)
    fine = Sums(0.15, 38.0)
    np.testing.assert_allclose(row_coincidence(keys, scale), row_coincidence(keys, scale, fine), rtol=2e-12)
    pair = pair_coincidence(keys, (scale, scale), gamma), pair_coincidence(keys, (scale, scale), gamma, fine)
    np.testing.assert_allclose(*pair, rtol=3e-12)


def test_many_key_numbers_at_once():
    keys = np.array([2.0, 16.0, 1024.0, 10_000.0])
    together = np.array(participations(keys, 3.0, 0.4, math.inf))
    alone = np.array([mean_participation(int(n), 3.0, 0.4) for n in keys]).T
    np.testing.assert_allclose(together, alone, rtol=2e-12)


@pytest.mark.parametrize("n", [2, 7, 300, 10_000])
@pytest.mark.parametrize("b", [0.0, 0.4, 3.0, 8.0, 30.0])
def test_orthogonal_tokens_of_wide_heads_meet_by_chance(n, b):
    assert mean_participation(n, b, 0.0).g == pytest.approx(1 / n, rel=2e-12)


def test_uniform_attention():
    assert mean_participation(9, 0.0, 0.3) == (1 / 9, 1 / 9)
    assert mean_participation(9, 5.0, 1.0) == (1 / 9, 1 / 9)
    assert mean_participation(9, 0.0, 0.3, p=4) == (1 / 9, 1 / 9)
    assert mean_participation(9, math.inf, 1.0) == (1.0, 1.0)


def test_small_logit_scales():
    n, gamma = 12, 0.35
    rest = []
    for b in (0.1, 0.05):
        f, g = mean_participation(n, b, gamma)
        shift = b * b * (1 - gamma) * (n - 1) / n**2
        rest.append(np.array([f - 1 / n - shift, g - 1 / n - gamma * shift]))
    np.testing.assert_allclose(rest[0] / rest[1], 16.0, rtol=0.05)  # what is left is O(b⁴)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9])
def test_many_keys(gamma):
    b, n = 0.9, 10_000
    square = b * b * (1 - gamma)
    f, g = mean_participation(n, b, gamma)
    # law of large numbers for the partition function: relative corrections O(e^{4B²}/n)
    assert f == pytest.approx(math.exp(square) / n, rel=10 * math.exp(4 * square) / n)
    assert g == pytest.approx(math.exp(square * gamma) / n, rel=10 * math.exp(4 * square) / n)


def drawn_softmax_moments(n, b, gamma, p, draws, seed):
    """f, g and their standard errors from drawn query-key matrices: W, W' of width p, or a Gaussian matrix (p = ∞)."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky((1 - gamma) * np.eye(n) + gamma * np.ones((n, n)))
    if math.isinf(p):
        logits = b * root[:2, :2] @ rng.standard_normal((draws, 2, n)) @ root.T
    else:
        queries, keys = (rows @ rng.standard_normal((draws, n, p)) for rows in (root[:2], root))
        logits = b / math.sqrt(p) * queries @ np.swapaxes(keys, 1, 2)
    pi = np.exp(logits - logits.max(-1, keepdims=True))
    pi /= pi.sum(-1, keepdims=True)
    both = np.array([np.sum(pi[:, 0] ** 2, -1), np.sum(pi[:, 0] * pi[:, 1], -1)])
    return both.mean(1), both.std(1) / math.sqrt(draws)


@pytest.mark.parametrize(
    ("n", "b", "gamma", "p"), [(8, 2.0, 0.3, math.inf), (6, 2.0, 0.4, 3), (5, 3.0, -0.2, 8), (4, 1.0, 0.8, 1)]
)
def test_drawn_matrices(n, b, gamma, p):
    mean, error = drawn_softmax_moments(n, b, gamma, p, 60_000, seed=5)
    assert np.all(np.abs(np.array(mean_participation(n, b, gamma, p)) - mean) < 5 * error)


def test_narrow_heads_vs_specification():
    f, g = mean_participation(2, 1, 0.0, 16)
    assert f == pytest.approx(0.633257027497, abs=2e-12)
    assert g == pytest.approx(0.5, abs=1e-11)
    assert mean_participation(8, 2, 0.3, 16) == pytest.approx((0.361786303, 0.18072826), abs=5e-9)
    f, g = mean_participation(16, 2, 0.5, 64)
    assert f == pytest.approx(0.20326411674, abs=1e-11)
    assert g == pytest.approx(0.11730108728, abs=3e-11)


def test_narrow_heads_vs_tensor_rule():
    """The same average with Gauss-Laguerre and Gauss-Hermite in the entries of the Wishart matrix, two keys."""
    b, gamma, p = 1.0, 0.4, 24
    scale = b * math.sqrt(1 - gamma)
    (first, w1), (second, w2) = chi_square_rule(p, 8), chi_square_rule(p - 1, 8)
    z, wz = np.polynomial.hermite_e.hermegauss(8)
    total = 0.0
    for x, a in zip(first * p, w1, strict=True):
        for y, c in zip(second * (p - 1), w2, strict=True):
            for t, e in zip(z, wz / math.sqrt(2 * math.pi), strict=True):
                other = (gamma * math.sqrt(x) + math.sqrt(1 - gamma**2) * t) ** 2 + (1 - gamma**2) * y
                inner = gamma * x + math.sqrt((1 - gamma**2) * x) * t
                sizes = math.sqrt(x / p), math.sqrt(other / p)
                total += a * c * e * two_key_g(scale * sizes[0], scale * sizes[1], inner / math.sqrt(x * other), h=0.25)
    assert mean_participation(2, b, gamma, p).g == pytest.approx(total, abs=2e-10)


@pytest.mark.parametrize(
    ("b", "gamma", "p", "tolerance"), [(2.0, 0.3, 64, 2e-9), (4.0, 0.6, 256, 1e-8), (1.0, 0.3, 16, 2e-9)]
)
def test_more_nodes_change_little(b, gamma, p, tolerance):
    keys, scale = np.array([64.0]), b * math.sqrt(1 - gamma)
    more = tuple(math.ceil(1.4 * q) for q in node_counts(p))
    values = [pair_average(keys, scale, gamma, p, counts)[0] for counts in (node_counts(p), more)]
    assert values[0] == pytest.approx(values[1], rel=tolerance)


def test_wide_limit_is_reached_like_one_over_p():
    wide = np.array(mean_participation(8, 2, 0.3))
    slopes = [p * (np.array(mean_participation(8, 2, 0.3, p)) - wide) for p in (10**4, 10**6)]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=2e-3)


@pytest.mark.parametrize("p", [1, 2, 5, 64, 10**6])
@pytest.mark.parametrize("gamma", [-0.4, 0.0, 0.6, 0.9999])
def test_pair_rule_vs_wishart_laplace_transform(p, gamma):
    """E exp(-s(M11+M22) - 2tM12) = det(1 + (2/p) Σ Θ)^{-p/2} for M of the Wishart law of Σ, mean Σ."""
    rows = np.array(list(pair_rule(p, gamma, (9, 12, 5))))
    weight, first, second, c = rows.T
    assert np.sum(weight) == pytest.approx(1, abs=1e-12)
    s, t = 0.3, 0.1
    mean = np.sum(weight * np.exp(-s * (first**2 + second**2) - 2 * t * c * first * second))
    sigma, theta = np.array([[1, gamma], [gamma, 1]]), np.array([[s, t], [t, s]])
    exact = np.linalg.det(np.eye(2) + 2 / p * sigma @ theta) ** (-p / 2)
    assert mean == pytest.approx(exact, rel=3e-5 if p < 5 else 3e-7 if p < 64 else 1e-9)


def test_size_rule_has_the_moments_of_chi():
    for p in (1, 3, 64, 10**6):
        r, weight = size_rule(p, 6)
        moments = [1.0, 1 + 2 / p, (1 + 2 / p) * (1 + 4 / p)]
        np.testing.assert_allclose([np.sum(weight * r ** (2 * k)) for k in (1, 2, 3)], moments, rtol=1e-12)


def test_gauss_rule_of_an_even_law_is_gauss_legendre():
    x, w = np.polynomial.legendre.leggauss(40)
    nodes, weights = gauss_rule(x, w, 5)
    expected = np.polynomial.legendre.leggauss(5)
    np.testing.assert_allclose(nodes, expected[0], atol=1e-13)
    np.testing.assert_allclose(2 * weights, expected[1], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((1, 1.0, 0.0), "n"),
        ((2.5, 1.0, 0.0), "n"),
        ((4, -1.0, 0.0), "b"),
        ((4, math.nan, 0.0), "b"),
        ((4, 1.0, -1 / 3), "gamma"),
        ((4, 1.0, 1.01), "gamma"),
        ((4, 1.0, math.nan), "gamma"),
        ((4, 1.0, 0.0, 0), "p"),
        ((4, 1.0, 0.0, 2.5), "p"),
        ((4, 1.0, 0.0, math.nan), "p"),
    ],
)
def test_bad_arguments(arguments, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        mean_participation(*arguments)
