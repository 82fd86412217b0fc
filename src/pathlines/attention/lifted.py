"""Kinds that are softmax attention of other vectors."""

from __future__ import annotations

from typing import ClassVar

from jaxtyping import Array, Float

from pathlines.attention.kind import Attention
from pathlines.attention.softmax import SoftmaxAttention
from pathlines.foundation.errors import FormError


class LiftedSoftmax(Attention):
    """a_ij ∝ m_j e^{<q'_i, k'_j>} with (q', k') = ``lift`` of the queries and keys: whatever sums softmax sums it."""

    normalised: ClassVar[bool] = True

    @property
    def core(self) -> Attention:
        """Softmax."""
        return SoftmaxAttention()

    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """Scores alone do not decide: queries and keys are lifted first."""
        name = type(self).__name__
        raise FormError(f"{name} is not a function of the scores <q, k>; use SelfAttention or attend().")
