"""Cut a small cloud into atoms of given masses (step of algorithm A9: densities to m atoms).

Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Theorem 1.2 for targets of m atoms: balls of one
radius R come along a geodesic through the cloud, the leading edge of each at a quantile, so that it catches the next
share of the mass; a gate collapses what is caught to a point near the trailing edge, which the later balls have left
behind. One piece an atom. Where a ball first touches a token x is explicit: with A cos ψ = ⟨x, c⟩, A sin ψ = ⟨x, e⟩ it
is at s(x) = R + ψ - arccos(cos R/A) for the geodesic from c along e (derived).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.collapse import cap_gate
from pathlines.transport.sphere.gate import Gate, finite_hitting_time, gate_flow
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.steer import angle_between

WIDER = 2.0
"""Radius of the balls over that of the cloud."""
REACH = 6.0
"""Everything happens within this many radii of the cloud about its centre."""
DIRECTIONS = 64


class Sliced(NamedTuple):
    """The gates, the slice that each token belongs to, and the point where each slice is collapsed."""

    pieces: list[Gate]
    to: np.ndarray
    points: np.ndarray


def cloud_radius(cloud: Measure, centre: np.ndarray) -> float:
    """The largest angle of a token from the centre."""
    return max(angle_between(x, centre) for x in cloud.points)


def sliced(cloud: Measure, centre: np.ndarray, counts: np.ndarray, within: float, rng: np.random.Generator) -> Sliced:
    """Gates that collapse the first tokens along some geodesic, then the next, ..., each slice to a point of its own.

    Args:
        cloud: tokens near the centre, far from its antipode.
        centre: a unit vector.
        counts: how many tokens each slice has; they sum to the number of tokens.
        within: largest angle of a token from the point of its slice afterwards.
        rng: draws the directions, of which the one with the widest gaps between slices is taken.
    """
    if len(counts) == 1:
        piece = _collapsed(centre, centre, WIDER * cloud_radius(cloud, centre), cloud.points, within)
        return Sliced([piece], np.zeros(len(cloud.points), int), centre[None])
    size = WIDER * cloud_radius(cloud, centre)
    along, edges, touched = _direction(cloud.points, centre, size, np.cumsum(counts), rng)
    to = np.searchsorted(edges[:-1], touched)
    points, spots, pieces = cloud.points, [], []
    for k in range(len(counts)):
        ball = _at(centre, along, edges[k] - size)
        behind = edges[k] - 2 * size
        gap = (edges[k + 1] - edges[k]) if k + 1 < len(counts) else size
        spot = _at(centre, along, behind + gap / 2)
        piece = _collapsed(ball, spot, size, points[to == k], within)
        points = gate_flow(piece, points)
        pieces.append(piece)
        spots.append(spot)
    return Sliced(pieces, to, np.array(spots))


def _at(centre: np.ndarray, along: np.ndarray, angle: float) -> np.ndarray:
    return np.cos(angle) * centre + np.sin(angle) * along


def _collapsed(ball: np.ndarray, spot: np.ndarray, size: float, caught: np.ndarray, within: float) -> Gate:
    piece = cap_gate(ball, size, 0.0, spot)
    return piece._replace(duration=max(finite_hitting_time(piece, x, within) for x in caught))


def _direction(
    points: np.ndarray, centre: np.ndarray, size: float, last: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The direction of the geodesic, leading edges of the balls and where each token is touched.

    Edges lie half-way between the last token of a slice and the first of the next; the direction has the widest of the
    narrowest of these gaps and of the gaps between edges.
    """
    best: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
    for _ in range(DIRECTIONS):
        along = rng.standard_normal(len(centre))
        along -= (along @ centre) * centre
        along /= np.linalg.norm(along)
        ahead, up = points @ along, points @ centre
        touched = size + np.arctan2(ahead, up) - np.arccos(np.minimum(np.cos(size) / np.hypot(ahead, up), 1.0))
        order = np.sort(touched)
        edges = np.append((order[last[:-1] - 1] + order[last[:-1]]) / 2, order[-1] + 0.05 * size)
        width = min((order[last[:-1]] - order[last[:-1] - 1]).min(), np.diff(edges).min() / 100)
        if best is None or width > best[0]:
            best = width, along, edges, touched
    if best is None or best[0] <= 0:
        raise ArgumentError("The tokens of a cloud must be distinct to be cut into slices.")
    return best[1:]
