"""Where the tokens of a run are drawn: on the circle, the sphere, in the plane, in space, or as ellipses."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError, require
from pathlines.integrate.run import Run

Space = Literal["sphere", "circle", "plane", "space", "ellipses"]

UNIT = 1e-3
"""How far from length one tokens of the sphere may be."""
WORDS = {
    "sphere": "on the sphere S²",
    "circle": "on the circle S¹",
    "plane": "in the plane",
    "space": "in space",
    "ellipses": "as two-sigma ellipses",
}


class Places(NamedTuple):
    """Places (time, token, component), and how they are to be read.

    ``points`` are the tokens themselves, which clusters are found from; ``note`` says what was left out to draw them.
    """

    space: Space
    shown: np.ndarray
    points: np.ndarray
    times: np.ndarray
    note: str


def places(run: Run, path: int = 0) -> Places:
    """What can be drawn of one run (number ``path`` of an ensemble), up to the last time at which it is finite."""
    data = run.data
    if "tokens" in data and "component" in data["tokens"].dims:
        points = np.asarray(_one(data["tokens"], path).transpose("time", "token", "component").values, float)
        points, times = _finite(points, run.time)
        return Places(*_drawn(points), points, times, _note(points))
    if "covariance" in data and data.sizes.get("component") == 2:
        clouds, times = _finite(_ellipses(data), run.time)
        return Places("ellipses", clouds, clouds[..., :2], times, "")
    raise ArgumentError('The run has no tokens to draw; record them: record=["tokens"].')


def _one(values: Any, path: int) -> Any:
    if "run" not in values.dims:
        return values
    runs = values.sizes["run"]
    require(0 <= path < runs, "path", f"be the number of a run, 0 to {runs - 1}", path)
    return values.isel(run=path)


def _finite(values: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    good = np.isfinite(values).all(axis=(1, 2)) & np.isfinite(times)
    last = len(good) if good.all() else int(np.argmin(good))
    if last == 0:
        raise ArgumentError("The run has no frame to draw: its first tokens are not finite.")
    return values[:last], times[:last].astype(float)


def _drawn(points: np.ndarray) -> tuple[Space, np.ndarray]:
    d = points.shape[-1]
    unit = bool(np.abs(np.linalg.norm(points, axis=-1) - 1).max() < UNIT)
    if d == 1:
        return "plane", np.concatenate([points, np.zeros_like(points)], axis=-1)
    if d == 2:
        return ("circle" if unit else "plane"), points
    if d == 3:
        return ("sphere" if unit else "space"), points
    return "space", _principal(points)


def _principal(points: np.ndarray) -> np.ndarray:
    """Coordinates along the three directions in which all frames together spread most; signs are fixed."""
    every = points.reshape(-1, points.shape[-1])
    _, axes = np.linalg.eigh(every.T @ every)
    axes = axes[:, ::-1][:, :3]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(3)] < 0, -1.0, 1.0)
    return points @ axes


def _note(points: np.ndarray) -> str:
    d = points.shape[-1]
    return f"three principal directions of {d}" if d > 3 else ""


def _ellipses(data: Any) -> np.ndarray:
    """Mean and covariance (x₁, x₂, Σ₁₁, Σ₁₂, Σ₂₂) of each cloud."""
    many = "run" in data["covariance"].dims
    order = ("time", "run") if many else ("time",)
    sigma = np.asarray(data["covariance"].transpose(*order, "component", "component_").values, float)
    mean = np.zeros((*sigma.shape[:-1],))
    if "cloud_mean" in data:
        mean = np.asarray(data["cloud_mean"].transpose(*order, "component").values, float)
    parts = np.stack([*np.moveaxis(mean, -1, 0), sigma[..., 0, 0], sigma[..., 0, 1], sigma[..., 1, 1]], axis=-1)
    return parts if many else parts[:, None, :]
