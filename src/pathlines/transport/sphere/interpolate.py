"""N prompts to N targets with one transformer (algorithms A7, A8 and A10).

Φ = Φ₃⁻¹ ∘ Φ₂ ∘ Φ₁ (Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Theorems 1.1 and 1.2):
attention pulls the copies of shared tokens apart, gates match all points, and the layer that would disentangle the
targets is run backwards. With the exact flows of its pieces the result is at rounding error, where the theorem has ε
(derived).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of
from pathlines.transport.sphere.collapse import centre, cluster_layer, collapse, radius
from pathlines.transport.sphere.disentangle import disentangled, equal_prompts, merged, same_measure, separation
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.grouping import Grouping, grouping
from pathlines.transport.sphere.layer import Layer
from pathlines.transport.sphere.match import Matched, match
from pathlines.transport.sphere.measure import Measure, measures
from pathlines.transport.sphere.schedule import SphereSchedule

LONGEST = 30.0
"""Time of clustering after which rounding is all that is left."""


class Stage(NamedTuple):
    """What is true after a stage: pieces so far, least distance of two points, largest W₂ to the targets."""

    name: str
    pieces: int
    separation: float
    w2: float


class MeasureInterpolator:
    """One list of pieces that sends N prompts to N targets, even where the prompts share tokens.

    Inputs with as many atoms as their targets arrive at rounding error; Diracs and groups of atoms are reached up to
    ``error``, because a flow never merges two atoms. d ≥ 3: on the circle a flow keeps the order of the points.

    Args:
        method: "auto" (one gate a point where a hyperplane separates it), "paper" (five pieces a point throughout) or
            "trained" (``pieces`` layers by gradients, 6 without; it meets no ``error``, and says what it reached).
        error: largest W₂ where atoms must come together. The smaller, the longer the durations, not
            the more pieces.
        pieces: a budget; a fit that needs more is refused. The more, the more it may take.
        grouping: "exact" refuses weights that no groups of atoms have; "nearest" takes the best groups there are.
        waypoints: whether a point may go past a third place where the direct way is blocked.
        seed: of the corridors and waypoints.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        error: float = 1e-6,
        pieces: int | None = None,
        grouping: str = "exact",
        waypoints: bool = True,
        seed: int = 0,
    ) -> None:
        self.method, self.error, self.pieces, self.grouping = method, error, pieces, grouping
        self.waypoints, self.seed = waypoints, seed
        self._check()

    def fit(self, inputs: Any, targets: Any) -> Self:
        """Find the schedule.

        Args:
            inputs: N prompts, each an (n, d) array of unit vectors or a pair (points, weights).
            targets: N measures of the same kind, each to be reached from its own prompt.
        """
        self._check()
        sources, goals = _problem(inputs, targets)
        if self.method == "trained":
            from pathlines.transport.sphere.trained import fit_trained

            fit_trained(self, sources, goals)
            return self
        groups = [grouping(p, q) for p, q in zip(sources, goals, strict=True)]
        if self.grouping == "exact":
            _require_groups(sources, goals, groups)
        plan = _Plan(sources, goals, self)
        if all(g.one_to_one for g in groups):
            plan.match_atoms()
        elif all(len(q.weights) == 1 for q in goals):
            plan.cluster()
        else:
            plan.gather()
        if self.pieces is not None and len(plan.pieces) > self.pieces:
            raise ArgumentError(f"Argument `pieces` must be at least {len(plan.pieces)} here, but is {self.pieces}.")
        self.schedule_ = SphereSchedule(sources[0].points.shape[1], plan.pieces)
        self.timeline_ = plan.timeline
        self.report_ = self._report(plan, groups)
        return self

    def transform(self, prompts: Any) -> list[Measure]:
        """Prompts after the schedule, each with its weights."""
        return self._fitted().push(prompts)

    def inverse_transform(self, prompts: Any) -> list[Measure]:
        """Prompts before the schedule."""
        return self._fitted().push(prompts, inverse=True)

    def fit_transform(self, inputs: Any, targets: Any) -> list[Measure]:
        """``fit``, then where the inputs arrive."""
        return self.fit(inputs, targets).transform(inputs)

    def _fitted(self) -> SphereSchedule:
        if not hasattr(self, "schedule_"):
            raise ArgumentError("This MeasureInterpolator is not fitted yet: call `fit(inputs, targets)` first.")
        return self.schedule_

    def _check(self) -> None:
        one_of("method", self.method, ("auto", "paper", "trained"))
        one_of("grouping", self.grouping, ("exact", "nearest"))
        finite_number("error", self.error, 0.0, 1.0, open_low=True)
        require(isinstance(self.waypoints, bool), "waypoints", "be True or False", self.waypoints)
        positive_integer("seed", self.seed, 0)
        if self.pieces is not None:
            positive_integer("pieces", self.pieces)

    def _report(self, plan: _Plan, groups: list[Grouping]) -> dict[str, Any]:
        """Pieces, switches, W₂ by prompt, round trip, bounds; W₂ is the cost of the plan that was built."""
        there = plan.prompts
        back = self.schedule_.inverse().push(there)
        trip = max(float(np.abs(b.points - s.points).max()) for b, s in zip(back, plan.sources, strict=True))
        return {
            "algorithm": plan.algorithm,
            "pieces": self.schedule_.count,
            "switches": self.schedule_.switches,
            "w2": plan.distances(),
            "residual_w2": [g.residual for g in groups],
            "round_trip": trip,
            "longest_duration": max((p.duration for p in plan.pieces), default=0.0),
            "log_lipschitz": self.schedule_.log_lipschitz(),
            "steps": plan.steps,
        }


class _Plan:
    """A schedule being built, with the prompts where they are."""

    def __init__(self, sources: list[Measure], goals: list[Measure], options: MeasureInterpolator) -> None:
        self.sources, self.goals, self.options = sources, goals, options
        self.prompts, self.d = sources, sources[0].points.shape[1]
        self.pieces: list[Gate | Layer] = []
        self.rng = np.random.default_rng(options.seed)
        self.algorithm, self.steps = "", {"single": 0, "detours": 0, "corridors": 0}
        self.groups = [grouping(p, q) for p, q in zip(sources, goals, strict=True)]
        self.timeline = [Stage("start", 0, separation(sources), max(self.distances()))]

    def distances(self) -> list[float]:
        """√Σ w|x - y|² to the target of each atom, with the residual of the grouping: an upper bound of W₂."""
        found = []
        for p, q, g in zip(self.prompts, self.goals, self.groups, strict=True):
            moved = float(np.sqrt(p.weights @ np.sum((p.points - q.points[g.to]) ** 2, axis=1)))
            found.append(moved + g.residual)
        return found

    def act(self, name: str, pieces: Sequence[Gate | Layer], prompts: list[Measure] | None = None) -> None:
        """Append pieces; the prompts are pushed unless it is known where they are."""
        self.pieces += pieces
        self.prompts = SphereSchedule(self.d, pieces).push(self.prompts) if prompts is None else prompts
        self.timeline.append(Stage(name, len(self.pieces), separation(self.prompts), max(self.distances())))

    def match_atoms(self) -> None:
        """A7: disentangle, match, recombine."""
        self.algorithm = "A7: atoms to atoms"
        goals, back = self._disentangle()
        self.groups = _regrouped(self.prompts, goals, self.goals)
        self._match(np.vstack([q.points[g.to] for q, g in zip(goals, self.groups, strict=True)]))
        if back is not None:
            self.act("reversed attention recombines the targets", [back])

    def cluster(self) -> None:
        """A8: each prompt collapses under attention, then its centre is steered to the Dirac mass."""
        self.algorithm = "A8: prompts to Diracs"
        before, time = self.prompts, 1.0 + np.log(1 / self.options.error)
        goals = np.vstack([q.points for q in self.goals])
        if separation(self.goals) < 1e-3:
            raise ArgumentError(
                "Argument `targets` must be Diracs at least 1e-3 apart: gates move one and not the other."
            )
        while True:
            layers = [cluster_layer(self.d, time)]
            collapsed = SphereSchedule(self.d, layers).push(before)
            found = self._matched(np.vstack([centre(p) for p in collapsed]), goals)
            ends = SphereSchedule(self.d, found.pieces).push(collapsed)
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
        within = self.options.error / 2 * np.exp(-(0.0 if back is None else back.duration))
        caps: list[Gate | Layer] = []
        for p, q, g in zip(self.prompts, goals, self.groups, strict=True):
            several = [k for k in range(len(q.weights)) if np.sum(g.to == k) > 1]
            caps += [collapse(p.points[g.to == k], q.points[k], 1.5 * room, within) for k in several]
        self.act("gates collapse each group", caps)
        if back is not None:
            self.act("reversed attention recombines the targets", [back])

    def _disentangle(self) -> tuple[list[Measure], Layer | None]:
        """Φ₁ on the prompts; Φ₃ of the targets, and the piece that undoes it."""
        first = disentangled(self.prompts)
        if first.layer is not None:
            self.act("attention pulls shared tokens apart", [first.layer], first.prompts)
        last = disentangled(self.goals, "targets")
        return last.prompts, None if last.layer is None else last.layer._replace(V=-last.layer.V)

    def _matched(self, points: np.ndarray, targets: np.ndarray) -> Matched:
        single, waypoints = self.options.method == "auto", self.options.waypoints
        found = match(points, targets, self.rng, single=single, waypoints=waypoints)
        self.steps = {"single": found.single, "detours": found.detours, "corridors": found.corridors}
        return found

    def _match(self, targets: np.ndarray) -> None:
        found = self._matched(np.vstack([p.points for p in self.prompts]), targets)
        cuts = np.cumsum([len(p.points) for p in self.prompts])[:-1]
        ends = [Measure(x, p.weights) for x, p in zip(np.split(found.points, cuts), self.prompts, strict=True)]
        self.act("gates match all points", found.pieces, ends)


def _problem(inputs: Any, targets: Any) -> tuple[list[Measure], list[Measure]]:
    """Checked prompts and targets with distinct atoms; equal inputs with equal targets are one."""
    sources = [merged(m) for m in measures("inputs", inputs)]
    goals = [merged(m) for m in measures("targets", targets)]
    require(len(goals) == len(sources), "targets", f"be as many as inputs ({len(sources)})", len(goals))
    d, other = sources[0].points.shape[1], goals[0].points.shape[1]
    require(d == other, "targets", f"have dimension {d} as the inputs", other)
    if d < 3:
        raise ArgumentError(
            "Argument `inputs` must have d ≥ 3: on the circle (d = 2) a flow keeps the order of the points."
        )
    again = set()
    for i, j in equal_prompts(sources):
        if not same_measure(goals[i], goals[j]):
            raise ArgumentError(
                f"Arguments `inputs` {i} and {j} are equal and their targets are not: no flow separates equal inputs."
            )
        again.add(j)
    kept = [k for k in range(len(sources)) if k not in again]
    return [sources[k] for k in kept], [goals[k] for k in kept]


def _regrouped(prompts: list[Measure], moved: list[Measure], goals: list[Measure]) -> list[Grouping]:
    """Groups by the distances in the space where they are matched."""
    return [grouping(p, q, goal) for p, q, goal in zip(prompts, moved, goals, strict=True)]


def _require_groups(sources: list[Measure], goals: list[Measure], groups: list[Grouping]) -> None:
    for k, (p, q, g) in enumerate(zip(sources, goals, groups, strict=True)):
        if g.residual > 0:
            raise ArgumentError(
                f"Argument `targets` {k} has {len(q.weights)} atoms whose weights no groups of the {len(p.weights)} "
                f'atoms of its input have; the best groups leave W₂ = {g.residual:.4g} (grouping="nearest" takes them).'
            )


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
