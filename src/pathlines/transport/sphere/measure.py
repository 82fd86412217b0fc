"""Prompts as measures: unit vectors with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, require

UNIT = 1e-6
"""How far from length one a token may be; it is scaled to length one."""


class Measure(NamedTuple):
    """Σ wⱼ δ_{xⱼ}: points (n, d) of length one and weights (n,) that sum to one."""

    points: np.ndarray
    weights: np.ndarray


def measures(name: str, value: Any) -> list[Measure]:
    """Prompts, each an (n, d) array of unit vectors or a pair (points, weights); one dimension d for all."""
    listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and len(value) > 0
    require(listed, name, "be a list of (n, d) arrays of unit vectors, at least one", value)
    found = [measure(f"{name}[{k}]", v) for k, v in enumerate(value)]
    for k, m in enumerate(found):
        if m.points.shape[1] != found[0].points.shape[1]:
            first, here = found[0].points.shape[1], m.points.shape[1]
            raise ArgumentError(f"Argument `{name}` must have one dimension, but has {first} and, at {k}, {here}.")
    return found


def measure(name: str, value: Any) -> Measure:
    """One prompt, checked."""
    given, weights = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    points = finite_array(name, given, ("n", "d")).astype(float)
    require(points.size > 0 and points.shape[1] >= 2, name, "hold at least one token of dimension ≥ 2", given)
    lengths = np.linalg.norm(points, axis=1)
    off = np.flatnonzero(np.abs(lengths - 1) > UNIT)
    if len(off):
        raise ArgumentError(
            f"Argument `{name}` must hold unit vectors, but row {off[0]} has length {lengths[off[0]]:g}."
        )
    n = len(points)
    shares = np.full(n, 1 / n) if weights is None else finite_array(f"{name} weights", weights, (n,)).astype(float)
    total = shares.sum()
    require(bool((shares > 0).all()) and abs(total - 1) < UNIT, f"{name} weights", "be positive and sum to 1", shares)
    return Measure(points / lengths[:, None], shares / total)
