"""The R^d system with a frozen exponent, and its hard-max limit: leader dynamics."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import Attention, HardmaxAttention, SoftmaxAttention
from pathlines.domain import Euclidean
from pathlines.foundation.errors import of_kind
from pathlines.foundation.papers import PERSPECTIVE, Paper
from pathlines.foundation.traceable import traceable_array, traceable_number
from pathlines.kernels import attend, attention_weights
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasAttention
from pathlines.weights.heads import check_heads, stacked


class FrozenExponentAttention(HasAttention):
    """dz_i/dt = V Σ_j P_ij (z_j - z_i),  P_ij = softmax_j β<Q z_i, K z_j>, with β fixed where e^{2t} would grow.

    A mathematical perspective on Transformers, arXiv:2312.10794, §9. ``attention=HardmaxAttention()`` is the limit
    β → ∞: every token moves to the mean of its leaders C_i = argmax_j <Q z_i, K z_j>.

    You will see the polytope picture of ``RescaledAttention`` without its growing scores.
    Good values: n = 20, d = 2, tokens in [-2, 2]², β = 10. Cost O(n²d) per drift.
    """

    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE,)

    value: Float[Array, "d d"]
    query: Float[Array, "p d"] | None
    key: Float[Array, "p d"] | None
    beta: Float[Array, ""]
    attention: Attention

    def __init__(
        self, value: Any, beta: float = 1.0, query: Any = None, key: Any = None, attention: Attention | None = None
    ) -> None:
        self.value = jnp.asarray(traceable_array("value", value, ("d", "d")), float)
        stacks = [None if m is None else stacked(k, m, 1) for k, m in (("query", query), ("key", key))]
        check_heads(stacks[0], stacks[1], stacked("value", value, 1))
        self.query, self.key = (None if m is None else jnp.asarray(m[0], float) for m in stacks)
        self.beta = jnp.asarray(traceable_number("beta", beta, low=0.0))
        kind = SoftmaxAttention() if attention is None else attention
        self.attention = of_kind("attention", kind, Attention, "a kind of attention")

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    def check(self, tokens: Any) -> None:
        """Finite rows of the width of V."""
        Euclidean(self.value.shape[0]).check(tokens)

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The tokens."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """z."""
        return state

    def _queries_keys(self, z: Float[Array, "n d"]) -> tuple[Array, Array]:
        query = z if self.query is None else z @ self.query.T
        return self.beta * query, z if self.key is None else z @ self.key.T

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """V (Σ_j P_ij z_j - z_i)."""
        masses = self.normalised_masses(state.shape[0], state.dtype)
        mean, _ = attend(self.attention, *self._queries_keys(state), state, masses)
        return (mean - state) @ self.value.T

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """P."""
        query, key = self._queries_keys(state)
        return attention_weights(self.attention, query, key, self.normalised_masses(state.shape[0], state.dtype))


def _build(d: int = 2, beta: float = 10.0) -> FrozenExponentAttention:
    return FrozenExponentAttention(np.eye(d), beta=beta)


def _build_leader(d: int = 2) -> FrozenExponentAttention:
    return FrozenExponentAttention(np.eye(d), attention=HardmaxAttention())


MODELS.register(
    "frozen",
    Description(
        _build,
        "R^d attention with a frozen exponent",
        "żᵢ = V Σⱼ Pᵢⱼ(zⱼ − zᵢ),  P = softmax β⟨Qzᵢ, Kzⱼ⟩",
        "Clusters of a fixed temperature.",
        "n = 20, d = 2, tokens in [-2, 2]², beta = 10, until = 12",
        (PERSPECTIVE,),
    ),
)
MODELS.register(
    "leader",
    Description(
        _build_leader,
        "Leader dynamics (hard-max)",
        "żᵢ = |Cᵢ|⁻¹ Σ_{j∈Cᵢ} V(zⱼ − zᵢ),  Cᵢ = argmaxⱼ ⟨Qzᵢ, Kzⱼ⟩",
        "Leaders stand still, followers run to them exponentially.",
        "n = 20, d = 2, tokens in [-2, 2]², until = 12",
        (PERSPECTIVE,),
    ),
)
