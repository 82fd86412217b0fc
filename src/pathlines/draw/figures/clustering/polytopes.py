"""V = I in R^d: the hull shrinks to a polytope (The emergence of clusters, arXiv:2305.05465)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from pathlines.domain import Euclidean
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.orthographic import View, draw_box, draw_faces, draw_paths, draw_points
from pathlines.draw.style import COLOURS, HEAT, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import leaders
from pathlines.observable.euclidean import dist_vertices


class Hulls(Setting):
    """Starts in a cube, and the outlines of their hulls."""

    n: of.Tokens = 20
    box: of.Box = 5.0
    until: of.Until = 5.0
    hull_every: Annotated[of.Positive, means("time between two outlines", "Δt", unit="depth-time")] = 0.5
    frames: of.Records = 201
    seeds: Annotated[tuple[int, int], means("seeds of the starts in the plane and in space")] = (6, 7)
    azimuth: of.Azimuth = -58.0
    elevation: of.Elevation = 20.0


def _run(d: int, seed: int, s: Hulls) -> Run:
    start = Euclidean(d).cube(jax.random.key(seed), s.n, -s.box, s.box)
    times = np.unique(np.concatenate([np.linspace(0, s.until, s.frames), np.arange(0, s.until, s.hull_every)]))
    return flow(RescaledAttention(np.eye(d)), start, times=times, record=[positions, leaders, dist_vertices])


def _vertices(run: Run) -> np.ndarray:
    return run["tokens"].values[-1][run["leaders"].values[-1]]


def _plane(axes: Axes, run: Run, s: Hulls) -> LineCollection:
    """Paths in the plane inside their hulls at t = 0, Δ, 2Δ, …"""
    z, times = run["tokens"].values, run.time
    shown = np.arange(0, s.until, s.hull_every)
    hulls = []
    for t in shown:
        points = z[np.argmin(np.abs(times - t))]
        corners = points[ConvexHull(points).vertices]
        hulls.append(np.concatenate([corners, corners[:1]]))
    shades = ListedColormap(HEAT(np.linspace(0.25, 1, 256)))
    norm = Normalize(0, s.until)
    outlines = LineCollection(hulls, array=shown, cmap=shades, norm=norm, linewidths=1.2, zorder=2)
    axes.add_collection(outlines)
    axes.plot(z[..., 0], z[..., 1], color=COLOURS[1], lw=0.7, alpha=0.75, zorder=3)
    axes.scatter(*z[0].T, s=13, facecolor="white", edgecolor=COLOURS[1], lw=0.8, zorder=4, label="token at t = 0")
    axes.scatter(*_vertices(run).T, s=42, marker="s", color="black", zorder=5, label="leader (vertex)")
    axes.set(xlabel="$z_1$", ylabel="$z_2$", aspect="equal", title=f"d = 2, n = {s.n}, V = I")
    axes.margins(0.06)
    return outlines


def _space(axes: Axes, run: Run, s: Hulls) -> None:
    z, view = run["tokens"].values, View(s.azimuth, s.elevation)
    draw_box(axes, view, z[0].min(axis=0) - 0.4, z[0].max(axis=0) + 0.4, ("$z_1$", "$z_2$", "$z_3$"))
    corners = _vertices(run)
    if len(corners) > 3:
        draw_faces(axes, view, corners[ConvexHull(corners).simplices], COLOURS[0], 0.13, zorder=2)
    draw_paths(axes, view, z, COLOURS[1], width=0.9, zorder=3)
    draw_points(axes, view, z[0], "white", 13, edgecolors=COLOURS[1], linewidths=0.8)
    draw_points(axes, view, corners, "black", 42, marker="s", zorder=5)
    axes.set_title(f"d = 3, n = {s.n}, V = I")


def _distances(axes: Axes, run: Run, s: Hulls) -> None:
    """How far each token still is from the nearest leader; leaders themselves are at distance zero."""
    distance = np.where(run["leaders"].values, np.nan, run["dist_vertices"].values)
    distance[~np.isfinite(distance)] = np.nan
    followers = ~run["leaders"].values[-1]
    axes.semilogy(run.time, distance[:, followers], color=COLOURS[1], lw=0.8, alpha=0.7)
    axes.plot([], [], color=COLOURS[1], lw=0.9, label="path of a token")
    theory_line(axes, run.time, 4 * s.box * np.exp(-run.time), label=r"slope of $e^{-t}$")
    axes.set(xlabel="depth-time $t$", ylabel="distance to the nearest leader", title="d = 2: the rate is exactly 1")


@picture(
    "clustering/polytopes",
    EMERGENCE,
    "Rescaled tokens z = e^{-t}x in R^d with Q = K = V = I: the convex hull (outlines, one every Δt) shrinks to a "
    "polytope whose vertices are leaders that follow themselves; every other token runs to one of them like e^{-t}.",
    quick=Hulls(),
    full=Hulls(frames=601),
)
def polytopes(s: Hulls) -> Figure:
    """Two dimensions, three dimensions, and the rate."""
    figure, ((plane, space, rate),) = new_figure(1, 3, width=3.4, height=3.2)
    flat = _run(2, s.seeds[0], s)
    outlines = _plane(plane, flat, s)
    _space(space, _run(3, s.seeds[1], s), s)
    _distances(rate, flat, s)
    colour_bar(figure, outlines, plane, "time $t$ of the hull", shrink=0.8)
    legend_below(figure, (plane, space, rate))
    return figure
