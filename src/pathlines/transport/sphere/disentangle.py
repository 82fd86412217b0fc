"""Separate prompts that share tokens: one layer of attention (step Φ₁ of arXiv:2411.04551).

A shared token feels another mean in every prompt, so one layer V = I, B = 0 moves its copies apart; distinct points
are all that the matching needs, not disjoint hulls (derived). Prompts with equal means need B = βI; where a symmetry
holds a shared token still in both, a gate breaks it first (Lemma 3.4, ``collinear.py``), and different barycentres, if
on one line, are enough (derived).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.attention import sketched_path
from pathlines.transport.sphere.collinear import drawn_apart, line_angle, mean_distance
from pathlines.transport.sphere.layer import Layer, layer
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.schedule import Piece, SphereSchedule

DURATIONS = tuple(float(t) for t in np.linspace(0.2, 3.0, 15))
"""Longer layers lose more digits on the way back, like e^t."""
BETAS = (0.0, 0.5, 1.0, 2.0, 4.0)
APART = 1e-2
"""Points this far apart are matched as they are."""
REPEATED = 1e-12
"""Points nearer than this are one, given twice."""
DISTINCT = 1e-6
"""Points nearer than this cannot be told apart by gates."""


class Disentangled(NamedTuple):
    """The pieces (none if none was needed), the moved prompts, and the least distance of any two of their points."""

    pieces: list[Piece]
    prompts: list[Measure]
    separation: float


def separation(prompts: list[Measure]) -> float:
    """The least distance of two points, of whichever prompts."""
    points = np.vstack([p.points for p in prompts])
    return float(pdist(points).min()) if len(points) > 1 else np.inf


def disentangled(prompts: list[Measure], what: str = "inputs") -> Disentangled:
    """The layer of the grid that separates all points best, β = 0 first; an error names prompts that stay together.

    Points that are distinct, if near, and that no layer takes farther apart are left where they are.
    """
    start = separation(prompts)
    if start >= APART:
        return Disentangled([], prompts, start)
    pieces: Sequence[Piece] = []
    best, last = _best_layer(prompts, start)
    if best is None and start < DISTINCT:
        for apart in (line_angle, mean_distance):
            pieces, moved = drawn_apart(prompts, apart)
            if pieces:
                best, last = _best_layer(moved, start)
            if best is not None:
                prompts = moved
                break
    if best is None and start >= DISTINCT:
        return Disentangled([], prompts, start)
    if best is None:
        raise ArgumentError(_together(last, what))
    moved = SphereSchedule(prompts[0].points.shape[1], [best]).push(prompts)
    return Disentangled([*pieces, best], moved, separation(moved))


def _best_layer(prompts: list[Measure], start: float) -> tuple[Layer | None, list[Measure]]:
    """The layer that separates best, None if points stay together; and the prompts after the last that was tried."""
    d, best, at = prompts[0].points.shape[1], start, None
    for beta in BETAS:
        piece = layer(d, DURATIONS[-1], V=np.eye(d), B=beta * np.eye(d))
        paths = [sketched_path(piece, *p, DURATIONS) for p in prompts]
        gaps = [float(pdist(np.vstack([path[k] for path in paths])).min()) for k in range(len(DURATIONS))]
        if max(gaps) > best:
            best, at = max(gaps), piece._replace(duration=DURATIONS[int(np.argmax(gaps))])
        if best >= APART / 10:
            break
    return at if best >= DISTINCT else None, [Measure(path[-1], p.weights) for path, p in zip(paths, prompts)]


def _together(prompts: list[Measure], what: str) -> str:
    owners = np.repeat(np.arange(len(prompts)), [len(p.points) for p in prompts])
    gaps = squareform(pdist(np.vstack([p.points for p in prompts])))
    np.fill_diagonal(gaps, np.inf)
    i, j = (int(owners[k]) for k in np.unravel_index(gaps.argmin(), gaps.shape))
    return (
        f"Argument `{what}` must be prompts that attention separates, but tokens of prompts {i} and {j} stay together."
    )


def equal_prompts(prompts: list[Measure]) -> list[tuple[int, int]]:
    """Pairs of prompts that are the same measure."""
    return [(i, j) for i, j in combinations(range(len(prompts)), 2) if same_measure(prompts[i], prompts[j])]


def same_measure(p: Measure, q: Measure) -> bool:
    """Equal atoms with equal weights, in any order (atoms of one measure are distinct)."""
    if p.points.shape != q.points.shape:
        return False
    gaps = np.abs(p.points[:, None] - q.points[None]).max(axis=2)
    to = gaps.argmin(axis=1)
    together = gaps[np.arange(len(to)), to].max() < DISTINCT and len(set(to)) == len(to)
    return bool(together and np.abs(p.weights - q.weights[to]).max() < DISTINCT)


def merged(prompt: Measure) -> Measure:
    """The same measure with repeated atoms, which differ by rounding at the most, added up."""
    pairs = cKDTree(prompt.points).query_pairs(REPEATED, output_type="ndarray")
    n = len(prompt.points)
    count, where = connected_components(coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)))
    first = np.sort(np.unique(where, return_index=True)[1])
    return Measure(prompt.points[first], np.bincount(where, prompt.weights, count)[where[first]])
