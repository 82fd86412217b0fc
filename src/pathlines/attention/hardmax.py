"""Hard-max attention: the zero-temperature limit, leaders and followers."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attention


@ATTENTIONS.add("hardmax")
class Hardmax(Attention):
    """a_ij = m_j 1{j ∈ C_i} / Σ_{k ∈ C_i} m_k, C_i = argmax_j s_ij (A mathematical perspective, arXiv:2312.10794, §9).

    Scores within a few rounding errors of the row maximum count as tied.
    """

    def normalise(
        self, scores: Float[Array, "r n"], masses: Float[Array, " n"]
    ) -> tuple[Float[Array, "r n"], Float[Array, " r"]]:
        """``log_scale`` is the row maximum; hard-max has no energy identity that would use it."""
        top = jnp.max(scores, axis=-1, keepdims=True)
        slack = 8 * jnp.finfo(scores.dtype).eps * jnp.max(jnp.abs(scores), axis=-1, keepdims=True)
        raw = jnp.where(scores >= top - slack, masses, 0.0)
        return raw / jnp.sum(raw, axis=-1, keepdims=True), top[..., 0]
