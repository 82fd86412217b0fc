"""Argument checks shared by the closed forms: arrays in a range, whole numbers, one of a few names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, require


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


def checked_mask(mask: Any) -> np.ndarray:
    """A lower triangular matrix whose rows sum to one (the first may be empty); errors name the row."""
    try:
        given = np.asarray(mask)
    except ValueError:  # rows of different lengths
        given = np.empty(0, object)
    require(given.dtype.kind in "iuf", "mask", "be a real numeric array", mask)
    matrix = finite_array("mask", np.nan_to_num(given), ("n", "n")).astype(float)
    require(len(matrix) >= 2, "mask", "have at least 2 rows", len(matrix))
    for above, what in (
        (~np.isfinite(given), "finite"),
        (np.triu(matrix, 1), "lower triangular"),
        (np.minimum(matrix, 0), "nonnegative"),
    ):
        if np.any(above):
            i, j = np.argwhere(above)[0]
            raise ArgumentError(f"Argument `mask` must be {what}, but entry ({i + 1}, {j + 1}) is {given[i, j]:g}.")
    sums = matrix.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > 1e-9)
    wrong = wrong[(wrong > 0) | (sums[wrong] != 0)]
    if len(wrong):
        raise ArgumentError(
            f"Argument `mask` must have rows that sum to 1, but row {wrong[0] + 1} sums to {sums[wrong[0]]:g}."
        )
    return matrix
