"""N prompts to N targets with one transformer (algorithms A7 to A10).

Φ = Φ₃⁻¹ ∘ Φ₂ ∘ Φ₁ (Measure-to-measure interpolation using Transformers, arXiv:2411.04551, Theorems 1.1 and 1.2):
attention pulls the copies of shared tokens apart, gates match all points, and the layer that would disentangle the
targets is run backwards. With the exact flows of its pieces the result is at rounding error, where the theorem has ε
(derived).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of
from pathlines.transport.parameters import EstimatorSettings
from pathlines.transport.sphere.disentangle import equal_prompts, merged, same_measure
from pathlines.transport.sphere.grouping import Grouping, grouping
from pathlines.transport.sphere.measure import Measure, measures
from pathlines.transport.sphere.plan import Options, Plan
from pathlines.transport.sphere.schedule import SphereSchedule

CLOUD = 8
"""Tokens for each atom of its target from which a prompt of equal weights is cut into slices instead of moved token by
token: a piece an atom instead of one a token."""
BY_PROMPT = ("w2", "trainer_w2", "residual_w2")
"""What a report says of every prompt."""


class MeasureInterpolator(EstimatorSettings):
    """One list of pieces that sends N prompts to N targets, even where the prompts share tokens.

    Inputs with as many atoms as their targets arrive at rounding error; Diracs and groups of atoms are reached up to
    ``error``, because a flow never merges two atoms. Clouds of many tokens are cut into the atoms of their targets,
    one piece an atom. d ≥ 3: on the circle a flow keeps the order of the points.

    Args:
        method: "auto" (one gate a point where a hyperplane separates it), "paper" (corridors, five pieces a point or
            more) or "trained" (``pieces`` layers by gradients, 6 without; it meets no ``error``, and says
            what it reached).
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
        sources, goals, given = _problem(inputs, targets)
        if self.method == "trained":
            from pathlines.transport.sphere.trained import fit_trained

            fit_trained(self, sources, goals)
            self._report_every(given)
            return self
        groups = [grouping(p, q) for p, q in zip(sources, goals, strict=True)]
        if self.grouping == "exact":
            _require_groups(sources, goals, groups)
        plan = Plan(sources, goals, Options(self.method == "auto", self.waypoints, self.error, self.seed))
        if all(g.one_to_one for g in groups):
            plan.match_atoms()
        elif all(len(q.weights) == 1 for q in goals):
            plan.cluster()
        elif all(_is_cloud(p, q) for p, q in zip(sources, goals, strict=True)):
            plan.cut()
        else:
            plan.gather()
        if self.grouping == "exact":
            _require_groups(sources, goals, plan.groups)
        if self.pieces is not None and len(plan.pieces) > self.pieces:
            raise ArgumentError(f"Argument `pieces` must be at least {len(plan.pieces)} here, but is {self.pieces}.")
        self.schedule_ = SphereSchedule(sources[0].points.shape[1], plan.pieces)
        self.timeline_ = plan.timeline
        self.report_ = self._report(plan, groups)
        self._report_every(given)
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

    def _report_every(self, given: list[int]) -> None:
        """A row for every input, where the plan has equal ones once."""
        self.report_ |= {name: [self.report_[name][k] for k in given] for name in BY_PROMPT if name in self.report_}

    def _report(self, plan: Plan, groups: list[Grouping]) -> dict[str, Any]:
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


def _problem(inputs: Any, targets: Any) -> tuple[list[Measure], list[Measure], list[int]]:
    """Checked prompts and targets with distinct atoms, equal inputs with equal targets once; which of them each is."""
    sources = [merged(m) for m in measures("inputs", inputs)]
    goals = [merged(m) for m in measures("targets", targets)]
    require(len(goals) == len(sources), "targets", f"be as many as inputs ({len(sources)})", len(goals))
    d, other = sources[0].points.shape[1], goals[0].points.shape[1]
    require(d == other, "targets", f"have dimension {d} as the inputs", other)
    if d < 3:
        raise ArgumentError(
            "Argument `inputs` must have d ≥ 3: on the circle (d = 2) a flow keeps the order of the points."
        )
    kept: list[int] = []
    given: list[int] = []
    for j in range(len(sources)):
        i = next((k for k in kept if same_measure(sources[k], sources[j])), j)
        if i != j and not same_measure(goals[i], goals[j]):
            raise ArgumentError(
                f"Arguments `inputs` {i} and {j} are equal and their targets are not: no flow separates equal inputs."
            )
        if i == j:
            kept.append(j)
        given.append(kept.index(i))
    for i, j in equal_prompts([goals[k] for k in kept]):
        raise ArgumentError(
            f"Arguments `targets` {kept[i]} and {kept[j]} are equal and their inputs are not: no flow makes different "
            "inputs equal."
        )
    return [sources[k] for k in kept], [goals[k] for k in kept], given


def _is_cloud(prompt: Measure, goal: Measure) -> bool:
    return bool(np.ptp(prompt.weights) < 1e-12) and len(prompt.weights) >= CLOUD * len(goal.weights)


def _require_groups(sources: list[Measure], goals: list[Measure], groups: list[Grouping]) -> None:
    for k, (p, q, g) in enumerate(zip(sources, goals, groups, strict=True)):
        if g.residual > 0:
            raise ArgumentError(
                f"Argument `targets` {k} has {len(q.weights)} atoms whose weights no groups of the {len(p.weights)} "
                f'atoms of its input have; the best groups leave W₂ = {g.residual:.4g} (grouping="nearest" takes them).'
            )
