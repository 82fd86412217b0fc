"""Sigmoid attention: every pair for itself."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attention
from pathlines.foundation.papers import UNIFIED, Paper


@ATTENTIONS.add("sigmoid")
class Sigmoid(Attention):
    """a_ij = m_j σ(s_ij + b), σ(u) = 1/(1 + e^{-u}): rows are not normalised.

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322. The bias b = -ln n of practice, with
    sums over tokens instead of means, is n a_ij → e^{s_ij}: unnormalised attention in a long context, not this kind.
    """

    label: ClassVar[str] = "Sigmoid attention"
    formula: ClassVar[str] = "κ = σ(β⟨Qx,Ky⟩ + b)"
    sees: ClassVar[str] = "No competition between tokens; Gaussian clouds do not stay Gaussian."
    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)

    bias: Array = 0.0  # type: ignore[assignment]

    def normalise(
        self, scores: Float[Array, "r n"], masses: Float[Array, " n"]
    ) -> tuple[Float[Array, "r n"], Float[Array, " r"]]:
        """No row coupling."""
        weights = masses * jax.nn.sigmoid(scores + jnp.asarray(self.bias, scores.dtype))
        return weights, jnp.zeros(scores.shape[:-1], scores.dtype)
