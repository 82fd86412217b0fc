"""Sigmoid attention: every pair for itself."""

from __future__ import annotations

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attention, beside_scores, check_parameter
from pathlines.foundation.papers import UNIFIED, Paper


@ATTENTIONS.add("sigmoid")
class SigmoidAttention(Attention):
    """a_ij = m_j σ(s_ij + b), σ(u) = 1/(1 + e^{-u}): rows are not normalised.

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322. ``summed`` is the form of practice, a
    sum over the n tokens with the bias b - ln n: a_ij = n m_j σ(s_ij + b - ln n) = m_j e^u/(1 + e^u/n), u = s_ij + b.
    It is no field of measures, and in a long context it is unnormalised attention less e^{2u}/n (derived).
    """

    label: ClassVar[str] = "Sigmoid attention"
    formula: ClassVar[str] = "κ = σ(β⟨Qx,Ky⟩ + b)"
    sees: ClassVar[str] = "No competition between tokens; Gaussian clouds do not stay Gaussian."
    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)

    bias: Array | float = 0.0
    summed: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        check_parameter("bias", self.bias)

    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """No row coupling."""
        bias, count = jnp.asarray(self.bias, scores.dtype), masses.shape[-1] if self.summed else 1
        weights = count * beside_scores(masses, scores) * jax.nn.sigmoid(scores + bias - math.log(count))
        return weights, jnp.zeros(scores.shape[:-1], scores.dtype)
