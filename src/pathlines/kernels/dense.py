"""Direct summation over all pairs."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pathlines.attention import Attention, SoftmaxAttention
from pathlines.foundation.errors import FormError
from pathlines.kernels.native import fused_attend, native_serves
from pathlines.kernels.portable import masked_weights, portable_attend


def attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    causal: bool = False,
    *,
    beta: Float[Array, ""] | float = 1.0,
    last: Int[Array, " n"] | None = None,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """A_i = Σ_j a_ij v_j with scores β times those of the kind, <q_i, k_j>; also its ``log_scale``.

    ``causal`` rows see the keys j ≤ i, or j ≤ ``last``_i where several tokens share a position. Cost O(nm(p + d)) time;
    no n × m matrix is kept. Kinds with a ``fused`` form use compiled C++ on a CPU, all others (and other devices)
    blocks of rows; kinds with a ``direct`` sum need no pairs at all. A row that sees no mass (models refuse those) is
    the sum of no keys at all: A_i = 0, and -∞ for the log_scale of softmax.
    """
    masked = causal or last is not None
    queries, keys, values = _lifted(attention, queries, keys, values, masses, beta, masked)
    core = attention.core
    found = None if last is not None else core.direct(queries, keys, values, masses, causal)
    if found is not None:
        return found
    if last is None and core.fused is not None and native_serves(jnp.result_type(queries, keys, values)):
        return fused_attend(core, queries, keys, values, masses, causal)
    return portable_attend(core, queries, keys, values, masses, causal, last)


def attention_weights(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    masses: Float[Array, " m"],
    causal: bool = False,
    *,
    beta: Float[Array, ""] | float = 1.0,
    last: Int[Array, " n"] | None = None,
) -> Float[Array, "n m"]:
    """The matrix a_ij itself (without the prefactor of Sinkhorn): O(nm) memory."""
    masked = causal or last is not None
    queries, keys, _ = _lifted(attention, queries, keys, keys, masses, beta, masked)
    numbers = jnp.arange(queries.shape[0]) if last is None else last
    return masked_weights(attention.core, queries @ keys.T, masses, numbers if masked else None)[0]


def _lifted(
    attention: Attention, queries: Array, keys: Array, values: Array, masses: Array, beta: Array | float, masked: bool
) -> tuple[Array, Array, Array]:
    if masked and attention.unmaskable:
        raise FormError(f"There is no masked {type(attention).__name__}: {attention.unmaskable}.")
    return attention.lift(queries, keys, values, masses, beta, softmax_sums)


def softmax_sums(
    queries: Float[Array, "n p"], keys: Float[Array, "m p"], values: Float[Array, "m d"], masses: Float[Array, " m"]
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """(averages, log partition functions): the sums that kinds may lift their vectors with."""
    return attend(SoftmaxAttention(), queries, keys, values, masses)
