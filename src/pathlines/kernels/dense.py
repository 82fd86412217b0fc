"""Direct summation over all pairs."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import Attention, SoftmaxAttention
from pathlines.attention.masks import PositionMask
from pathlines.foundation.errors import FormError, require
from pathlines.kernels.native import fused_attend, native_serves
from pathlines.kernels.portable import masked_weights, portable_attend
from pathlines.kernels.prefixes import averaged, over_prefixes, prefix_mask


def attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    mask: PositionMask | None = None,
    *,
    beta: Float[Array, ""] | float = 1.0,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """A_i = Σ_j a_ij v_j with scores β times those of the kind, <q_i, k_j>; also its ``log_scale``.

    ``mask``: who hears whom, n = m (``attention.masks``). Cost O(nm(p + d)) time; no n × m matrix is kept. Kinds with a
    ``fused`` form use compiled C++ on a CPU, with masks in order too; all others (and other devices) blocks of rows,
    of a window its band only; kinds with a ``direct`` sum need no pairs at all. A row that sees no mass (models refuse
    those, other than the first of a strict mask) is the sum of no keys at all: A_i = 0, and -∞ for the log_scale of
    softmax.
    """
    queries, keys, values = _lifted(attention, queries, keys, values, masses, beta, mask)
    core, prefix = attention.core, prefix_mask(mask, queries.shape[0])
    if mask is not None and prefix is None:
        return portable_attend(core, queries, keys, values, masses, mask)
    found = core.direct(queries, keys, values, masses, prefix)
    if found is None and core.fused is not None and native_serves(jnp.result_type(queries, keys, values)):
        causal = partial(fused_attend, core, causal=prefix is not None)
        whole = (queries, keys, values, masses)
        found = causal(*whole) if prefix is None else over_prefixes(prefix, core, *whole, causal)
    if found is None:
        return portable_attend(core, queries, keys, values, masses, mask)
    return found if prefix is None else averaged(prefix, core, found, masses)


def attention_weights(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    masses: Float[Array, " m"],
    mask: PositionMask | None = None,
    *,
    beta: Float[Array, ""] | float = 1.0,
) -> Float[Array, "n m"]:
    """The matrix a_ij itself (without the prefactor of Sinkhorn): O(nm) memory."""
    queries, keys, _ = _lifted(attention, queries, keys, keys, masses, beta, mask)
    everyone = jnp.arange(keys.shape[0])
    return masked_weights(attention.core, queries @ keys.T, masses, mask, everyone, everyone)[0]


def _lifted(
    attention: Attention,
    queries: Array,
    keys: Array,
    values: Array,
    masses: Array,
    beta: Array | float,
    mask: PositionMask | None,
) -> tuple[Array, Array, Array]:
    check_masked(attention, mask)
    paired = queries.shape[0] == keys.shape[0]
    require(mask is None or paired, "mask", "be None unless there are as many queries as keys", type(mask).__name__)
    return attention.lift(queries, keys, values, masses, beta, softmax_sums)


def check_masked(attention: Attention, mask: PositionMask | None) -> None:
    """``FormError`` for a kind that has no masked form, with the reason."""
    if mask is not None and attention.unmaskable:
        raise FormError(f"There is no masked {type(attention).__name__}: {attention.unmaskable}.")


def softmax_sums(
    queries: Float[Array, "n p"], keys: Float[Array, "m p"], values: Float[Array, "m d"], masses: Float[Array, " m"]
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """(averages, log partition functions): the sums that kinds may lift their vectors with."""
    return attend(SoftmaxAttention(), queries, keys, values, masses)
