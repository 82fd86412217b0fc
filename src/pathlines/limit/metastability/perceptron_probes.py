"""Where the first variation of the perceptron landscape is looked at: evenly, and closely around every neuron.

An even grid sees what is as wide as the kernel, 1/√β. A neuron a·x + b varies over 1/|a|, which may be much less, and
has a boundary a·x = -b: lines across both, with offsets in geometric progression, see minima of any width there
(derived for Perceptrons and localization of attention's mean-field landscape, arXiv:2601.21366).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.metastability.perceptron_potential import SOURCES as SOURCES
from pathlines.limit.metastability.perceptron_potential import Potential

OFFSETS = 25
"""Offsets on each side of the middle of a line, from a thousandth of the neuron's width to half a turn."""
AROUND = 24
"""Lines across the boundary of a neuron on S²."""


@cache
def probe_points(d: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """About ``count`` points spread evenly over the sphere of R^d, d = 2 or 3, and the indices of their neighbours."""
    if d == 2:
        angles = 2 * np.pi * np.arange(count) / count
        index = np.arange(count)
        return np.stack([np.cos(angles), np.sin(angles)], -1), np.stack([np.roll(index, 1), np.roll(index, -1)], -1)
    if d == 3:
        from scipy.spatial import cKDTree

        k = np.arange(count) + 0.5
        height, turn = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
        ring = np.sqrt(1 - height**2)
        points = np.stack([ring * np.cos(turn), ring * np.sin(turn), height], -1)
        return points, cKDTree(points).query(points, k=7)[1][:, 1:]
    raise ArgumentError(f"The minimiser is computed on the circle (d = 2) and on S² (d = 3), but d is {d}.")


def line_points(potential: Potential) -> int:
    """How many points ``neuron_lines`` has: three lines per way, two ways on the circle."""
    return len(potential.strengths) * 3 * (2 if potential.d == 2 else AROUND) * (2 * OFFSETS + 1)


def neuron_lines(potential: Potential) -> np.ndarray:
    """Great circles through ±a_j/|a_j| and across the boundaries a_j·x = -b_j, (lines, points, d), d = 2 or 3."""
    lines = []
    for a, length, bias in zip(potential.directions, potential.lengths, potential.biases, strict=True):
        pole = a / length
        # the other columns of an orthonormal basis whose first is ±a/|a|
        across = np.linalg.qr(np.column_stack([pole, np.eye(potential.d)]))[0][:, 1:].T
        turn = np.pi * np.arange(AROUND) / (AROUND / 2)
        ways = across if potential.d == 2 else np.cos(turn)[:, None] * across[0] + np.sin(turn)[:, None] * across[1]
        ways = np.concatenate([ways, -ways]) if potential.d == 2 else ways
        opening = np.arccos(np.clip(-bias / length, -1.0, 1.0))
        side = np.geomspace(min(1e-3 / length, 1e-3), np.pi, OFFSETS)
        offsets = np.concatenate([-side[::-1], [0.0], side])
        for middle in (0.0, np.pi, opening):
            angle = middle + offsets
            lines.append(np.cos(angle)[:, None] * pole + np.sin(angle)[:, None] * ways[:, None, :])
    return np.concatenate(lines)
