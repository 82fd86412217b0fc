"""The idea of a claim: a statement with the two independent computations that decide it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from pathlines.claim.tolerance import Tolerance
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import Paper
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import changed_setting
from pathlines.integrate.run import Certificate, Run

Numbers = Mapping[str, Any]


class Curve(msgspec.Struct, frozen=True):
    """One line of a claim's figure; ``error`` is a standard error that becomes a band, ``panel`` picks the axes."""

    label: str
    x: Any
    y: Any
    error: Any = None
    panel: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """What a simulation or a theory says: numbers by name, their uncertainties, curves, certificates of the runs.

    From ``predict``, a value ``None`` means that nothing is known at this setting (the verdict is then inconclusive),
    and ``source`` says where the numbers come from ("closed form", "reference value", ...). ``undecided`` names
    quantities whose known remainder (finite time, finite n, discretisation) is larger than their tolerance at this
    setting, each with what to change: they are inconclusive, whatever was measured.
    """

    values: Numbers
    uncertainties: Numbers = {}
    curves: tuple[Curve, ...] = ()
    runs: tuple[Run, ...] = ()
    source: str = "closed form"
    undecided: Mapping[str, str] = {}


class Axes(msgspec.Struct, frozen=True):
    """Axis labels and scales of a claim's figure."""

    x: str = ""
    y: str = ""
    x_scale: str = "linear"
    y_scale: str = "linear"


NO_AXES = Axes()


class Claim(msgspec.Struct, frozen=True):
    """A theorem, a figure or an erratum, executable.

    ``quick`` is the complete setting, ``full`` what changes at full size; ``simulate`` and ``predict`` share no code;
    ``within`` gives the tolerance of each compared quantity. ``expected`` is the verdict we stand behind: an erratum is
    a claim expected to be *refuted*, with ``corrected_by`` naming the claim that holds instead. ``blind`` says, for
    quantities that would not notice an error of 10 % at quick size or 3 % at full size, why not.
    """

    id: str
    paper: Paper
    label: str
    statement: str
    models: tuple[str, ...]
    quick: dict[str, Any]
    full: dict[str, Any]
    within: dict[str, Tolerance]
    simulate: Callable[[Any], Evidence]
    predict: Callable[[Any], Evidence]
    expected: str = "holds"
    corrected_by: str = ""
    axes: Axes = NO_AXES
    note: str = ""
    blind: dict[str, str] = {}

    @property
    def homes(self) -> tuple[str, str]:
        """The modules of its two computations."""
        return _home(self.simulate), _home(self.predict)

    @property
    def seeded(self) -> bool:
        """Whether chance enters, through the setting ``seed``."""
        return "seed" in self.quick

    def setting(self, size: str = "quick", changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The setting of that size with some entries changed; unknown names and other types are errors."""
        setting = {**self.quick, **(self.full if size == "full" else {})}
        return changed_setting(f"Claim `{self.id}`", setting, changes)


def _home(function: Any) -> str:
    return _home(function.func) if isinstance(function, partial) else str(function.__module__)


CLAIMS: Registry[Claim] = Registry("claim", "pathlines.claim")


def claim(
    id: str,
    paper: Paper,
    label: str,
    statement: str,
    *,
    models: tuple[str, ...],
    quick: dict[str, Any],
    within: dict[str, Tolerance],
    simulate: Callable[[Any], Evidence],
    predict: Callable[[Any], Evidence],
    full: dict[str, Any] | None = None,
    expected: str = "holds",
    corrected_by: str = "",
    axes: Axes = NO_AXES,
    note: str = "",
    blind: dict[str, str] | None = None,
) -> Claim:
    """Make and register a claim."""
    if expected not in ("holds", "refuted", "inconclusive"):
        raise ArgumentError(f"Argument `expected` must be holds, refuted or inconclusive, but is {expected!r}.")
    entry = Claim(
        id,
        paper,
        label,
        statement,
        models,
        quick,
        full or {},
        within,
        simulate,
        predict,
        expected,
        corrected_by,
        axes,
        note,
        blind or {},
    )
    return CLAIMS.register(id, entry)


def known(values: Numbers, setting: Any, reference_setting: Numbers) -> Evidence:
    """Reference numbers, valid at one setting only: at any other, nothing is known."""
    current = vars(setting) if isinstance(setting, SimpleNamespace) else dict(setting)
    same = all(np.array_equal(np.asarray(current.get(k)), np.asarray(v)) for k, v in reference_setting.items())
    return Evidence(values if same else dict.fromkeys(values), source="reference value")


def certificates_of(runs: tuple[Run, ...]) -> tuple[Certificate, ...]:
    """All certificates of all runs."""
    return tuple(c for run in runs for c in run.certificates)
