"""Unnormalised attention (USA)."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attention, beside_scores, check_parameter
from pathlines.foundation.papers import PERSPECTIVE, UNIFIED, Paper


@ATTENTIONS.add("unnormalised")
class UnnormalisedAttention(Attention):
    """a_ij = m_j e^{s_ij - shift}: the partition function of softmax replaced by a constant.

    ``shift = 0`` is the kernel e^{β<x,y>} as printed; ``shift = β`` is the scaled kernel e^{β(<x,y>-1)}, which never
    overflows and runs e^β times slower: t_scaled = e^β t_printed.
    """

    conservative: ClassVar[bool] = True
    label: ClassVar[str] = "Unnormalised attention"
    formula: ClassVar[str] = "κ = e^{β⟨Qx,Ky⟩}"
    sees: ClassVar[str] = "As softmax, with a pace that grows with the scores; in R^d it may blow up with one token."
    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE, UNIFIED)

    shift: Array = 0.0  # type: ignore[assignment]

    def __check_init__(self) -> None:
        check_parameter("shift", self.shift)

    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """No row coupling. A token without mass adds nothing, even where e^{s_ij - shift} overflows."""
        shift = jnp.asarray(self.shift, scores.dtype)
        most = 0.5 * float(np.log(jnp.finfo(scores.dtype).max))
        logs = scores - shift
        logs = jnp.where(masses > 0, logs, jnp.minimum(logs, most))
        return beside_scores(masses, scores) * jnp.exp(logs), jnp.full(scores.shape[:-1], shift)

    @property
    def fused(self) -> tuple[bool, Array | float] | None:
        """Shifted by a constant."""
        return False, self.shift
