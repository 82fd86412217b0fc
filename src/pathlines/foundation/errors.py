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


LONGEST = 120
"""Letters of a value that an error message quotes."""


def _shown(value: Any) -> str:
    """A value in one short line."""
    if hasattr(value, "shape") and not isinstance(value, type) and np.size(value) > 4:
        return f"an array of shape {tuple(value.shape)}"
    text = " ".join(repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def require(condition: bool, name: str, must: str, value: Any) -> None:
    """Raise ``ArgumentError`` "Argument `name` must ..., but is ..." unless the condition holds."""
    if not condition:
        raise ArgumentError(f"Argument `{name}` must {must}, but is {_shown(value)}.")


def of_kind(name: str, value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """Return ``value`` after checking that it is an instance of ``kind``, called ``what``."""
    require(isinstance(value, kind), name, f"be {what}", value)
    return value


def a_function(name: str, value: Any) -> Any:
    """Return ``value`` after checking that it can be called."""
    require(callable(value), name, "be a function", value)
    return value


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
        number = math.nan if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except (TypeError, ValueError, OverflowError):
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
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, object)
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
