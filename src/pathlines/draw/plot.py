"""plot: a picture of any run."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from pathlines.draw.scene import Scene
from pathlines.draw.style import COLOURS, MUTED, band, house_style, new_figure
from pathlines.foundation.errors import ArgumentError, of_kind
from pathlines.integrate.run import Run

FAINT = "#9aa4ae"
TALL = 28
"""Letters that fit beside a panel."""


def plot(run: Run, names: list[str] | None = None) -> Figure:
    """Draw recorded observables over time, one panel each; tokens in d = 2 or 3 as paths, first.

    Ensembles show the mean with a ± 2 standard-error band. Save with ``plot(run).savefig("run.pdf")``.

    Args:
        run: a finished or unfinished run.
        names: the observables to draw, by default all that can be drawn.
    """
    of_kind("run", run, Run, "a run")
    recorded = [str(k) for k in run.data.data_vars if k != "dissipation_residual"]
    chosen = names or sorted(recorded, key=lambda name: name != "tokens")
    for name in chosen:
        if name not in run.data:
            raise ArgumentError(f"The run has no record `{name}`; it has {', '.join(map(str, run.data.data_vars))}.")
    with house_style():
        columns = 2 if len(chosen) == 4 else min(3, len(chosen))
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
    label = "\n".join([fill(data.attrs.get("long_name", str(data.name)), TALL), data.attrs.get("symbol", "")]).rstrip()
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
    """Paths of the tokens where they live, start pale, end red."""
    scene = Scene(axes, data.transpose("time", "token", "component").values)
    scene.draw_paths(COLOURS[0])
    scene.draw_tokens(0, FAINT, 12.0, label="start")
    scene.draw_tokens(-1, COLOURS[1], 16.0, zorder=5, label="end")
    axes.set_title("tokens: start grey, end red", fontsize=8, fontweight="normal", color=MUTED)
