"""Float64 is asked for, never assumed: importing the package does not touch JAX's configuration."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from pathlines.foundation.errors import ArgumentError, PrecisionError

REMEDY = "JAX has 64-bit numbers switched off: call pathlines.enable_float64() once at the start"


def enable_float64() -> None:
    """Switch JAX to 64-bit numbers for the whole process (the one global switch, made by you, not by an import)."""
    jax.config.update("jax_enable_x64", True)


def resolve_dtype(dtype: DTypeLike = "float64", otherwise: str = "pass dtype='float32'") -> np.dtype:
    """Return the floating dtype asked for; raise when it is float64 and JAX would silently make it float32.

    ``otherwise`` is what the caller can be given instead of float64.
    """
    try:
        wanted = np.dtype(dtype)
    except (TypeError, SyntaxError, ValueError):
        raise ArgumentError(f"Argument `dtype` must be 'float32' or 'float64', but is {dtype!r}.") from None
    if wanted not in (np.dtype("float32"), np.dtype("float64")):
        raise ArgumentError(f"Argument `dtype` must be 'float32' or 'float64', but is {wanted.name!r}.")
    if wanted == np.dtype("float64") and jnp.result_type(float) != wanted:
        raise PrecisionError(f"float64 was asked for, but {REMEDY}, or {otherwise}.")
    return wanted


def require_float64(what: str) -> None:
    """Refuse to compute, in 32 bits, what is compared with theory to more digits than they have."""
    if jnp.result_type(float) != np.dtype("float64"):
        raise PrecisionError(f"{what} 64-bit numbers: call pathlines.enable_float64() once at the start.")
