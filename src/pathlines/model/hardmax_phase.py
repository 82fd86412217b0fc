"""The last phase in R^d: attention frozen to 0/1, leaders at rest, followers relaxing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pathlines.foundation.errors import FormError
from pathlines.model.base import Model


class HardmaxPhase(Model):
    """dz_i/dt = V (z_{l(i)} - z_i) with a fixed leader l(i) for each token (arXiv:2305.05465, late times).

    Exact solution z(t+s) = exp(s (P - I) ⊗ V) z(t). When leaders follow themselves (P² = P) it is
    z_i(t+s) = z_{l(i)} + e^{-sV}(z_i - z_{l(i)}).
    """

    value: Float[Array, "d d"]
    leader: Int[Array, " n"]
    parent: Any

    def check(self, tokens: Any) -> None:
        """States come from a run of ``RescaledAttention``."""

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """z."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """z."""
        return state

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    def pair_scores(self, z: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """<Q z_i, K z_j> of the softmax phase."""
        return self.parent.pair_scores(z)

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """The frozen 0/1 matrix."""
        return jax.nn.one_hot(self.leader, state.shape[0], dtype=state.dtype)

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """V (z_{l(i)} - z_i)."""
        return (state[self.leader] - state) @ self.value.T

    @property
    def has_flow_map(self) -> bool:
        """Linear, hence solved."""
        return True

    def flow_map(self, state: Any, t: float, until: float) -> Any:
        """The exact solution; leaders that follow others need the exponential of the whole graph."""
        if bool(jnp.any(self.leader[self.leader] != self.leader)):
            return self._chained(state, until - t)
        return _relax(state, self.leader, self.value, until - t)

    def assumption(self, state: Any, t: float) -> tuple[float, str] | None:
        """By how much the best score of some token exceeds that of its frozen leader, relative to rounding."""
        scores = self.parent.leading_scores(state, jnp.asarray(t, state.dtype))
        led = jnp.take_along_axis(scores, self.leader[:, None], axis=1)[:, 0]
        slack = 1e3 * jnp.finfo(state.dtype).eps * jnp.max(jnp.abs(scores), axis=1)
        return float(jnp.max(jnp.max(scores, axis=1) - led - slack)), "every token still scores its leader highest"

    def _chained(self, state: Float[Array, "n d"], s: float) -> Float[Array, "n d"]:
        n, d = state.shape
        if n * d > 2048:
            raise FormError("The frozen attention graph has chains and is too large to exponentiate; stop earlier.")
        graph = self.attention_matrix(state, jnp.zeros(())) - jnp.eye(n, dtype=state.dtype)
        return (jax.scipy.linalg.expm(s * jnp.kron(graph, self.value), max_squarings=48) @ state.reshape(-1)).reshape(
            n, d
        )


@jax.jit
def _relax(z: Float[Array, "n d"], leader: Int[Array, " n"], value: Float[Array, "d d"], s: Array) -> Array:
    anchor = z[leader]
    return anchor + (z - anchor) @ jax.scipy.linalg.expm(-s * value, max_squarings=48).T
