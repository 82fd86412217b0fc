"""The fused kernel as a JAX function: batched by ``vmap``, differentiated through the portable formula."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float

from pathlines.attention import Attention
from pathlines.kernels.native.build import native_library
from pathlines.kernels.portable import portable_attend


def native_serves(dtype: DTypeLike) -> bool:
    """Whether arrays of that type on the default device can take the native path."""
    return jnp.dtype(dtype).name in ("float32", "float64") and jax.default_backend() == "cpu" and bool(native_library())


@partial(jax.custom_jvp, nondiff_argnums=(5,))
def fused_attend(
    attention: Attention,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    causal: bool = False,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """``portable_attend`` without the n × m weights: O(nm(p+d)) time, O(m(p+d)) memory, on all cores when large.

    For kinds with a ``fused`` form. Derivatives are those of the portable formula, in blocks.
    """
    softmax, shift = attention.fused  # type: ignore[misc]
    dtype = jnp.result_type(queries, keys, values)
    rows = queries.shape[0]
    row = jax.ShapeDtypeStruct((rows,), dtype)
    out = (jax.ShapeDtypeStruct((rows, values.shape[1]), dtype), row, row)
    call = jax.ffi.ffi_call(f"pathlines_attend_{dtype.name}", out, vmap_method="broadcast_all")
    operands = (jnp.asarray(a, dtype) for a in (queries, keys, values, masses, shift))
    out_rows, top, norm = call(*operands, softmax=softmax, causal=causal)
    return out_rows, top + jnp.log(norm) if softmax else jnp.broadcast_to(jnp.asarray(shift, dtype), (rows,))


@fused_attend.defjvp
def _derivative(causal: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    _, change = jax.jvp(partial(portable_attend, causal=causal), primals, tangents)
    return fused_attend(*primals, causal), change
