"""The small logit scale surrogate: attention to second order in b, averaged over the heads."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain.span import reduced
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.capability import HasRandomLayers
from pathlines.model.homogenized.random_transformer import RandomTransformer, moved
from pathlines.model.homogenized.samplers.choice import MULTIPLY, NORMAL, SAMPLERS, Sampler
from pathlines.model.homogenized.samplers.layer import not_gaussian
from pathlines.numerics.draws import Draws


class LinearSampler(HasRandomLayers):
    """x_i ← N(x_i + η σ_V H^{-1/2} ζ_i),  E ζ_i ζ_jᵀ = s_ij I,  s_ij = m - 2b² x̄ᵀC x̄ + b² tr(C²) K_ij + O(b⁴).

    Here m = |x̄|² and C is the covariance of the tokens: the expectation of ⟨m_A(x_i), m_A(x_j)⟩ to second order in the
    logits (arXiv:2604.01978, high temperature). Approximate: error O(b⁴), and the heads are averaged, as for H → ∞ at
    fixed v. No n × n matrix for n > d. Cost O(n d²) for n > d and O(n² d) otherwise.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    step: Float[Array, ""]
    sigma_v: Float[Array, ""]
    logit_scale: Float[Array, ""]
    multiplicities: Float[Array, " n"] | None
    d: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    update: str = eqx.field(static=True)

    def __init__(self, model: RandomTransformer, n: int) -> None:
        self.step, self.multiplicities, self.sigma_v = model.step, model.multiplicities, model.law.sigma_v  # type: ignore[attr-defined]
        self.logit_scale = jnp.asarray(model.parameters.logit_scale)
        self.d, self.heads, self.update = model.d, model.heads, model.update

    initial = RandomTransformer.initial
    tokens = RandomTransformer.tokens
    check = RandomTransformer.check
    spread = RandomTransformer.spread

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """A common vector and a rotation of the tokens by one Gaussian matrix."""
        common, individual = self.pair_weights(state)
        factor = reduced(state)
        columns = factor.shape[1]
        draws = Draws(key, (columns + 1) * self.d, 0, state.dtype)
        shared = jnp.sqrt(common) * draws.normal(self.d)
        noise = shared + jnp.sqrt(individual) * factor @ draws.normal(columns, self.d)
        return moved(state, self.step * self.sigma_v / math.sqrt(self.heads) * noise, self.update)

    def pair_weights(self, x: Float[Array, "n d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """(m - 2b² x̄ᵀC x̄, b² tr C²), so that s_ij is the first plus the second times K_ij."""
        masses = self.normalised_masses(x.shape[0], x.dtype)
        mean = masses @ x
        apart = (x - mean[None]) * jnp.sqrt(masses)[:, None]
        square = apart.T @ apart if x.shape[0] > self.d else apart @ apart.T
        b2 = self.logit_scale**2
        common = jnp.sum(mean * mean) - 2 * b2 * jnp.sum((apart @ mean) ** 2)
        return jnp.maximum(common, 0.0), b2 * jnp.sum(square * square)

    def layer_work(self, state: Any) -> float:
        """Tokens and a small square matrix."""
        n, d = state.shape
        return float(4 * n * d + min(n, d) ** 2)


def _obstacle(model: RandomTransformer, n: int, ambient: bool) -> str | None:
    if not_gaussian(model) is not None:
        return not_gaussian(model)
    law: Any = model.law
    plain = law.random_scores and law.score_mean is None and law.value_mean is None
    return None if plain else "it needs centred Gaussian heads with random scores"


def _cost(model: RandomTransformer, n: int) -> float:
    d, r = model.d, min(n, model.d)
    return NORMAL * (r + 1) * d + MULTIPLY * 2 * n * d * r


SAMPLERS.register(
    "linear",
    Sampler(LinearSampler, _obstacle, _cost, "APPROXIMATE: second order in the logit scale, error O(b⁴)", exact=False),
)
