"""Refinement: runs are spent where the answer changes, by the library `adaptive`.

Every point that is asked for is a point of the study, computed and kept as all are: a refinement that was interrupted
asks for the same points again and finds them in the store.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from pathlines.foundation.errors import ArgumentError, positive_integer, require
from pathlines.foundation.spared import use
from pathlines.sweep.axes import Axis, takes_fractions
from pathlines.sweep.drive import Standing

if TYPE_CHECKING:
    from pathlines.sweep.study import Study

BATCH = 4
"""Points that are asked for at once: few enough that each is chosen well, enough for several workers."""
POINT = "point"
Rows = list[tuple[float, ...]]
EXPLORING = 0.1
"""Weight of areas in which nothing seems to change, so that islands are found."""


def refined(study: Study, runs: int, variable: str | None, how: dict[str, Any]) -> xr.Dataset:
    """At most ``runs`` runs along one or two axes of numbers, from low to high, where ``variable`` changes most.

    Repetitions count as runs, and their mean is what is followed. The answer has one dimension ``point``.
    """
    axes, rest = _axes(study)
    repeat = math.prod(len(axis) for axis in rest)
    wanted = positive_integer("runs", runs, 4) // repeat
    require(wanted >= 4, "runs", f"be at least {4 * repeat}: four points of {repeat} repetitions", runs)
    with study.engine(how.pop("on", "serial"), how.pop("workers", None)) as engine:
        if (announce := how.pop("announce", None)) is not None:
            announce(engine.label)
        at = partial(_at, study, axes, rest)
        rows = _chosen(_learner(axes), at, wanted, repeat, variable, {**how, "on": engine})
        return at(rows).run(engine, store=how.get("store"))


def _chosen(
    learner: Any, at: Callable[[Rows], Study], wanted: int, repeat: int, variable: str | None, how: dict[str, Any]
) -> Rows:
    """The points that the learner asks for, a few at a time, each computed before it asks on."""
    rows: Rows = []
    values: list[np.ndarray] = []
    watch, computed = how.pop("watch", None), 0
    while len(rows) < wanted:
        asked = [tuple(np.atleast_1d(point).tolist()) for point in learner.ask(BATCH)[0]]
        new = [point for point in dict.fromkeys(asked) if point not in rows][: wanted - len(rows)]
        if not new:
            break
        rows += new
        last: list[Standing] = []
        data = at(new).run(watch=last.append, **how)
        computed += last[-1].computed
        if watch is not None:
            done = len(rows) * repeat
            watch(last[-1]._replace(total=wanted * repeat, done=done, computed=computed, recalled=done - computed))
        values += list(_followed(data, variable, len(new)))
        _tell(learner, new, values)
    return rows


def _axes(study: Study) -> tuple[list[Axis], list[Axis]]:
    """The axes that are refined, and that of the repetitions."""
    import msgspec

    kinds = {f.name: f.type for f in msgspec.structs.fields(study.known.record)}
    rest = [axis for axis in study.axes if axis.dim == "repeat"]
    axes = [axis for axis in study.axes if axis.dim != "repeat"]
    fine = all(len(a.names) == 1 and takes_fractions(kinds[a.names[0]]) and len(a) > 1 for a in axes)
    if len(axes) not in (1, 2) or not fine:
        given = ", ".join(axis.dim for axis in axes) or "none"
        raise ArgumentError(f"A refinement takes one or two axes of numbers with two ends each, but has {given}.")
    return axes, rest


def _learner(axes: list[Axis]) -> Any:
    try:
        use("dask")  # it looks for a cluster of Dask, where that is installed
        import adaptive
    except ImportError:
        raise ArgumentError("The library adaptive is not installed: pip install 'pathlines[cluster]'.") from None
    bounds = [(min(axis.values[0]), max(axis.values[0])) for axis in axes]
    if len(bounds) == 1:
        return adaptive.Learner1D(None, bounds[0])
    return adaptive.Learner2D(None, bounds, loss_per_triangle=_change)


def _change(found: Any) -> np.ndarray:
    """How much the answer changes over each triangle, times its size; where nothing changes, a tenth of its area.

    The usual loss looks at slopes; a boundary between two phases has none anywhere but on it.
    """
    corners = found.tri.points[found.tri.simplices]
    one, two = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = 0.5 * np.abs(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])
    values = found.values / (np.ptp(found.values, axis=0).max() or 1.0)
    spread = np.ptp(values[found.tri.simplices], axis=1).max(axis=1)
    loss: np.ndarray = spread * np.sqrt(area) + EXPLORING * area
    return loss


def _at(study: Study, axes: list[Axis], rest: list[Axis], rows: list[tuple[float, ...]]) -> Study:
    """The study at these points."""
    columns = tuple(zip(*rows, strict=True))
    points = Axis(POINT, tuple(axis.names[0] for axis in axes), columns)
    return type(study)(study.known, study.fixed, (points, *rest), study.many)


def _followed(data: xr.Dataset, variable: str | None, count: int) -> np.ndarray:
    """The variable at each point, averaged over repetitions."""
    names = [n for n in map(str, data.data_vars) if n not in ("status", "verdict")]
    name = variable if variable is not None else (names or [""])[0]
    if name not in data:
        raise ArgumentError(f"Argument `variable` must be one of {', '.join(names)}, but is {name!r}.")
    y = data[name].mean("repeat") if "repeat" in data[name].dims else data[name]
    rows: np.ndarray = y.transpose(POINT, ...).values.reshape(count, -1)
    return rows


def _tell(learner: Any, new: list[tuple[float, ...]], values: list[np.ndarray]) -> None:
    """What was found at the new points, the last values; where all repetitions failed, the mean of the others."""
    whole = np.stack(values)
    usual = np.nan_to_num(np.nanmean(whole, axis=0)) if np.isfinite(whole).any() else np.zeros(whole.shape[1])
    for point, found in zip(new, whole[-len(new) :], strict=True):
        filled = np.where(np.isfinite(found), found, usual)
        learner.tell(point if len(point) > 1 else point[0], filled if len(filled) > 1 else float(filled[0]))
