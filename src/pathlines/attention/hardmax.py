"""Hard-max attention: the zero-temperature limit, leaders and followers."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attention
from pathlines.foundation.papers import PERSPECTIVE, Paper


@ATTENTIONS.add("hardmax")
class HardmaxAttention(Attention):
    """a_ij = m_j 1{j ∈ C_i} / Σ_{k ∈ C_i} m_k, C_i = argmax_j s_ij (A mathematical perspective, arXiv:2312.10794, §9).

    Scores within a few rounding errors of the row maximum count as tied.
    """

    normalised: ClassVar[bool] = True
    label: ClassVar[str] = "Hard-max attention"
    formula: ClassVar[str] = "κ(x,·) uniform on argmax_y ⟨Qx,Ky⟩"
    sees: ClassVar[str] = "Leaders and followers: everyone listens to the token with the largest score."
    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE,)

    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """``log_scale`` is the row maximum; hard-max has no energy identity that would use it."""
        heard = jnp.where(masses > 0, scores, -jnp.inf)
        top = jnp.max(heard, axis=-1, keepdims=True)
        sizes = jnp.where(jnp.isfinite(heard), jnp.abs(heard), 0.0)
        slack = 8 * jnp.finfo(scores.dtype).eps * jnp.max(sizes, axis=-1, keepdims=True)
        raw = jnp.where(heard >= top - slack, masses, 0.0)
        total = jnp.sum(raw, axis=-1, keepdims=True)
        return raw / jnp.where(total > 0, total, 1.0), top[..., 0]
