"""From a subject's description to the thing itself, in a process that has imported nothing of it."""

from __future__ import annotations

import importlib.util
import sys
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from pathlines.claim.base import CLAIMS
from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.foundation.load import load_file
from pathlines.sweep.subject import Known, Subject, found_by_name, of_claim, of_definition

_READING: ContextVar[bool] = ContextVar("reading", default=False)


class EnoughRead(BaseException):
    """A script was read as far as the study that it runs: what that needs is defined above it."""


def reading_a_script() -> bool:
    """Whether a script is being read for its definitions, and is not to run its studies."""
    return _READING.get()


@lru_cache(maxsize=64)
def located(subject: Subject) -> Known:
    """The subject with what its name means here."""
    for file in subject.files:
        load_file(file)
    if not subject.home:
        if subject.kind == "claim":
            return of_claim(CLAIMS[subject.name], subject.files, subject.size)
        return msgspec.structs.replace(found_by_name(subject.name, subject.files), subject=subject)
    thing: Any = definitions_of(subject.home) if subject.home.endswith(".py") else import_module(subject.home)
    for part in subject.name.split("."):
        if not hasattr(thing, part):
            raise PathlinesError(f"Worker processes find no `{subject.name}` in {subject.home}: define it at the top.")
        thing = getattr(thing, part)
    return msgspec.structs.replace(of_definition(thing, subject.many), subject=subject)


def definitions_of(path: str) -> ModuleType:
    """The module of a person's file, read as far as the first study that it runs."""
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"pathlines_study_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ArgumentError(f"There is no Python file {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.parent))
    token = _READING.set(True)
    try:
        spec.loader.exec_module(module)
    except EnoughRead:
        pass
    except (Exception, SystemExit) as error:
        raise ArgumentError(f"The file {path} could not be read: {type(error).__name__}: {error}") from error
    finally:
        _READING.reset(token)
        sys.path.remove(str(file.parent))
    return module
