import math

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.homogenized.attended import (
    attended_gram,
    fixed_attention,
    sampled_attention,
    simplex_attention,
    small_b_attention,
    uniform_attended,
)
from pathlines.limit.homogenized.gram import (
    gram_flow,
    gram_layer,
    gram_layers,
    overlap_drift,
    quadratic_variation,
)
from pathlines.limit.homogenized.overlap_curve import layer_map_curve, overlap_curve
from pathlines.limit.homogenized.participation import mean_participation
from pathlines.limit.homogenized.simplex import simplex_table


def tokens(n, d, seed):
    x = np.random.default_rng(seed).standard_normal((n, d)) + 0.3
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def simplex(n, gamma):
    return (1 - gamma) * np.eye(n) + gamma


def test_drift_and_variation_vs_drawn_steps():
    """One step x ← N(x+√v ζ), Cov(ζ_i,ζ_j) = s_ij/d; antithetic pairs give the drift, odd parts the variation."""
    n, d, v = 3, 6, 2e-3
    x = tokens(n, d, 0)
    k = x @ x.T
    factor = np.random.default_rng(1).standard_normal((n, n))
    s = 0.5 * factor @ factor.T
    zeta = factor @ np.random.default_rng(2).standard_normal((100_000, n, d)) * math.sqrt(0.5 * v / d)
    moved = []
    for sign in (1, -1):
        y = x + sign * zeta
        y /= np.linalg.norm(y, axis=2, keepdims=True)
        moved.append(y @ np.swapaxes(y, 1, 2) - k)
    even, odd = (0.5 * (moved[0] + sign * moved[1]) for sign in (1, -1))
    slope, error = np.mean(even, axis=0) / v, np.std(even, axis=0) / v / math.sqrt(len(even))
    drift = overlap_drift(k, s, d)
    assert np.all(np.abs(slope - drift) < 5 * error + 0.02 * np.max(np.abs(drift)))  # the step itself is an O(v) bias
    square = odd**2 / v
    variation = quadratic_variation(k, s, d)
    error = np.std(square, axis=0) / math.sqrt(len(square))
    assert np.all(np.abs(np.mean(square, axis=0) - variation) < 5 * error + 0.02 * np.max(variation))
    assert np.max(error) < 0.02 * np.max(variation)


def test_drift_is_the_gram_flow_at_infinite_dimension():
    k = tokens(5, 3, 4)
    k = k @ k.T
    s = fixed_attention(k, 2.0)
    delta = np.diag(np.diag(s))
    np.testing.assert_allclose(overlap_drift(k, s), s - 0.5 * (delta @ k + k @ delta), atol=1e-15)
    assert np.all(quadratic_variation(k, s, math.inf) == 0)
    assert np.max(np.abs(np.diag(overlap_drift(k, s, 7)))) < 1e-15


@pytest.mark.parametrize("d", [math.inf, 9])
def test_short_layers_follow_the_drift(d):
    k = tokens(5, 3, 5)
    k = k @ k.T
    s = fixed_attention(k, 1.0)
    gaps = [np.max(np.abs((gram_layer(k, s, v, d).gram - k) / v - overlap_drift(k, s, d))) for v in (1e-3, 5e-4)]
    assert gaps[0] / gaps[1] == pytest.approx(2.0, rel=0.01)


def test_layer_vs_its_definition():
    k = tokens(4, 3, 6)
    k = k @ k.T
    s, v = fixed_attention(k, 1.5), 0.4
    new = gram_layer(k, s, v).gram
    np.testing.assert_allclose(new[0, 2], (k[0, 2] + v * s[0, 2]) / math.sqrt((1 + v * s[0, 0]) * (1 + v * s[2, 2])))
    powers = np.array([1.0, 2.0, 0.5, 3.0])
    pre = gram_layer(k, s, v, powers=powers)
    m = np.sqrt(np.outer(powers, powers)) * k + v * s
    np.testing.assert_allclose(pre.powers, np.diag(m), rtol=1e-14)
    np.testing.assert_allclose(pre.gram, m / np.sqrt(np.outer(np.diag(m), np.diag(m))), rtol=1e-13)


@pytest.mark.parametrize(("norm", "d"), [("post", math.inf), ("pre", math.inf), ("post", 30), ("pre", 30)])
def test_layers_of_a_simplex_vs_the_scalar_map(norm, d):
    table = simplex_table(6, 2.0)
    states = gram_layers(simplex(6, 0.1), lambda k: simplex_attention(k[0, 1], table), 10, 0.3, d=d, pre=norm == "pre")
    scalar = layer_map_curve(10, 6, 2.0, 0.3, norm=norm, d=d, gamma0=0.1).overlap
    np.testing.assert_allclose(states[:, 0, 1], scalar, rtol=1e-12)
    np.testing.assert_allclose(states[-1], simplex(6, scalar[-1]), rtol=1e-12)


@pytest.mark.parametrize("d", [math.inf, 30])
def test_flow_of_a_simplex_vs_the_scalar_curve(d):
    table, times = simplex_table(6, 2.0), np.array([0.0, 0.5, 3.0])
    flow = gram_flow(simplex(6, 0.1), lambda k: simplex_attention(k[0, 1], table), times, d=d)
    np.testing.assert_allclose(flow[:, 0, 1], overlap_curve(times, 6, 2.0, d=d, gamma0=0.1), rtol=1e-8)


def test_uniform_attention_conserves_ratios_of_gaps():
    """Without logits every 1-K_ij shrinks at the rate m: what is left of the Möbius invariance at d = ∞."""
    k = tokens(5, 4, 8)
    k = k @ k.T
    end = gram_flow(k, uniform_attended, [2.0])[0]
    upper = np.triu_indices(5, 1)
    ratio = (1 - end[upper]) / (1 - k[upper])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)


def test_causal_uniform_attention_vs_specification():
    """Section 7: n = 64, power 0.25, orthogonal start; mean pairwise overlap after 8, 16, 24 layers."""
    n = 64
    weights = np.tri(n) / np.arange(1, n + 1)[:, None]
    upper = np.triu_indices(n, 1)
    for pre, expected in ((True, [0.163, 0.441, 0.616]), (False, [0.199, 0.655, 0.900])):
        states = gram_layers(np.eye(n), lambda k: attended_gram(k, weights), 24, 0.25, pre=pre)
        np.testing.assert_allclose([np.mean(states[i][upper]) for i in (8, 16, 24)], expected, atol=6e-4)


def test_fixed_attention_of_two_tokens_vs_closed_form():
    """Appendix A of the specification, t = tanh(β(1-R)/2)."""
    for r, beta in ((0.3, 2.0), (-0.8, 0.7)):
        t = math.tanh(beta * (1 - r) / 2)
        s = fixed_attention(simplex(2, r), beta)
        assert s[0, 1] == pytest.approx(((1 + r) - t * t * (1 - r)) / 2, abs=1e-15)
        assert s[0, 0] == pytest.approx(((1 + r) + t * t * (1 - r)) / 2, abs=1e-15)


def test_small_b_attention_vs_samples():
    k = tokens(4, 3, 9)
    k = k @ k.T
    gaps, errors = [], []
    for b in (0.2, 0.4):
        sampled = sampled_attention(k, b, samples=2**16, seed=3)
        gaps.append(np.max(np.abs(sampled.mean - small_b_attention(k, b))))
        errors.append(np.max(sampled.error))
    assert gaps[1] / gaps[0] == pytest.approx(16, rel=0.15)  # what is left is O(b⁴)
    assert errors[0] < 0.02 * gaps[0]
    np.testing.assert_allclose(small_b_attention(k, 0.0), uniform_attended(k), rtol=1e-14)


def test_small_b_attention_vs_moments_of_the_tokens():
    x, b = tokens(6, 3, 10), 0.5
    mean = x.mean(axis=0)
    covariance = (x - mean).T @ (x - mean) / len(x)
    expected = mean @ mean + b * b * (np.trace(covariance @ covariance) * x @ x.T - 2 * mean @ covariance @ mean)
    np.testing.assert_allclose(small_b_attention(x @ x.T, b), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "b", "p", "precision"),
    [(5, 2.0, math.inf, 1e-3), (3, 2.0, 4, 4e-4), (5, 0.0, math.inf, 1e-15), (5, math.inf, math.inf, 5e-3)],
)
def test_sampled_attention_on_the_simplex(n, b, p, precision):
    gamma = 0.4
    f, g = mean_participation(n, b, gamma, p)
    exact = gamma + (1 - gamma) * (g + (f - g) * np.eye(n))
    sampled = sampled_attention(simplex(n, gamma), b, p=p, samples=2**17 if n == 3 else 2**13, seed=4)
    assert np.max(sampled.error) < precision
    # at most 25 entries, 15 degrees of freedom: a Student variable exceeds 6.5 with probability 1e-5
    assert np.all(np.abs(sampled.mean - exact) <= 6.5 * sampled.error + 1e-14)


def test_sampled_attention_in_many_dimensions_and_its_error():
    n, gamma, b = 34, 0.3, 1.0
    exact = simplex_attention(gamma, simplex_table(n, b))
    sampled = sampled_attention(simplex(n, gamma), b, samples=512, seed=5)
    assert np.mean(np.abs(sampled.mean - exact) <= 2.2 * sampled.error) > 0.9
    again = sampled_attention(simplex(n, gamma), b, samples=512, seed=5)
    np.testing.assert_array_equal(again.mean, sampled.mean)
    assert np.any(sampled_attention(simplex(n, gamma), b, samples=512, seed=6).mean != sampled.mean)


def test_sampled_causal_attention_without_logits():
    k = tokens(5, 3, 11)
    k = k @ k.T
    weights = np.tri(5) / np.arange(1, 6)[:, None]
    sampled = sampled_attention(k, 0.0, causal=True, samples=32)
    np.testing.assert_allclose(sampled.mean, attended_gram(k, weights), rtol=1e-13)


def test_sampled_attention_of_coinciding_tokens():
    sampled = sampled_attention(np.ones((3, 3)), 4.0, samples=32)
    np.testing.assert_allclose(sampled.mean, 1.0, rtol=1e-13)


IMPOSSIBLE = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])  # least eigenvalue -0.8


def test_impossible_overlaps_are_told_their_eigenvalue():
    with pytest.raises(ArgumentError, match=r"eigenvalue -0\.8"):
        gram_flow(IMPOSSIBLE, uniform_attended, [1.0])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: overlap_drift(np.array([[1.0, 0.2], [0.3, 1.0]]), np.eye(2)), "gram"),
        (lambda: overlap_drift(2 * np.eye(2), np.eye(2)), "gram"),
        (lambda: overlap_drift(np.eye(2), np.eye(3)), "attended"),
        (lambda: overlap_drift(np.eye(2), np.eye(2), d=0), "d"),
        (lambda: gram_layer(np.eye(2), np.eye(2), -1.0), "v"),
        (lambda: gram_layer(np.eye(2), np.eye(2), 1.0, powers=[1.0]), "powers"),
        (lambda: gram_flow(np.eye(2), uniform_attended, [2.0, 1.0]), "times"),
        (lambda: gram_layers(np.eye(2), uniform_attended, 0, 0.1), "layers"),
        (lambda: sampled_attention(np.eye(2), -1.0), "b"),
        (lambda: sampled_attention(np.eye(2), 1.0, p=0), "p"),
        (lambda: sampled_attention(np.eye(2), 1.0, samples=1), "samples"),
        (lambda: attended_gram(np.eye(2), np.ones((2, 3))), "weights"),
        (lambda: small_b_attention(np.eye(2), -1.0), "b"),
        (lambda: gram_flow(IMPOSSIBLE, uniform_attended, [1.0]), "gram"),
        (lambda: gram_layers(IMPOSSIBLE, uniform_attended, 1, 0.1), "gram"),
    ],
)
def test_bad_arguments(call, name):
    with pytest.raises(ArgumentError, match=f"`{name}`"):
        call()


K3 = np.array([[1.0, 0.3, -0.5], [0.3, 1.0, 0.1], [-0.5, 0.1, 1.0]])
WEIGHTS3 = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]])


@pytest.mark.parametrize(("v", "powers"), [(0.5, [1.0, 1.0, 1.0]), (3.0, [1.0, 1.0, 1.0]), (1.0, [2.0, 0.5, 1.0])])
def test_mean_of_a_layer_to_first_order_in_the_dimension(v, powers):
    """Tokens plus Gaussian noise of covariance (v/d)S, 160000 draws at d = 24: five errors and 1/d²."""
    d, runs, rng = 24, 160_000, np.random.default_rng(5)
    s, r = attended_gram(K3, WEIGHTS3), np.sqrt(powers)
    tokens = np.zeros((3, d))
    tokens[:, :3] = r[:, None] * np.linalg.cholesky(K3)
    noise = np.linalg.cholesky(v / d * s) @ rng.standard_normal((runs, 3, d))
    moved = tokens + noise
    moved /= np.linalg.norm(moved, axis=2, keepdims=True)
    found = moved @ np.swapaxes(moved, 1, 2)
    error = found.std(axis=0) / np.sqrt(runs)
    got = gram_layer(K3, s, v, d, powers, exact=True).gram
    assert np.all(np.abs(found.mean(axis=0) - got) <= 5 * error + 1 / d**2)
    first = gram_layer(K3, s, v, d, powers).gram
    assert np.abs(found.mean(axis=0) - got).max() < np.abs(found.mean(axis=0) - first).max()


def test_exact_layer_has_the_drift_of_short_layers():
    s = attended_gram(K3, WEIGHTS3)
    for d in (8.0, 100.0):
        short = (gram_layer(K3, s, 1e-6, d, exact=True).gram - K3) / 1e-6
        np.testing.assert_allclose(short, overlap_drift(K3, s, d), atol=1e-5)
    np.testing.assert_allclose(gram_layer(K3, s, 2.0, exact=True).gram, gram_layer(K3, s, 2.0).gram, rtol=1e-14)


@pytest.mark.parametrize("exact", [False, True])
def test_layer_map_on_the_simplex_vs_gram_layer(exact):
    table, gamma, v, d = simplex_table(5, 1.5), 0.2, 0.8, 20.0
    gram = (1 - gamma) * np.eye(5) + gamma
    for norm, r0 in (("post", 1.0), ("pre", 1.3)):
        whole = gram_layer(gram, simplex_attention(gamma, table), v, d, np.full(5, r0**2), exact)
        curve = layer_map_curve(1, 5, 1.5, v, d=d, norm=norm, r0=r0, gamma0=gamma, exact=exact)
        assert curve.overlap[1] == pytest.approx(whole.gram[0, 1], abs=1e-13)
