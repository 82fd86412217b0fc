"""Study files on pages: read as data in a process of its own, kept under what they hold, shown over one or two axes."""

from __future__ import annotations

import hashlib
import io
import threading
from collections import OrderedDict
from functools import cache
from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.sweep.workers import Aside, Lost

PATIENCE = 30.0
"""Seconds that reading a file may take; a damaged one can make its library search for ever."""
MOST_NUMBERS = 8_000_000
"""Of all variables of a file."""
MOST_FILES = 6
LONGEST = 80
"""Letters of a label that are shown."""
REPEATS = ("repeat", "run", "realization", "realisation", "sample", "replicate")
"""Dimensions that are averaged over."""
HIDDEN = ("status",)
EXAMPLE = "example"


class Axis(msgspec.Struct, frozen=True):
    """A dimension: its values, or the words that stand for them."""

    label: str
    symbol: str
    values: list[float]
    words: list[str] = []


class Variable(msgspec.Struct, frozen=True):
    """Numbers over some dimensions."""

    label: str
    symbol: str
    dims: tuple[str, ...]
    values: Any


class StudyData(msgspec.Struct, frozen=True):
    """What a file holds. ``origin`` is the model that was run: name, fixed setting, settings along each axis."""

    title: str
    axes: dict[str, Axis]
    variables: dict[str, Variable]
    origin: dict[str, Any] | None = None


class Shelf:
    """The files that were opened last, in memory, each under a hash of its bytes."""

    def __init__(self) -> None:
        self.aside = Aside(parsed)
        self.kept: OrderedDict[str, StudyData] = OrderedDict()
        self.lock = threading.Lock()

    def open(self, body: bytes) -> str:
        """The name under which the content of a file is kept; what is no study is an error in one line."""
        name = hashlib.sha256(body).hexdigest()[:20]
        if name not in self.kept:
            found = self.aside.ask(body, PATIENCE)
            if isinstance(found, Lost):
                raise ArgumentError("This file could not be read; is it a netCDF file?")
            if isinstance(found, str):
                raise ArgumentError(found)
            with self.lock:
                self.kept[name] = found
                while len(self.kept) > MOST_FILES:
                    self.kept.popitem(last=False)
        return name

    def get(self, name: str) -> StudyData:
        """What is kept under a name."""
        if name == EXAMPLE:
            return example()
        with self.lock:
            if name not in self.kept:
                raise ArgumentError("The server does not have this study any more: open its file again.")
            self.kept.move_to_end(name)
            return self.kept[name]


def parsed(body: bytes) -> StudyData | str:
    """The content of a file, or why there is none, in one line; for a process of its own."""
    try:
        return study_of(_dataset(body))
    except ArgumentError as error:
        return str(error)
    except Exception as error:
        return f"This file is not a netCDF dataset that can be read ({type(error).__name__})."


def _dataset(body: bytes) -> Any:
    import xarray as xr

    engine = "scipy" if body[:3] == b"CDF" else "h5netcdf"
    if engine == "h5netcdf" and body[:4] != b"\x89HDF":
        raise ArgumentError("This file is not a netCDF dataset: it begins with something else.")
    data = xr.open_dataset(io.BytesIO(body), engine=engine, decode_times=False)
    size = sum(int(np.prod(v.shape)) for v in data.variables.values())
    if size > MOST_NUMBERS:
        raise ArgumentError(f"A page shows at most {MOST_NUMBERS:,} numbers, but this file has {size:,}.")
    return data.load()


def study_of(data: Any) -> StudyData:
    """Numeric variables over their dimensions; what is neither is left out."""
    variables = {}
    for name, v in data.data_vars.items():
        if v.dtype.kind in "iufb" and str(name) not in HIDDEN:
            dims = tuple(str(d) for d in v.dims)
            values = np.where(np.isfinite(v.values.astype(float)), v.values.astype(float), np.nan)
            variables[str(name)[:LONGEST]] = Variable(_label(v, name), _symbol(v), dims, values)
    if not variables:
        raise ArgumentError("This file has no numbers over axes.")
    used = dict.fromkeys(d for v in variables.values() for d in v.dims)
    title = _text(data.attrs.get("title")) or _subject(data.attrs)
    return StudyData(title or "A study", {d: _axis(data, d) for d in used}, variables, _origin(data.attrs))


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""


def _label(v: Any, name: Any) -> str:
    unit = _text(v.attrs.get("units"))
    return (_text(v.attrs.get("long_name")) or str(name)[:LONGEST].replace("_", " ")) + (f" ({unit})" if unit else "")


def _symbol(v: Any) -> str:
    return _text(v.attrs.get("symbol"))


def _axis(data: Any, dim: str) -> Axis:
    size = int(data.sizes[dim])
    if dim not in data.coords or data.coords[dim].ndim != 1:
        return Axis(dim[:LONGEST], "", [float(k) for k in range(size)])
    c = data.coords[dim]
    values = np.asarray(c.values)
    if values.dtype.kind in "iuf" and np.isfinite(values.astype(float)).all() and len(set(values.tolist())) == size:
        return Axis(_label(c, dim), _symbol(c), [float(x) for x in values])
    return Axis(_label(c, dim), _symbol(c), [float(k) for k in range(size)], [str(x)[:LONGEST] for x in values])


def _json(text: Any) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text) if isinstance(text, str) else {}
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _subject(attrs: Any) -> str:
    subject = _json(attrs.get("pathlines_study")).get("subject")
    return _text(subject.get("name")) if isinstance(subject, dict) else ""


def _origin(attrs: Any) -> dict[str, Any] | None:
    """The model of a study with its setting and axes; of any other file its attribute ``model`` with the plain ones."""
    outline = _json(attrs.get("pathlines_study"))
    subject = outline.get("subject")
    if isinstance(subject, dict) and subject.get("kind") == "model":
        name, setting, axes = subject.get("name"), outline.get("setting"), outline.get("axes")
        plain = isinstance(name, str) and isinstance(setting, dict) and isinstance(axes, dict)
        return {"model": name, "setting": setting, "axes": axes} if plain else None
    if isinstance(attrs.get("model"), str) and not _json(attrs["model"]):
        numbers = {str(k): v for k, v in attrs.items() if np.ndim(v) == 0 and not isinstance(v, (str, bytes))}
        own = {k: v.item() if hasattr(v, "item") else v for k, v in numbers.items()}
        return {"model": attrs["model"], "setting": own, "axes": {}}
    return None


@cache
def example() -> StudyData:
    """The overlap of three orthogonal tokens over β and time, in closed form (arXiv:2312.10794)."""
    from pathlines.limit.clustering.equiangular import overlap_at

    betas, times = np.linspace(0.0, 9.0, 37), np.linspace(0.25, 15.0, 60)
    values = np.array([overlap_at(times, 3, float(b), "sa", 0.0) for b in betas])
    axes = {
        "beta": Axis("inverse temperature β", "β", betas.tolist()),
        "until": Axis("depth-time t", "t", times.tolist()),
    }
    origin = {"model": "sa", "setting": {"n": 3, "d": 3, "start": "simplex:0"}, "axes": {}}
    overlap = Variable("overlap of three orthogonal tokens", "ρ", ("beta", "until"), values)
    return StudyData("Example: how fast three orthogonal tokens meet", axes, {"overlap": overlap}, origin)


SHELF = Shelf()
