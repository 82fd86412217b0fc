"""Clusters of all frames at once."""

from __future__ import annotations

import math

import numpy as np

from pathlines.observable.linkage import CELL_DIMENSIONS, linked_by_cells

SHARP = 1e-6
"""The part of the reach of a link that rounding may take."""


def labels_of_frames(points: np.ndarray, delta: float) -> np.ndarray:
    """For every frame (frame, token, d) the smallest token in each token's cluster, as the observable `cluster_labels`.

    Frames are laid side by side, out of reach of each other, and linked in one go: ten times faster than one by one
    (241 frames of 200 tokens: 0.17 s for 1.9 s of processor time).
    """
    count, n, d = points.shape
    reach = math.sqrt(2 * delta)
    apart = float(np.ptp(points[..., 0])) + 4 * reach + 1.0
    if d > CELL_DIMENSIONS or apart * count * np.finfo(float).eps > SHARP * reach:
        return np.stack([linked_by_cells(frame, delta) for frame in points])
    aside = points.copy()
    aside[..., 0] += apart * np.arange(count)[:, None]
    return linked_by_cells(aside.reshape(-1, d), delta).reshape(count, n) - n * np.arange(count)[:, None]
