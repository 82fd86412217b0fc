"""A plain function at many settings: called for each, or with columns of numbers where it takes many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import xarray as xr

from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.setting import Setting
from pathlines.sweep.points import Layout, Points, Results, as_floats, gathered, numbered, one_line


class FunctionRuns:
    """Evaluates settings of a function that returns a number, numbers by name, or an xarray Dataset.

    With ``many``, the names that vary within a batch are handed over as arrays, and what comes back has a first
    dimension for them. A record is a function's one argument where that is annotated with a ``Setting``.
    """

    def __init__(self, function: Callable[..., Any], record: type[Setting] | None, many: bool) -> None:
        self.function, self.record, self.many = function, record, many
        self.name = getattr(function, "__name__", "value")

    def evaluate(self, points: Points) -> Results:
        """One row for each setting."""
        if self.many:
            return self._at_once(points)
        found: list[dict[str, Any] | str] = []
        layout = Layout({})
        for row in points.rows():
            try:
                values, seen = self._named(self._called(row))
            except (Exception, SystemExit) as error:
                found.append(one_line(error))
                continue
            finally:
                make_room_for_programs()
            found.append(values)
            layout = layout if layout.dims else seen
        return gathered(found, layout)

    def _called(self, values: Mapping[str, Any]) -> Any:
        if self.record is None:
            return self.function(**values)
        return self.function(msgspec.convert(dict(values), self.record))

    def _at_once(self, points: Points) -> Results:
        try:
            columns = {name: np.asarray(column) for name, column in points.columns.items()}
            values, layout = self._named(self.function(**points.constant, **columns))
            shapes = {np.shape(v)[:1] for v in values.values()}
            if shapes != {(points.size,)}:
                raise ValueError(f"the results of {points.size} settings need a first dimension of that size")
        except (Exception, SystemExit) as error:
            return gathered([one_line(error)] * points.size, Layout({}))
        finally:
            make_room_for_programs()
        dims = {name: dims[1:] for name, dims in layout.dims.items()}
        inner = {d for one in dims.values() for d in one}
        coords = {name: values for name, values in layout.coords.items() if name in inner}
        floats = {name: as_floats(v) for name, v in values.items()}
        return Results(floats, *numbered([None] * points.size), Layout(dims, layout.attrs, coords))

    def _named(self, found: Any) -> tuple[dict[str, Any], Layout]:
        """Numbers by name, and what is known of their dimensions."""
        if not isinstance(found, Mapping):
            found = {self.name: found}
        dims, attrs, coords = {}, {}, {}
        for name, value in found.items():
            if isinstance(value, xr.DataArray):
                dims[str(name)] = tuple(map(str, value.dims))
                attrs[str(name)] = {str(k): str(v) for k, v in value.attrs.items()}
                coords.update({str(k): c.values.tolist() for k, c in value.coords.items() if c.dims == (k,)})
            else:
                dims[str(name)] = tuple(f"{name}_{k}" for k in range(np.ndim(value)))
        return {str(name): np.asarray(value) for name, value in found.items()}, Layout(dims, attrs, coords)
