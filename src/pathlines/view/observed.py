"""Observables of a run as curves, and theory beside them where a limit is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.run import Run
from pathlines.view.known import known_line

HIDDEN = ("tokens", "dissipation_residual", "cluster_labels")
MOST = 4
"""Curves that find room beside the scene."""
STEEP = 1e3
"""Ratio of the largest to the least value from which an axis is logarithmic."""


def curves_of(run: Run, names: list[str] | None, theory: Any, last: float) -> list[dict[str, Any]]:
    """Recorded numbers over time up to ``last``, of an ensemble the mean ± two standard errors, with theory."""
    known = [str(name) for name in run.data.data_vars]
    for name in names or ():
        if name not in run.data:
            raise ArgumentError(f"The run has no record `{name}`; it has {', '.join(known)}.")
    drawn = [name for name in known if name not in HIDDEN and set(run.data[name].dims) <= {"run", "time"}]
    return [_curve(run, name, theory, last) for name in (names or drawn[:MOST])]


def _curve(run: Run, name: str, theory: Any, last: float) -> dict[str, Any]:
    data = run.data[name]
    if not set(data.dims) <= {"run", "time"}:
        raise ArgumentError(f"The record `{name}` is not one number at a time, which a curve would need.")
    kept = run.time <= last
    values, error = _averaged(data)
    curve = {
        "name": name,
        "symbol": str(data.attrs.get("symbol", "")),
        "label": str(data.attrs.get("long_name", name)),
        "times": run.time[kept].tolist(),
        "values": numbers(values[kept]),
        "scale": _scale(values[kept]),
    }
    if error is not None:
        curve |= {"lower": numbers((values - 2 * error)[kept]), "upper": numbers((values + 2 * error)[kept])}
    beside = _theory(run, name, theory)
    if beside is not None:
        curve["theory"] = {"times": run.time[kept].tolist(), "values": numbers(beside[1][kept]), "label": beside[0]}
    return curve


def _averaged(data: xr.DataArray) -> tuple[np.ndarray, np.ndarray | None]:
    if "run" not in data.dims:
        return np.asarray(data.values, float), None
    every = np.asarray(data.transpose("run", "time").values, float)
    if len(every) == 1:
        return every[0], None
    return mean_and_spread(every)


def mean_and_spread(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Mean over the first axis and its standard error, of the rows that are numbers; no error of fewer than three.

    The plain standard error, as bands are read; verdicts allow for few samples (``claim/estimate.py``), which would
    make a band of two repetitions a thousand times as wide as what they say.
    """
    known = np.isfinite(rows)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, rows, 0.0).sum(axis=0) / count
        square = np.where(known, rows - mean, 0.0) ** 2
        error = np.sqrt(square.sum(axis=0) / (count - 1) / count)
    return mean, np.where(count > 2, error, np.nan) if len(rows) > 2 else None


def numbers(values: Any) -> list[float | None]:
    """Numbers for JSON: those that are not finite are missing."""
    return [float(f"{v:.8g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def _scale(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return "log" if known.size and known.min() > 0 and known.max() > STEEP * known.min() else "linear"


def _theory(run: Run, name: str, given: Any) -> tuple[str, np.ndarray] | None:
    """Its name and its values at the records: what was given, else what is known of this model and start."""
    if given is not None:
        fits = given.observable == name
        return (str(given.label), np.asarray(given.curve(run.data), float)) if fits else None
    return known_line(run, name)
