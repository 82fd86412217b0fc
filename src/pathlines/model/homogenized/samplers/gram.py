"""The chain in the span of the tokens: everything that rotations leave alone, at a cost that does not depend on d."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.domain.span import reduced
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.capability import HasHeadAttentions, HasRandomLayers
from pathlines.model.homogenized.random_transformer import RandomTransformer, moved
from pathlines.model.homogenized.samplers.choice import CHOLESKY, MULTIPLY, NORMAL, PIECE, SAMPLERS, Sampler
from pathlines.model.homogenized.samplers.layer import GaussianLayer, not_gaussian
from pathlines.numerics.chi import bartlett_counts, bartlett_from
from pathlines.numerics.draws import Draws


class GramSampler(HasRandomLayers, HasHeadAttentions):
    """K = F Fᵀ ← normalise(Y Yᵀ + U Uᵀ),  Y = F + C Z₁,  U = C T: exact in law for the Gram matrix (arXiv:2604.01978).

    The state is an n × n factor F: the tokens in a frame of their span. In that frame the noise C Z has the n × n
    coordinates Z₁; orthogonal to it only T matters, a Bartlett factor of Wishart_n(d - n). Needs d ≥ 2n and a law that
    is invariant under rotations. Cost O(H n³) and 1.5(H + 1)n² normals, for d = 10⁶ as for d = 100.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    stack: GaussianLayer
    outside: Float[Array, ""]

    def __init__(self, model: RandomTransformer, n: int) -> None:
        self.stack = GaussianLayer(model, n)
        self.outside = jnp.asarray(float(model.d - n))

    @property
    def multiplicities(self) -> Float[Array, " n"] | None:
        """Masses of the tokens."""
        return self.stack.multiplicities

    def initial(self, tokens: Float[Array, "n c"]) -> Float[Array, "n n"]:
        """A square factor of their Gram matrix."""
        n, columns = tokens.shape
        return Sphere(n).retract(jnp.pad(reduced(tokens), ((0, 0), (0, max(n - columns, 0)))))

    def check(self, tokens: Any) -> None:
        """Unit rows."""
        Sphere(tokens.shape[-1]).check(tokens)

    def tokens(self, state: Float[Array, "n n"], t: Array) -> Float[Array, "n n"]:
        """The tokens up to a rotation, in n coordinates."""
        return state

    spread = RandomTransformer.spread

    def random_layer(self, state: Float[Array, "n n"], number: Array, key: PRNGKeyArray) -> Float[Array, "n n"]:
        """One layer inside and outside the span, then a frame of the new span."""
        n = state.shape[0]
        normals, uniforms = self.stack.counts
        below, lengths = bartlett_counts(n)
        draws = Draws(key, normals + n * n + below, uniforms + lengths, state.dtype)
        mixed, mean = self.stack.mixed(draws, state, state)
        scale = self.stack.noise_factor(mixed)
        inside = scale @ draws.normal(n, n) + self.stack.mean_increment(mean)
        beyond = scale @ bartlett_from(draws, n, self.outside)
        wide = jnp.pad(state, ((0, 0), (0, n)))
        return Sphere(n).retract(reduced(moved(wide, jnp.concatenate([inside, beyond], axis=1), self.stack.update)))

    def head_attentions(self, state: Float[Array, "n n"], t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """Π_h of fresh heads."""
        return self.stack.fresh_attention(key, state, state)

    def layer_work(self, state: Any) -> float:
        """Attention of all heads and a few n × n matrices."""
        return float(state.shape[0] ** 2 * (3 * self.stack.heads + 6))


def _obstacle(model: RandomTransformer, n: int, ambient: bool) -> str | None:
    if not_gaussian(model) is not None:
        return not_gaussian(model)
    if not model.law.isotropic:  # type: ignore[attr-defined]
        return "it needs means that are multiples of the identity (a matrix singles out directions)"
    if 2 * n > model.d:
        return f"it needs n ≤ d/2, but n = {n}, d = {model.d}"
    return "a recorded observable looks at ambient coordinates" if ambient else None


def _cost(model: RandomTransformer, n: int) -> float:
    factors = n**3 * (2 if model.heads > 1 else 1)
    normals = n * n + sum(bartlett_counts(n))
    return GaussianLayer(model, n).cost(n) + NORMAL * normals + MULTIPLY * 4 * n**3 + CHOLESKY * factors + 4 * PIECE


SAMPLERS.register("gram", Sampler(GramSampler, _obstacle, _cost, "the law is isotropic: only the Gram matrix is moved"))
