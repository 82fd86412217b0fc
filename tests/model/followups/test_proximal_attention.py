"""The attention block of proximal sampling against its formula, and normalisers against integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad

import pathlines as pl
from pathlines.foundation.errors import ArgumentError
from pathlines.model.followups.potentials import Laplace, drawn_nodes, hermite_nodes
from pathlines.model.followups.proximal import ProximalAttention

M = np.array([[0.8, 0.3], [0.3, 0.5]])
P, C = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.2])
X = np.random.default_rng(0).normal(size=(7, 2))
QUADRATIC = pl.model.followups.QuadraticPotential(P, C)


def steep(x):
    return 0.25 * jnp.sum(x**4) + 0.3 * x[0] * x[1]


def block(**options):
    return ProximalAttention(QUADRATIC, 2, regularisation=0.3, beta=1.7, preconditioner=M, **options)


def log_integral(value, y, pull, beta, matrix):
    """log ∫ N(z; y, (2T/β)M) e^{-βV(z)/2} dz on the plane, adaptively."""
    spread = 2 * pull / beta * matrix
    inverse, scale = np.linalg.inv(spread), 1 / (2 * np.pi * np.sqrt(np.linalg.det(spread)))

    def weight(b, a):
        z = np.array([a, b])
        return scale * np.exp(-0.5 * (z - y) @ inverse @ (z - y) - beta / 2 * value(z))

    return np.log(dblquad(weight, y[0] - 5, y[0] + 5, y[1] - 5, y[1] + 5, epsabs=1e-8)[0])


def test_drift_vs_formula():
    """x⁺ - x over η, with log Z by integration and sums in NumPy."""
    beta, pull, masses = 1.7, 0.3, np.arange(1.0, 8.0)
    bias = np.array([log_integral(lambda z: 0.5 * (z - C) @ P @ (z - C), y, pull, beta, M) for y in X])
    away = X[:, None] - X
    scores = -beta / (4 * pull) * np.einsum("ijk,kl,ijl->ij", away, np.linalg.inv(M), away) - bias + np.log(masses)
    a = np.exp(scores - scores.max(axis=1, keepdims=True))
    a /= a.sum(axis=1, keepdims=True)
    drift = -0.5 * (X - C) @ P @ M + (X - a @ X) / (2 * pull)
    model = block(multiplicities=masses)
    np.testing.assert_allclose(model.drift(jnp.asarray(X), jnp.zeros(())), drift, atol=1e-8)
    np.testing.assert_allclose(model.attention_matrix(jnp.asarray(X), jnp.zeros(())), a, atol=1e-8)


def test_step_is_that_of_the_proximal_density():
    """x⁺ = x - ηM(∇V + β⁻¹∇ log prox ρ), the derivative of ``log_density``."""
    model = block()
    slopes = jax.vmap(jax.grad(lambda x: model.log_density(jnp.asarray(X), x[None])[0]))(jnp.asarray(X))
    expected = X - 0.1 * ((X - C) @ P + np.asarray(slopes) / 1.7) @ M
    np.testing.assert_allclose(model.layer(jnp.asarray(X), jnp.zeros(()), jnp.asarray(0.1)), expected, atol=1e-12)


def test_density_integrates_to_one():
    model = ProximalAttention(steep, 1, regularisation=0.2, normaliser=hermite_nodes(1, 40))
    particles = jnp.asarray([[0.3], [-1.0], [0.1]])
    axis = np.linspace(-6, 6, 241)
    assert np.sum(np.exp(model.log_density(particles, jnp.asarray(axis[:, None])))) * 0.05 == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "tolerance"),
    [(hermite_nodes(2, 30), 1e-6), (drawn_nodes(2, 4000, jax.random.key(0)), 0.02), (Laplace(), 0.05)],
)
def test_normalisers_vs_integral(rule, tolerance):
    model = ProximalAttention(steep, 2, regularisation=0.1, preconditioner=M, normaliser=rule)
    points = X[:3] / 2
    found = rule(model.potential, model.kernel, jnp.asarray(points))
    known = [log_integral(lambda z: 0.25 * np.sum(z**4) + 0.3 * z[0] * z[1], y, 0.1, 1.0, M) for y in points]
    np.testing.assert_allclose(found, known, atol=tolerance)


@pytest.mark.parametrize("rule", [hermite_nodes(2, 40), Laplace()])
def test_normalisers_on_quadratics(rule):
    known, model = block(), block(normaliser=rule)
    exact = known.normaliser(known.potential, known.kernel, jnp.asarray(X))
    np.testing.assert_allclose(rule(model.potential, model.kernel, jnp.asarray(X)), exact, atol=1e-9)


def test_many_particles_are_taken_in_blocks(monkeypatch):
    model = ProximalAttention(steep, 2, regularisation=0.1, normaliser=hermite_nodes(2, 4))
    whole = model.drift(jnp.asarray(X), jnp.zeros(()))
    monkeypatch.setattr("pathlines.model.followups.potentials.EVALUATIONS", 32)
    np.testing.assert_allclose(model.drift(jnp.asarray(X), jnp.zeros(())), whole, rtol=1e-12)


def test_a_slope_that_is_given_is_taken():
    given = ProximalAttention(steep, 2, gradient=lambda x: jnp.ones(2), normaliser=hermite_nodes(2, 4))
    derived = ProximalAttention(steep, 2, normaliser=hermite_nodes(2, 4))
    difference = given.drift(jnp.asarray(X), jnp.zeros(())) - derived.drift(jnp.asarray(X), jnp.zeros(()))
    np.testing.assert_allclose(difference, (jax.vmap(jax.grad(steep))(X) - 1) / 2, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ProximalAttention(steep, 2), "`potential` must be quadratic unless there is a `normaliser`"),
        (lambda: ProximalAttention(QUADRATIC, 3), r"`potential` must be one of R\^3, but is one of R\^2"),
        (lambda: pl.model.followups.QuadraticPotential(-np.eye(2)), "`precision` must have eigenvalues > 0"),
        (lambda: block(multiplicities=np.ones(3)).check(X), "one entry for each of 7 particles, but has 3"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
