"""Direct summation over all pairs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.kernels.choice import DENSE_PAIRS, choose_dense
from pathlines.kernels.native import fused_attend, native_serves


def attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "n p"],
    values: Float[Array, "n d"],
    masses: Float[Array, " n"],
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """A_i = Σ_j a_ij v_j with scores s_ij = <q_i, k_j>; also the ``log_scale`` of the attention kind.

    Cost O(n²(p + d)) time. On a CPU with a compiler, kinds that have a ``fused`` form never write the weights (memory
    O(n(p + d))). Elsewhere memory is O(n²) while that is at most 2²⁴ weights, O(2²⁴) in row blocks beyond.
    """
    fused = attention.fused
    if fused is not None and native_serves(jnp.result_type(queries, keys, values)):
        return fused_attend(fused[0], queries, keys, values, masses, fused[1])

    def rows(block: Float[Array, "r p"]) -> tuple[Float[Array, "r d"], Float[Array, " r"]]:
        weights, log_scale = attention.normalise(block @ keys.T, masses)
        return weights @ values, log_scale

    n = queries.shape[0]
    if choose_dense(n).method == "dense":
        return rows(queries)
    size = max(1, DENSE_PAIRS // n)
    count = -(-n // size)
    padded = jnp.pad(queries, ((0, count * size - n), (0, 0)))
    out, log_scale = jax.lax.map(rows, padded.reshape(count, size, -1))
    return out.reshape(count * size, -1)[:n], log_scale.reshape(-1)[:n]
