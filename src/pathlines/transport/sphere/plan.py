"""A schedule being built: the algorithms A7 to A10 of ``MeasureInterpolator``, stage by stage.

Φ = Φ₃⁻¹ ∘ Φ₂ ∘ Φ₁ (Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Theorems 1.1 and 1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.sphere.collapse import centre, cluster_layer, collapse, radius
from pathlines.transport.sphere.collinear import break_collinear
from pathlines.transport.sphere.disentangle import disentangled, separation
from pathlines.transport.sphere.grouping import Grouping, grouping, residual
from pathlines.transport.sphere.layer import Layer
from pathlines.transport.sphere.match import Matched, match
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.orthant import to_hemisphere
from pathlines.transport.sphere.schedule import Piece, SphereSchedule
from pathlines.transport.sphere.slices import REACH, Sliced, cloud_radius, sliced
from pathlines.transport.sphere.steer import angle_between

LONGEST = 30.0
"""Time of clustering after which rounding is all that is left."""
TOGETHER = 1e-3
"""Clusters nearer than this have one place: gates do not move one and leave the other."""
SMALL = 0.15
"""Radius of a cloud that is cut into slices."""
ATTEMPTS = 8


class Stage(NamedTuple):
    """What is true after a stage: pieces so far, least distance of two points, largest W₂ to the targets."""

    name: str
    pieces: int
    separation: float
    w2: float


class Options(NamedTuple):
    """What the estimator was asked for."""

    single: bool
    waypoints: bool
    error: float
    seed: int


class Plan:
    """Pieces so far, with the prompts where they are."""

    def __init__(self, sources: list[Measure], goals: list[Measure], options: Options) -> None:
        self.sources, self.goals, self.options = sources, goals, options
        self.prompts, self.d = sources, sources[0].points.shape[1]
        self.pieces: list[Piece] = []
        self.rng = np.random.default_rng(options.seed)
        self.algorithm, self.steps = "", {"single": 0, "detours": 0, "corridors": 0}
        self.groups = [grouping(p, q) for p, q in zip(sources, goals, strict=True)]
        self.timeline = [Stage("start", 0, separation(sources), max(self.distances()))]

    def distances(self) -> list[float]:
        """√Σ w|x - y|² to the target of each atom, with the residual of the grouping: an upper bound of W₂."""
        return [gap + g.residual for gap, g in zip(self._gaps(self.prompts), self.groups, strict=True)]

    def _gaps(self, prompts: list[Measure]) -> list[float]:
        cases = zip(prompts, self.goals, self.groups, strict=True)
        return [float(np.sqrt(p.weights @ np.sum((p.points - q.points[g.to]) ** 2, axis=1))) for p, q, g in cases]

    def act(self, name: str, pieces: Sequence[Piece], prompts: list[Measure] | None = None) -> None:
        """Append pieces; the prompts are pushed unless it is known where they are."""
        self.pieces += pieces
        self.prompts = self._pushed(pieces, self.prompts) if prompts is None else prompts
        self.timeline.append(Stage(name, len(self.pieces), separation(self.prompts), max(self.distances())))

    def _pushed(self, pieces: Sequence[Piece], prompts: list[Measure]) -> list[Measure]:
        return SphereSchedule(self.d, pieces).push(prompts)

    def match_atoms(self) -> None:
        """A7: disentangle, match, recombine."""
        self.algorithm = "A7: atoms to atoms"
        goals, back = self._disentangle()
        self.groups = _regrouped(self.prompts, goals, self.goals)
        self._match(np.vstack([q.points[g.to] for q, g in zip(goals, self.groups, strict=True)]))
        self._recombine(back)

    def cluster(self) -> None:
        """A8: each prompt collapses under attention, then its centre is steered to the Dirac mass."""
        self.algorithm = "A8: prompts to Diracs"
        goals = np.vstack([q.points for q in self.goals])
        if separation(self.goals) < TOGETHER:
            raise ArgumentError(
                "Argument `targets` must be Diracs at least 1e-3 apart: gates move one and not the other."
            )
        self._break_symmetry()
        before, time = self.prompts, 1.0 + np.log(1 / self.options.error)
        while True:
            layers = [cluster_layer(self.d, time)]
            collapsed = self._pushed(layers, before)
            found = self._matched(np.vstack([centre(p) for p in collapsed]), goals)
            ends = self._pushed(found.pieces, collapsed)
            worst = max(radius(p, goal) for p, goal in zip(ends, goals, strict=True))
            if worst <= self.options.error:
                break
            time += 0.5 + max(np.log(worst / self.options.error), 0.0)
            if time > LONGEST:
                raise ArgumentError(_no_cluster(collapsed, worst, self.options.error))
        self.act("attention clusters each prompt", layers, collapsed)
        self.act("gates steer the clusters", found.pieces, ends)

    def gather(self) -> None:
        """A10: atoms of one group go round its target, a gate collapses the cap, then all is recombined."""
        self.algorithm = "A10: groups of atoms"
        goals, back = self._disentangle()
        self.groups = _regrouped(self.prompts, goals, self.goals)
        room = min(separation(goals) / 4, 0.2) if sum(len(q.weights) for q in goals) > 1 else 0.2
        spots = [_spots(q, g, room, self.rng) for q, g in zip(goals, self.groups, strict=True)]
        self._match(np.vstack(spots))

        def caps(within: float) -> list[Piece]:
            found: list[Piece] = []
            for p, q, g in zip(self.prompts, goals, self.groups, strict=True):
                several = [k for k in range(len(q.weights)) if np.sum(g.to == k) > 1]
                found += [collapse(p.points[g.to == k], q.points[k], 1.5 * room, within) for k in several]
            return found

        self.act("gates collapse each group", self._small_enough(caps, back))
        self._recombine(back)

    def cut(self) -> None:
        """A9: clouds shrink apart, balls cut each into atoms, gates match these, then all is recombined."""
        self.algorithm = "A9: clouds to atoms"
        self._break_symmetry()
        self._shrink()
        last = disentangled(self.goals, "targets")
        back = [*SphereSchedule(self.d, last.pieces).inverse().pieces]
        self.groups, before = [self._counted(p, q) for p, q in zip(self.prompts, self.goals)], self.prompts
        slices: list[Sliced] = []

        def gates(within: float) -> list[Piece]:
            rng = np.random.default_rng(self.options.seed)
            slices[:] = [sliced(p, centre(p), _sizes(g), within, rng) for p, g in zip(before, self.groups)]
            self.groups = [Grouping(s.to, g.residual) for s, g in zip(slices, self.groups)]
            places = np.vstack([s.points for s in slices])
            found = self._matched(places, np.vstack([q.points for q in last.prompts]))
            return [*(piece for s in slices for piece in s.pieces), *found.pieces]

        pieces = self._small_enough(gates, back)
        count = sum(len(s.pieces) for s in slices)
        self.act("balls cut each cloud into atoms", pieces[:count])
        self.act("gates match the atoms", pieces[count:])
        self._recombine(back)

    def _counted(self, cloud: Measure, goal: Measure) -> Grouping:
        """How many tokens each atom of the target gets, whichever they are."""
        to = np.sort(grouping(cloud, goal).to)
        return Grouping(to, residual(goal.points, np.bincount(to, cloud.weights, len(goal.weights)), goal.weights))

    def _shrink(self) -> None:
        """B4 until no cloud is within reach of another's balls."""
        time, now = 0.0, self.prompts
        while not _clear(now):
            time += 0.5
            if time > LONGEST:
                raise ArgumentError(_no_cluster(now, max(radius(p) for p in now), self.options.error))
            now = self._pushed([cluster_layer(self.d, 0.5)], now)
        if time > 0:
            self.act("attention shrinks each cloud", [cluster_layer(self.d, time)])

    def _break_symmetry(self) -> None:
        """The first piece of B5, where a prompt has its mean at the origin; B7, where two would collapse together."""
        if min(np.linalg.norm(p.weights @ p.points) for p in self.prompts) < TOGETHER:
            self.act("all go to a hemisphere", [to_hemisphere(self.prompts)])
        if len(self.prompts) == 1:
            return
        limits = self._pushed([cluster_layer(self.d, 8.0)], self.prompts)
        if separation([Measure(centre(p)[None], np.ones(1)) for p in limits]) < TOGETHER:
            pieces, moved = break_collinear(self.prompts)
            self.act("gates break collinear barycentres", pieces, moved)

    def _disentangle(self) -> tuple[list[Measure], list[Piece]]:
        """Φ₁ on the prompts; Φ₃ of the targets, and the pieces that undo it."""
        first = disentangled(self.prompts)
        if first.pieces:
            self.act("attention pulls shared tokens apart", first.pieces, first.prompts)
        last = disentangled(self.goals, "targets")
        return last.prompts, list(SphereSchedule(self.d, last.pieces).inverse().pieces)

    def _recombine(self, back: list[Piece]) -> None:
        if back:
            self.act("reversed attention recombines the targets", back)

    def _small_enough(self, build: Callable[[float], list[Piece]], back: list[Piece]) -> list[Piece]:
        """Pieces for an angle so small that, after ``back`` too, all atoms are within the error of their targets."""
        within = self.options.error / 2 * float(np.exp(-sum(p.duration for p in back if isinstance(p, Layer))))
        for _ in range(ATTEMPTS):
            pieces = build(within)
            worst = max(self._gaps(self._pushed([*pieces, *back], self.prompts)))
            if worst <= self.options.error:
                return pieces
            within *= self.options.error / worst / 2
        raise ArgumentError(f"Argument `error` must be at least {worst:.2g} here, but is {self.options.error:g}.")

    def _matched(self, points: np.ndarray, targets: np.ndarray) -> Matched:
        found = match(points, targets, self.rng, single=self.options.single, waypoints=self.options.waypoints)
        self.steps = {"single": found.single, "detours": found.detours, "corridors": found.corridors}
        return found

    def _match(self, targets: np.ndarray) -> None:
        found = self._matched(np.vstack([p.points for p in self.prompts]), targets)
        cuts = np.cumsum([len(p.points) for p in self.prompts])[:-1]
        ends = [Measure(x, p.weights) for x, p in zip(np.split(found.points, cuts), self.prompts, strict=True)]
        self.act("gates match all points", found.pieces, ends)


def _sizes(group: Grouping) -> np.ndarray:
    return np.bincount(group.to)


def _clear(clouds: list[Measure]) -> bool:
    """Whether every cloud is small, and no two are within reach of each other."""
    centres = [centre(p) for p in clouds]
    radii = [cloud_radius(p, c) for p, c in zip(clouds, centres, strict=True)]
    pairs = ((i, j) for i in range(len(clouds)) for j in range(i))
    apart = all(angle_between(centres[i], centres[j]) > REACH * (radii[i] + radii[j]) for i, j in pairs)
    return max(radii) < SMALL and apart


def _regrouped(prompts: list[Measure], moved: list[Measure], goals: list[Measure]) -> list[Grouping]:
    """Groups by the distances in the space where they are matched."""
    return [grouping(p, q, goal) for p, q, goal in zip(prompts, moved, goals, strict=True)]


def _spots(target: Measure, group: Grouping, room: float, rng: np.random.Generator) -> np.ndarray:
    """Distinct places for the atoms of each group: its target alone, or round about it at an angle."""
    places = np.empty((len(group.to), target.points.shape[1]))
    for k, y in enumerate(target.points):
        members = np.flatnonzero(group.to == k)
        places[members] = y
        if len(members) > 1:
            places[members] = _ring(y, len(members), room, rng)
    return places


def _ring(y: np.ndarray, count: int, angle: float, rng: np.random.Generator) -> np.ndarray:
    """Points at an angle from y, far from each other: of many random directions the farthest from those taken."""
    drawn = rng.standard_normal((64 * count, len(y)))
    drawn -= (drawn @ y)[:, None] * y
    # tokens of the same seed are parallel to a draw, of which nothing is left but rounding
    drawn = drawn[np.linalg.norm(drawn, axis=1) > 1e-6]
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    taken = [drawn[0]]
    while len(taken) < count:
        gaps = np.linalg.norm(drawn[:, None] - np.array(taken)[None], axis=2).min(axis=1)
        taken.append(drawn[gaps.argmax()])
    return np.cos(angle) * y + np.sin(angle) * np.array(taken)


def _no_cluster(prompts: list[Measure], worst: float, error: float) -> str:
    widest = int(np.argmax([radius(p) for p in prompts]))
    return (
        f"Argument `error` must be at least {worst:.2g} here, but is {error:g}: input {widest} does not collapse "
        f"further in time {LONGEST:g} (its mean may be near zero)."
    )
