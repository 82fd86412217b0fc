"""Linear attention: scores are weights."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention.kind import ATTENTIONS, Attended, Attention, beside_scores
from pathlines.attention.masks import PrefixMask
from pathlines.foundation.papers import UNIFIED, Paper

BLOCK = 64
"""Rows between two looks at the running sums of causal attention."""


@ATTENTIONS.add("linear")
class LinearAttention(Attention):
    """a_ij = m_j s_ij, so that A_i = M q_i with M = Σ_j m_j v_j k_jᵀ: O(n p d), never a sum over pairs.

    A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322. The velocity is linear in the token,
    so mean and covariance of *any* cloud solve a closed equation; one token may reach infinity in finite time.
    """

    label: ClassVar[str] = "Linear attention"
    formula: ClassVar[str] = "κ = β⟨Qx,Ky⟩"
    sees: ClassVar[str] = "The covariance of softmax for centred Gaussians; may blow up even with one token."
    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)
    offset: ClassVar[float] = 0.0

    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """No row coupling."""
        return beside_scores(masses, scores) * (self.offset + scores), jnp.zeros(scores.shape[:-1], scores.dtype)

    def direct(
        self,
        queries: Float[Array, "n p"],
        keys: Float[Array, "m p"],
        values: Float[Array, "m d"],
        masses: Float[Array, " m"],
        mask: PrefixMask | None,
    ) -> Attended | None:
        """M q_i; masked rows use running sums, O(n(pd + 64(p + d)))."""
        weighted = masses[:, None] * values
        if mask is None:
            out = queries @ (keys.T @ weighted) + self.offset * jnp.sum(weighted, axis=0, keepdims=True)
        else:
            out = _prefixes(queries, keys, weighted, self.offset, mask)
        return out, jnp.zeros(queries.shape[0], out.dtype)


def _prefixes(
    queries: Float[Array, "n p"],
    keys: Float[Array, "n p"],
    weighted: Float[Array, "n d"],
    offset: float,
    mask: PrefixMask,
) -> Float[Array, "n d"]:
    """Σ_j q_ij (offset + <q_i, k_j>) m_j v_j: within blocks over pairs, between them through the sums so far.

    The sums so far are those that the last token of the block before would see, itself included: q_ij = e^{h_j - h_i}.
    """
    n = queries.shape[0]
    size = min(n, BLOCK)
    cut = lambda rows: jnp.pad(rows, ((0, -n % size), (0, 0)), mode="edge").reshape(-1, size, rows.shape[1])  # noqa: E731
    dtype = jnp.result_type(queries, keys, weighted)
    heights = (jnp.zeros(n) if mask.flat else mask.heights(n)).astype(dtype)[:, None]
    inside = jnp.tri(size, k=-int(mask.strict), dtype=bool)
    weight = (lambda gap: jnp.ones((), dtype)) if mask.flat else jnp.exp

    def block(so_far: tuple[Array, Array, Array], here: tuple[Array, ...]) -> tuple[tuple[Array, Array, Array], Array]:
        q, k, v, h = here
        outer, total, level = so_far
        near = jnp.where(inside, weight(jnp.where(inside, h.T - h, 0.0)), 0.0)
        out = weight(level - h) * (q @ outer + offset * total) + (near * (offset + q @ k.T)) @ v
        last, held = weight(level - h[-1:]), weight(h - h[-1:]) * v
        return (last * outer + k.T @ held, last * total + jnp.sum(held, axis=0, keepdims=True), h[-1:]), out

    p, d = keys.shape[1], weighted.shape[1]
    start = (jnp.zeros((p, d), dtype), jnp.zeros((1, d), dtype), heights[:1])
    _, out = jax.lax.scan(block, start, (cut(queries), cut(keys), cut(weighted), cut(heights)))
    return out.reshape(-1, d)[:n]
