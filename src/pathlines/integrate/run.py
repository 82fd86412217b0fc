"""The result of a run: labelled data, certificates, and where it came from."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import msgspec
import numpy as np
import xarray as xr

from pathlines.foundation.papers import PAPERS
from pathlines.integrate.forms import Form

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where an object lies in memory, as Python prints it."""


class Certificate(msgspec.Struct, frozen=True):
    """What a run says about its own trustworthiness; ``passed`` is None when the number is only reported."""

    name: str
    value: float
    threshold: float | None
    passed: bool | None
    meaning: str


class Final(NamedTuple):
    """The last state of a live run with its model, its time, and the tokens it started from."""

    model: Any
    state: Any
    time: Any
    start: Any


class Run(msgspec.Struct, frozen=True):
    """A finished (or honestly unfinished) run.

    ``data`` is an xarray Dataset over ``time`` (and ``run``, ``token``, …), whose attributes tell the run's story in
    plain types, so that it stands for itself in any netCDF file; ``outcome`` is "completed" or says at which time it
    stopped and why; ``model`` is the model that was asked for; ``final`` the last state with its model.
    """

    data: xr.Dataset
    certificates: tuple[Certificate, ...]
    forms: tuple[Form, ...]
    outcome: str
    setting: dict[str, Any]
    seconds: float
    model: Any = None
    final: Final | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "data", self.data.assign_attrs(self._story()))

    def _story(self) -> dict[str, str | float]:
        """Text and numbers; what has parts as JSON."""
        setting = {k: v for k, v in self.setting.items() if k != "versions"}
        papers = [PAPERS[key].citation for key in setting.get("papers", ()) if key in PAPERS]
        return {
            "setting": as_json(setting),
            "versions": as_json(self.setting.get("versions") or provenance()),
            "certificates": as_json(self.certificates),
            "forms": as_json(self.forms),
            "citation": "; ".join(papers),
            "outcome": self.outcome,
            "seconds": self.seconds,
        }

    def __getitem__(self, name: str) -> xr.DataArray:
        """The recorded observable ``name``; one with parameters also by its plain name, where only one was recorded."""
        same = [k for k in self.data.data_vars if str(k).partition("[")[0] == name]
        return self.data[same[0] if name not in self.data and len(same) == 1 else name]

    @property
    def time(self) -> np.ndarray:
        """Recorded times."""
        return self.data["time"].values

    def certificate(self, name: str) -> Certificate:
        """The certificate of that name."""
        return next(c for c in self.certificates if c.name == name)

    def plot(self, names: list[str] | None = None) -> Any:
        """A figure of what was recorded (``pl.plot``)."""
        return import_module("pathlines").plot(self, names)  # pictures are made in a room below this one

    def animate(self, path: str | Path, rate: float = 15.0) -> None:
        """Write the tokens, recorded in two or three dimensions, as a film: .gif, .mp4, or a folder of frames."""
        draw = import_module("pathlines").draw
        draw.write_reel(draw.run_reel(self), Path(path), rate)

    def export(self, path: str | Path, **how: Any) -> Path:
        """Write one HTML file that plays the tokens beside what was recorded, off the network (``pl.export_page``)."""
        written: Path = import_module("pathlines").export_page(self, path, **how)
        return written

    def _repr_html_(self) -> str | None:
        """The player in a notebook; without tokens to draw a notebook shows the text."""
        shown: str | None = import_module("pathlines").view.notebook_html(self)
        return shown

    def __repr__(self) -> str:
        lines = [f"Run of {self.setting.get('model', {}).get('name', '?')}: {self.outcome} in {self.seconds:.2g} s"]
        derived = {k: v for k, v in (self.setting.get("derived") or {}).items() if v is not None}
        shown = (f"{k} = {v:.6g}" if isinstance(v, float) else f"{k} = {v}" for k, v in derived.items())
        lines += ["  " + ", ".join(shown)] if derived else []
        lines += [f"  from t = {f.since:g} as {f.name}: {f.reason}" for f in self.forms]
        for c in self.certificates:
            mark = {True: "ok", False: "FAILED", None: "reported"}[c.passed]
            lines.append(f"  {c.name} = {c.value:.3g} ({mark}): {c.meaning}")
        shapes = {str(k): tuple(v.sizes) for k, v in self.data.data_vars.items()}
        return "\n".join([*lines, "  records " + ", ".join(f"{k}{list(v)}" for k, v in shapes.items())])


def as_json(value: Any) -> str:
    """Canonical JSON; what JSON cannot say as Python prints it."""
    return msgspec.json.encode(value, order="sorted", enc_hook=repr).decode()


def describe(thing: Any) -> Any:
    """A JSON-able description of a model or a value: small arrays in full, large ones by shape and hash.

    Functions are described by where they are defined, never by where they lie in memory: the same setting has the same
    description in every process.
    """
    if isinstance(thing, (str, bool, int, float)) or thing is None:
        return thing
    if isinstance(thing, partial):
        return {"name": "partial", "of": describe(thing.func), "with": describe([*thing.args, thing.keywords])}
    if isinstance(thing, Mapping):
        return {str(k): describe(v) for k, v in thing.items()}
    if isinstance(thing, (np.ndarray, jax.Array)):
        array = np.asarray(thing)
        if array.size <= 64:
            return array.tolist()
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        return {"shape": list(array.shape), "dtype": array.dtype.name, "sha256": digest}
    if isinstance(thing, (list, tuple)):
        return [describe(x) for x in thing]
    if hasattr(thing, "__dataclass_fields__"):
        fields = {k: describe(getattr(thing, k)) for k in thing.__dataclass_fields__}
        return {"name": type(thing).__name__, **fields}
    if hasattr(thing, "__qualname__"):
        return f"{getattr(thing, '__module__', None) or 'builtins'}.{thing.__qualname__}"
    return ADDRESS.sub("", repr(thing))


@cache
def provenance() -> dict[str, str]:
    """Versions of what computed a result."""
    packages = ("pathlines", "jax", "numpy", "scipy", "xarray")
    return {**{p: version(p) for p in packages}, "python": platform.python_version(), "machine": platform.machine()}
