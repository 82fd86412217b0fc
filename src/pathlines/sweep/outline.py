"""What a study is, in plain values: written into its file, and compared when the file is written again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr

from pathlines.foundation.errors import ArgumentError
from pathlines.sweep.axes import Axis, made_axes
from pathlines.sweep.subject import Known


def outline_of(known: Known, fixed: dict[str, Any], axes: tuple[Axis, ...]) -> dict[str, Any]:
    """Subject, fixed setting and axes."""
    varied = {name for axis in axes for name in axis.names}
    subject = {k: v for k, v in msgspec.to_builtins(known.subject).items() if k not in ("files", "home")}
    same = {k: v for k, v in fixed.items() if k not in varied}
    along = {axis.dim: {n: _said(v) for n, v in zip(axis.names, axis.values, strict=True)} for axis in axes}
    plain: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode({"subject": subject, "setting": same, "axes": along}, enc_hook=repr)
    )
    return plain


def _said(values: Sequence[Any]) -> list[Any]:
    """Values as JSON can say them: it has no infinity, so those are words."""
    return [str(v) if isinstance(v, float) and math.isinf(v) else v for v in values]


def _meant(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf") else value


def require_same(path: Path, outline: dict[str, Any], *, but_axes: bool = False) -> None:
    """Refuse to write over another study, saying in what it differs; a file that is no study is not written over.

    ``but_axes``: refinements have points of their own each time.
    """
    if not path.exists():
        return
    old = read_outline(path)
    differs = differences({**old, "axes": {}}, {**outline, "axes": {}}) if but_axes else differences(old, outline)
    if differs:
        raise ArgumentError(
            f"{path} holds another study ({'; '.join(differs)}): choose another file, or --extend adds its points."
        )


def read_outline(path: Path) -> dict[str, Any]:
    """The outline in a file."""
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            found: dict[str, Any] = msgspec.json.decode(data.attrs["pathlines_study"])
            return found
    except Exception as error:
        raise ArgumentError(f"{path} is not a Pathlines study ({type(error).__name__}): choose another file.") from None


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """In what two studies differ, in words."""
    found = []
    if old["subject"] != new["subject"]:
        names = (old["subject"]["name"], new["subject"]["name"])
        found.append(f"of {names[0]}" if names[0] != names[1] else "it records something else")
    for name in sorted({*old["setting"], *new["setting"]}):
        if name in old["setting"] and name in new["setting"] and old["setting"][name] != new["setting"][name]:
            found.append(f"its {name} is {old['setting'][name]}")
    for dim in sorted({*old["axes"], *new["axes"]}):
        if dim not in old["axes"]:
            found.append(f"it has no axis {dim}")
        elif dim not in new["axes"]:
            found.append(f"it has an axis {dim}")
        elif old["axes"][dim] != new["axes"][dim]:
            found.append(f"its axis {dim} has {_counted(old['axes'][dim])}")
    return found


def _counted(axis: dict[str, list[Any]]) -> str:
    values = next(iter(axis.values()))
    return f"{len(values)} other values, {values[0]} … {values[-1]}"


def joined_axes(path: Path, known: Known, outline: dict[str, Any], axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes with the values of both studies, where they differ in nothing else."""
    if not path.exists():
        return axes
    old = read_outline(path)
    other = [d for d in differences(old, outline) if not d.startswith("its axis")]
    if other:
        raise ArgumentError(f"{path} holds another study ({'; '.join(other)}), to which no points can be added.")
    joined = []
    for axis in axes:
        there = old["axes"][axis.dim]
        rows = list(zip(*([_meant(v) for v in there[name]] for name in axis.names), strict=True))
        new = [list(row) for row in zip(*axis.values, strict=True)]
        known_rows = [list(row) for row in rows]
        both = known_rows + [row for row in new if row not in known_rows]
        plain = len(axis.names) == 1 and all(isinstance(row[0], int | float) for row in both)
        both = sorted(both) if plain and axis.dim != "repeat" else both
        columns = [list(column) for column in zip(*both, strict=True)]
        made = made_axes(known.title, known.record, {"/".join(axis.names): columns if len(columns) > 1 else columns[0]})
        joined.append(Axis(axis.dim, made[0].names, made[0].values))  # an axis has a length of its own: no ``_replace``
    return tuple(joined)
