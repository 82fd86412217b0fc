"""Named entries that arrive as one file and one registration."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from pathlines.foundation.errors import ArgumentError, UnknownNameError

T = TypeVar("T")
NEAR = 0.6
"""Share of letters in common above which a name is near another."""


class Registry(Generic[T]):
    """A name -> entry table that fills itself from the files of one package.

    Dropping a file into the folder is all that is needed to add an entry. One name is looked for in the files that
    mention it, because importing all models takes half of the time of a small run; a list of names, and a name that no
    file mentions, import them all. Files outside the tree register by being imported (``pathlines --load FILE``).
    """

    def __init__(self, noun: str, package: str) -> None:
        self.noun = noun
        self._package = package
        self._entries: dict[str, T] = {}
        self._filled = False

    def register(self, name: str, entry: T) -> T:
        """Add an entry; a name can be taken once."""
        if name in self._entries:
            raise ArgumentError(f"The {self.noun} `{name}` is registered already; choose another name.")
        self._entries[name] = entry
        return entry

    def add(self, name: str) -> Callable[[T], T]:
        """Decorate a class or function to register it under ``name``."""
        return lambda entry: self.register(name, entry)

    def _fill(self) -> None:
        if not self._filled:
            self._filled = True
            discover(importlib.import_module(self._package))

    def _look_for(self, name: str) -> None:
        """Import files that mention the name in quotes as the first argument of a call, until one registers it."""
        call = re.compile(rf"""\(\s*["']{re.escape(name)}["']""")
        for module, text in texts(self._package):
            if call.search(text):
                importlib.import_module(module)
                if name in self._entries:
                    return

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str):
            raise UnknownNameError(f"There is no {self.noun} `{name}`; names are text.")
        if name not in self._entries and not self._filled:
            self._look_for(name)
        if name not in self._entries:
            self._fill()
        if name not in self._entries:
            raise UnknownNameError(f"There is no {self.noun} `{name}`.{self.suggestion(name)}")
        return self._entries[name]

    def suggestion(self, name: str) -> str:
        """Return " Did you mean ...?" with the nearest names, or where all are."""
        found = near(str(name), self._entries)
        return f" Did you mean {found}?" if found else f" `pathlines list` shows all {len(self._entries)}."

    def match(self, pattern: str) -> list[str]:
        """Names that equal the pattern, start with ``pattern/``, or fit it as a glob; an empty answer is an error."""
        if not isinstance(pattern, str):
            raise UnknownNameError(f"There is no {self.noun} `{pattern}`; names are text.")
        names = [n for n in self if n == pattern or n.startswith(pattern.rstrip("/") + "/") or fnmatchcase(n, pattern)]
        if not names:
            raise UnknownNameError(f"No {self.noun} matches `{pattern}`.{self.suggestion(pattern)}")
        return names

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._fill()
        return len(self._entries)

    def items(self) -> list[tuple[str, T]]:
        """All (name, entry) pairs, sorted by name."""
        return [(name, self._entries[name]) for name in self]


def near(name: str, known: Iterable[str]) -> str:
    """Up to three of the known names that could have been meant, as `a`, `b`; of a family that exists, its own only."""
    family, slash, tail = name.lower().partition("/")
    own = [k for k in known if k.lower().startswith(family + slash)] if slash else []
    words = {(k.lower().partition("/")[2] if own else k.lower()): k for k in own or known}
    close = difflib.get_close_matches(tail if own else name.lower(), words, n=3, cutoff=NEAR)
    return ", ".join(f"`{words[c]}`" for c in close)


@cache
def texts(package: str) -> tuple[tuple[str, str], ...]:
    """(module, source) of every file below a package."""
    spec = importlib.util.find_spec(package)
    folders = [Path(f) for f in (spec.submodule_search_locations or ())] if spec else []
    files = [(f, folder) for folder in folders for f in sorted(folder.rglob("*.py")) if f.stem != "__init__"]
    return tuple((_dotted(package, f.relative_to(folder)), f.read_text(encoding="utf-8")) for f, folder in files)


def _dotted(package: str, file: Path) -> str:
    return ".".join((package, *file.with_suffix("").parts))


def discover(package: ModuleType) -> None:
    """Import every module below ``package``, so that each can register what it defines."""
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(info.name)
