"""Affine attention: the first two terms of the exponential."""

from __future__ import annotations

from typing import ClassVar

from pathlines.attention.kind import ATTENTIONS
from pathlines.attention.linear import LinearAttention


@ATTENTIONS.add("affine")
class AffineAttention(LinearAttention):
    """a_ij = m_j (1 + s_ij): unnormalised attention to first order in the scores. Cost and closure as linear."""

    label: ClassVar[str] = "Affine attention"
    formula: ClassVar[str] = "κ = 1 + β⟨Qx,Ky⟩"
    sees: ClassVar[str] = "Linear attention and a pull to the mean."
    offset: ClassVar[float] = 1.0
