"""Random numbers of a layer: the generator's bits, normals, chi variates, Bartlett factors, span factors."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st

from pathlines.domain import Sphere
from pathlines.domain.space import pair_deficits
from pathlines.domain.span import cholesky, reduced
from pathlines.numerics.chi import bartlett_counts, bartlett_from, chi, chi_rounds
from pathlines.numerics.draws import Draws, folded, gaussian_pairs, threefry_words
from pathlines.numerics.single_factorisations import cholesky_factor

KEY = jax.random.key(11)
short = jax.jit(reduced)
LEVEL = 1e-4
"""Kolmogorov-Smirnov level: seeds are fixed, and a correct sampler fails a test of this file with probability 2e-3."""


@partial(jax.jit, static_argnums=(0, 1, 2))
def _numbers(normals, uniforms, dtype):
    draws = Draws(KEY, normals, uniforms, dtype)
    return draws.normal(normals), draws.uniform(uniforms)


def test_words_vs_jax_generator():
    words = jax.jit(lambda: threefry_words(KEY, jnp.uint32(0), 1001))()
    one, two = (np.asarray(w).astype(np.uint64) for w in words)
    assert np.array_equal((one << np.uint64(32)) | two, np.asarray(jax.random.bits(KEY, (1001,), "uint64")))

    for number in (0, 7, 2**31):
        pair = (f(KEY, number) for f in (folded, jax.random.fold_in))
        assert np.array_equal(*map(jax.random.key_data, pair))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_normals_and_uniforms(dtype):
    normals, uniforms = map(np.asarray, _numbers(200_001, 100_000, dtype))
    assert normals.dtype == uniforms.dtype == np.dtype(dtype)
    assert st.kstest(normals.astype(float), "norm").pvalue > LEVEL
    assert st.kstest(uniforms.astype(float), "uniform").pvalue > LEVEL
    assert uniforms.min() > 0 and uniforms.max() < 1
    half = normals.size // 2
    pairs = np.corrcoef(normals[:half], normals[-half:])[0, 1], np.corrcoef(normals[:-1], normals[1:])[0, 1]
    assert np.abs(pairs).max() < 5 / np.sqrt(half)


def test_pairs_vs_library_functions():
    u, v = np.random.default_rng(0).random((2, 10_000))
    v[:4] = [0.125, 0.25, 0.375, 1 - 2**-53]
    wanted = np.sqrt(-2 * np.log(u)) * np.stack([np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)])
    np.testing.assert_allclose(jax.jit(gaussian_pairs)(u, v), wanted, rtol=0, atol=3e-15)


def test_numbers_are_handed_out_once():
    def take(*sizes):
        draws = Draws(KEY, 6, 2)
        return [draws.normal(k) for k in sizes], draws.uniform(3 - len(sizes))

    (first, second), _ = jax.jit(take, static_argnums=(0, 1))(4, 2)
    assert len(set(np.concatenate([first, second]).tolist())) == 6
    for sizes in ((4, 3), (), (7,)):
        with pytest.raises(AssertionError, match="announced"):
            jax.eval_shape(lambda s=sizes: take(*s))


def test_chi_vs_scipy():
    """All shapes in one program; the smallest and largest are what Bartlett factors of p = n and d = 10⁶ need."""
    freedom = np.array([0.5, 1.0, 2.0, 3.0, 7.5, 100.0, 1e6])
    sample = np.asarray(jax.jit(chi)(KEY, np.repeat(freedom, 40_000))).reshape(len(freedom), -1)
    for k, values in zip(freedom, sample, strict=True):
        assert st.kstest(values, st.chi(k).cdf).pvalue > LEVEL, k


@pytest.mark.parametrize("k", [2.0, 3.0, 10.0, 100.0])
def test_rejection_probability(k):
    """∫ φ(x) min(1, e^{x²/2 + a(1 - v + ln v)}) dx by the trapezoid rule: all rounds fail with probability < 1e-15."""
    a = k / 2 - 1 / 3
    x = np.linspace(-np.sqrt(9 * a) + 1e-9, 12, 400_001)
    cube = (1 + x / np.sqrt(9 * a)) ** 3
    accept = np.exp(np.minimum(0, x * x / 2 + a * (1 - cube + np.log(cube))))
    rejected = 1 - np.trapezoid(accept * st.norm.pdf(x), x)
    assert rejected < 0.1 / k
    assert rejected ** chi_rounds(k) < 1e-15


def test_bartlett_vs_wishart_moments():
    """E W = k I, Var W_ij = k(1 + δ_ij), and ln det W = Σ ln χ²_{k-i}."""
    n, k, count = 3, 5.0, 40_000
    normals, uniforms = bartlett_counts(n)
    draw = lambda: bartlett_from(Draws(KEY, count * normals, count * uniforms), n, k, (count,))  # noqa: E731
    factor = np.asarray(jax.jit(draw)())
    assert np.all(np.triu(factor, 1) == 0)
    wishart = factor @ np.swapaxes(factor, 1, 2)
    error = wishart.std(0) / np.sqrt(count)
    assert np.all(np.abs(wishart.mean(0) - k * np.eye(n)) < 5 * error)
    spread = ((wishart - k * np.eye(n)) ** 2).reshape(count, -1)
    wanted = (k * (1 + np.eye(n))).ravel()
    assert np.all(np.abs(spread.mean(0) - wanted) < 5 * spread.std(0) / np.sqrt(count))
    rng = np.random.default_rng(1)
    direct = np.linalg.slogdet(np.einsum("cik,cjk->cij", *[rng.normal(size=(count, n, int(k)))] * 2))[1]
    assert st.ks_2samp(np.linalg.slogdet(wishart)[1], direct).pvalue > LEVEL


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_reduced_keeps_the_gram_matrix(n):
    rows = jax.random.normal(KEY, (n, 40))
    factor = np.asarray(short(rows))
    assert factor.shape == (n, n)
    np.testing.assert_allclose(factor @ factor.T, rows @ rows.T, rtol=0, atol=1e-12 * 40)
    assert reduced(rows[:, :n]).shape == (n, n)


@pytest.mark.parametrize(("n", "scale"), [(4, 1e-3), (4, 1e-10), (20, 1e-6), (20, 1e-10)])
def test_reduced_near_collapse(n, scale):
    """Deficits down to 1e-20 keep their digits, where a Cholesky factor of K itself has none left at 1e-16."""
    apart = jax.random.normal(KEY, (n, 50))
    tokens = Sphere(50).retract(1 / jnp.sqrt(50.0) + scale * apart)
    wanted, found = np.asarray(pair_deficits(tokens)), np.asarray(pair_deficits(short(tokens)))
    off = ~np.eye(n, dtype=bool)
    assert np.abs(found[off] / wanted[off] - 1).max() < max(1e-10, 1e-15 / scale)


def test_reduced_degenerate_rows():
    """Coincident, antipodal and zero rows, and the exact simplex whose mean vanishes."""
    e = np.eye(12)
    for rows in (e[[0, 0, 0, 1, 1, 2, 3, 4, 5]], np.stack([e[0], -e[0]]), np.zeros((9, 12)), e[[0] * 9]):
        factor = np.asarray(short(rows))
        np.testing.assert_allclose(factor @ factor.T, rows @ rows.T, rtol=0, atol=1e-13)
    simplex = np.asarray(Sphere(12).simplex(9, -0.125))
    np.testing.assert_allclose(short(simplex) @ short(simplex).T, simplex @ simplex.T, rtol=0, atol=1e-13)


def test_cholesky_unrolled_vs_lapack():
    a = np.random.default_rng(3).normal(size=(6, 9))
    gram = jnp.asarray(a @ a.T)
    np.testing.assert_allclose(cholesky(gram), np.linalg.cholesky(gram), rtol=0, atol=1e-12)
    stack = jnp.stack([gram, 2 * gram])
    np.testing.assert_allclose(jax.vmap(cholesky_factor)(stack), np.linalg.cholesky(stack), rtol=0, atol=1e-13)
