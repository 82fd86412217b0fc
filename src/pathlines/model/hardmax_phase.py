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
    eigenvalues: Array

    def check(self, tokens: Any) -> None:
        """States come from a run of ``RescaledAttention``."""

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """z."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """z."""
        return state

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
        """The exact solution; chains of leaders are followed until P^k is idempotent."""
        if bool(jnp.any(self.leader[self.leader] != self.leader)):
            return self._chained(state, until - t)
        anchor = state[self.leader]
        return anchor + (state - anchor) @ jax.scipy.linalg.expm(-(until - t) * self.value).T

    def _chained(self, state: Float[Array, "n d"], s: float) -> Float[Array, "n d"]:
        n, d = state.shape
        if n * d > 2048:
            raise FormError("The frozen attention graph has chains and is too large to exponentiate; stop earlier.")
        graph = self.attention_matrix(state, jnp.zeros(())) - jnp.eye(n, dtype=state.dtype)
        return (jax.scipy.linalg.expm(s * jnp.kron(graph, self.value)) @ state.reshape(-1)).reshape(n, d)
