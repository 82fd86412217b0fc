"""Softmax attention (SA)."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attention, beside_scores
from pathlines.foundation.papers import PERSPECTIVE, UNIFIED, Paper
from pathlines.numerics.maxima import row_maxima


@ATTENTIONS.add("softmax")
class SoftmaxAttention(Attention):
    """a_ij = m_j e^{s_ij} / Z_i, Z_i = Σ_k m_k e^{s_ik}; rows sum to one, the self term j = i is included."""

    normalised: ClassVar[bool] = True
    conservative: ClassVar[bool] = True
    label: ClassVar[str] = "Softmax attention"
    formula: ClassVar[str] = "κ = e^{β⟨Qx,Ky⟩} / ∫ e^{β⟨Qx,Kz⟩} dμ(z)"
    sees: ClassVar[str] = "Clusters on the sphere; in R^d the cloud flattens, collapses or grows as V and A decide."
    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE, UNIFIED)

    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """The row maximum is subtracted first, so no score overflows; a token without mass cannot set it.

        Rows that see no mass are those of no tokens at all: a = 0, log_scale = -∞. A token without mass has no weight,
        but a derivative in its mass, e^{s_ij - log_scale_i} (cut where it would leave the numbers).
        """
        top = row_maxima(jnp.where(masses > 0, scores, -jnp.inf))
        none = jnp.isneginf(top)
        level = jnp.where(none, 0.0, top)
        most = 0.5 * float(np.log(jnp.finfo(scores.dtype).max))
        raw = beside_scores(masses, scores) * jnp.exp(jnp.minimum(scores - level, most))
        total = jnp.where(none, 1.0, jnp.sum(raw, axis=-1, keepdims=True))
        return jnp.where(none, 0.0, raw / total), jnp.where(none, -jnp.inf, level + jnp.log(total))[..., 0]

    @property
    def fused(self) -> tuple[bool, Array | float] | None:
        """Normalised."""
        return True, 0.0
