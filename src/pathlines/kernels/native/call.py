"""The fused kernel as a JAX function: batched by ``vmap``, differentiated through the portable formula."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float

from pathlines.attention import Attention
from pathlines.attention.masks import AlibiMask
from pathlines.kernels.native.build import native_library
from pathlines.kernels.portable import portable_attend

Matrices = tuple[Float[Array, "p d"] | None, Float[Array, "p d"] | None, Float[Array, "e d"] | None]
"""Q, K and V of one head."""


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
    return _called(attention, (queries, keys, values, masses), (), values.shape[1], causal)


@fused_attend.defjvp
def _derivative(causal: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    _, change = jax.jvp(partial(portable_attend, mask=_mask(causal)), primals, tangents)
    return fused_attend(*primals, causal), change


@partial(jax.custom_jvp, nondiff_argnums=(5,))
def fused_heads(
    attention: Attention,
    matrices: Matrices,
    x: Float[Array, "n d"],
    y: Float[Array, "m d"],
    masses: Float[Array, " m"],
    causal: bool = False,
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """``fused_attend`` among Q x_i, K y_j, V y_j, products included (no matrix stands for the identity).

    XLA gives a program of more than 1000 operations to another thread, 30 µs before it begins: the products of 32
    tokens would be that many. Those of 1000 tokens would be written, cut in three and copied.
    """
    none = jnp.zeros((0, x.shape[1]), x.dtype)
    given = tuple(none if m is None else m for m in matrices)
    width = x.shape[1] if matrices[2] is None else matrices[2].shape[0]
    return _called(attention, (x, y, y, masses), given, width, causal)


@fused_heads.defjvp
def _derivative_of_heads(causal: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    def portable(attention: Attention, matrices: Matrices, x: Array, y: Array, masses: Array) -> Any:
        query, key, value = (r if m is None else r @ m.T for m, r in zip(matrices, (x, y, y), strict=True))
        return portable_attend(attention, query, key, value, masses, _mask(causal))

    _, change = jax.jvp(portable, primals, tangents)
    return fused_heads(*primals, causal), change


def _mask(causal: bool) -> AlibiMask | None:
    return AlibiMask(strict=False, reduce="sum") if causal else None


def _called(
    attention: Attention, rows: tuple[Array, ...], matrices: tuple[Array, ...], width: int, causal: bool
) -> Any:
    """The call from JAX: ``rows`` are queries, keys, values and masses, ``width`` is that of the answer."""
    softmax, shift = attention.fused  # type: ignore[misc]
    dtype, count = jnp.result_type(*rows[:3], *matrices), rows[0].shape[0]
    row = jax.ShapeDtypeStruct((count,), dtype)
    out = (jax.ShapeDtypeStruct((count, width), dtype), row, row)
    call = jax.ffi.ffi_call(f"pathlines_attend_{dtype.name}", out, vmap_method="expand_dims")
    operands = (jnp.asarray(a, dtype) for a in (*rows, shift, *matrices))
    out_rows, top, norm = call(*operands, softmax=softmax, causal=causal)
    return out_rows, top + jnp.log(norm) if softmax else jnp.broadcast_to(jnp.asarray(shift, dtype), (count,))
