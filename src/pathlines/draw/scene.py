"""Tokens where they live: on the circle, the sphere, in the plane or in space."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from pathlines.draw.orthographic import View, draw_box, draw_on_sphere, draw_paths, draw_points, draw_sphere
from pathlines.draw.style import MUTED

UNIT = 1e-3
"""How far from length one tokens of the sphere may be."""


class Scene:
    """A stage for paths (times, tokens, d), d = 2 or 3, that never moves while the tokens do."""

    def __init__(self, axes: Axes, paths: Any) -> None:
        self.axes, self.paths = axes, np.asarray(paths, float)
        lengths = np.linalg.norm(self.paths, axis=-1)
        self.unit = bool(np.nanmax(np.abs(lengths - 1)) < UNIT)
        self.view = View() if self.paths.shape[-1] == 3 else None
        self._set()

    def _set(self) -> None:
        if self.view is not None and self.unit:
            return draw_sphere(self.axes, self.view)
        if self.view is not None:
            low, high = np.nanmin(self.paths, (0, 1)), np.nanmax(self.paths, (0, 1))
            return draw_box(self.axes, self.view, low, np.maximum(high, low + 1e-9), ("x₁", "x₂", "x₃"))
        self.axes.set_aspect("equal", adjustable="datalim")
        if self.unit:
            self.axes.add_patch(Circle((0, 0), 1.0, fill=False, edgecolor=MUTED, lw=0.8))
            self.axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12))
        else:
            self.axes.scatter(*self.paths.reshape(-1, 2).T, alpha=0)
        self.axes.set(xlabel="x₁", ylabel="x₂")
        return None

    def draw_paths(self, colour: str) -> None:
        """All paths, thin."""
        if self.view is not None:
            draw_paths(self.axes, self.view, self.paths, colour, width=0.6, zorder=3)
        else:
            self.axes.plot(self.paths[:, :, 0], self.paths[:, :, 1], color=colour, lw=0.6, alpha=0.5)

    def draw_tokens(self, at: int, colour: str, size: float = 16.0, **style: Any) -> Any:
        """The tokens at one time; the artist, to be removed before the next."""
        x = self.paths[at]
        if self.view is None:
            return self.axes.scatter(x[:, 0], x[:, 1], **{"s": size, "color": colour, "zorder": 4, **style})
        draw = draw_on_sphere if self.unit else draw_points
        draw(self.axes, self.view, x, colour, size, **style)
        return self.axes.collections[-1]
