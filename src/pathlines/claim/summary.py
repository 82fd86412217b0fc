"""Many outcomes in a few numbers: over seeds, and what each compared number would notice."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from pathlines.claim.base import CLAIMS
from pathlines.claim.evaluate import Check, Outcome
from pathlines.claim.power import ONE_SIDED

GOALS = {"quick": 0.10, "full": 0.03}
"""The relative error that every two-sided number should notice at each size."""


class OverSeeds(msgspec.Struct, frozen=True):
    """A claim at several seeds: ``odd`` are the seeds with another verdict than expected, ``used`` the largest share of
    a two-sided tolerance that any seed used.
    """

    id: str
    size: str
    seeds: int
    odd: dict[int, str]
    used: float


class Noticed(msgspec.Struct, frozen=True):
    """What one compared number notices: a relative error of its prediction, or (bounds, zeros) a mistake by name.

    ``border`` says which measured values a bound or a zero would refute; ``excuse`` is the claim's own word where it
    cannot notice what it should.
    """

    id: str
    quantity: str
    kind: str
    notices: float | None
    objection: str
    border: str
    excuse: str

    @property
    def text(self) -> str:
        """In words, for a table."""
        if self.notices is not None:
            return "any factor passes" if np.isinf(self.notices) else f"{100 * self.notices:.2g} %"
        return self.objection or f"no mistake that was tried; {self.border}"


def side(kind: str) -> str:
    """The sign before a bound; nothing before a value."""
    return {"at most": "≤ ", "at least": "≥ "}.get(kind, "")


def distance(kind: str, error: float | None, tolerance: float | None) -> str:
    """How far a comparison is from failing: error and tolerance of a value, what is left of a bound."""
    if error is None or tolerance is None:
        return "–"
    if not side(kind):
        return f"{error:.2g} {'≤' if error <= tolerance else '>'} {tolerance:.2g}"
    slack = tolerance - error
    return f"{abs(slack):.2g} {'to spare' if slack >= 0 else 'beyond'}"


def border(check: Check) -> str:
    """Which values would be refuted, at the entry that is nearest to it, beside what was measured there."""
    numbers = (check.measured, check.expected, check.error, check.tolerance)
    measured, expected, error, allowed = np.broadcast_arrays(*(np.ravel(np.asarray(v, float)) for v in numbers))
    k = int(np.argmin(allowed - error))
    seen, limit = measured[k], allowed[k]
    if check.kind == "at most":
        return f"values above {expected[k] + limit:.3g} ({seen:.3g} seen)"
    if check.kind == "at least":
        return f"values below {expected[k] - limit:.3g} ({seen:.3g} seen)"
    return f"values farther than {limit:.3g} from {expected[k]:.3g} ({abs(error[k]):.2g} seen)"


def over_seeds(outcomes: Iterable[Outcome]) -> list[OverSeeds]:
    """One row per claim, in the order of their names."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.id, []).append(outcome)
    return [
        OverSeeds(
            name,
            members[0].size,
            len(members),
            {int(o.setting["seed"]): o.verdict for o in members if not o.as_expected},
            max((used(c) for o in members for c in o.checks), default=0.0),
        )
        for name, members in sorted(groups.items())
    ]


def used(check: Check) -> float:
    """Largest error over tolerance of a two-sided comparison that holds; 0 for others."""
    if check.kind in ONE_SIDED or check.verdict != "holds":
        return 0.0
    error, allowed = np.ravel(np.asarray(check.error, float)), np.ravel(np.asarray(check.tolerance, float))
    return float(np.max(np.where(allowed > 0, error / np.where(allowed > 0, allowed, 1.0), 0.0)))


def noticed(outcomes: Iterable[Outcome]) -> list[Noticed]:
    """One row a compared number of every claim that holds, the least sensitive first, bounds and zeros last."""
    rows = [
        Noticed(
            o.id,
            c.quantity,
            c.kind,
            c.notices,
            (o.objections or {}).get(c.quantity, ""),
            border(c),
            CLAIMS[o.id].blind.get(c.quantity, ""),
        )
        for o in outcomes
        for c in o.checks
        if c.verdict == "holds" and o.expected_verdict == "holds"
    ]
    return sorted(rows, key=lambda r: (r.notices is None, bool(r.objection), -(r.notices or 0.0), r.id))


def short_of(rows: Iterable[Noticed], size: str) -> list[Noticed]:
    """Two-sided numbers that would not notice what they should and do not say why."""
    return [r for r in rows if r.notices is not None and r.notices > GOALS[size] and not r.excuse]


def undisturbed(rows: Iterable[Noticed]) -> list[Noticed]:
    """Bounds and zeros that no mistake disturbs and that do not say why."""
    return [r for r in rows if r.notices is None and not r.objection and not r.excuse]
