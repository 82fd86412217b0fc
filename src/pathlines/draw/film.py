"""A film of any run: its tokens on the circle, the sphere, in the plane or in space."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.draw.animation import Reel
from pathlines.draw.scene import Scene
from pathlines.draw.style import COLOURS, house_style, new_figure
from pathlines.foundation.errors import ArgumentError, of_kind
from pathlines.integrate.run import Run


def run_reel(run: Run) -> Reel:
    """One frame for each recorded time of a single run that recorded its tokens in two or three dimensions."""
    of_kind("run", run, Run, "a run")
    paths = token_paths(run)
    with house_style():
        figure, grid = new_figure(1, 1, width=4.2, height=4.2)
        figure.set_layout_engine("none")
        axes = grid[0][0]
        scene = Scene(axes, paths)
    shown: list[Any] = []

    def show(k: int) -> None:
        for artist in shown:
            artist.remove()
        shown[:] = [scene.draw_tokens(k, COLOURS[0], 26.0)]
        axes.set_title(f"t = {run.time[k]:.3g}")

    return Reel(figure, len(paths), show)


def token_paths(run: Run) -> np.ndarray:
    """Tokens (times, tokens, d) of a run that can be drawn."""
    if "tokens" not in run.data:
        raise ArgumentError('The run has no tokens to draw; record them: record=["tokens"].')
    data = run.data["tokens"]
    if "run" in data.dims or data.sizes["component"] not in (2, 3):
        raise ArgumentError("Tokens are drawn for one run in two or three dimensions.")
    return np.asarray(data.transpose("time", "token", "component").values)
