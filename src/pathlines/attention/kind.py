"""The idea of an attention kind."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from pathlines.foundation.registry import Registry


class Attention(eqx.Module):
    """From scores s_ij and token masses m_j (summing to one) to weights a_ij.

    A kind is the normalisation alone; scores, masks and summation live elsewhere, so a new one is a few lines.
    """

    @abstractmethod
    def normalise(
        self, scores: Float[Array, "r n"], masses: Float[Array, " n"]
    ) -> tuple[Float[Array, "r n"], Float[Array, " r"]]:
        """Return (a, log_scale) with a_ij = m_j exp(s_ij - log_scale_i).

        ``log_scale`` is what the energy identities weigh |dx_i/dt|² with: log of the partition function for softmax,
        a constant for unnormalised attention.
        """

    @property
    def fused(self) -> tuple[bool, Array] | None:
        """(normalised?, shift) when weights are m_j e^{s_ij - c_i} with c_i = ln Σ m_j e^{s_ij}, or c_i = shift."""
        return None


ATTENTIONS: Registry[type[Attention]] = Registry("attention kind", "pathlines.attention")
