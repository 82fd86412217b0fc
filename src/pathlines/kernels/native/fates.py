"""Gaussian clouds under softmax attention, each followed to its fate in one native call."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float


def native_fates(
    values: Float[np.ndarray, "k h d d"],
    scores: Float[np.ndarray, "k h d d"],
    shapes: Float[np.ndarray, "k d r"],
    log_sizes: Float[np.ndarray, " k"],
    **settings: Any,
) -> tuple[Array, ...]:
    """(Y, ln ρ, t in units of the first scale, s, ln ρ when last seen at s ≤ ``halt``) of clouds L = √ρ Y.

    L' = Σ_h C_h L(LᵀA_hL) in scale-free time s, with the steps of the engine: an explicit pair to s = ``middle``, a
    Rosenbrock method to ``end``, a look at each cloud every ``turn`` steps. Numbers are 64-bit. Cost O(d³) per step of
    the first, O((dr)³) of the second; all cores, eight clouds at a time on each where vectors are that wide.
    """
    k = shapes.shape[0]
    out = [jax.ShapeDtypeStruct(shape, np.float64) for shape in (shapes.shape, (k,), (k,), (k,), (k,))]
    native = {name: _plain(x) for name, x in settings.items()}
    return tuple(jax.ffi.ffi_call("pathlines_fates_float64", out)(values, scores, shapes, log_sizes, **native))


def _plain(x: Any) -> Any:
    """Flat arrays, floats and 64-bit integers, as the call takes them."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x, np.float64).ravel()
    return np.int64(x) if isinstance(x, int) else float(x)
