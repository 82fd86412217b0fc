"""The two computations of a claim share no code of theory or model, beyond what their family lists with a reason."""

import dis
import functools
import importlib
import inspect
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

from pathlines.claim import CLAIMS
from pathlines.claim.mistakes import _names, _plain_function
from pathlines.limit.clustering import equiangular

ROOMS = ("limit", "model")


def allowed() -> dict[str, set[str]]:
    """By claim: the functions that ``<family>/shared.toml`` lists with a reason."""
    found: dict[str, set[str]] = {}
    for file in Path(__file__).parent.glob("*/shared.toml"):
        for entry in tomllib.loads(file.read_text())["shared"]:
            assert entry["reason"]
            for name in entry["claims"]:
                found.setdefault(f"{file.parent.name}/{name}", set()).update(entry["functions"])
    return found


ALLOWED = allowed()


def room(value: Any) -> str:
    parts = (getattr(value, "__module__", "") or "").split(".")
    return parts[1] if parts[0] == "pathlines" and len(parts) > 1 else ""


def under(value: Any) -> Any:
    """The function or class under partial applications, caches and descriptors."""
    if isinstance(value, functools.partial):
        return under(value.func)
    if isinstance(value, classmethod | staticmethod):
        return under(value.__func__)
    return inspect.unwrap(value) if callable(value) else value


def imported(code: types.CodeType) -> list[Any]:
    """What a function imports from us while it runs."""
    found, module = [], ""
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            module = step.argval
        elif step.opname == "IMPORT_FROM" and module.startswith("pathlines"):
            found.append(getattr(importlib.import_module(module), step.argval, None))
    return found + [v for c in code.co_consts if isinstance(c, types.CodeType) for v in imported(c)]


def named(value: Any) -> list[Any]:
    """Callables that a function or the methods of a class mention, by name, as attributes of a module, or applied."""
    if isinstance(value, type):
        members = [m for kind in value.__mro__ if room(kind) in ROOMS for m in vars(kind).values()]
        return [m.fget if isinstance(m, property) else m for m in members]
    found: list[Any] = []
    function = _plain_function(value, found)
    if function is None:
        return found
    names, space = _names(function.__code__), function.__globals__
    for name in names:
        mentioned = space.get(name)
        if isinstance(mentioned, types.ModuleType) and mentioned.__name__.startswith("pathlines"):
            found += [getattr(mentioned, n, None) for n in names]
        else:
            found.append(mentioned)
    return [*found, *imported(function.__code__)]


def reached(start: Any) -> dict[int, Any]:
    """Functions and classes of theory and models that a computation can reach by name."""
    seen: dict[int, Any] = {}
    waiting = [start]
    while waiting:
        value = waiting.pop()
        if isinstance(value, functools.partial):
            waiting += [*value.args, *value.keywords.values()]
        plain = under(value)
        if isinstance(plain, type | types.FunctionType) and id(plain) not in seen and room(plain) in (*ROOMS, "claim"):
            seen[id(plain)] = plain
            waiting += named(value)
    return {key: value for key, value in seen.items() if room(value) in ROOMS}


def shared(simulate: Any, predict: Any) -> set[str]:
    """What both reach, without what only its own callers reach."""
    theirs = reached(predict)
    both = {key: value for key, value in reached(simulate).items() if key in theirs}
    inner = {id(under(m)) for value in both.values() for m in named(value) if under(m) is not value}
    return {f"{v.__module__.removeprefix('pathlines.')}.{v.__qualname__}" for k, v in both.items() if k not in inner}


@pytest.mark.parametrize("name", list(CLAIMS))
def test_simulation_and_prediction_share_no_code(name):
    claim = CLAIMS[name]
    assert shared(claim.simulate, claim.predict) - ALLOWED.get(claim.alias_of or name, set()) == set()


def test_what_is_allowed_is_needed():
    found = {name: shared(CLAIMS[name].simulate, CLAIMS[name].predict) for name in ALLOWED}
    assert {name: rest for name, functions in ALLOWED.items() if (rest := functions - found[name])} == {}


def through_the_module(s):
    return equiangular.phase_curve(s, 3, 0.1)


def through_an_import(s):
    from pathlines.limit.clustering.equiangular import phase_curve

    return phase_curve(s, 3, 0.1)


def applied(function, s):
    return function(s, 3, 0.1)


WAYS = (
    through_the_module,
    through_an_import,
    functools.partial(applied, equiangular.phase_curve),
    functools.lru_cache(through_an_import),
)


@pytest.mark.parametrize("way", WAYS, ids=range(len(WAYS)))
def test_shared_code_is_found_wherever_it_hides(way, monkeypatch):
    for function in (through_the_module, through_an_import, applied):
        monkeypatch.setattr(function, "__module__", "pathlines.claim.clustering")
    assert shared(way, through_the_module) == {"limit.clustering.equiangular.phase_curve"}
