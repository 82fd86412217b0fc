"""Merging times of pairs under the Gram closure, whole trajectories in one native call."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Float


def native_merging(
    starts: Float[Array, "r n n"],
    betas: Float[Array, " b"],
    grid: Float[Array, " t"],
    tableau: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    softmax: bool,
    rtol: float,
    atol: float,
    delta: float,
    first_step: float,
    most_steps: int,
    error_order: int,
) -> Float[Array, "b r t"]:
    """Fractions of the pairs with u_ij ≤ δ at the times of an even ``grid``: each β from each of ``starts``.

    The same steps as the engine's, from the tableau (a, b, e) of a pair whose last stage is the next step's first.
    Cost O(n³) per stage, O(n²) memory, all cores; NaN after the time at which a run was given up.
    """
    a, b, e = (np.ascontiguousarray(x, np.float64).ravel() for x in tableau)
    out = jax.ShapeDtypeStruct((betas.shape[0], starts.shape[0], grid.shape[0]), starts.dtype)
    call = jax.ffi.ffi_call(f"pathlines_merging_{starts.dtype.name}", out)
    result: Array = call(
        starts, betas, grid, softmax=softmax, rtol=rtol, atol=atol, delta=delta, first_step=first_step,
        most_steps=np.int64(most_steps), error_order=np.int64(error_order), a=a, b=b, e=e,
    )  # fmt: skip
    return result
