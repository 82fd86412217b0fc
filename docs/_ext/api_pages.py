"""Pages of the reference, written from the public names before Sphinx looks for sources.

One page for the names of the top level, one for the observables, one for each room with what its namespaces offer
besides; a new file in a room is on its page at the next build.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

from plain_docstrings import escaped
from sphinx.application import Sphinx

import pathlines

ROOMS = {
    "domain": "where tokens live",
    "attention": "who listens to whom",
    "weights": "what the layers hold",
    "model": "how a layer moves tokens",
    "integrate": "depth as time",
    "observable": "what we look at",
    "limit": "theory instead of simulation",
    "claim": "theorems, executable",
    "sweep": "many settings",
    "store": "results on disk",
    "draw": "figures",
    "advice": "architecture in, prediction out",
    "probing": "real transformers",
    "architecture": "configurations",
}
HIDDEN = ("cli", "foundation", "kernels", "numerics")
CALLED_BY_METHODS = ("domain", "integrate")


def rooms() -> dict[str, str]:
    """Every room with the words of its title, in the order of the list."""
    found = {m.name for m in pkgutil.iter_modules(pathlines.__path__) if m.ispkg}
    return {r: w for r, w in ROOMS.items() if r in found} | dict.fromkeys(sorted(found - {*ROOMS, *HIDDEN}), "")


def title(room: str) -> str:
    """The room and what it is about."""
    words = rooms()[room]
    return f"{room}: {words}" if words else room


def offered(package: Any) -> list[str]:
    """Classes and functions that a namespace offers and that are defined below it."""
    found = {name: getattr(package, name) for name in dir(package) if not name.startswith("_")}
    return [n for n, v in found.items() if _is_ours(v) and v.__module__.startswith(package.__name__)]


def _is_ours(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def namespaces(room: str) -> list[Any]:
    """A room and the families in it."""
    package = import_module(f"pathlines.{room}")
    inside = [m.name for m in pkgutil.iter_modules(package.__path__) if m.ispkg]
    return [package, *(import_module(f"pathlines.{room}.{name}") for name in inside)]


def entry(path: str, value: Any) -> list[str]:
    """The directive of one name; classes that are called by their methods are shown with them."""
    if inspect.isclass(value):
        members = ["   :members:"] if value.__module__.split(".")[1] in CALLED_BY_METHODS else []
        return [f".. autoclass:: {path}", *members, ""]
    return [f".. autofunction:: {path}", ""]


def heading(text: str, mark: str) -> list[str]:
    """A title with its line."""
    return [text, mark * len(text), ""]


def top() -> list[str]:
    """The names of the top level, by room."""
    lines = heading("Names of the top level", "=")
    values = {name: getattr(pathlines, name) for name in offered(pathlines)}
    for room in rooms():
        mine = {n: v for n, v in values.items() if v.__module__.split(".")[1] == room}
        lines += heading(title(room), "-") if mine else []
        for name, value in mine.items():
            lines += entry(f"pathlines.{name}", value)
    return lines


def observables() -> list[str]:
    """Definitions of the observables, which are objects."""
    lines = heading("Observables", "=")
    for name, value in pathlines.OBSERVABLES.items():
        words = " ".join((value.function.__doc__ or "").split())
        shown = [f"   {value.label}, {value.symbol}.", "", f"   {words}", ""]
        lines += [f".. py:data:: pathlines.observable.{name}", "", *map(escaped, shown)]
    return lines


def room_page(room: str, shown: set[int]) -> list[str]:
    """What a room and its families offer besides the names of the top level; nothing if that is nothing."""
    lines: list[str] = []
    for package in namespaces(room):
        values = {n: getattr(package, n) for n in offered(package)}
        mine = {n: v for n, v in values.items() if id(v) not in shown}
        lines += heading(package.__name__, "-") if mine else []
        for name, value in mine.items():
            lines += entry(f"{package.__name__}.{name}", value)
        shown |= {id(v) for v in mine.values()}
    return heading(title(room), "=") + lines if lines else []


def write(app: Sphinx) -> None:
    """Only what changed, so that a second build reads little; pages of rooms that are gone go too."""
    folder = Path(app.srcdir) / "api"
    shown = {id(getattr(pathlines, name)) for name in offered(pathlines)}
    pages = {"top": top(), "observables": observables()} | {room: room_page(room, shown) for room in rooms()}
    wanted = {folder / f"{name}.rst": "\n".join(lines) for name, lines in pages.items() if lines}
    for path in set(folder.glob("*.rst")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when the builder is known."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
