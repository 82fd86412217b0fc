"""plot: a picture of any run."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from pathlines.draw.style import COLOURS, MUTED, band, house_style, new_figure
from pathlines.foundation.errors import ArgumentError, of_kind
from pathlines.integrate.run import Run


def plot(run: Run, names: list[str] | None = None) -> Figure:
    """Draw recorded observables over time, one panel each; tokens in d = 2 or 3 as paths.

    Ensembles show the mean with a ± 2 standard-error band. Save with ``plot(run).savefig("run.pdf")``.
    """
    of_kind("run", run, Run, "a run")
    chosen = names or [str(k) for k in run.data.data_vars if k != "dissipation_residual"]
    for name in chosen:
        if name not in run.data:
            raise ArgumentError(f"The run has no record `{name}`; it has {', '.join(map(str, run.data.data_vars))}.")
    with house_style():
        columns = min(3, len(chosen))
        figure, grid = new_figure(-(-len(chosen) // columns), columns)
        for axes, name in zip(grid.flat, chosen):
            _panel(axes, run.data[name])
        for axes in list(grid.flat)[len(chosen) :]:
            axes.remove()
        figure.suptitle(_title(run), fontsize=8, color=MUTED, x=0.01, ha="left")
    return figure


def _title(run: Run) -> str:
    model = run.setting.get("model", {})
    beta = model.get("beta", model.get("inner", {}).get("beta"))
    parts = [str(model.get("name", "")), f"β = {beta:g}" if isinstance(beta, (int, float)) else "", run.outcome]
    return " · ".join(p for p in parts if p)


def _panel(axes: Any, data: xr.DataArray) -> None:
    if data.name == "tokens" and "run" not in data.dims and data.sizes["component"] in (2, 3):
        return _paths(axes, data)
    times = data["time"].values
    label = f"{data.attrs.get('long_name', data.name)}  {data.attrs.get('symbol', '')}"
    if "run" in data.dims and data.ndim == 2:
        mean = data.mean("run").values
        error = data.std("run", ddof=1).values / np.sqrt(data.sizes["run"])
        band(axes, times, mean, error, COLOURS[0])
    else:
        flat = data.transpose("time", ...).values.reshape(len(times), -1)[:, :200]
        axes.plot(
            times, flat, color=COLOURS[0], lw=1.6 if flat.shape[1] == 1 else 0.6, alpha=1 if flat.shape[1] == 1 else 0.5
        )
    axes.set_xlabel("depth-time t")
    axes.set_ylabel(label)
    return None


def _paths(axes: Any, data: xr.DataArray) -> None:
    """Paths of the tokens (their first two coordinates), start hollow, end filled."""
    x = data.transpose("time", "token", "component").values
    for i in range(x.shape[1]):
        axes.plot(x[:, i, 0], x[:, i, 1], color=COLOURS[0], lw=0.6, alpha=0.5)
    axes.scatter(x[0, :, 0], x[0, :, 1], s=10, facecolor="white", edgecolor=COLOURS[0], lw=0.7, zorder=3, label="start")
    axes.scatter(x[-1, :, 0], x[-1, :, 1], s=14, color=COLOURS[1], zorder=4, label="end")
    axes.set_aspect("equal")
    axes.set_xlabel("x₁")
    axes.set_ylabel("x₂")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, borderaxespad=0.2)
