"""The drift that common noise has by itself when it is read in the sense of Stratonovich."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.module import Module
from pathlines.model.homogenized_drift import HomogenizedDrift, Tokens, tangent
from pathlines.weights.frozen import FrozenHeads
from pathlines.weights.gaussian import GaussianHeads


class NoiseConnection(Module):
    """E[∇_G G]_i = P_i E[D ξ_i(X)[G]] - E[⟨x_i, ξ_i⟩ P_i ξ_i],  G = P ξ  (arXiv:2604.01978; derived).

    The derivative of b_ρ drops out because E G = 0. Noise of the values, V = V̄ + σ_V N, adds (N averaged exactly)

        σ_V² P_i Σ_j E_A[ P_j (∂m_A(x_i)/∂x_j)ᵀ m_A(x_j) ],

    the total derivative of m_A(x_i), through keys and, for j = i, the query. Here a head acts on all tokens at once, so
    Gaussian scores are averaged over full matrices. Cost O(a n²d²) and as many numbers: for verification at small n, d.
    """

    field: HomogenizedDrift
    sigma_v: Float[Array, ""] | None

    def __call__(self, x: Tokens) -> Tokens:
        """E[∇_G G]."""
        d = x.shape[1]
        mean = self.field.mean_field(x)

        def one(value: Array, score: Array, offset: Array) -> Tokens:
            head = lambda y: self.field.head_field(y, value, score, offset)  # noqa: E731
            xi = head(x) - mean
            noise = tangent(x, xi)
            derivative = jax.jvp(head, (x,), (noise,))[1]
            return derivative - jnp.sum(x * xi, axis=-1, keepdims=True) * noise

        def of_values(value: Array, score: Array, offset: Array) -> Tokens:
            attended = lambda y: self.field.head_field(y, jnp.eye(d, dtype=x.dtype), score, offset)  # noqa: E731
            jacobian = jax.jacfwd(attended)(x)
            turned = jnp.einsum("iajc,ja->ijc", jacobian, attended(x))
            return jnp.sum(tangent(x, turned), axis=1)

        n = x.shape[0]
        terms = self.field.each_head(one, n)
        if self.sigma_v is not None:
            terms = terms + self.sigma_v**2 * self.field.each_head(of_values, n)
        return tangent(x, jnp.tensordot(self.field.heads.probabilities, terms, 1))


def noise_connection(field: HomogenizedDrift, draws: int, seed: int) -> NoiseConnection:
    """The connection of a drift's chain; Gaussian scores as ``draws`` matrices, half of them mirror images."""
    law = field.chain.law
    if not isinstance(law, GaussianHeads):
        return NoiseConnection(field, None)
    if not law.random_scores:
        return NoiseConnection(field, law.sigma_v)
    heads = law.heads(jax.random.key(seed), max(1, draws // 2))
    scores = heads.query if heads.key is None else jnp.einsum("hpk,hpi->hki", heads.key, heads.query)
    assert scores is not None
    scores = jnp.concatenate([scores, 2 * law.mean_score - scores])
    count = scores.shape[0]
    values = jnp.broadcast_to(law.mean_value, scores.shape)
    chances = jnp.full(count, 1 / count)
    matrices = FrozenHeads(chances, values, scores, jnp.zeros((count, law.d)), 1)
    return NoiseConnection(eqx.tree_at(lambda f: f.heads, field, matrices), law.sigma_v)
