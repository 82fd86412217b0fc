"""A knob turned through a range, or two of them: what becomes of tokens and of gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from pathlines.advice.knobs import KNOBS
from pathlines.architecture import Architecture
from pathlines.architecture.read import Source, architecture_of
from pathlines.architecture.record import Deviations
from pathlines.foundation.errors import ArgumentError, PathlinesError, finite_array
from pathlines.foundation.progress import Progress
from pathlines.foundation.threads import one_thread
from pathlines.limit.architecture.backward_cover import not_followed
from pathlines.limit.architecture.gradients import predict_gradients
from pathlines.limit.architecture.predict import predict
from pathlines.limit.architecture.start import Tokens, usual_tokens

FACTORS = {
    "residual_scale": "residual scale of both branches",
    "attention_scale": "residual scale of attention",
    "mlp_scale": "residual scale of the perceptron",
    "logit_scale": "logit scale",
    "embedding_std": "embedding std",
    "output_std": "std of output projections",
    "std": "init std of all matrices",
}
"""Short names of knobs, whose values are factors of what is there."""
POINTS = 9
MOST = 400
"""Predictions of one sweep."""


class Swept(msgspec.Struct, frozen=True):
    """One setting: values of the knobs, the mean cosine of the last layer ± spread, and what gradients do.

    ``collapse``: the first layer at 0.9 (None: none); ``labels``: trainable, or rank, entropy, vanishing, exploding
    (none where gradients are not followed); ``private``: Ψ; ``refused``: why the setting is no architecture.
    """

    values: tuple[float, ...]
    cosine: float | None = None
    spread: float | None = None
    collapse: int | None = None
    labels: tuple[str, ...] = ()
    private: float | None = None
    refused: str | None = None


def sweep(
    architecture: Source, knobs: Mapping[str, Sequence[float] | np.ndarray], tokens: Tokens | None = None
) -> tuple[Swept, ...]:
    """Predictions at all combinations of one or two knobs.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, six numbers, or the record.
        knobs: values by name: factors of ``residual_scale``, ``attention_scale``, ``mlp_scale``, ``logit_scale``,
            ``embedding_std``, ``output_std``, ``std``, or values of a numerical field (``layers``,
            ``deviations.embedding``).
        tokens: token ids, or how many different tokens; 64 (or the context) by default.

    Half a second a setting.
    """
    a = architecture_of(architecture)
    if len(knobs) not in (1, 2):
        raise ArgumentError(f"A sweep turns one knob or two, but there are {len(knobs)}.")
    axes = [finite_array(name, values, ("k",)).astype(float) for name, values in knobs.items()]
    count = int(np.prod([len(axis) for axis in axes]))
    if not 1 <= count <= MOST:
        raise ArgumentError(f"A sweep may have 1 to {MOST} settings, but this has {count}.")
    for name in knobs:
        turned(a, name, float(axes[0][0]), only_check=True)
    ids = usual_tokens(a) if tokens is None else tokens
    found = []
    with one_thread(), Progress("sweeping", count) as bar:
        for values in np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(count, len(axes)):
            found.append(_one(a, dict(zip(knobs, map(float, values), strict=True)), ids))
            bar.update(len(found))
    return tuple(found)


def _one(a: Architecture, setting: dict[str, float], tokens: Tokens) -> Swept:
    values = tuple(setting.values())
    try:
        for name, value in setting.items():
            a = turned(a, name, value)
        curve = predict(a, tokens)
    except PathlinesError as error:
        return Swept(values, refused=str(error))
    reached = curve.mean_cosine >= 0.9
    labels: tuple[str, ...] = ()
    private = None
    if not a.shared and not_followed(a) is None:
        gradients = predict_gradients(a, tokens)
        labels, private = gradients.labels, gradients.transmission
    collapse = int(np.argmax(reached)) if reached.any() else None
    return Swept(values, float(curve.mean_cosine[-1]), float(curve.spread[-1]), collapse, labels, private)


def turned(a: Architecture, name: str, value: float, *, only_check: bool = False) -> Architecture:
    """The record with a knob at a value."""
    knob = next((k for k in KNOBS if k.name == FACTORS.get(name)), None)
    if knob is not None:
        return a if only_check else knob.turn(a, value)
    head, dot, tail = name.partition(".")
    sizes = {n for n in Architecture.__struct_fields__ if _is_number(getattr(a, n))}
    if dot and head == "deviations" and tail in Deviations.__struct_fields__:
        return a if only_check else a.changed(deviations={tail: value})
    if name not in sizes:
        own = ", ".join([*FACTORS, *sorted(sizes), "deviations.NAME"])
        raise ArgumentError(f"There is no knob `{name}` to sweep; there are {own}.")
    whole = isinstance(getattr(a, name), int)
    return a if only_check else a.changed(**{name: round(value) if whole else value})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def values_of(text: str) -> tuple[str, np.ndarray]:
    """``name=low:high`` or ``name=low:high:points`` as values, geometric where the range is wide; or ``name=a,b,c``."""
    name, equals, rest = text.partition("=")
    try:
        if not equals or not name:
            raise ValueError
        if ":" not in rest:
            return name, np.array([float(word) for word in rest.split(",")])
        low, high, *points = rest.split(":")
        ends, count = (float(low), float(high)), int(points[0]) if points else POINTS
        if len(points) > 1 or count < 2 or not np.all(np.isfinite(ends)):
            raise ValueError
    except ValueError:
        raise ArgumentError(
            f"Option --sweep takes NAME=LOW:HIGH, NAME=LOW:HIGH:POINTS or NAME=A,B,C, but got {text!r}."
        ) from None
    wide = min(ends) > 0 and max(ends) / min(ends) >= 4
    return name, (np.geomspace if wide else np.linspace)(*ends, count)
