"""Direct summation over all pairs."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.kernels.native import fused_attend, native_serves
from pathlines.kernels.portable import portable_attend


def attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    causal: bool = False,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """A_i = Σ_j a_ij v_j with scores s_ij = <q_i, k_j>; also the ``log_scale`` of the attention kind.

    ``causal`` rows see the keys j ≤ i. Cost O(nm(p + d)) time; no n × m matrix is kept. Kinds with a ``fused`` form
    use compiled C++ on a CPU, all others (and other devices) blocks of rows.
    """
    fused = attention.fused
    if fused is not None and native_serves(jnp.result_type(queries, keys, values)):
        return fused_attend(attention, queries, keys, values, masses, causal)
    return portable_attend(attention, queries, keys, values, masses, causal)
