"""The idea of a claim: a statement with the two independent computations that decide it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic

import msgspec
import numpy as np

from pathlines.claim.cost import Cost, kept_cost
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import Tolerance
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.marks import check_marks
from pathlines.foundation.papers import Paper
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import S, Setting, changed
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


class Claim(msgspec.Struct, Generic[S], frozen=True):
    """A theorem, a figure or an erratum, executable.

    ``quick`` and ``full`` are two settings of one record; ``simulate`` and ``predict`` share no code; ``within`` gives
    the tolerance of each compared quantity. ``expected`` is the verdict we stand behind: an erratum is a claim expected
    to be *refuted*, with ``corrected_by`` naming the claim that holds instead. ``blind`` says, for quantities that
    would not notice an error of 10 % at quick size or 3 % at full size, why not; ``mistakes`` are those that its bounds
    and zeros should notice, where no wrong constant disturbs them. ``where`` is the place in the paper: a theorem,
    equation, figure or section; what the paper does not state begins with "derived". ``marks`` say how well the
    statement is known to be the paper's own and ``convention``, in a sentence, what was fixed here where the paper's
    form was not available (``foundation/marks.py``): both reach the reader wherever the claim is shown. ``alias_of`` is
    set on a second name (``also_known_as``).
    """

    id: str
    paper: Paper
    label: str
    statement: str
    models: tuple[str, ...]
    quick: S
    full: S
    within: dict[str, Tolerance]
    simulate: Callable[[S], Evidence]
    predict: Callable[[S], Evidence]
    expected: str = "holds"
    corrected_by: str = ""
    axes: Axes = NO_AXES
    note: str = ""
    blind: dict[str, str] = {}
    where: str = ""
    mistakes: tuple[Mistake, ...] = ()
    marks: tuple[str, ...] = ()
    convention: str = ""
    alias_of: str = ""

    @property
    def homes(self) -> tuple[str, str]:
        """The modules of its two computations."""
        return _home(self.simulate), _home(self.predict)

    @property
    def seeded(self) -> bool:
        """Whether chance enters, through the setting ``seed``."""
        return hasattr(self.quick, "seed")

    def cost(self, size: str = "quick") -> Cost | None:
        """What it was measured to cost at that size; None if nobody has (``pathlines verify --costs`` does)."""
        return kept_cost(self.alias_of or self.id, self.homes[0], size)

    def setting(self, size: str = "quick", changes: Mapping[str, Any] | None = None) -> S:
        """The setting of that size with some fields changed; unknown names and what is not allowed are errors."""
        return changed(f"Claim `{self.id}`", self.full if size == "full" else self.quick, changes)

    def also_known_as(self, id: str, **others: Any) -> Claim[S]:
        """Register the same claim under a second id, by which a person may ask for it: an alias.

        ``others`` are words that differ there (``where``, ``marks``). The two ids share settings, computations and
        costs; asked for together they are simulated once.
        """
        return CLAIMS.register(id, msgspec.structs.replace(self, id=id, alias_of=self.alias_of or self.id, **others))

    def printed_as(
        self,
        id: str,
        label: str,
        statement: str,
        *,
        where: str,
        predict: Callable[[S], Evidence],
        note: str = "",
        **others: Any,
    ) -> Claim[S]:
        """Register the erratum that this claim corrects: the same setting and simulation, the prediction as printed.

        ``others`` are fields in which it differs from this claim all the same.
        """
        own = {"blind": {}, "mistakes": (), "marks": (), "expected": "refuted", "corrected_by": self.id, "alias_of": ""}
        changes = {**own, "where": where, **others}
        printed = {"id": id, "label": label, "statement": statement, "predict": predict, "note": note, **changes}
        return CLAIMS.register(id, msgspec.structs.replace(self, **printed))


def _home(function: Any) -> str:
    return _home(function.func) if isinstance(function, partial) else str(function.__module__)


CLAIMS: Registry[Claim[Any]] = Registry("claim", "pathlines.claim")


def claim(
    id: str,
    paper: Paper,
    label: str,
    statement: str,
    *,
    models: tuple[str, ...],
    quick: S,
    within: dict[str, Tolerance],
    simulate: Callable[[S], Evidence],
    predict: Callable[[S], Evidence],
    full: S | None = None,
    expected: str = "holds",
    corrected_by: str = "",
    axes: Axes = NO_AXES,
    note: str = "",
    blind: dict[str, str] | None = None,
    where: str = "",
    mistakes: tuple[Mistake, ...] = (),
    marks: tuple[str, ...] = (),
    convention: str = "",
) -> Claim[S]:
    """Make and register a claim; without ``full`` it has one size."""
    if expected not in ("holds", "refuted", "inconclusive"):
        raise ArgumentError(f"Argument `expected` must be holds, refuted or inconclusive, but is {expected!r}.")
    if not isinstance(quick, Setting):
        raise ArgumentError(f"Argument `quick` must be a record of settings (a `Setting`), but is {quick!r}.")
    check_marks(marks, convention)
    entry = Claim(
        id,
        paper,
        label,
        statement,
        models,
        quick,
        quick if full is None else full,
        within,
        simulate,
        predict,
        expected,
        corrected_by,
        axes,
        note,
        blind or {},
        where,
        mistakes,
        marks,
        convention,
    )
    return CLAIMS.register(id, entry)


def known(values: Numbers, setting: Setting, reference_setting: Numbers) -> Evidence:
    """Reference numbers, valid at one setting only: at any other, nothing is known."""
    same = all(np.array_equal(np.asarray(getattr(setting, k)), np.asarray(v)) for k, v in reference_setting.items())
    return Evidence(values if same else dict.fromkeys(values), source="reference value")


def certificates_of(runs: tuple[Run, ...]) -> tuple[Certificate, ...]:
    """All certificates of all runs."""
    return tuple(c for run in runs for c in run.certificates)
