"""L2 attention: tokens listen to what is near."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Lifted, Sums
from pathlines.attention.lifted import LiftedSoftmax
from pathlines.foundation.papers import UNIFIED, Paper


@ATTENTIONS.add("l2")
class L2Attention(LiftedSoftmax):
    """a_ij = m_j e^{-β|q_i - k_j|²} / Σ_l m_l e^{-β|q_i - k_l|²} (no 1/2).

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322 (there β = 1). Since |q_i|² cancels it
    is softmax of the scores β(2<q_i, k_j> - |k_j|²), inner products of (2q_i, 1) and (k_j, -|k_j|²): one column more
    than softmax. On the unit sphere with Q = K = I it is softmax at 2β.
    """

    label: ClassVar[str] = "L2 attention"
    formula: ClassVar[str] = "κ = e^{−β|Qx−Ky|²} / ∫ e^{−β|Qx−Kz|²} dμ(z)"
    sees: ClassVar[str] = "A token listens to what is near it; far tokens get no weight however long they are."
    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)

    def lift(
        self,
        queries: Float[Array, "n p"],
        keys: Float[Array, "m p"],
        values: Float[Array, "m d"],
        masses: Float[Array, " m"],
        beta: Float[Array, ""] | float,
        sums: Sums,
    ) -> Lifted:
        """β(2q, 1) and (k, -|k|²), from the mean of the keys: far from the origin |k|² would have no digits left."""
        centre = (masses @ keys)[None]
        queries, keys = queries - centre, keys - centre
        rows = jnp.concatenate([2 * queries, jnp.ones_like(queries[:, :1])], axis=1)
        return beta * rows, jnp.concatenate([keys, -jnp.sum(keys * keys, axis=1, keepdims=True)], axis=1), values
