"""Directional derivatives by the formulas of softmax, l2 and sigmoid; energies of the kinds that have one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import (
    AffineAttention,
    LinearAttention,
    SigmoidAttention,
    SinkhornAttention,
    SoftmaxAttention,
    UnnormalisedAttention,
)
from pathlines.attention.sinkhorn import balance, log_sums
from pathlines.kernels import attention_weights
from pathlines.kernels.dense import softmax_sums
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

RNG = np.random.default_rng(4)
N, D = 6, 2
X, E = RNG.standard_normal((2, N, D))
V, Q, K = 0.7 * RNG.standard_normal((3, D, D))
W = RNG.dirichlet(np.ones(N))
ZERO = jnp.zeros(())


def made(kind, value, query, key=None):
    return SelfAttention(
        1.0, attention=kind, weights=FixedWeights(value, query, key), multiplicities=W, space="euclidean"
    )


@pytest.mark.parametrize("kind", ["softmax", "l2", "sigmoid"])
def test_jacobian_formulas(kind):
    """∂Γ_i/∂x_j = P_ij V[I + (x_j - m_i)g_ijᵀ] + δ_ij V C_i G, g the derivative of the score in x_j."""
    model = made(kind, V, Q, K)
    found = jax.jvp(lambda x: model.drift(x, ZERO), (jnp.asarray(X),), (jnp.asarray(E),))[1]
    A = K.T @ Q
    P = np.asarray(attention_weights(model.attention, *(jnp.asarray(X @ M.T) for M in (Q, K)), jnp.asarray(W)))
    slope = P * (1 - P / W) if kind == "sigmoid" else P
    mean = np.zeros((N, D)) if kind == "sigmoid" else P @ X
    expected = np.zeros((N, D))
    for i in range(N):
        for j in range(N):
            g = 2 * K.T @ (Q @ X[i] - K @ X[j]) if kind == "l2" else A @ X[i]
            expected[i] += V @ (P[i, j] * E[j] + slope[i, j] * (X[j] - mean[i]) * (g @ E[j]))
        spread = (X - mean[i]).T @ (slope[i][:, None] * (X - mean[i]))
        expected[i] += (2 if kind == "l2" else 1) * V @ spread @ A @ E[i]
    np.testing.assert_allclose(found, expected, atol=1e-12)


S = Q + Q.T
EPS = 0.8
# Pair energies whose gradient is the field for V = A symmetric.
PAIRS = {
    "unnormalised": (UnnormalisedAttention(), lambda s: jnp.exp(s) / 2),
    "sigmoid": (SigmoidAttention(0.3), lambda s: jax.nn.softplus(s + 0.3) / 2),
    "linear": (LinearAttention(), lambda s: s**2 / 4),
    "affine": (AffineAttention(), lambda s: s / 2 + s**2 / 4),
}


def rate(energy, velocity):
    return float(jax.jvp(energy, (jnp.asarray(X),), (velocity,))[1])


@pytest.mark.parametrize("name", PAIRS)
def test_gradient_flows(name):
    """dE/dt = ∫|Γ|²dμ."""
    kind, pair = PAIRS[name]
    velocity = made(kind, S, S).drift(jnp.asarray(X), ZERO)
    found = rate(lambda x: W @ pair(x @ S @ x.T) @ W, velocity)
    assert found == pytest.approx(float(W @ jnp.sum(velocity**2, axis=1)), rel=1e-12)


def test_softmax_climbs_with_mobility():
    """E = ½∬e^s: dE/dt = ∫Z|Γ|²dμ."""
    velocity = made(SoftmaxAttention(), S, S).drift(jnp.asarray(X), ZERO)
    found = rate(lambda x: W @ jnp.exp(x @ S @ x.T) @ W / 2, velocity)
    partition = np.exp(X @ S @ X.T) @ W
    assert found == pytest.approx(float((W * partition) @ jnp.sum(velocity**2, axis=1)), rel=1e-12)


def test_sinkhorn_climbs_a_transport_cost():
    """F = -∫(f + g)dμ: dF/dt = 2∫|Γ|²dμ with the prefactor 1/ε."""
    velocity = made(SinkhornAttention(EPS), S, S).drift(jnp.asarray(X), ZERO)
    masses = jnp.asarray(W)

    def energy(x):
        rows = x @ S / EPS
        g = balance(softmax_sums, 1e-14, rows, x, masses).potential
        return float(W @ (log_sums(softmax_sums, rows, x, g, masses) - g))

    h = 1e-3
    at = [energy(jnp.asarray(X) + k * h * velocity) for k in (-2, -1, 1, 2)]
    found = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
    assert found == pytest.approx(2 * float(W @ jnp.sum(velocity**2, axis=1)), rel=1e-8)
