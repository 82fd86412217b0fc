"""Affine maps as ReLU pieces, exactly, and rotations of a plane.

x → m + Lx with L lower triangular and a positive diagonal: rows from the last to the first, each a dilation of both
half-lines (2 pieces) and a linear shear (2 pieces), then a translation: 4d - 1 pieces [derived]. A rotation of a plane
by θ in (-π, π) is three linear shears, by -tan(θ/2), sin θ, -tan(θ/2): 6 pieces.
"""

from __future__ import annotations

import numpy as np

from pathlines.foundation.errors import finite_number
from pathlines.transport.euclid.schedule import EuclideanSchedule


def _pieces(rows: list[tuple[np.ndarray, np.ndarray, float]]) -> EuclideanSchedule:
    w, a, b = zip(*rows)
    return EuclideanSchedule(np.array(w), np.array(a), np.array(b), np.ones(len(rows)))


def affine_schedule(mean: np.ndarray, root: np.ndarray) -> EuclideanSchedule:
    """x → mean + root x for a lower triangular ``root`` with a positive diagonal."""
    d = len(mean)
    axes, rows = np.eye(d), []
    for j in reversed(range(d)):
        rate = np.log(root[j, j])
        rows += [(rate * axes[j], axes[j], 0.0), (-rate * axes[j], -axes[j], 0.0)]
        if j:
            across = np.append(root[j, :j], np.zeros(d - j))
            rows += [(axes[j], across, 0.0), (-axes[j], -across, 0.0)]
    return _pieces([*rows, (np.asarray(mean, float), np.zeros(d), 1.0)])


def rotation_schedule(angle: float) -> EuclideanSchedule:
    """The rotation of the plane by ``angle`` in (-π, π): three shears, 6 pieces."""
    theta = finite_number("angle", angle, -np.pi, np.pi, open_low=True)
    x, y = np.eye(2)
    slant, rise = -np.tan(theta / 2), np.sin(theta)
    shears = [(slant, x, y), (rise, y, x), (slant, x, y)]
    return _pieces([(sign * s * w, sign * a, 0.0) for s, w, a in shears for sign in (1.0, -1.0)])
