"""A claim at many settings: what was measured, what theory says, the uncertainty and the verdict, as numbers."""

from __future__ import annotations

import warnings
from typing import Any

import msgspec

from pathlines.claim.base import Claim
from pathlines.claim.evaluate import Outcome, evaluate
from pathlines.foundation.errors import PathlinesWarning
from pathlines.foundation.programs import make_room_for_programs
from pathlines.sweep.points import Layout, Points, Results, gathered, one_line

VERDICTS = {"refuted": -1, "inconclusive": 0, "holds": 1}
SUFFIXES = {"": "measured", "_theory": "predicted", "_error": "standard error of the measurement"}
"""Variables of one quantity."""


class ClaimRuns:
    """Evaluates settings of one claim."""

    def __init__(self, claim: Claim[Any], size: str) -> None:
        self.claim, self.size = claim, size

    def evaluate(self, points: Points) -> Results:
        """One row for each setting."""
        usual = self.claim.setting(self.size)
        return gathered([self._judged(usual, row) for row in points.rows()], self.layout())

    def layout(self) -> Layout:
        """A quantity that is a list has a dimension of its entries, found when it is seen."""
        attrs = {
            quantity + suffix: {"long_name": f"{quantity}, {words}"}
            for quantity in self.claim.within
            for suffix, words in SUFFIXES.items()
        }
        flags = {"flag_values": "-1 0 1", "flag_meanings": "refuted inconclusive holds"}
        return Layout({"verdict": ()}, {**attrs, "verdict": {"long_name": "verdict", **flags}})

    def _judged(self, usual: msgspec.Struct, row: dict[str, Any]) -> dict[str, Any] | str:
        changes = {name: value for name, value in row.items() if getattr(usual, name) != value}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PathlinesWarning)
                outcome = evaluate(self.claim, self.size, changes)
        except (Exception, SystemExit) as error:
            return one_line(error)
        finally:
            make_room_for_programs()
        return _numbers(outcome)


def _numbers(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {"verdict": VERDICTS[outcome.verdict]}
    for check in outcome.checks:
        values = (check.measured, check.expected, check.uncertainty)
        found.update({check.quantity + suffix: _filled(v) for suffix, v in zip(SUFFIXES, values, strict=True)})
    return found


def _filled(value: Any) -> Any:
    """What is not known as NaN."""
    if isinstance(value, list):
        return [float("nan") if v is None else v for v in value]
    return float("nan") if value is None else value
