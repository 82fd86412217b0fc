"""Rooms as namespaces: what their files define is found without importing them, and imported on first use."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

DEFINED = re.compile(
    r"^(?:class|def)\s+([A-Za-z]\w*)|^([A-Za-z]\w*)(?::[^=\n]+)?\s*=\s*(?:Registry|Paper)\(", re.MULTILINE
)
"""Classes, functions and registries at the top level of a file; constants and aliases of types are its own matter."""


class Namespace(ModuleType):
    """A package whose names are those that its files define, each imported when it is first asked for.

    A function of the same name as its file wins over the file, whichever is imported first: ``pl.integrate.flow`` is
    always the function.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(homes(self.__name__))
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        home = homes(self.__name__).get(name)
        if home is not None:
            module, _, attribute = home.partition(":")
            value = getattr(import_module(module), attribute or name)
        elif name in single_files(self.__name__) + folders(self.__name__):
            value = import_module(f"{self.__name__}.{name}")
        else:
            raise AttributeError(_no_such_name(self.__name__, name), name=name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        imported = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not imported:
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        """Sent to another process (joblib, Dask: with a function that uses it) as its name."""
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*homes(self.__name__), *folders(self.__name__)} or single_files(self.__name__))


PACKAGE = Path(__file__).parents[1]
_elsewhere: dict[str, Callable[[], dict[str, str]]] = {}
_entries_only: set[str] = set()


def namespace(package: str, elsewhere: Callable[[], dict[str, str]] = dict, *, entries_only: bool = False) -> None:
    """Make a package a ``Namespace``.

    ``elsewhere`` says where names come from that no file of the package defines: ``module`` or ``module:attribute``.
    ``entries_only`` is for folders whose files fill a registry (claims, figures): their helpers are not public.
    """
    _elsewhere[package] = elsewhere
    if entries_only:
        _entries_only.add(package)
    sys.modules[package].__class__ = Namespace


def is_namespace(package: str) -> bool:
    """Whether it is a package of ours that imports lazily."""
    return package in _elsewhere


@cache
def homes(package: str) -> dict[str, str]:
    """Name → module that defines it (or ``module:attribute``), for all public names of a namespace."""
    found = {} if package in _entries_only else {n: m for m in _modules(package) for n in defined(m)}
    return {**found, **_elsewhere[package]()}


def defined(module: str) -> list[str]:
    """Public names that the file of a module defines, read off its text."""
    return [one or other for one, other in DEFINED.findall(_text(module))]


def entries(package: str, decorator: str) -> dict[str, str]:
    """Name → module of what the files of a package register by ``@decorator("name", …)``."""
    pattern = re.compile(rf'^@{decorator}\(\s*"(\w+)"', re.MULTILINE)
    return {name: module for module in _modules(package) for name in pattern.findall(_text(module))}


@cache
def single_files(package: str) -> list[str]:
    """Modules of a package that are single files."""
    return sorted(f.stem for f in _folder(package).glob("*.py") if not f.stem.startswith("_"))


@cache
def folders(package: str) -> list[str]:
    """Packages inside a package."""
    return sorted(f.parent.name for f in _folder(package).glob("*/__init__.py"))


def found_below(package: str, name: str) -> list[str]:
    """Every ``namespace.name`` below a package."""
    inside = [f"{package}.{f}" for f in folders(package)]
    for room in inside:
        import_module(room)
    here = [f"{room}.{name}" for room in inside if is_namespace(room) and _is_home(room, name)]
    return here + [path for room in inside for path in found_below(room, name)]


def _is_home(package: str, name: str) -> bool:
    """Whether a name is public there; most files do not even mention it."""
    files = [] if package in _entries_only else _modules(package)
    return name in _elsewhere[package]() or any(name in _text(m) and name in defined(m) for m in files)


def _modules(package: str) -> list[str]:
    return [f"{package}.{name}" for name in single_files(package)]


def _folder(package: str) -> Path:
    return PACKAGE.joinpath(*package.split(".")[1:])


def _text(module: str) -> str:
    return _folder(module).with_suffix(".py").read_text(encoding="utf-8")


def _no_such_name(package: str, name: str) -> str:
    """The message for a wrong name: where the right one is, or the nearest."""
    below = found_below(package, name)
    near = below[:3] or difflib.get_close_matches(name, dir(sys.modules[package]), n=1, cutoff=0.6)
    meant = f"; did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
    return f"module {package!r} has no attribute {name!r}{meant}"
