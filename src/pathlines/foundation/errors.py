"""Every error Pathlines raises on purpose: one line, what was wrong and what is allowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class PathlinesError(Exception):
    """Base of all deliberate errors; the command line prints its message without a traceback."""


class ArgumentError(PathlinesError, ValueError):
    """An argument is outside what is allowed."""


class PrecisionError(PathlinesError, RuntimeError):
    """Float64 was asked for while JAX has it switched off."""


class UnknownNameError(PathlinesError, LookupError):
    """No entry of that name; the message suggests the nearest ones."""


class FormError(PathlinesError, TypeError):
    """A state does not carry what was asked of it (the Gram form has no token coordinates, for example)."""


class StoreError(PathlinesError, OSError):
    """The results folder cannot be written."""


class PathlinesWarning(UserWarning):
    """A result is incomplete or a certificate failed; the message says where and why."""


def _shown(value: Any) -> str:
    if hasattr(value, "shape") and np.size(value) > 4:
        return f"an array of shape {tuple(value.shape)}"
    return repr(value.tolist() if hasattr(value, "tolist") else value)


def require(condition: bool, name: str, must: str, value: Any) -> None:
    """Raise ``ArgumentError`` "Argument `name` must ..., but is ..." unless the condition holds."""
    if not condition:
        raise ArgumentError(f"Argument `{name}` must {must}, but is {_shown(value)}.")


def positive_integer(name: str, value: Any, least: int = 1) -> int:
    """Return ``value`` as an int of at least ``least``."""
    ok = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least
    require(bool(ok), name, f"be an integer ≥ {least}", value)
    return int(value)


def finite_number(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False
) -> float:
    """Return ``value`` as a finite float in ``[low, high]`` (``(low, high]`` when ``open_low``)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and low <= number <= high) or (open_low and number == low):
        limits = [f"{'>' if open_low else '≥'} {low:g}"] if math.isfinite(low) else []
        limits += [f"≤ {high:g}"] if math.isfinite(high) else []
        require(False, name, "be a finite number" + (" " + " and ".join(limits) if limits else ""), value)
    return number


def finite_array(name: str, value: Any, shape: tuple[int | str, ...] | None = None) -> np.ndarray:
    """Return ``value`` as a NumPy array after checking that it is numeric, finite and of the given shape.

    A string in ``shape`` names a free size (equal names must agree), an int fixes it.
    """
    array = np.asarray(value)
    require(array.dtype.kind in "iuf", name, "be a real numeric array", value)
    if shape is not None:
        sizes: dict[str, int] = {}
        fits = array.ndim == len(shape)
        if fits:
            for want, have in zip(shape, array.shape, strict=True):
                fits &= have == (sizes.setdefault(want, have) if isinstance(want, str) else want)
        wanted = "(" + ", ".join(str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        if not fits:
            raise ArgumentError(f"Argument `{name}` must have shape {wanted}, but has shape {array.shape}.")
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(np.size(array) - finite.sum())
        raise ArgumentError(f"Argument `{name}` must be finite, but has {bad} NaN or infinite of {array.size} entries.")
    return array
