"""Sums by harmonics against plain dense sums in float64, and the bounds on what they leave out."""

from functools import partial
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_gegenbauer, gamma, ive

from pathlines.attention import AlibiMask, HardmaxAttention, SoftmaxAttention, UnnormalisedAttention
from pathlines.foundation.errors import ArgumentError
from pathlines.kernels import attend
from pathlines.kernels.native import native_library
from pathlines.kernels.spectral import (
    admissible,
    coefficients,
    degree,
    noise_floor,
    spectral_attend,
    spectral_cost,
)
from pathlines.kernels.spectral.attend import native_sums, portable_attention, start_of
from pathlines.kernels.spectral.bessel import harmonics, spectrum, tail
from pathlines.kernels.spectral.potential import circle_potential
from pathlines.kernels.spectral.sphere import solid_harmonics

WAYS = {"portable": portable_attention} | ({"native": native_sums} if native_library() is not None else {})
KINDS = {"softmax": SoftmaxAttention(), "unnormalised": UnnormalisedAttention(0.7), "raw": None}
BOUND = 12.0
N = 300


@pytest.fixture(autouse=True, scope="module")
def registered():
    """The native kernels are known to JAX once they were asked for."""
    native_library()


def tokens(d, n=N, seed=0):
    x = np.random.default_rng([seed, d]).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def problem(d, dtype="float64", n=N):
    """Targets, sources, masses; both poles and close tokens among them."""
    x, y = tokens(d, n), tokens(d, n, 1)
    x[:2] = y[:2] = np.eye(d)[[-1, -1]] * [[1], [-1]]
    y[2] = x[2]
    masses = np.random.default_rng(3).dirichlet(np.ones(n))
    return tuple(jnp.asarray(a, dtype) for a in (x, y, masses))


def dense(x, y, masses, beta, causal=False):
    """(U, A) of the kernel e^{β(<x,y>-1)}, from differences."""
    x, y, masses = (np.asarray(a, np.float64) for a in (x, y, masses))
    weights = masses * np.exp(-beta / 2 * np.sum((x[:, None] - y) ** 2, axis=-1))
    weights = np.tril(weights) if causal else weights
    return weights.sum(axis=1), weights @ y


@partial(jax.jit, static_argnames=("way", "kind", "cut", "start", "causal"))
def by_harmonics(way, kind, x, y, masses, beta, cut, start, causal):
    return WAYS[way](KINDS[kind], x, y, masses, beta, cut, start, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("way", WAYS)
def test_sums_are_the_dense_sums(way, d, dtype, causal):
    """To the tolerance and the noise floor, at every β below the bound with one number of harmonics."""
    x, y, masses = problem(d, dtype)
    floor = noise_floor(BOUND, d, dtype)
    cut, start = degree(BOUND, d, floor), start_of(BOUND, d)
    for beta in (0.0, 1.0, 9.0, BOUND):
        vectors, potential = by_harmonics(way, "raw", x, y, masses, jnp.asarray(beta, dtype), cut, start, causal)
        exact = dense(x, y, masses, beta, causal)
        assert vectors.dtype == potential.dtype == dtype
        np.testing.assert_allclose(potential, exact[0], rtol=0, atol=3 * floor)
        np.testing.assert_allclose(vectors, exact[1], rtol=0, atol=3 * floor)


@pytest.mark.parametrize("kind", ["softmax", "unnormalised"])
@pytest.mark.parametrize(("way", "d"), [(w, d) for w in WAYS for d in (2, 3) if w == "native" or d == 2])
def test_kinds_of_attention(way, d, kind):
    """Softmax divides the error by Z_i."""
    x, y, masses = problem(d)
    beta, floor = 9.0, noise_floor(BOUND, d, "float64")
    potential, vectors = dense(x, y, masses, beta)
    cut, start = degree(BOUND, d, floor), start_of(BOUND, d)
    found, scale = by_harmonics(way, kind, x, y, masses, jnp.asarray(beta), cut, start, False)
    factor = 1 / potential[:, None] if kind == "softmax" else np.exp(beta - 0.7)
    assert np.all(np.abs(found - factor * vectors) <= 6 * floor * factor)
    if kind == "softmax":
        np.testing.assert_allclose(scale, beta + np.log(potential), atol=6 * floor / potential.min())
    else:
        assert np.all(np.asarray(scale) == 0.7)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("way", WAYS)
def test_truncation_keeps_its_promise_and_no_more(way, d):
    """At x = y, where the tail is largest: the error is the tail."""
    beta = 9.0
    x = jnp.asarray(tokens(d, N))
    one = jnp.zeros(N).at[5].set(1.0)
    cut = 9
    _, potential = by_harmonics(way, "raw", x, x, one, jnp.asarray(beta), cut, start_of(beta, d), False)
    error = np.abs(potential - dense(x, x, one, beta)[0])
    assert error[5] == pytest.approx(tail(beta, d, cut), abs=1e-14)
    assert error.max() <= tail(beta, d, cut) + 1e-14


def unit(x):
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


def scalar(function, x, y, masses, beta):
    """On the sphere: the polynomial extension of the series off it is not the exponential's."""
    return sum(jnp.sum(jnp.sin(v)) for v in function(unit(x), unit(y), masses, beta))


@pytest.mark.parametrize(("d", "causal"), [(2, False), (3, True)])
def test_gradients(d, causal):
    """Against the dense formula's: those of a series cut at degree l ≤ 8 are wrong by l² times its tail."""
    arguments = (*(a[:20] for a in problem(d)), jnp.asarray(0.4))
    cut, start = degree(0.5, d, 1e-10), start_of(0.5, d)
    ours = lambda *a: portable_attention(SoftmaxAttention(), *a, cut, start, causal)  # noqa: E731
    mask = AlibiMask(strict=False) if causal else None
    theirs = lambda x, y, masses, beta: attend(SoftmaxAttention(), beta * x, y, y, masses, mask)  # noqa: E731
    gradients = jax.jit(lambda *a: [jax.grad(partial(scalar, f), (0, 1, 2, 3))(*a) for f in (ours, theirs)])
    for found, expected in zip(*gradients(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_native_derivatives_are_those_of_the_portable_formula():
    arguments = (*(a[:20] for a in problem(2)), jnp.asarray(0.9))
    turn = (*(jnp.asarray(tokens(2, 20, s)) for s in (7, 8)), arguments[2], jnp.asarray(0.3))
    cut, start = degree(1.0, 2, 1e-11), start_of(1.0, 2)
    one = lambda way, a, t: jax.jvp(partial(scalar, lambda *a: way(SoftmaxAttention(), *a, cut, start, False)), a, t)[1]  # noqa: E731
    found = jax.jit(lambda a, t: [one(way, a, t) for way in WAYS.values()])(arguments, turn)
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


@pytest.mark.parametrize(("d", "causal"), [(2, False), (3, True)])
@pytest.mark.parametrize("way", WAYS)
def test_many_tokens_and_batches(way, d, causal):
    """More than a chunk, more than a piece, no multiple of either; a batch is its systems."""
    n, rows = 5003, slice(None, None, 500)
    x = jnp.asarray(np.stack([tokens(d, n, s) for s in range(2)]))
    betas, masses = jnp.asarray([1.0, 3.0]), jnp.full((2, n), 1 / n)
    cut, start = degree(3.0, d, 1e-12), start_of(3.0, d)
    run = jax.jit(jax.vmap(lambda x, m, b: WAYS[way](None, x, x, m, b, cut, start, causal)))
    vectors, potential = run(x, masses, betas)
    for i, beta in enumerate((1.0, 3.0)):
        y = np.asarray(x[i])
        weights = np.exp(beta * (y[rows] @ y.T - 1)) / n
        weights = np.where(np.arange(n) <= np.arange(n)[rows, None], weights, 0) if causal else weights
        np.testing.assert_allclose(potential[i, rows], weights.sum(axis=1), atol=2e-12)
        np.testing.assert_allclose(vectors[i, rows], weights @ y, atol=2e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 7])
def test_the_spectrum_is_that_of_bessel_functions(d):
    order = np.arange(31)
    found = jax.jit(lambda beta: spectrum(beta, d, 30, start_of(100.0, d)))
    for beta in (0.5, 9.0, 100.0):
        ratio = gamma(d / 2) * (2 / beta) ** (d / 2 - 1)
        np.testing.assert_allclose(found(jnp.asarray(beta)), ratio * ive(order + d / 2 - 1, beta), rtol=1e-12)


def test_degrees_are_those_of_the_table():
    """Minimal degrees of the notes on fast summation: d = 2 for 1e-6, 1e-12, 1e-15; d = 3 for 1e-6, 1e-12; d = 4."""
    table = {
        1: (7, 11, 13, 7, 12, 7),
        4: (11, 18, 21, 12, 18, 12),
        25: (25, 38, 43, 27, 39, 28),
        100: (49, 73, 82, 53, 75, 55),
        400: (98, 143, 162, 105, 149, 110),
    }
    asked = ((2, 1e-6), (2, 1e-12), (2, 1e-15), (3, 1e-6), (3, 1e-12), (4, 1e-6))
    for beta, expected in table.items():
        assert tuple(degree(beta, d, tolerance) for d, tolerance in asked) == expected
    assert degree(0.0, 2, 1e-12) == 0


def test_tails_are_below_the_bound_of_chernoff():
    """2 exp(sqrt(κ²+β²) - β - κ asinh(κ/β)), κ = K + 1, for the difference of two Poisson variables of mean β/2."""
    for beta in (1.0, 9.0, 400.0):
        for cut in range(0, 100, 7):
            kappa = cut + 1
            bound = 2 * np.exp(np.hypot(kappa, beta) - beta - kappa * np.arcsinh(kappa / beta))
            assert tail(beta, 2, cut) <= min(bound, 1) * (1 + 1e-12)


def test_harmonics_are_counted():
    assert [harmonics(2, k) for k in range(4)] == [1, 2, 2, 2]
    assert [harmonics(3, k) for k in range(4)] == [1, 3, 5, 7]
    for d in (2, 3, 5, 9):
        assert coefficients(d, 6) == sum(harmonics(d, k) for k in range(7))
    assert coefficients(4, 12) == comb(15, 3) + comb(14, 3) == 819


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tolerance_below_the_noise_is_refused(dtype):
    x, y, masses = problem(2, dtype, 10)
    floor = noise_floor(9.0, 2, dtype)
    assert admissible(9.0, 2, floor, dtype) and not admissible(9.0, 2, floor / 2, dtype)
    with pytest.raises(ArgumentError, match="noise"):
        spectral_attend(SoftmaxAttention(), x, y, 9.0, masses, floor / 2)
    spectral_attend(SoftmaxAttention(), x, y, 9.0, masses, floor)


def test_forces_below_the_noise_come_out_as_noise():
    """Two clusters at β = 81, a gap of 2: a true force of 7e-51, a sum of either sign near 1e-17."""
    angles = jnp.asarray([0.0] * 5 + [2.0] * 5)
    _, slope = circle_potential(angles, jnp.full(10, 0.1), jnp.asarray(81.0), 100)
    assert np.max(np.abs(slope)) / 81 < noise_floor(81.0, 2, "float64")


def test_arguments_are_checked():
    x, y, masses = problem(3, n=10)
    call = partial(spectral_attend, SoftmaxAttention())
    for message, bad in {
        "length 2 to 8": lambda: call(jnp.eye(9), jnp.eye(9), 1.0, jnp.ones(9)),
        "rows of length 3": lambda: call(x, y[:, :2], 1.0, masses),
        "as many targets": lambda: call(x[:5], y, 1.0, masses, mask=AlibiMask()),
        "softmax or unnormalised": lambda: spectral_attend(HardmaxAttention(), x, y, 1.0, masses),
        "beta_bound": lambda: jax.jit(lambda b: call(x, y, b, masses))(1.0),
        "`beta`": lambda: call(x, y, -1.0, masses),
        "above degree 120": lambda: call(*(a.astype("float32") for a in (x, y)), 900.0, masses, 1e-4),
    }.items():
        with pytest.raises(ArgumentError, match=message):
            bad()


def test_traced_temperatures_and_their_bound():
    x, y, masses = problem(2, n=10)
    run = jax.jit(lambda b: spectral_attend(SoftmaxAttention(), x, y, b, masses, beta_bound=5.0)[0])
    potential, vectors = dense(x, y, masses, 4.0)
    np.testing.assert_allclose(run(4.0), vectors / potential[:, None], atol=1e-9)
    assert bool(jnp.isnan(run(5.5)).all())


def test_low_temperatures_on_the_sphere():
    """Degree 230 at β = 1000: factors of 1e40 at the poles meet powers of zero."""
    if "native" not in WAYS:
        pytest.skip("slow without native code")
    x, y, masses = problem(3, n=60)
    found = spectral_attend(UnnormalisedAttention(1000.0), x, y, 1000.0, masses, 1e-12)[0]
    np.testing.assert_allclose(found, dense(x, y, masses, 1000.0)[1], atol=2e-12)


def test_general_weights_reduce_to_it():
    """Q^T K = c R and any V: y_j = R x_j, A = V R^T Σ_j a_ij y_j."""
    x = tokens(3, 50)
    q, r = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0], tokens(3, 3)
    query, key, value = 2 * q, np.linalg.qr(r)[0], np.random.default_rng(2).standard_normal((3, 3))
    rotation = query.T @ key / 2
    masses = jnp.full(50, 1 / 50)
    exact = attend(
        SoftmaxAttention(), jnp.asarray(x @ query.T), jnp.asarray(x @ key.T), jnp.asarray(x @ value.T), masses
    )
    out, scale = spectral_attend(SoftmaxAttention(), jnp.asarray(x), jnp.asarray(x @ rotation.T), 2.0, masses)
    np.testing.assert_allclose(out @ rotation @ value.T, exact[0], atol=1e-9)
    np.testing.assert_allclose(scale, exact[1], atol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_costs_grow_linearly(d):
    small, large = (spectral_cost(n, n, d, 4.0, 1e-12, "float64") for n in (10**5, 10**6))
    assert 9 < large / small < 10.1


def test_masked_sums_cost_more():
    assert spectral_cost(10**5, 10**5, 3, 4.0, 1e-12, "float64", masked=True) > spectral_cost(
        10**5, 10**5, 3, 4.0, 1e-12, "float64"
    )


@pytest.mark.parametrize("d", [3, 4, 6])
def test_solid_harmonics_add_up_to_gegenbauer_polynomials(d):
    """Σ_m Y_lm(x) Y_lm(y) = N(d, l) C_l(<x,y>)/C_l(1), and they are homogeneous of degree l."""
    x = np.random.default_rng(d).standard_normal((d, 7))
    x /= np.linalg.norm(x, axis=0)
    compiled = jax.jit(solid_harmonics, static_argnums=1)
    values, larger = np.asarray(compiled(jnp.asarray(x), 8)), np.asarray(compiled(jnp.asarray(2 * x), 8))
    first = 0
    for order in range(9):
        rows = slice(first, first := first + harmonics(d, order))
        exact = eval_gegenbauer(order, d / 2 - 1, x.T @ x) / eval_gegenbauer(order, d / 2 - 1, 1.0)
        np.testing.assert_allclose(values[rows].T @ values[rows], harmonics(d, order) * exact, atol=1e-11 * rows.stop)
        np.testing.assert_allclose(larger[rows], 2.0**order * values[rows], rtol=1e-12, atol=1e-12)
    assert first == len(values)
