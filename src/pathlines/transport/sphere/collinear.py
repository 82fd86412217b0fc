"""Break collinear barycentres, which attention cannot tell apart (building block B7).

Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Lemma 3.4: a gate draws together a small ball
that two prompts charge with different masses, which moves their barycentres by different amounts. The ball and the
point inside it are chosen for the largest angle between the new barycentres; it need not be charged by one prompt only
(derived).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.collapse import cap_gate
from pathlines.transport.sphere.gate import Gate, gate_flow
from pathlines.transport.sphere.measure import Measure

ENOUGH = 0.02
"""Least angle between the lines of two barycentres, or distance of the two, that counts as broken."""
STILL = 1e-9
"""Angle below which nothing has been broken."""
Apart = Callable[[Measure, Measure], float]
RADII = (0.2, 0.4, 0.8)
DURATION = 1.0
"""Short: the ball is drawn together, not collapsed, so that its tokens stay apart."""
PLACES = 40
"""Tokens about which balls are tried."""


def line_angle(p: Measure, q: Measure) -> float:
    """The angle in [0, π/2] between the lines of two barycentres; 0 if one is at the origin."""
    a, b = (m.weights @ m.points for m in (p, q))
    sizes = float(np.linalg.norm(a) * np.linalg.norm(b))
    if sizes < 1e-12:
        return 0.0
    return float(np.arctan2(np.linalg.norm(np.outer(a, b) - np.outer(b, a)) / np.sqrt(2), abs(a @ b)))


def mean_distance(p: Measure, q: Measure) -> float:
    """The distance of two barycentres."""
    return float(np.linalg.norm(p.weights @ p.points - q.weights @ q.points))


def break_collinear(prompts: list[Measure]) -> tuple[list[Gate], list[Measure]]:
    """Gates after which no two barycentres are collinear, at most one for each pair, and the prompts after them.

    Args:
        prompts: measures, no two of them equal.
    """
    pieces, prompts = drawn_apart(prompts, line_angle)
    if len(prompts) > 1 and _least(prompts, line_angle) < STILL:
        i, j = _nearest(prompts, line_angle)
        raise ArgumentError(f"Prompts {i} and {j} have collinear barycentres that no ball breaks.")
    return pieces, prompts


def drawn_apart(prompts: list[Measure], apart: Apart) -> tuple[list[Gate], list[Measure]]:
    """Gates that draw the barycentres of the nearest pairs apart, as far as any do, and the prompts after them."""
    pieces: list[Gate] = []
    for _ in combinations(range(len(prompts)), 2):
        least = _least(prompts, apart)
        if least >= ENOUGH:
            break
        pair = [prompts[k] for k in _nearest(prompts, apart)]
        tried = [(gate, [Measure(gate_flow(gate, p.points), p.weights) for p in prompts]) for gate in _candidates(pair)]
        best = max(tried, key=lambda found: _least(found[1], apart), default=None)
        if best is None or _least(best[1], apart) <= least:
            break
        pieces.append(best[0])
        prompts = best[1]
    return pieces, prompts


def _candidates(pair: list[Measure]) -> list[Gate]:
    """Balls about tokens of either prompt, drawn to a point off the centre, where their masses differ."""
    found = []
    for k, p in enumerate(pair):
        for z in p.points[:: max(1, len(p.points) // PLACES)]:
            for size in RADII:
                masses = [m.weights[m.points @ z > np.cos(size)].sum() for m in pair]
                if abs(masses[0] - masses[1]) > 1e-9:
                    found.append(cap_gate(z, size, DURATION, _off_centre(z, size, pair[1 - k])))
    return found


def _off_centre(z: np.ndarray, size: float, other: Measure) -> np.ndarray:
    """A point half-way to the rim, across the plane of z and the other's barycentre, so that no line contains both."""
    frame = np.linalg.qr(np.column_stack([z, other.weights @ other.points, np.eye(len(z))]))[0]
    return np.cos(size / 2) * z + np.sin(size / 2) * frame[:, 2]


def _nearest(prompts: list[Measure], apart: Apart) -> tuple[int, int]:
    return min(combinations(range(len(prompts)), 2), key=lambda pair: apart(prompts[pair[0]], prompts[pair[1]]))


def _least(prompts: list[Measure], apart: Apart) -> float:
    return min((apart(p, q) for p, q in combinations(prompts, 2)), default=np.inf)
