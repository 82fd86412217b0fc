"""Bring all prompts into the open positive orthant (building block B5).

Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Lemma 3.2: two ungated pieces, ẋ = P_x ω. The
first flows away from a point w₀ that no prompt charges, until all supports are in B(-w₀, π/8); the second to α in the
open orthant, farther than π/8 from w₀. How long the first takes depends on the size of the hole, not on N alone.
"""

from __future__ import annotations

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, require
from pathlines.transport.sphere.gate import Gate, gate_flow
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.steer import angle_between

BALL = np.pi / 8
HOLE = 1e-6
"""Least angle of a token from w₀: the time is ln tan of it."""
CANDIDATES = 4000


def to_orthant(prompts: list[Measure], hole: np.ndarray | None = None) -> list[Gate]:
    """Two pieces after which all tokens have positive coordinates.

    Args:
        prompts: measures on S^{d-1}.
        hole: w₀, a unit vector away from all tokens; by default the farthest from all that random search finds.
    """
    points = np.vstack([p.points for p in prompts])
    away = emptiest(points) if hole is None else finite_array("hole", hole, (points.shape[1],)).astype(float)
    require(abs(float(np.linalg.norm(away)) - 1) < HOLE, "hole", "be a unit vector", away)
    if min(angle_between(x, away) for x in points) < HOLE:
        raise ArgumentError("Argument `hole` must be away from all tokens, but one is there.")
    first = _towards(-away, points, BALL)
    goal = _inside(away)
    return [first, _towards(goal, gate_flow(first, points), float(np.arcsin(goal.min())) / 2)]


def to_hemisphere(prompts: list[Measure]) -> Gate:
    """The first of the two pieces, until all tokens are in a ball of radius π/3: attention collapses them there."""
    points = np.vstack([p.points for p in prompts])
    return _towards(-emptiest(points), points, np.pi / 3)


def emptiest(points: np.ndarray) -> np.ndarray:
    """Of the antipode of the mean, minus every token and many random unit vectors, the farthest from all tokens."""
    drawn = np.random.default_rng(0).standard_normal((CANDIDATES, points.shape[1]))
    tried = np.vstack([-points.mean(axis=0), -points, drawn])
    lengths = np.linalg.norm(tried, axis=1, keepdims=True)
    tried = tried[lengths[:, 0] > HOLE] / lengths[lengths[:, 0] > HOLE]
    return tried[(tried @ points.T).max(axis=1).argmin()]


def _inside(away: np.ndarray) -> np.ndarray:
    """α in the open orthant, farther than π/8 from w₀: the diagonal, or else leaning from it towards one axis."""
    d = len(away)
    leaning = np.vstack([np.ones(d), 1 + np.sqrt(d) * np.eye(d)])
    leaning /= np.linalg.norm(leaning, axis=1, keepdims=True)
    return leaning[int(np.argmax([min(angle_between(a, away), 1.5 * BALL) for a in leaning]))]


def _towards(goal: np.ndarray, points: np.ndarray, angle: float) -> Gate:
    """ẋ = P_x ω, ω = goal, for as long as the farthest point needs: tan(φ/2) shrinks like e^{-t}."""
    farthest = max(angle_between(x, goal) for x in points)
    time = float(np.log(np.tan(farthest / 2) / np.tan(angle / 2))) if farthest > angle else 0.0
    return Gate(np.zeros(len(goal)), 1.0, goal, time)
