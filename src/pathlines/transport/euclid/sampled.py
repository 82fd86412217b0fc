"""Triangular flows from samples: the conditional law of each cell of bins is smoothed from the samples round about it.

The construction is that of ``stack.py`` (Constructive conditional normalizing flows, arXiv:2602.08606); how the laws of
cells are estimated is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.smoothed import smoothed_map
from pathlines.transport.euclid.stack import CellMap, conditional_schedule, dyadic

FAR = 8.0
"""How far from one the spread of samples may be, and from zero their mean, before they are moved and scaled: ramps are
10⁻⁶ wide."""


def sample_parts(data: np.ndarray, bins: int, knots: int, smoothing: float, across: float) -> list[EuclideanSchedule]:
    """One schedule for each coordinate of samples; the bins of a coordinate hold equally many of them.

    The law of a cell is that of all samples, weighted by a Gaussian of width ``across`` · σ_r n^{-1/(4+d)} around its
    representative in each conditioning coordinate: neighbouring bins lend each other their samples. Samples in other
    units are moved and scaled by dyadic numbers first, which costs three pieces for each coordinate.
    """
    if far_from_one(data):
        scale = 2.0 ** np.round(np.log2(data.std(0)))
        centre = np.round(data.mean(0) / scale) * scale
        return _in_units(sample_parts((data - centre) / scale, bins, knots, smoothing, across), centre, scale)
    n, d = data.shape
    parts = [increasing_schedule(*smoothed_map(data[:, 0], max(8, 2 * knots), smoothing), np.eye(d)[0])]
    edges, middles = list[np.ndarray](), list[np.ndarray]()
    widths = across * data.std(0) * n ** (-1 / (4 + d))
    for j in range(1, d):
        edges.append(dyadic(np.quantile(data[:, j - 1], np.arange(1, bins) / bins)))
        places = np.searchsorted(edges[-1], data[:, j - 1])
        counts = np.maximum(np.bincount(places, minlength=len(edges[-1]) + 1), 1)
        middles.append(np.bincount(places, data[:, j - 1], len(counts)) / counts)
        parts.append(
            conditional_schedule(d, edges, _weighted(data[:, : j + 1], tuple(middles), widths, knots, smoothing))
        )
    return parts


def _weighted(
    data: np.ndarray, middles: Sequence[np.ndarray], widths: np.ndarray, knots: int, smoothing: float
) -> CellMap:
    """The map of a cell from weighted samples."""

    def cell_map(cell: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        far = sum(((data[:, r] - middles[r][c]) / widths[r]) ** 2 for r, c in enumerate(cell))
        weights = _shares(far - np.min(far))
        near = weights > 1e-6
        return _with_tails(smoothed_map(data[near, -1], knots, smoothing, weights=weights[near]))

    return cell_map


def far_from_one(data: np.ndarray) -> bool:
    """Whether samples are too far from mean zero and spread one for ramps as they are."""
    centre, scale = np.abs(data.mean(0)), data.std(0)
    return bool((scale < 1 / FAR).any() or (scale > FAR).any() or (centre > FAR * scale).any())


def _shares(squares: np.ndarray) -> np.ndarray:
    """Weights e^{-s/2} of squared distances; wider, until they are those of at least eight samples (or half of all)."""
    least = min(8.0, len(squares) / 2)
    while True:
        weights = np.exp(-squares / 2)
        if weights.sum() ** 2 / (weights @ weights) >= least:
            return weights
        squares = squares / 4


def _in_units(parts: list[EuclideanSchedule], centre: np.ndarray, scale: np.ndarray) -> list[EuclideanSchedule]:
    """Parts for (y - centre)/scale as parts for y: those of later coordinates read the earlier ones as they are."""
    found = []
    for j, part in enumerate(parts):
        a, axis = part.a.copy(), np.eye(part.d)[j]
        a[:, :j] /= scale[:j]
        read = EuclideanSchedule(part.w, a, part.b - a[:, :j] @ centre[:j], part.t)
        rate = np.log(scale[j]) * axis
        units = EuclideanSchedule([rate, -rate, centre[j] * axis], [axis, -axis, 0 * axis], [0, 0, 1.0], np.ones(3))
        found.append(read.compose(units))
    return found


def _with_tails(line: Any) -> tuple[np.ndarray, np.ndarray]:
    """Tails as knots at ±7, since storeys have no tails of their own."""
    far = 7.0
    knots = np.concatenate([[-far], line.knots, [far]])
    low = line.values[0] - line.left * (far + line.knots[0])
    high = line.values[-1] + line.right * (far - line.knots[-1])
    return knots, np.concatenate([[low], line.values, [high]])
