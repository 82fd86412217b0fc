"""Prompts through a causal decoder on the circle, whole trajectories and their adjoints in one native call."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float


def native_decoder(
    starts: Float[np.ndarray, "r n"],
    bessel: Float[np.ndarray, " k"],
    inverse: Float[np.ndarray, " n"],
    tableau: tuple[np.ndarray, np.ndarray],
    *,
    softmax: bool,
    adjoint: bool,
    beta: float,
    decay: float,
    step: float,
    steps: int,
) -> tuple[Float[np.ndarray, "r n"], Float[np.ndarray, "r n"] | None]:
    """(angles at the end, ∂θ_N(end)/∂θ_i(start) of every prompt); ``inverse`` are 1/Z_j, ``bessel`` I_0 … I_K.

    The steps of the explicit method with ``tableau`` (a, b). O(NK) per stage, all cores; with ``adjoint`` memory is
    16 bytes × N × stages × steps for each of eight prompts a core (twice that for softmax).
    """
    shape = jax.ShapeDtypeStruct(starts.shape, np.float64)
    back = shape if adjoint else jax.ShapeDtypeStruct((0,), np.float64)
    a, b = (np.ascontiguousarray(x, np.float64).ravel() for x in tableau)
    call = jax.ffi.ffi_call("pathlines_decoder_float64", (shape, back))
    arrays = (np.asarray(x, np.float64) for x in (starts, bessel, inverse))
    numbers = {"beta": float(beta), "decay": float(decay), "step": float(step), "steps": np.int64(steps)}
    end, gradient = call(*arrays, softmax=softmax, adjoint=adjoint, a=a, b=b, **numbers)
    return np.asarray(end), np.asarray(gradient) if adjoint else None
