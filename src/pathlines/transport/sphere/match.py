"""Match M points with M targets by gates, one point after another (building block B2).

Every other point is parked at its place while one moves. A step is one gate where a hyperplane separates the arc from
the parked points, two gates past a waypoint where that does, and the corridor of five pieces otherwise
(arXiv:2411.04551, Section 4; choice and detours derived).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import PathlinesError
from pathlines.foundation.progress import Progress
from pathlines.transport.sphere.gate import Gate, gate_flow
from pathlines.transport.sphere.steer import angle_between, corridor, one_gate

WAYPOINTS = 12
"""Random waypoints that a point tries."""
DETOURS = 4
"""Waiting points that try a detour before one takes a corridor: each costs two dozen linear programs."""
PLACED = 1e-13


class NoWayError(PathlinesError, RuntimeError):
    """No sequence of gates was found that brings a point to its target past the others."""


class Matched(NamedTuple):
    """Gates, where the points really end, and how many steps took one gate, a detour or a corridor."""

    pieces: list[Gate]
    points: np.ndarray
    single: int
    detours: int
    corridors: int


def match(
    points: np.ndarray,
    targets: np.ndarray,
    rng: np.random.Generator,
    *,
    single: bool = True,
    waypoints: bool = True,
    show: bool | None = None,
) -> Matched:
    """Gates that bring row k of the points to row k of the targets.

    Args:
        points: unit vectors (M, d), d ≥ 3, pairwise distinct.
        targets: where they go (M, d), pairwise distinct.
        rng: chooses waypoints and corridors.
        single: prefer one gate a point (the linear program); without it every step is a corridor, as in the paper.
        waypoints: whether a point may go past a third place where the direct way is blocked.
        show: a progress bar; by default on a terminal.
    """
    now, pieces = points.copy(), []
    counts = {"single": 0, "detour": 0, "corridor": 0}
    waiting = [k for k in _nearest_first(points, targets) if np.abs(now[k] - targets[k]).max() > PLACED]
    total, parkings = len(waiting), 0
    with Progress("gates", total, show=show) as bar:
        while waiting:
            kind, k, gates = _step(now, targets, waiting, rng, single, waypoints)
            if kind == "parked":
                parkings += 1
                if parkings > 4 * total:
                    raise NoWayError(_blocked(k, now))
            else:
                waiting.remove(k)
                counts[kind] += 1
            for gate in gates:
                now = gate_flow(gate, now)
            pieces += gates
            bar.update(total - len(waiting))
    return Matched(pieces, now, counts["single"], counts["detour"], counts["corridor"])


def _nearest_first(points: np.ndarray, targets: np.ndarray) -> list[int]:
    return [int(k) for k in np.argsort(np.linalg.norm(points - targets, axis=1), kind="stable")]


def _step(
    now: np.ndarray,
    targets: np.ndarray,
    waiting: list[int],
    rng: np.random.Generator,
    single: bool,
    waypoints: bool,
) -> tuple[str, int, list[Gate]]:
    """The next point that can move, and how."""
    for kind, ways in _ways(rng, single, waypoints):
        for k in waiting[:DETOURS] if kind == "detour" else waiting:
            gates = ways(now[k], targets[k], np.delete(now, k, axis=0))
            if gates is not None:
                return kind, k, gates
    if waypoints:
        parked = _park_one(now, waiting, rng, single)
        if parked is not None:
            return ("parked", *parked)
    raise NoWayError(_blocked(waiting[0], now))


Way = Callable[[np.ndarray, np.ndarray, np.ndarray], list[Gate] | None]


def _ways(rng: np.random.Generator, single: bool, waypoints: bool) -> Iterator[tuple[str, Way]]:
    def direct(x: np.ndarray, y: np.ndarray, parked: np.ndarray) -> list[Gate] | None:
        gate = one_gate(x, y, parked)
        return None if gate is None else [gate]

    def by_corridor(x: np.ndarray, y: np.ndarray, parked: np.ndarray) -> list[Gate] | None:
        return corridor(x, y, parked, rng)

    if single:
        yield "single", direct
        if waypoints:
            yield "detour", lambda x, y, parked: _past_waypoint(direct, x, y, parked, rng)
    yield "corridor", by_corridor
    if waypoints:
        yield "corridor", lambda x, y, parked: _past_waypoint(by_corridor, x, y, parked, rng)


def _past_waypoint(
    way: Way, x: np.ndarray, y: np.ndarray, parked: np.ndarray, rng: np.random.Generator
) -> list[Gate] | None:
    """x → w → y for the first random w for which both legs are free."""
    for w in _random_points(rng, WAYPOINTS, len(x)):
        if angle_between(x, w) > 2.5 or angle_between(w, y) > 2.5:
            continue
        last = way(w, y, parked)
        first = None if last is None else way(x, w, parked)
        if first is not None and last is not None:
            return [*first, *last]
    return None


def _park_one(
    now: np.ndarray, waiting: list[int], rng: np.random.Generator, single: bool
) -> tuple[int, list[Gate]] | None:
    """Move some waiting point out of the way of the others."""
    _, way = next(iter(_ways(rng, single, False)))
    for k in waiting:
        others = np.delete(now, k, axis=0)
        for w in _random_points(rng, WAYPOINTS, now.shape[1]):
            gates = way(now[k], w, others) if np.linalg.norm(others - w, axis=1).min() > 0.05 else None
            if gates is not None:
                return k, gates
    return None


def _random_points(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    drawn = rng.standard_normal((count, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _blocked(k: int, now: np.ndarray) -> str:
    gap = np.linalg.norm(np.delete(now, k, axis=0) - now[k], axis=1).min()
    return (
        f"No gates were found that bring point {k} to its target past the {len(now) - 1} others (its nearest neighbour "
        f"is {gap:.2g} away): try another seed or waypoints=True."
    )
