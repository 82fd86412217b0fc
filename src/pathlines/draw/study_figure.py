"""study_figure: what a study found, over one or two of its axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from pathlines.draw.style import COLOURS, HEAT, house_style, new_figure, theory_line
from pathlines.foundation.errors import ArgumentError

FEW_LINES = 5
"""Values of a second axis up to which each has a line of its own; more of them make a map."""
ERRORS = 2.0
"""Standard errors that a bar reaches."""
HIDDEN = ("status", "verdict")
TICKS = 8


def study_figure(data: xr.Dataset) -> Figure:
    """One panel for each variable: lines with error bars over one axis, or a map over two.

    Repetitions become means with bars of two standard errors; a variable ``x_theory`` is dashed over ``x``. A study of
    more than two other dimensions is refused: choose from it first (``data.sel(beta=3)``).
    """
    drawn = [n for n in map(str, data.data_vars) if n not in HIDDEN and not n.endswith(("_theory", "_error"))]
    large = [n for n in drawn if len(_dims(data[n])) > 2]
    drawn = [n for n in drawn if n not in large]
    if large and not drawn:
        dims = _dims(data[large[0]])
        raise ArgumentError(f"`{large[0]}` lies over {len(dims)} dimensions ({', '.join(dims)}); a figure shows two.")
    if not drawn:
        raise ArgumentError("This study has nothing to draw: all of its settings failed.")
    with house_style():
        columns = min(3, len(drawn))
        figure, grid = new_figure(-(-len(drawn) // columns), columns)
        for axes, name in zip(grid.flat, drawn):
            _panel(figure, axes, data, name)
        for axes in list(grid.flat)[len(drawn) :]:
            axes.remove()
    return figure


def _panel(figure: Figure, axes: Any, data: xr.Dataset, name: str) -> None:
    mean, error = _averaged(data[name])
    dims = _dims(data[name])
    mean, error = mean.squeeze(), error.squeeze()
    dims = sorted(dims, key=lambda d: (d != "time", -mean.sizes[d]))
    if len(dims) == 2 and mean.sizes[dims[1]] > FEW_LINES:
        _map(figure, axes, mean, dims)
    else:
        theory = _averaged(data[f"{name}_theory"])[0].squeeze() if f"{name}_theory" in data else None
        _lines(axes, mean, error, dims, theory)
    axes.set_title(_label(data[name]), fontsize=9)


def _dims(values: xr.DataArray) -> list[str]:
    """Dimensions that a figure shows."""
    return [str(d) for d in values.dims if values.sizes[d] > 1 and d != "repeat"]


def _averaged(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean and standard error over repetitions, of those that are there."""
    if "repeat" not in values.dims:
        return values, xr.full_like(values, np.nan)
    count = values.notnull().sum("repeat")
    return values.mean("repeat"), values.std("repeat", ddof=1) / np.sqrt(count.where(count > 1))


def _lines(axes: Any, mean: xr.DataArray, error: xr.DataArray, dims: list[str], theory: xr.DataArray | None) -> None:
    if not dims:
        axes.bar([0], [float(mean)], yerr=None, width=0.4, color=COLOURS[0])
        axes.set_xticks([])
        return
    rows = [{}] if len(dims) == 1 else [{dims[1]: k} for k in range(mean.sizes[dims[1]])]
    x, words = _positions(mean, dims[0])
    for k, row in enumerate(rows):
        y, bars = mean.isel(row).values, ERRORS * error.isel(row).values
        label = f"{_symbol(mean, dims[1])} = {_shown(mean[dims[1]].values[k])}" if row else None
        style = {"color": COLOURS[k % len(COLOURS)], "marker": "o", "ms": 3.0, "capsize": 2.0, "lw": 1.2}
        axes.errorbar(x, y, yerr=np.nan_to_num(bars) if np.isfinite(bars).any() else None, label=label, **style)
        if theory is not None:
            theory_line(axes, x, theory.isel(row).values, label="theory" if k == 0 else None)
    axes.set_xlabel(_axis_label(mean, dims[0]))
    if words:
        axes.set_xticks(x[:: max(1, len(x) // TICKS)], words[:: max(1, len(x) // TICKS)])
    elif _is_logarithmic(x):
        axes.set_xscale("log")
    if rows != [{}] or theory is not None:
        axes.legend(fontsize=7)


def _map(figure: Figure, axes: Any, mean: xr.DataArray, dims: list[str]) -> None:
    (x, xw), (y, yw) = _positions(mean, dims[0]), _positions(mean, dims[1])
    order = np.argsort(x), np.argsort(y)
    values = mean.transpose(dims[1], dims[0]).values[np.ix_(order[1], order[0])]
    shown = axes.pcolormesh(x[order[0]], y[order[1]], values, cmap=HEAT, shading="nearest")
    figure.colorbar(shown, ax=axes)
    axes.grid(False)
    axes.set(xlabel=_axis_label(mean, dims[0]), ylabel=_axis_label(mean, dims[1]))
    for scale, numbers, words in ((axes.set_xscale, x, xw), (axes.set_yscale, y, yw)):
        if not words and _is_logarithmic(numbers):
            scale("log")


def _positions(values: xr.DataArray, dim: str) -> tuple[np.ndarray, list[str]]:
    """Where the points of a dimension lie: its numbers, or places with words."""
    column = values[dim].values if dim in values.coords else np.arange(values.sizes[dim])
    if column.dtype.kind in "iuf":
        return column.astype(float), []
    return np.arange(len(column), dtype=float), [str(v) for v in column]


def _is_logarithmic(x: np.ndarray) -> bool:
    """Whether numbers grow by factors rather than by steps."""
    if len(x) < 3 or not (x > 0).all() or x.max() < 8 * x.min():
        return False
    steps, factors = np.diff(np.sort(x)), np.diff(np.log(np.sort(x)))
    return bool(np.ptp(factors) / factors.mean() < np.ptp(steps) / steps.mean())


def _symbol(values: xr.DataArray, dim: str) -> str:
    return str(values[dim].attrs.get("symbol", dim)) if dim in values.coords else dim


def _axis_label(values: xr.DataArray, dim: str) -> str:
    attrs = values[dim].attrs if dim in values.coords else {}
    unit = f" ({attrs['units']})" if attrs.get("units") else ""
    words = attrs.get("long_name", "")
    return f"{words} {_symbol(values, dim)}{unit}".strip() if len(words) <= 40 else f"{_symbol(values, dim)}{unit}"


def _label(values: xr.DataArray) -> str:
    return str(values.attrs.get("long_name", values.name))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)
