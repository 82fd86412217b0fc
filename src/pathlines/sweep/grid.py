"""The answers of a study on its grid, as they arrive, and as one labelled array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from pathlines.foundation.setting import Field
from pathlines.sweep.axes import Axis
from pathlines.sweep.chunks import Kept, matched
from pathlines.sweep.plan import Keys
from pathlines.sweep.points import DONE, MISSING, Layout, corner


class Grid:
    """Arrays over all points, in the order of the grid; what is not there yet is NaN, and its status -1."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.count = int(np.prod(shape, dtype=np.int64))
        self.values: dict[str, np.ndarray] = {}
        self.status = np.full(self.count, MISSING, np.int32)
        self.errors: dict[str, int] = {}
        self.layout = Layout({})

    def take(self, where: np.ndarray, keys: Keys, kept: Kept | None) -> np.ndarray:
        """Fill in what a chunk has of these points; where it has none of them."""
        if kept is None:
            return where
        row = matched(keys, kept.keys)
        found = row != MISSING
        at, rows = where[found], row[found]
        results = kept.results
        numbers = [DONE, *(self.errors.setdefault(e, len(self.errors) + 1) for e in results.errors)]
        self.status[at] = np.array(numbers, np.int32)[np.maximum(results.status[rows], 0)]
        for name, column in results.values.items():
            self._fill(name, at, column[rows])
        if results.layout.dims and len(results.layout.dims) >= len(self.layout.dims):
            self.layout = results.layout
        return where[~found]

    def _fill(self, name: str, at: np.ndarray, rows: np.ndarray) -> None:
        """Rows of one variable; arrays of other lengths are filled up with NaN."""
        have = self.values.get(name)
        inner = rows.shape[1:]
        if have is None or have.dtype != np.result_type(have, rows) or have.shape[1:] != inner:
            have = self.values[name] = self._room(have, inner, rows.dtype)
        whole = have.shape[1:] == inner
        if whole:
            have[at] = rows
        else:
            have[at] = np.nan
            have[corner((at,), inner)] = rows

    def _room(self, have: np.ndarray | None, inner: tuple[int, ...], dtype: Any) -> np.ndarray:
        if have is None or have.ndim - 1 < len(inner):
            return np.full((self.count, *inner), np.nan, dtype)
        shape = tuple(max(a, b) for a, b in zip(have.shape[1:], inner)) if inner else have.shape[1:]
        out = np.full((self.count, *shape), np.nan, np.result_type(have.dtype, dtype))
        out[corner((slice(None),), have.shape[1:])] = have
        return out

    @property
    def failed(self) -> np.ndarray:
        """Places of the points that failed."""
        return np.flatnonzero(self.status > 0)

    @property
    def missing(self) -> np.ndarray:
        """Places of the points that are not there."""
        return np.flatnonzero(self.status == MISSING)

    def dataset(self, axes: tuple[Axis, ...], fields: Sequence[Field]) -> xr.Dataset:
        """Axes as dimensions with symbols and units, a ``status`` for each point, and what was measured."""
        data = xr.Dataset(coords=_coordinates(axes, fields))
        dims = tuple(axis.dim for axis in axes)
        for name, column in self.values.items():
            inner = self.layout.dims.get(name, ())
            of = name.removesuffix("_theory").removesuffix("_error")
            of = of if of in self.values else name
            inner = inner if len(inner) == column.ndim - 1 else tuple(f"{of}_{k}" for k in range(column.ndim - 1))
            array = column.reshape(self.shape + column.shape[1:])
            data[name] = ((*dims, *inner), array, self.layout.attrs.get(name, {}))
        for name, values in self.layout.coords.items():
            if name in data.dims and data.sizes[name] == len(values):
                attrs = {"long_name": "depth-time", "symbol": "t"} if name == "time" else {}
                data = data.assign_coords({name: (name, values, attrs)})
        numbers = [MISSING, DONE, *self.errors.values()]
        meanings = ["missing", "done", *("_".join(e.split()) for e in self.errors)]
        flags = {"long_name": "0 done, -1 missing, k ≥ 1: failed for the k-th reason", "flag_values": numbers}
        data["status"] = (dims, self.status.reshape(self.shape), {**flags, "flag_meanings": " ".join(meanings)})
        return data.assign_attrs(errors="\n".join(self.errors))


def _coordinates(axes: tuple[Axis, ...], fields: Sequence[Field]) -> dict[str, Any]:
    said = {f.name: f for f in fields}
    found: dict[str, Any] = {}
    for axis in axes:
        for name, values in zip(axis.names, axis.values, strict=True):
            field = said.get(name)
            attrs = {} if field is None else {"symbol": field.symbol, "long_name": field.meaning, "units": field.unit}
            column = np.array([v if isinstance(v, str | int | float) else str(v) for v in values])
            found[name] = (axis.dim, column, {k: v for k, v in attrs.items() if v})
        if axis.dim not in axis.names:
            found[axis.dim] = (axis.dim, np.arange(len(axis)))
    return found
