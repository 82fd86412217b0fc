"""The fused kernel as a JAX function: batched by ``vmap``, differentiated through the portable formula."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float

from pathlines.kernels.native.build import native_library


def native_serves(dtype: DTypeLike) -> bool:
    """Whether arrays of that type on the default device can take the native path."""
    return jnp.dtype(dtype).name in ("float32", "float64") and jax.default_backend() == "cpu" and bool(native_library())


def portable_attend(
    softmax: bool,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    shift: Float[Array, ""],
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """What the kernel computes, in plain JAX: Σ_j m_j e^{<q_i,k_j> - c_i} v_j and c_i."""
    scores = queries @ keys.T
    scale = jax.nn.logsumexp(scores, axis=1, b=masses) if softmax else jnp.broadcast_to(shift, scores.shape[:1])
    return (masses * jnp.exp(scores - scale[:, None])) @ values, scale


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def fused_attend(
    softmax: bool,
    queries: Float[Array, "n p"],
    keys: Float[Array, "m p"],
    values: Float[Array, "m d"],
    masses: Float[Array, " m"],
    shift: Float[Array, ""],
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """``portable_attend`` without the n × m weights: O(nm(p+d)) time, O(m(p+d)) memory, on all cores when large."""
    dtype = jnp.result_type(queries, keys, values)
    rows = queries.shape[0]
    out = (jax.ShapeDtypeStruct((rows, values.shape[1]), dtype), jax.ShapeDtypeStruct((rows,), dtype))
    call = jax.ffi.ffi_call(f"pathlines_attend_{dtype.name}", out, vmap_method="broadcast_all")
    operands = (jnp.asarray(a, dtype) for a in (queries, keys, values, masses, shift))
    out_rows, log_scale = call(*operands, softmax=softmax)
    return out_rows, log_scale


@fused_attend.defjvp
def _derivative(softmax: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    _, change = jax.jvp(partial(portable_attend, softmax), primals, tangents)
    return fused_attend(softmax, *primals), change
