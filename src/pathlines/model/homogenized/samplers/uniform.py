"""β = 0: attention is uniform and one Gaussian vector moves all tokens."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.capability import HasAttention, HasRandomLayers
from pathlines.model.homogenized.random_transformer import RandomTransformer, moved
from pathlines.model.homogenized.samplers.choice import MULTIPLY, NORMAL, SAMPLERS, Sampler
from pathlines.model.homogenized.samplers.layer import not_gaussian
from pathlines.numerics.draws import Draws


class UniformSampler(HasRandomLayers, HasAttention):
    """x_i ← N(x_i + η V̄ x̄ + η σ_V H^{-1/2} |x̄| z),  z standard normal in R^d, x̄ the mean token: exact in law at β = 0.

    As the steps shrink the flow becomes a random conformal map of the sphere, which keeps all cross-ratios
    u_ij u_kl/(u_ik u_jl) (arXiv:2604.01978 has the chain; the conformal property is that of dx_i = P_{x_i} dζ). O(nd).
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    step: Float[Array, ""]
    sigma_v: Float[Array, ""]
    value_mean: Float[Array, ...] | None
    multiplicities: Float[Array, " n"] | None
    d: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    update: str = eqx.field(static=True)

    def __init__(self, model: RandomTransformer, n: int) -> None:
        self.step, self.multiplicities = model.step, model.multiplicities
        self.sigma_v, self.value_mean = model.law.sigma_v, model.law.value_mean  # type: ignore[attr-defined]
        self.d, self.heads, self.update = model.d, model.heads, model.update

    initial = RandomTransformer.initial
    tokens = RandomTransformer.tokens
    check = RandomTransformer.check
    spread = RandomTransformer.spread

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """One vector for all tokens."""
        mean = self.normalised_masses(state.shape[0], state.dtype) @ state
        length = jnp.sqrt(jnp.sum(mean * mean))
        shift = self.sigma_v / math.sqrt(self.heads) * length * Draws(key, self.d, 0, state.dtype).normal(self.d)
        if self.value_mean is not None:
            shift = shift + (self.value_mean * mean if self.value_mean.ndim == 0 else self.value_mean @ mean)
        return moved(state, jnp.broadcast_to(self.step * shift, state.shape), self.update)

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """Uniform, for every head."""
        n = state.shape[0]
        return jnp.broadcast_to(self.normalised_masses(n, state.dtype), (n, n))

    def layer_work(self, state: Any) -> float:
        """A few copies of the tokens."""
        return 4.0 * state.shape[0] * self.d


def _obstacle(model: RandomTransformer, n: int, ambient: bool) -> str | None:
    return not_gaussian(model) or (None if float(model.beta) == 0 else f"it needs β = 0, but β = {float(model.beta):g}")


SAMPLERS.register(
    "uniform",
    Sampler(
        UniformSampler,
        _obstacle,
        lambda model, n: model.d * (NORMAL + 30 * MULTIPLY * n),
        "β = 0: one Gaussian vector moves all tokens",
    ),
)
