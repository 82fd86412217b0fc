"""Pages of the reference, one for each room, written from the public names before Sphinx looks for sources."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import pathlines

ROOMS = {
    "domain": "Where tokens live",
    "attention": "Who listens to whom",
    "weights": "What the layers hold",
    "model": "How a layer moves tokens",
    "integrate": "Depth as time",
    "observable": "What we look at",
    "limit": "Theory instead of simulation",
    "numerics": "Quadrature",
    "claim": "Theorems, executable",
    "draw": "Figures",
    "sweep": "Many settings",
    "store": "Results on disk",
    "advise": "Architecture in, prediction out",
    "probe": "Real transformers",
    "architecture": "Configurations",
    "foundation": "Papers and precision",
}


def public() -> dict[str, list[str]]:
    """Names by room: of classes and functions the room they are defined in."""
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in pathlines.__all__:
        value = getattr(pathlines, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            rooms[value.__module__.split(".")[1]].append(name)
    return {room: names for room, names in rooms.items() if names or room == "observable"}


def entry(name: str) -> list[str]:
    """The directive of one name; classes that are called by their methods are shown with them."""
    value = getattr(pathlines, name)
    if inspect.isclass(value):
        members = ["   :members:"] if value.__module__.split(".")[1] in ("domain", "integrate") else []
        return [f".. autoclass:: pathlines.{name}", *members, ""]
    return [f".. autofunction:: pathlines.{name}", ""]


def observables() -> list[str]:
    """Definitions of the observables, which are objects."""
    lines = []
    for name, value in pathlines.OBSERVABLES.items():
        if name in pathlines.__all__:
            continue
        words = " ".join((value.function.__doc__ or "").split())
        lines += [f".. py:data:: pathlines.{name}", "", f"   {value.label}, {value.symbol}.", "", f"   {words}", ""]
    from plain_docstrings import escaped

    return [escaped(line) if not line.startswith("..") else line for line in lines]


def write(app: Sphinx) -> None:
    """Only what changed, so that a second build reads little."""
    folder = Path(app.srcdir) / "api"
    for room, names in public().items():
        title = f"{room}: {ROOMS[room].lower()}"
        lines = [title, "=" * len(title), ""]
        lines += observables() if room == "observable" else []
        for name in names:
            lines += entry(name)
        path, text = folder / f"{room}.rst", "\n".join(lines)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when the builder is known."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
