"""Evaluate a claim: simulate, predict, compare, verdict."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from pathlines.claim.base import Claim, Curve, Evidence, certificates_of
from pathlines.claim.power import notices
from pathlines.claim.tolerance import Tolerance
from pathlines.foundation.errors import PathlinesWarning, of_kind, require
from pathlines.foundation.setting import S
from pathlines.integrate.run import Certificate, provenance


class Check(msgspec.Struct, frozen=True):
    """One compared quantity; lists run over its entries. ``notices`` is the smallest relative error of the prediction,
    in both directions, that would be refuted (None for bounds and zeros).
    """

    quantity: str
    measured: Any
    expected: Any
    uncertainty: Any
    error: Any
    tolerance: Any
    kind: str
    reason: str
    verdict: str
    notices: float | None = None


class Line(msgspec.Struct, frozen=True):
    """A curve ready for drawing."""

    label: str
    role: str
    panel: str
    x: list[float]
    y: list[float]
    error: list[float] | None


class Outcome(msgspec.Struct, frozen=True):
    """The verdict on a claim with everything a referee needs. ``measured`` … ``error`` are those of the quantity that
    decides: the one with the largest error over tolerance. ``error`` is the deviation that is compared with the
    tolerance; ``uncertainty`` that of the measurement. ``objections`` names, where it was asked for, a mistake that
    each bound and zero would notice ("" where none was found). ``marks``, ``convention`` and ``alias_of`` are those of
    the claim.
    """

    id: str
    paper: str
    label: str
    statement: str
    verdict: str
    expected_verdict: str
    quantity: str
    measured: float | None
    expected: float | None
    tolerance: float | None
    error: float | None
    uncertainty: float | None
    seconds: float
    size: str
    setting: dict[str, Any]
    checks: list[Check]
    source: str
    lines: list[Line]
    certificates: list[Certificate]
    forms: list[str]
    warnings: list[str]
    corrected_by: str
    note: str
    versions: dict[str, str]
    objections: dict[str, str] | None = None
    where: str = ""
    marks: tuple[str, ...] = ()
    convention: str = ""
    alias_of: str = ""

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the one we stand behind."""
        return self.verdict == self.expected_verdict


class LastSimulation:
    """The simulation that was run last, with its warnings: a claim and the erratum it corrects have the same one, so
    that evaluated one after the other they simulate once.
    """

    def __init__(self) -> None:
        self._asked: tuple[Any, Any] | None = None
        self._found: tuple[Evidence, list[str]] = (Evidence({}), [])

    def of(self, claim: Claim[S], setting: S) -> tuple[Evidence, list[str]]:
        """What ``simulated`` says, computed unless it was asked for last."""
        if self._asked != (claim.simulate, setting):
            self._asked, self._found = None, simulated(claim, setting)
            self._asked = (claim.simulate, setting)
        return self._found


def evaluate(
    claim: Claim[Any], size: str = "quick", changes: Mapping[str, Any] | None = None, last: LastSimulation | None = None
) -> Outcome:
    """Run a claim: simulate, predict, compare.

    Args:
        claim: one of ``CLAIMS``, or your own.
        size: "quick" (seconds) or "full" (the paper's size).
        changes: settings to change, ``{"n": 64}``; ``pathlines show CLAIM`` lists them with their bounds.
        last: carries a simulation from the claim evaluated before to this one, if it is the same.
    """
    of_kind("claim", claim, Claim, "a claim, such as CLAIMS['clustering/CL-43']")
    require(size in ("quick", "full"), "size", "be 'quick' or 'full'", size)
    of_kind("changes", {} if changes is None else changes, Mapping, "a dictionary of settings")
    setting = claim.setting(size, changes)
    began = time.perf_counter()
    measured, notes = (last or LastSimulation()).of(claim, setting)
    predicted = claim.predict(setting)
    checks = compared(claim, measured, predicted)
    worst = max(checks, key=lambda c: _severity(c)[0])
    at = _severity(worst)[1]
    verdicts = {c.verdict for c in checks}
    verdict = "refuted" if "refuted" in verdicts else "inconclusive" if "inconclusive" in verdicts else "holds"
    return Outcome(
        id=claim.id,
        paper=claim.paper.citation,
        label=claim.label,
        where=claim.where,
        statement=claim.statement,
        verdict=verdict,
        expected_verdict=claim.expected,
        quantity=worst.quantity,
        measured=_entry(worst.measured, at),
        expected=_entry(worst.expected, at),
        tolerance=_entry(worst.tolerance, at),
        error=_entry(worst.error, at),
        uncertainty=_entry(worst.uncertainty, at),
        seconds=time.perf_counter() - began,
        size=size,
        setting=msgspec.to_builtins(setting),
        checks=checks,
        source=predicted.source,
        lines=[_line(c, "simulation") for c in measured.curves] + [_line(c, "theory") for c in predicted.curves],
        certificates=list(certificates_of(measured.runs)),
        forms=sorted({f"{f.name}: {f.reason}" for r in measured.runs for f in r.forms}),
        warnings=notes,
        corrected_by=claim.corrected_by,
        note=claim.note,
        versions=provenance(),
        marks=claim.marks,
        convention=claim.convention,
        alias_of=claim.alias_of,
    )


def simulated(claim: Claim[S], setting: S) -> tuple[Evidence, list[str]]:
    """What the simulation says, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PathlinesWarning)
        measured = claim.simulate(setting)
    return measured, [str(w.message) for w in caught if issubclass(w.category, PathlinesWarning)]


def compared(claim: Claim[Any], measured: Evidence, predicted: Evidence) -> list[Check]:
    """Each quantity of the claim with its verdict.

    An erratum is refuted by one counterexample; a setting at which the printed statement happens to agree is none, and
    decides nothing.
    """
    checks = [_check(name, tolerance, measured, predicted) for name, tolerance in claim.within.items()]
    if claim.expected != "refuted" or any(c.verdict == "refuted" for c in checks):
        return checks
    agrees = {"verdict": "inconclusive", "reason": NO_COUNTEREXAMPLE, "notices": None}
    return [msgspec.structs.replace(c, **agrees) if c.verdict == "holds" else c for c in checks]


NO_COUNTEREXAMPLE = "this setting is no counterexample to the statement; others are, such as that of the claim"


def _check(name: str, tolerance: Tolerance, measured: Evidence, predicted: Evidence) -> Check:
    if name not in measured.values or name not in predicted.values:
        raise KeyError(f"the quantity `{name}` is compared but not both simulated and predicted")
    target = predicted.values[name]
    value = np.asarray(measured.values[name], float)
    if target is None:
        unknown = "nothing is known at this setting"
        return Check(name, _plain(value), None, None, None, None, tolerance.kind, unknown, "inconclusive")
    expected = np.broadcast_to(np.asarray(target, float), value.shape)
    spread = [
        np.broadcast_to(np.asarray(e.uncertainties.get(name, 0.0), float), value.shape) for e in (measured, predicted)
    ]
    uncertainty = np.hypot(*spread)
    error, allowed = tolerance.excess(value, expected, uncertainty)
    verdict, reason = _judged(tolerance, value, expected, error, allowed)
    advice = {**predicted.undecided, **measured.undecided}.get(name)
    if advice is not None:
        verdict, reason = "inconclusive", advice
    power = notices(tolerance, value, expected, uncertainty) if verdict == "holds" else None
    shown = [_plain(x) for x in (value, expected, uncertainty, error, allowed)]
    return Check(name, shown[0], shown[1], shown[2], shown[3], shown[4], tolerance.kind, reason, verdict, power)


def _judged(
    tolerance: Tolerance, value: np.ndarray, expected: np.ndarray, error: np.ndarray, allowed: np.ndarray
) -> tuple[str, str]:
    """(verdict, reason): no numbers, or some that are not finite or have no standard error, decide nothing."""
    if value.size == 0:
        return "inconclusive", "this setting leaves nothing to compare"
    if not (np.isfinite(value).all() and np.isfinite(expected).all()):
        return "inconclusive", "a compared number is not finite"
    beyond = ~(error <= allowed)
    if not beyond.any():
        return "holds", tolerance.reason
    if tolerance.kind == "standard errors" and not np.any(beyond & (allowed > 0)):
        return "inconclusive", "the samples are all alike, so they have no standard error: take more of them"
    return "refuted", tolerance.reason


def _severity(check: Check) -> tuple[float, int]:
    """(error over tolerance, its index): the entry that decides."""
    if check.error is None or np.size(check.error) == 0:
        return np.inf, 0
    error, allowed = np.ravel(check.error).astype(float), np.ravel(check.tolerance).astype(float)
    ratio = np.where(allowed > 0, error / np.where(allowed > 0, allowed, 1.0), np.where(error > 0, np.inf, error))
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    return float(ratio.max()), int(ratio.argmax())


def _plain(value: np.ndarray) -> Any:
    return [None if not np.isfinite(v) else v for v in value.ravel().tolist()] if value.ndim else _finite(float(value))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _entry(value: Any, at: int) -> float | None:
    return (value[at] if value else None) if isinstance(value, list) else value


def _line(curve: Curve, role: str) -> Line:
    x, y = (np.ravel(np.asarray(v, float)).tolist() for v in (curve.x, curve.y))
    error = None if curve.error is None else np.ravel(np.asarray(curve.error, float)).tolist()
    return Line(curve.label, role, curve.panel, x, y, error)
