"""Domains and initial laws."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from pathlines.domain import Euclidean, Sphere
from pathlines.domain.space import pair_deficits, sines
from pathlines.foundation.errors import ArgumentError, PrecisionError

KEY = jax.random.key(7)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_tangent_is_orthogonal_and_retraction_is_unit(d, seed):
    sphere = Sphere(d)
    first, second = jax.random.split(jax.random.key(seed))
    x, v = sphere.uniform(first, 5), jax.random.normal(second, (5, d))
    np.testing.assert_allclose(np.sum(x * sphere.tangent(x, v), axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(sphere.retract(x + v), axis=1), 1, rtol=1e-15)


def test_distance_is_accurate_for_close_points():
    x = Sphere(3).normalise([[1.0, 0.0, 0.0]])
    y = Sphere(3).normalise([[1.0, 1e-9, 0.0]])
    assert float(Sphere(3).distance(x, y)[0]) == pytest.approx(1e-9, rel=1e-6)


def test_pair_deficits_keep_digits_where_dot_products_lose_them():
    x = Sphere(3).normalise([[1.0, 0.0, 0.0], [1.0, 1e-12, 0.0]])
    assert float(pair_deficits(x)[0, 1]) == pytest.approx(5e-25, rel=1e-3)


def test_uniform_moments():
    x = np.asarray(Sphere(4).uniform(KEY, 20_000))
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=5 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose((x**2).mean(axis=0), 0.25, atol=5 * np.sqrt(0.0625 * 2 / 6 / 20_000) * 1.5)


@pytest.mark.parametrize("d", [8, 40])
def test_span_factor_has_the_law_of_overlaps_of_uniform_points(d):
    keys = jax.random.split(KEY, 4000)
    span = jax.vmap(lambda k: Sphere(d).uniform_span(k, 6))(keys)
    tokens = jax.vmap(lambda k: Sphere(d).uniform(k, 6))(jax.random.split(jax.random.key(8), 4000))
    for i, j in ((0, 1), (2, 5), (4, 5)):
        a = np.asarray(jax.numpy.sum(span[:, i] * span[:, j], axis=-1))
        b = np.asarray(jax.numpy.sum(tokens[:, i] * tokens[:, j], axis=-1))
        assert stats.ks_2samp(a, b).pvalue > 1e-4
        exact = stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)
        assert stats.kstest(a, exact.cdf).pvalue > 1e-4


@pytest.mark.parametrize(("d", "kappa"), [(2, 3.0), (3, 10.0), (10, 4.0), (5, 0.0)])
def test_von_mises_fisher_mean_is_the_bessel_ratio(d, kappa):
    x = np.asarray(Sphere(d).von_mises_fisher(KEY, 20_000, kappa))
    mean = special.ive(d / 2, kappa) / special.ive(d / 2 - 1, kappa) if kappa else 0.0
    assert x[:, 0].mean() == pytest.approx(mean, abs=5 * x[:, 0].std() / np.sqrt(20_000))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(("n", "d", "rho"), [(5, 5, 0.3), (5, 9, 0.0), (4, 3, -1 / 3), (6, 8, -0.1)])
def test_simplex_has_one_overlap(n, d, rho):
    gram = np.asarray(Sphere(d).simplex(n, rho) @ Sphere(d).simplex(n, rho).T)
    np.testing.assert_allclose(gram[~np.eye(n, dtype=bool)], rho, atol=1e-14)


def test_clusters_sit_at_their_centres():
    x = Sphere(3).clusters(KEY, np.eye(3), [2, 1, 3])
    np.testing.assert_allclose(x, np.repeat(np.eye(3), [2, 1, 3], axis=0), atol=1e-15)


def test_sines_first_row():
    np.testing.assert_allclose(sines(1, 2), [[np.sin(1.3 + 2.1 + 0.7), np.sin(1.3 + 4.2 + 1.4)]], rtol=1e-15)


def test_cube_and_gaussian():
    x = np.asarray(Euclidean(2).cube(KEY, 5000, -5, 5))
    assert x.min() >= -5
    assert x.max() <= 5
    y = np.asarray(Euclidean(3).gaussian(KEY, 5000, scale=2.0))
    assert y.std() == pytest.approx(2.0, abs=5 * 2 / np.sqrt(2 * 15_000))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Sphere(0), "Argument `dim` must be an integer ≥ 1"),
        (lambda: Sphere(3).uniform(KEY, 0), "Argument `n` must be an integer ≥ 1"),
        (lambda: Sphere(3).uniform_span(KEY, 4), "be at most d = 3"),
        (lambda: Sphere(3).check(np.ones((2, 3))), r"off by 0.732; pass pathlines.Sphere\(3\).normalise"),
        (lambda: Sphere(3).check(np.ones((2, 4))), r"must have shape \(n, 3\)"),
        (lambda: Sphere(3).check(np.full((2, 3), np.nan)), "must be finite, but has 6 NaN"),
        (lambda: Sphere(3).normalise(np.zeros((1, 3))), "no zero row"),
        (lambda: Sphere(3).simplex(5, 0.0), "must be at most 3"),
        (lambda: Sphere(3).simplex(3, 1.0), "be below 1"),
        (lambda: Sphere(3).simplex(3, -0.6), "Argument `overlap`"),
        (lambda: Sphere(3).clusters(KEY, np.eye(3), [1, 2]), "one count per centre"),
        (lambda: Euclidean(2).cube(KEY, 3, 1.0, 1.0), "be above low"),
        (lambda: Sphere(2).uniform(KEY, 3, "float16"), "'float32' or 'float64'"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(ArgumentError, match=says):
        call()


def test_float64_without_the_switch_is_an_error_with_the_remedy():
    with jax.enable_x64(False), pytest.raises(PrecisionError, match=r"enable_float64\(\)"):
        Sphere(3).uniform(KEY, 3)
