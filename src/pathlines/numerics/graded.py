"""Weighted points of the circle that lie ever denser towards an axis: the mass there decides where flows end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import finite_number, positive_integer


class GradedCircle(NamedTuple):
    """``angles`` (n,) and ``masses`` (n,), which sum to one; ``edges`` (n+1,) of the cells that they stand for."""

    angles: np.ndarray
    masses: np.ndarray
    edges: np.ndarray


def graded_circle(density: Callable[[Any], Any], axis: float, n: int, smallest: float) -> GradedCircle:
    """About n cells, geometric towards the angles axis ± π/2: the innermost ``smallest`` wide, none above 2π/256.

    A point stands in the middle of its cell with its mass by Simpson's rule: a flow that expands about axis ± π/2 keeps
    resolving what is left there until e^{gap t} smallest ~ 1.
    """
    quarter, least = positive_integer("n", n, 64) // 4, finite_number("smallest", smallest, 1e-12, 0.1)
    steps = np.geomspace(least, np.pi / 2, quarter)
    wide = np.arange(0, np.pi / 2, np.pi / 128)
    # where geometric cells are wide, equal ones
    turn = steps[np.argmax(np.diff(steps) > np.pi / 128)] if np.any(np.diff(steps) > np.pi / 128) else np.pi / 2
    even = np.linspace(turn, np.pi / 2, max(2, int(np.sum(wide > turn)) + 2))
    side = np.concatenate([[0.0], steps[steps < turn], even if turn < np.pi / 2 else [turn]])
    half = np.concatenate([-side[:0:-1], side])
    edges = np.concatenate([axis - np.pi / 2 + half, axis + np.pi / 2 + half[1:]])
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    masses = width * (density(edges[:-1]) + 4 * density(middle) + density(edges[1:])) / 6
    return GradedCircle(middle, masses / masses.sum(), edges)
