"""Mistakes that fit a claim: declared beside it, tried by ``pathlines verify --power`` (``mistakes.py``)."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np


class Mistake(msgspec.Struct, frozen=True):
    """A mistake that bounds and zeros of a claim should notice.

    ``change(right, size)`` is the mistaken form of the function or class ``of``, which is "simulate" or "predict", a
    name that the code of the claim calls, one with its module ("pathlines.integrate.cluster_flow.energy_of"), or
    "drift" for that of every model. ``words`` say what is wrong, with braces for the size ("a rate {:.0%} too small").
    Sizes are tried in their order; the first that is refuted counts.
    """

    of: str
    words: str
    change: Callable[[Any, float], Any]
    sizes: tuple[float, ...] = (0.01, 0.1, 0.2, 0.5, 1.0)


REVERSED = Mistake("drift", "the drift reversed", lambda right, size: lambda *a: -right(*a), (1.0,))
"""Of models whose state is one array."""


def too_large(of: str, words: str, sizes: tuple[float, ...] = (0.01, 0.1, 0.2, 0.5, 1.0)) -> Mistake:
    """All real numbers that the function returns are too large by the share ``size``."""
    return Mistake(of, words, lambda right, size: lambda *a, **k: scaled(right(*a, **k), 1 + size), sizes)


def simulated_at(words: str, sizes: tuple[float, ...], **fields: Callable[[Any, float], Any]) -> Mistake:
    """The simulation is run at another setting than the prediction: each field is a function of (its value, size)."""

    def change(right: Any, size: float) -> Any:
        moved = lambda s: {name: f(getattr(s, name), size) for name, f in fields.items()}  # noqa: E731
        return lambda s: right(msgspec.structs.replace(s, **moved(s)))

    return Mistake("simulate", words, change, sizes)


def scaled(value: Any, factor: float) -> Any:
    """The same object with its real numbers times a factor; integers, words and unknown kinds stay as they are."""
    if isinstance(value, float | np.floating | complex):
        return value * factor
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return value * factor if np.issubdtype(value.dtype, np.inexact) else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(scaled(v, factor) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(scaled(v, factor) for v in value)
    if isinstance(value, dict):
        return {k: scaled(v, factor) for k, v in value.items()}
    if isinstance(value, msgspec.Struct):
        fields = {f: scaled(getattr(value, f), factor) for f in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, types.FunctionType):
        return lambda *a, **k: scaled(value(*a, **k), factor)
    return value
