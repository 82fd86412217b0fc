"""The unit square under a map, coloured by where its points come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from pathlines.draw.style import HEAT
from pathlines.transport.euclid.schedule import EuclideanSchedule


def draw_map(panel: Axes, phi: Callable[[np.ndarray], np.ndarray], resolution: int) -> None:
    """A continuous map: a grid of the square, deformed; colours are the first coordinate at the start."""
    x = np.linspace(0, 1, resolution + 1)
    corners = phi(np.stack(np.meshgrid(x, x), -1).reshape(-1, 2)).reshape(resolution + 1, resolution + 1, 2)
    colours = np.broadcast_to((x[1:] + x[:-1]) / 2, (resolution, resolution))
    panel.pcolormesh(corners[..., 0], corners[..., 1], colours, cmap=HEAT, vmin=0, vmax=1, rasterized=True)


def draw_flow(panel: Axes, flow: EuclideanSchedule, resolution: int) -> None:
    """A schedule, which may tear cells apart: points of the picture take the colour of where they come from."""
    x = (np.arange(int(1.3 * resolution)) + 0.41) / resolution - 0.15  # no point on an edge of cells
    start = flow.backward(np.stack(np.meshgrid(x, x), -1).reshape(-1, 2))[0]
    inside = ((start > 0) & (start < 1)).all(1)
    colours = np.where(inside, start[:, 0], np.nan).reshape(len(x), len(x))
    panel.pcolormesh(x, x, colours, cmap=HEAT, vmin=0, vmax=1, shading="nearest", rasterized=True)


def framed(panel: Axes, title: str) -> None:
    """Equal axes with the square in the middle."""
    panel.set(title=title, aspect="equal", xticks=(0, 1), yticks=(0, 1), xlim=(-0.08, 1.08), ylim=(-0.08, 1.08))
    panel.set_xlabel("$x_1$", labelpad=-7)
    panel.set_ylabel("$x_2$", labelpad=-7)
    panel.grid(False)
