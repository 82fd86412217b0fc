"""What a study looks at: a model, a claim or a function, in a form that can be sent to a worker and be addressed."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, get_type_hints, runtime_checkable

import msgspec

from pathlines.claim.base import CLAIMS, Claim
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.foundation.namespace import PACKAGE
from pathlines.foundation.papers import Paper
from pathlines.foundation.parameters import record_of
from pathlines.foundation.registry import near
from pathlines.foundation.setting import Setting, changed
from pathlines.integrate.observe import OBSERVABLES, Observable, checked_observables
from pathlines.model import MODELS, Model
from pathlines.store.code import fingerprint
from pathlines.store.definition import definition_fingerprint
from pathlines.sweep.axes import takes_fractions
from pathlines.sweep.claim_runs import ClaimRuns
from pathlines.sweep.function_runs import FunctionRuns
from pathlines.sweep.model_runs import RUN_FIELDS, ModelRuns, record_of_runs
from pathlines.sweep.points import Points, Results

Recorded = tuple[str, tuple[tuple[str, Any], ...]]
"""An observable by name, with the parameters that it was given."""


class Subject(msgspec.Struct, frozen=True):
    """A model, claim or function by where it is found: in a registry (``home`` is empty), in a module that can be
    imported, or in a file of a person. ``files`` are those that register or define it.
    """

    kind: str
    name: str
    home: str = ""
    files: tuple[str, ...] = ()
    record: tuple[Recorded, ...] = ()
    times: tuple[float, ...] = ()
    size: str = "quick"
    many: bool = False
    along: tuple[str, ...] = ()


@runtime_checkable
class Kernel(Protocol):
    """Evaluates settings."""

    def evaluate(self, points: Points) -> Results:
        """One row for each setting; what fails, fails alone."""


class Known(msgspec.Struct, frozen=True):
    """A subject with what was found under its name."""

    subject: Subject
    thing: Any
    record: Any
    title: str
    papers: tuple[Paper, ...] = ()

    @property
    def within_program(self) -> frozenset[str]:
        """Fields that may differ between runs of one compiled program, or in one call of a function of many."""
        if self.subject.along:
            return frozenset(self.subject.along)
        if self.subject.kind != "model" and not self.subject.many:
            return frozenset(f.name for f in msgspec.structs.fields(self.record))
        numbers = {f.name for f in msgspec.structs.fields(self.record) if takes_fractions(f.type)}
        return frozenset((numbers - set(RUN_FIELDS)) | {"seed"}) if self.subject.kind == "model" else frozenset(numbers)

    def defaults(self) -> dict[str, Any]:
        """Values of the fields that need not be given."""
        return {f.name: f.default for f in msgspec.structs.fields(self.record) if f.default is not msgspec.NODEFAULT}

    def code(self) -> str:
        """A hash of the code behind the numbers."""
        subject = self.subject
        if subject.kind == "claim":
            return fingerprint(*self.thing.homes, "pathlines.sweep.claim_runs", files=subject.files)
        runs = f"pathlines.sweep.{subject.kind}_runs"
        if subject.home.endswith(".py"):
            return definition_fingerprint(Path(subject.home), subject.name, runs)
        if subject.home in sys.modules and not subject.home.startswith(PACKAGE.name):
            text = inspect.getsource(self.thing)
            return hashlib.sha256(f"{text}\0{fingerprint(runs)}".encode()).hexdigest()[:16]
        return fingerprint(runs, *([subject.home] if subject.home else []), files=subject.files)

    def kernel(self) -> Kernel:
        """What evaluates its settings."""
        subject = self.subject
        if subject.kind == "claim":
            return ClaimRuns(self.thing, subject.size)
        if subject.kind == "function":
            return FunctionRuns(self.thing, _setting_of(self.thing), subject.many)
        return ModelRuns(self.thing, subject.name, observables(subject.record), subject.times)


def observables(record: tuple[Recorded, ...]) -> tuple[Observable, ...]:
    """The observables themselves."""
    return tuple(OBSERVABLES[name].at(**dict(given)) if given else OBSERVABLES[name] for name, given in record)


def recorded(record: Any) -> tuple[Recorded, ...]:
    """Observables by name, with parameters where they are not the usual ones."""
    found = []
    for entry in checked_observables(record):
        base = entry.name.partition("[")[0]
        given = entry.parameters if "[" in entry.name else ()
        if OBSERVABLES[base].function is not entry.function:
            raise ArgumentError(f"Argument `record` must hold registered observables, but holds {entry.name}.")
        found.append((base, tuple(given)))
    return tuple(found)


def found_by_name(name: str, files: tuple[str, ...]) -> Known:
    """The model or claim of that name."""
    if name in MODELS:
        entry = MODELS[name]
        return Known(
            Subject("model", name, files=files), entry.build, record_of_runs(entry.parameters), name, entry.papers
        )
    if "/" in name and name in CLAIMS:
        return of_claim(CLAIMS[name], files)
    close = near(name, [*MODELS, *CLAIMS])
    hint = f" Did you mean {close}?" if close else " `pathlines list` shows all."
    raise UnknownNameError(f"There is no model or claim `{name}`.{hint}")


def of_claim(claim: Claim[Any], files: tuple[str, ...], size: str = "quick") -> Known:
    """A claim; one of a person's own is found in its file."""
    home = sys.modules.get(claim.homes[0])
    own = str(getattr(home, "__file__", "") or "")
    mine = (own,) if own and PACKAGE not in Path(own).resolve().parents and own not in files else ()
    subject = Subject("claim", claim.id, files=(*files, *mine), size=size)
    return Known(subject, claim, type(claim.quick), claim.id, (claim.paper,))


def of_definition(thing: Callable[..., Any], many: bool) -> Known:
    """A class of models, a function that builds one, or any function of a setting."""
    kind = "model" if _builds_models(thing) else "function"
    name = getattr(thing, "__qualname__", "")
    home = _home(thing)
    own = _setting_of(thing) or record_of(thing)
    record = record_of_runs(own) if kind == "model" else own
    papers = getattr(thing, "papers", ())
    return Known(Subject(kind, name, home, many=many), thing, record, name, tuple(papers))


def _builds_models(thing: Any) -> bool:
    if isinstance(thing, type):
        return issubclass(thing, Model)
    try:
        said = get_type_hints(thing).get("return")
    except (NameError, TypeError):
        return False
    return isinstance(said, type) and issubclass(said, Model)


def _setting_of(function: Any) -> type[Setting] | None:
    """The record that is a function's one argument."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError:
        return None
    said = [p.annotation for p in signature.parameters.values()]
    one = said[0] if len(said) == 1 else None
    return one if isinstance(one, type) and issubclass(one, Setting) else None


def _home(thing: Any) -> str:
    """The module of a definition of ours, else the file it stands in, else the name of the live module."""
    module = str(getattr(thing, "__module__", ""))
    if module.split(".")[0] == PACKAGE.name:
        return module
    try:
        file = inspect.getsourcefile(thing)
    except TypeError:
        file = None
    return str(Path(file).resolve()) if file and Path(file).is_file() else module


def fixed_setting(known: Known, given: dict[str, Any]) -> dict[str, Any]:
    """Values of all fields: those given, checked, and the defaults; what must be given and is not, is not there."""
    owner = known.title
    kinds = {f.name: f.type for f in msgspec.structs.fields(known.record)}
    usual = known.thing.setting(known.subject.size) if known.subject.kind == "claim" else None
    values = msgspec.structs.asdict(usual) if usual is not None else known.defaults()
    blank = {f.name: None for f in msgspec.structs.fields(known.record) if f.name not in values}
    for name in given:
        if name not in kinds:
            close = near(name, kinds)
            hint = f" Did you mean {close}?" if close else f" It has {', '.join(sorted(kinds)) or 'none'}."
            raise UnknownNameError(f"{owner} has no setting `{name}`.{hint}")
    start = usual if usual is not None else known.record(**blank)
    checked = changed(owner, start, given)
    return {**values, **{name: getattr(checked, name) for name in given}}
