"""What the papers draw over the tokens: the polytope whose corners tokens tend to, the centre of a consensus."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from pathlines.integrate.run import Run
from pathlines.limit.clustering.euclidean import classify_value
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.view.site.state import State

CLOSE = 0.1
"""How near zero, relative to the spread, a leading coordinate is on the hyperplane through zero."""
POLYTOPES = ("rescaled", "frozen", "leader")
"""Models of R^d whose tokens tend to the boundary of a polytope (Geshkovski, Letrouit, Polyanskiy, Rigollet)."""


def overlays(state: State, run: Run) -> list[dict[str, Any]]:
    """Of a run that recorded its tokens."""
    if "tokens" not in run.data or not len(run.time):
        return []
    last = np.asarray(run.data["tokens"].values)[-1]
    if not np.isfinite(last).all():
        return []
    if state.model in POLYTOPES:
        return _hyperplanes(run, last) or _hull(last)
    if state.stage.d == 3 and np.allclose(np.linalg.norm(last, axis=1), 1.0, atol=1e-3):
        return _centre(last)
    return []


def _hyperplanes(run: Run, points: np.ndarray) -> list[dict[str, Any]]:
    """Where V has one leading eigenvalue, tokens tend to at most three parallel hyperplanes: through the lowest and the
    highest of them, and through zero.
    """
    if not isinstance(run.model, RescaledAttention):
        return []
    kind = classify_value(np.asarray(run.model.value))
    if kind.kind != "good triple" or kind.left is None:
        return []
    levels = points @ kind.left
    low, high = float(levels.min()), float(levels.max())
    through_zero = low < 0 < high and np.abs(levels).min() < CLOSE * (high - low)
    places = [low, *([0.0] if through_zero else []), high]
    return [{"kind": "hyperplane", "normal": kind.left.tolist(), "offset": c} for c in places]


def _hull(points: np.ndarray) -> list[dict[str, Any]]:
    from scipy.spatial import ConvexHull, QhullError

    with suppress(QhullError, ValueError):
        hull = ConvexHull(points)
        corners = {int(v): k for k, v in enumerate(hull.vertices)}
        sides = {tuple(sorted((corners[int(a)], corners[int(b)]))) for s in hull.simplices for a, b in _pairs(s)}
        found = {"points": points[hull.vertices].tolist(), "edges": [list(s) for s in sorted(sides)]}
        return [{"kind": "polytope", "label": "hull of the last tokens", **found}]
    return []


def _pairs(simplex: np.ndarray) -> list[tuple[int, int]]:
    corners = [int(v) for v in simplex]
    return [(a, b) for k, a in enumerate(corners) for b in corners[k + 1 :]]


def _centre(points: np.ndarray) -> list[dict[str, Any]]:
    """Where all tokens have met, if they have."""
    mean = points.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return [{"kind": "centre", "points": [(mean / length).tolist()], "label": "consensus"}] if length > 0.999 else []
