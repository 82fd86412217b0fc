"""Argument checks shared by the closed forms: arrays in a range, whole numbers, one of a few names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathlines.foundation.errors import finite_array, require


def real_array(
    name: str,
    value: Any,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> np.ndarray:
    """Return ``value`` as a float64 array with every entry finite and between ``low`` and ``high``."""
    array = finite_array(name, value).astype(np.float64)
    above = array > low if open_low else array >= low
    below = array < high if open_high else array <= high
    limits = [f"{'>' if open_low else '≥'} {low:g}"] if np.isfinite(low) else []
    limits += [f"{'<' if open_high else '≤'} {high:g}"] if np.isfinite(high) else []
    require(bool(np.all(above & below)), name, "be " + " and ".join(limits or ["finite"]), value)
    return array


def whole_array(name: str, value: Any, least: int) -> np.ndarray:
    """Return ``value`` as a float64 array of whole numbers ≥ ``least`` (floats such as 1e12 are welcome)."""
    array = finite_array(name, value).astype(np.float64)
    ok = bool(np.all(array >= least)) and bool(np.all(array == np.rint(array)))
    require(ok, name, f"hold whole numbers ≥ {least}", value)
    return array


def flat_list(name: str, value: Any) -> list[Any]:
    """The entries of a sequence or array of one dimension (or less), at least one; each is for the caller to check."""
    row = isinstance(value, Sequence) and not isinstance(value, str)
    row = row or (isinstance(value, np.ndarray) and value.ndim <= 1)
    entries = np.ravel(value).tolist() if isinstance(value, np.ndarray) else list(value) if row else []
    require(row and len(entries) > 0, name, "be a list of numbers", value)
    return entries


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return ``value`` after checking that it is one of the ``allowed`` names."""
    require(value in allowed, name, "be one of " + ", ".join(repr(a) for a in allowed), value)
    return str(value)


def eigenvalue_list(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a one-dimensional float64 array with at least one entry."""
    array = finite_array(name, value, ("d",)).astype(np.float64)
    require(array.size > 0, name, "hold at least one number", value)
    return array
