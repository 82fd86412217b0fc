"""Three dimensions on paper: orthographic views with depth shown by fading, as plain vector artists.

An orthographic view keeps parallel lines parallel and the sphere a disc, so that what is read off is what is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from pathlines.draw.style import GRID, INK, MUTED

PAPER = "#ffffff"
PANE = "#f6f8fa"


@dataclass(frozen=True)
class View:
    """Where we look from: ``azimuth`` and ``elevation`` in degrees, as for a globe."""

    azimuth: float = -60.0
    elevation: float = 22.0

    @property
    def frame(self) -> np.ndarray:
        """Rows: right, up, towards the eye."""
        a, e = np.radians(self.azimuth), np.radians(self.elevation)
        eye = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        return np.stack([right, np.cross(eye, right), eye])

    def project(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Points (..., 3) to positions on the paper (..., 2) and heights towards the eye (...)."""
        seen = np.asarray(points, float) @ self.frame.T
        return seen[..., :2], seen[..., 2]


def faded(colour: Any, nearness: Any, least: float = 0.25) -> np.ndarray:
    """Opaque mixes of a colour (or one per point) with the paper: nearness 1 is the colour, 0 keeps ``least`` of it."""
    inks = np.array(to_rgb(colour)) if isinstance(colour, str) else np.asarray(colour, float)[..., :3]
    share = (least + (1 - least) * np.clip(np.asarray(nearness, float), 0, 1))[..., None]
    mixed = share * inks + (1 - share) * np.array(to_rgb(PAPER))
    return np.concatenate([mixed, np.ones((*mixed.shape[:-1], 1))], axis=-1)


def _nearness(depth: np.ndarray) -> np.ndarray:
    span = float(np.ptp(depth))
    return (depth - depth.min()) / span if span > 0 else np.ones_like(depth)


def draw_points(
    axes: Axes, view: View, points: Any, colour: Any, size: Any = 16.0, nearness: Any = None, **kwargs: Any
) -> None:
    """Points, far ones smaller and paler, near ones on top with a thin white rim."""
    flat, depth = view.project(points)
    near = _nearness(depth) if nearness is None else np.asarray(nearness)
    order = np.argsort(depth)
    inks = np.broadcast_to(faded(colour, near), (len(flat), 4))
    style = {"linewidths": 0.35, "edgecolors": PAPER, "zorder": 4, **kwargs}
    areas = np.broadcast_to(size * (0.55 + 0.45 * near), len(flat))
    axes.scatter(*flat[order].T, s=areas[order], c=inks[order], **style)


def draw_paths(
    axes: Axes, view: View, paths: Any, colour: Any, width: float = 0.8, least: float = 0.2, **kwargs: Any
) -> None:
    """Paths (times, tokens, 3), each piece as pale as it is far."""
    flat, depth = view.project(paths)
    pieces = np.stack([flat[:-1], flat[1:]], axis=2).reshape(-1, 2, 2)
    middle = (0.5 * (depth[:-1] + depth[1:])).reshape(-1)
    order = np.argsort(middle)
    inks = faded(colour, _nearness(middle)[order], least)
    axes.add_collection(LineCollection(pieces[order], colors=inks, linewidths=width, capstyle="round", **kwargs))


def draw_faces(axes: Axes, view: View, faces: Any, colour: str, alpha: float, edge: float = 0.6, **kwargs: Any) -> None:
    """Flat polygons (list of (corners, 3)), translucent, far ones first."""
    seen = [view.project(f) for f in faces]
    order = np.argsort([depth.mean() for _, depth in seen])
    axes.add_collection(
        PolyCollection(
            [seen[i][0] for i in order],
            facecolors=[to_rgba(colour, alpha)],
            edgecolors=[to_rgba(colour, min(1.0, 2.5 * alpha))],
            linewidths=edge,
            joinstyle="round",
            **kwargs,
        )
    )


def draw_sphere(axes: Axes, view: View, meridians: int = 12, parallels: int = 5) -> None:
    """The unit sphere as a disc with a light graticule, its far half paler; sets limits and hides the frame."""
    axes.add_patch(Circle((0, 0), 1.0, facecolor=PANE, edgecolor=MUTED, lw=0.8, zorder=0))
    angle = np.linspace(0, 2 * np.pi, 181)
    rings = [
        np.stack([np.cos(a) * np.cos(angle), np.sin(a) * np.cos(angle), np.sin(angle)], axis=1)
        for a in np.pi * np.arange(meridians // 2) / (meridians // 2)
    ]
    for height in np.linspace(-np.pi / 2, np.pi / 2, parallels + 2)[1:-1]:
        radius, level = np.cos(height), np.full_like(angle, np.sin(height))
        rings.append(np.stack([radius * np.cos(angle), radius * np.sin(angle), level], axis=1))
    for ring in rings:
        flat, depth = view.project(ring)
        for side, ink, order in ((depth < 0, "#e9edf1", 1), (depth >= 0, GRID, 2)):
            axes.plot(*np.where(side[:, None], flat, np.nan).T, color=ink, lw=0.5, zorder=order)
    axes.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    axes.set_axis_off()


def draw_on_sphere(axes: Axes, view: View, points: Any, colour: Any, size: Any = 16.0, **kwargs: Any) -> None:
    """Unit vectors on ``draw_sphere``: the back ones seen through it, pale and small."""
    depth = view.project(points)[1]
    draw_points(axes, view, points, colour, size, nearness=0.15 + 0.85 * np.clip(2.5 * depth + 0.35, 0, 1), **kwargs)


def draw_box(axes: Axes, view: View, low: Any, high: Any, names: tuple[str, str, str]) -> None:
    """A labelled cage around [low, high] ⊂ R³: back panes with a light grid, numbers and names on the outer edges."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    eye = view.frame[2]
    back = np.where(eye > 0, low, high)
    ticks = [_ticks(a, b) for a, b in zip(low, high)]
    for fixed in range(3):
        _draw_pane(axes, view, fixed, back, low, high, ticks)
    for along in range(3):
        _label_edge(axes, view, along, low, high, ticks[along], names[along])
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()


def _ticks(low: float, high: float) -> np.ndarray:
    values = np.asarray(MaxNLocator(4, steps=[1, 2, 4, 5, 10]).tick_values(low, high))
    slack = 1e-9 * (high - low)
    return values[(values >= low - slack) & (values <= high + slack)]


def _draw_pane(
    axes: Axes, view: View, fixed: int, back: np.ndarray, low: np.ndarray, high: np.ndarray, ticks: list[np.ndarray]
) -> None:
    first, second = (i for i in range(3) if i != fixed)

    def at(a: float, b: float) -> np.ndarray:
        point = back.copy()
        point[first], point[second] = a, b
        return point

    corners = [at(low[first], low[second]), at(high[first], low[second])]
    corners += [at(high[first], high[second]), at(low[first], high[second])]
    flat, _ = view.project(corners)
    axes.add_collection(PolyCollection([flat], facecolors=PANE, edgecolors=GRID, linewidths=0.7, zorder=0))
    lines = [[at(v, low[second]), at(v, high[second])] for v in ticks[first]]
    lines += [[at(low[first], v), at(high[first], v)] for v in ticks[second]]
    axes.add_collection(LineCollection(list(view.project(lines)[0]), colors="#e7ebef", linewidths=0.5, zorder=0.5))


def _label_edge(
    axes: Axes, view: View, along: int, low: np.ndarray, high: np.ndarray, ticks: np.ndarray, name: str
) -> None:
    """Numbers and the name of one axis on its lowest edge (the leftmost for the vertical one)."""
    centre, _ = view.project((low + high) / 2)
    others = [i for i in range(3) if i != along]

    def edge(choice: tuple[float, float], value: float) -> np.ndarray:
        point = np.empty(3)
        point[along], point[others[0]], point[others[1]] = value, *choice
        return view.project(point)[0]

    choices = [(a, b) for a in (low[others[0]], high[others[0]]) for b in (low[others[1]], high[others[1]])]
    middle = float(low[along] + high[along]) / 2
    best = min(choices, key=lambda c: float(edge(c, middle)[0 if along == 2 else 1]))
    start, end = edge(best, low[along]), edge(best, high[along])
    axes.plot(*np.stack([start, end]).T, color=MUTED, lw=0.8, zorder=1)
    direction = (end - start) / np.linalg.norm(end - start)
    outward = np.array([-direction[1], direction[0]])
    outward = outward if outward @ (edge(best, middle) - centre) > 0 else -outward
    style = {"textcoords": "offset points", "ha": "center", "va": "center", "color": INK, "annotation_clip": False}
    for value in ticks:
        axes.annotate(f"{value:g}".replace("-", "−"), edge(best, value), 9 * outward, fontsize=7, **style)
    axes.annotate(name, edge(best, middle), (26 if along == 2 else 23) * outward, fontsize=9, **style)
