"""What runs accept: tokens, recorded times, methods; each checked once, tracers by their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pathlines.foundation.errors import ArgumentError, FormError, of_kind
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.traceable import is_traced, traceable_array, traceable_number
from pathlines.integrate.methods import METHODS, Method
from pathlines.integrate.observe import Observable
from pathlines.model.base import Model

M = TypeVar("M", bound=Model)

FIXED_STEP_ERROR = 1e-10
"""Relative error of sums over tokens where no tolerance was given."""

Recorded = Sequence[Observable | str] | Observable | str


def checked_start(model: Model, tokens: Any) -> jax.Array:
    """Tokens as a float array of one dtype, checked against the model."""
    of_kind("model", model, Model, "a model")
    array = traceable_array("tokens", tokens)
    known = array.dtype if array.dtype in (np.float32, np.float64) else "float64"
    dtype = resolve_dtype(known, "pass tokens.astype('float32')")
    model.check(array)
    return jnp.asarray(array, dtype)


def time_grid(until: Any, times: Any) -> Any:
    """Recorded times from ``until`` or ``times``, exactly one of them."""
    if (until is None) == (times is None):
        raise ArgumentError("Give either `until` (the last time) or `times` (all recorded times).")
    if times is None:
        last = traceable_number("until", until, low=0.0, open_low=True)
        return (jnp if is_traced(last) else np).linspace(0.0, last, 101)
    if is_traced(times):
        return jnp.atleast_1d(traceable_array("times", times)).astype(float)
    grid = np.atleast_1d(traceable_array("times", times)).astype(float)
    if grid.ndim != 1 or len(grid) == 0 or grid[0] < 0 or np.any(np.diff(grid) <= 0):
        raise ArgumentError("Argument `times` must be increasing numbers ≥ 0.")
    return grid


def chosen_method(name: str, step: Any, model: Model) -> Method:
    """The method of that name; an adaptive one takes no step, a fixed one needs it, a spherical one a sphere."""
    method = METHODS[name]
    if method.spherical and getattr(model, "space", "") != "sphere":
        raise FormError(f"Method `{name}` moves tokens along great circles: it needs SelfAttention on the sphere.")
    if method.error_order == 0 and step is None:
        raise ArgumentError(f"Method `{name}` has no error estimate: give `step`, or use 'rk45' or 'dop853'.")
    if step is not None:
        traceable_number("step", step, low=0.0, open_low=True)
    return method


def cast(model: M, dtype: Any) -> M:
    """The model with its floating arrays in the dtype of the tokens."""
    strange = lambda x: eqx.is_inexact_array(x) and not jnp.iscomplexobj(x) and x.dtype != dtype  # noqa: E731
    if not any(strange(leaf) for leaf in jax.tree.leaves(model)):
        return model
    return jax.tree.map(lambda x: x.astype(dtype) if strange(x) else x, model)
