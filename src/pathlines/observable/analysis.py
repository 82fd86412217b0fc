"""Numbers read off recorded curves."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial import ConvexHull

from pathlines.foundation.errors import ArgumentError, finite_number, require


def crossing_time(times: Any, values: Any, level: float) -> float:
    """First time a recorded curve crosses ``level``, by linear interpolation; NaN when it never does."""
    times, values = np.asarray(times, float), np.asarray(values, float)
    side = values >= finite_number("level", level)
    change = np.nonzero(side[1:] != side[:-1])[0]
    if len(change) == 0:
        return float("nan")
    i = change[0]
    return float(times[i] + (level - values[i]) / (values[i + 1] - values[i]) * (times[i + 1] - times[i]))


def decay_rate(times: Any, values: Any, low: float = 1e-8, high: float = 1e-3) -> float:
    """-slope of ln(values) over the window where low < value < high, by least squares."""
    times, values = np.asarray(times, float), np.asarray(values, float)
    inside = (values > low) & (values < high)
    if inside.sum() < 3:
        raise ArgumentError(f"The curve has {inside.sum()} points between {low:g} and {high:g}; record more times.")
    return float(-np.polyfit(times[inside], np.log(values[inside]), 1)[0])


def hull_shrink(trajectory: Any) -> float:
    """Largest signed distance of later points from the convex hull of earlier ones (≤ 0 when the hull shrinks).

    ``trajectory`` is (times, n, d) with d ≥ 2; consecutive times are compared.
    """
    points = np.asarray(trajectory, float)
    require(points.ndim == 3 and points.shape[-1] >= 2, "trajectory", "be (times, n, d) with d ≥ 2", points.shape)
    worst = -np.inf
    for before, after in itertools.pairwise(points):
        facets = ConvexHull(before).equations
        worst = max(worst, float(np.max(facets[:, :-1] @ after.T + facets[:, -1:])))
    return worst


def limit_cluster_count(counts: xr.Dataset | dict[str, Any]) -> int | None:
    """The common last value of cluster counts at several thresholds; ``None`` ("not converged") when they differ.

    A plateau is never called converged on velocity alone: escape rates are as small as e^{-2β}.
    """
    last = {int(np.asarray(v)[-1]) for v in counts.values()}
    return last.pop() if len(last) == 1 else None
