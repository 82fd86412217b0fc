"""The proximal sampler: known targets, going on bit for bit, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, PathlinesWarning

BAD = np.array([[1.0, 2.0], [2.0, 1.0]])
ROUND = pl.model.followups.QuadraticPotential(np.eye(2))


def bent(x):
    return 0.5 * x[0] ** 2 + 2 * (x[1] - 0.5 * x[0] ** 2) ** 2


def test_bias_of_a_quadratic():
    """The covariance of 200 particles is (P⁻¹ - T²MPM)/β up to c/(nτ), c ≤ 0.11 (claim P3)."""
    precision = np.array([[30.0, 4.0], [4.0, 1.0]])
    matrix = np.linalg.inv(precision)
    sampler = pl.ProximalSampler(
        pl.model.followups.QuadraticPotential(precision, [1.0, -2.0]), 2, 0.3, 0.4, preconditioner=matrix
    )
    found = sampler.sample(200, 300, seed=1)
    spread = np.linalg.cholesky(precision).T @ np.cov(found.particles.T) @ np.linalg.cholesky(precision)
    np.testing.assert_allclose(spread, (1 - 0.3**2) * np.eye(2), atol=0.03)
    np.testing.assert_allclose(found.particles.mean(axis=0), [1, -2], atol=1e-3)
    assert found.speed[-1] < 1e-2 * found.speed[0] and len(found.speed) == 301
    assert (found.gradients, found.values, found.normaliser) == (200 * 301, 0, "closed")


def test_a_users_potential_vs_the_closed_form():
    plain = pl.ProximalSampler(lambda x: 0.5 * jnp.sum(x**2), 2, 0.2, 0.2, nodes=20).sample(20, 40)
    exact = pl.ProximalSampler(ROUND, 2, 0.2, 0.2).sample(20, 40)
    np.testing.assert_allclose(plain.particles, exact.particles, atol=1e-6)
    assert plain.values == 20 * 41 * 400


def test_bent_target():
    """Mean (0, ½), variance of x₁ 1 and of x₂ ¾, to the bias of T = 0.1."""
    found = pl.ProximalSampler(bent, 2, 0.1, 0.1).sample(100, 200)
    np.testing.assert_allclose(found.particles.mean(axis=0), [0, 0.5], atol=0.05)
    np.testing.assert_allclose(found.particles.var(axis=0), [1, 0.75], atol=0.1)


@pytest.mark.parametrize(("name", "tolerance"), [("monte-carlo", 0.05), ("laplace", 1e-8)])
def test_other_normalisers_vs_the_closed_form(name, tolerance):
    other = pl.ProximalSampler(lambda x: 0.5 * jnp.sum(x**2), 4, 0.2, 0.2, normaliser=name).sample(50, 100)
    exact = pl.ProximalSampler(pl.model.followups.QuadraticPotential(np.eye(4)), 4, 0.2, 0.2).sample(50, 100)
    np.testing.assert_allclose(np.cov(other.particles.T), np.cov(exact.particles.T), atol=tolerance)


def test_going_on_is_bit_for_bit():
    sampler = pl.ProximalSampler(bent, 2, 0.1, 0.1, normaliser="monte-carlo", nodes=16)
    whole = sampler.sample(12, 100, seed=3)
    half = sampler.sample(12, 37, seed=3)
    rest = sampler.sample(steps=63, seed=3, start=half.particles)
    np.testing.assert_array_equal(rest.particles, whole.particles)
    np.testing.assert_array_equal(sampler.sample(12, 100, seed=3).particles, whole.particles)
    assert np.abs(sampler.sample(12, 100, seed=4).particles - whole.particles).max() > 1e-3


def test_density_is_that_of_the_target():
    """Its mean square in each direction is 1, up to what 60 particles lose (about 0.1/(nτ) = 0.01 a direction)."""
    sampler = pl.ProximalSampler(ROUND, 2, 0.2, 0.2)
    particles = sampler.sample(60, 400).particles
    axis = np.linspace(-6, 6, 121)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    density = np.exp(sampler.log_density(particles, grid)) * 0.1**2
    np.testing.assert_allclose([density.sum(), *(density @ grid**2)], 1, atol=0.04)


def test_a_sampler_that_never_rests_says_so():
    """x⁴ with a step at which particles jump from side to side."""
    with pytest.warns(PathlinesWarning, match="take a smaller step"):
        pl.ProximalSampler(lambda x: 10 * jnp.sum(jnp.sqrt(1 + x**2)), 2, 0.05, 1.0).sample(20, 100)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pl.ProximalSampler(ROUND, 2, preconditioner=BAD), "`preconditioner` must have eigenvalues > 0, .* -1"),
        (lambda: pl.ProximalSampler(ROUND, 2, preconditioner=np.eye(3)), "`preconditioner` must have shape"),
        (lambda: pl.ProximalSampler(ROUND, 2, step=3.0), "`step` must be below 0.56.*unstable, but is 3"),
        (lambda: pl.ProximalSampler(ROUND, 2, 1.5), "`regularisation` must be below 1, .*gather there"),
        (lambda: pl.ProximalSampler(bent, 2, 0.1, 9.0).sample(9, 99), "`step` must be smaller: particles left"),
        (lambda: pl.ProximalSampler(lambda x: x, 2), "`potential` must return a number"),
        (lambda: pl.ProximalSampler(float, 2), "`potential` must be a function of one JAX array"),
        (lambda: pl.ProximalSampler(bent, 2, gradient=bent), "`gradient` must return an array of shape"),
        (lambda: pl.ProximalSampler(bent, 2, normaliser="closed"), "`normaliser` must be another than 'closed'"),
        (lambda: pl.ProximalSampler(bent, 2, normaliser="laplace", nodes=4), "`nodes` must be None"),
        (lambda: pl.ProximalSampler(bent, 9, normaliser="quadrature"), "`nodes` must make at most"),
        (lambda: pl.ProximalSampler(ROUND, 2).sample(start=np.ones((3, 5))), "`start` must have shape"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
