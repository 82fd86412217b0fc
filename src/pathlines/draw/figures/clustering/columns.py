"""Some coordinates settle, others fly apart: clusters that are lines (The emergence of clusters, arXiv:2305.05465)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from pathlines.draw.figures.clustering.hyperplanes import NAMES, RescaledStart, draw_tokens, rescaled_run
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.orthographic import View, draw_box
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import means


def _space(axes: Axes, z: np.ndarray, ends: np.ndarray, direction: np.ndarray, view: View) -> None:
    """Paths in space, with the lines that the clusters are (their foot in ``ends``, along ``direction``)."""
    low, high = z.min(axis=(0, 1)) - 0.3, z.max(axis=(0, 1)) + 0.3
    draw_box(axes, view, low, high, NAMES)
    for foot in ends:
        with np.errstate(divide="ignore"):
            bounds = np.sort(np.stack([(low - foot) / direction, (high - foot) / direction]), axis=0)
        reach = np.array([bounds[0].max(), bounds[1].min()])
        line, _ = view.project(foot + reach[:, None] * direction)
        axes.plot(*line.T, color=COLOURS[3], lw=3.2, alpha=0.55, zorder=2, solid_capstyle="round")
    draw_tokens(axes, view, z, size=20)


def _shadow(axes: Axes, w: np.ndarray, names: tuple[str, str]) -> None:
    """The two settling coordinates."""
    axes.plot(w[..., 0], w[..., 1], color=COLOURS[0], lw=0.8, alpha=0.6)
    axes.scatter(*w[0].T, s=13, facecolor="white", edgecolor=COLOURS[0], lw=0.8, zorder=4, label="token at t = 0")
    axes.scatter(*w[-1].T, s=30, color=COLOURS[1], edgecolor="white", lw=0.35, zorder=5, label="token at the end")
    axes.margins(0.08)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=names[0], ylabel=names[1])


def _distinct(points: np.ndarray, tolerance: float) -> np.ndarray:
    """One row per cluster."""
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.abs(point - other).max() > tolerance for other in kept):
            kept.append(point)
    return np.array(kept)


class Codimension(RescaledStart):
    """A symmetric value matrix with one negative eigenvalue."""

    until: of.Until = 16.0
    shown_until: of.PathsUntil = 5.0
    frames: of.Records = 241
    seed: of.Seed = 1
    azimuth: of.Azimuth = -140.0
    elevation: of.Elevation = 24.0
    value: of.ValueMatrix = (
        (0.92761287, 0.94333073, 0.3827744),
        (0.94333073, 0.59991396, 0.47825472),
        (0.3827744, 0.47825472, 0.46668605),
    )


@picture(
    "clustering/codimension",
    EMERGENCE,
    "V symmetric in d = 3 with two positive eigenvalues and a negative one: two coordinates settle, at rates λ₁ and "
    "λ₂, and the third diverges like e^{|λ₃|t} in the rescaled frame, so the clusters are parallel lines (codimension "
    "2). Read literally, at most three of them cannot be a theorem: V = I allows polytopes with more vertices.",
    quick=Codimension(),
    full=Codimension(frames=961),
)
def codimension(s: Codimension) -> Figure:
    """Space, the settling plane, all three coordinates over time."""
    value = np.array(s.value)
    eigenvalues, vectors = np.linalg.eigh(value)
    order = np.argsort(eigenvalues)[::-1]
    eigenvalues, vectors = eigenvalues[order], vectors[:, order]
    run = rescaled_run(value, s)
    z, times = run["tokens"].values, run.time
    w = z @ vectors
    figure, ((space, plane, time),) = new_figure(1, 3, width=3.4, height=3.2)
    ends = _distinct(w[-1][:, :2], 0.5) @ vectors[:, :2].T
    _space(space, z[times <= s.shown_until], ends, vectors[:, 2], View(s.azimuth, s.elevation))
    space.set_title(f"d = 3, n = {s.n}, t ≤ {s.shown_until:g}")
    names = tuple(rf"$\varphi_{k}^*(z)$" for k in (1, 2, 3))
    _shadow(plane, w[..., :2], names[:2])
    plane.set_title(f"two coordinates settle, t ≤ {s.until:g}")
    for k in (2, 1, 0):
        time.plot(times, w[..., k], color=COLOURS[(0, 2, 4)[k]], lw=0.7, alpha=0.7)
    for k in range(3):
        number = f"{eigenvalues[k]:.3f}".replace("-", "−")
        time.plot([], [], color=COLOURS[(0, 2, 4)[k]], label=f"{names[k]}, λ = {number}")
    time.set_yscale("symlog", linthresh=10, linscale=1.6)
    time.set(xlabel="depth-time $t$", ylabel=r"coordinate $\varphi_k^*(z_i)$", title="and one diverges")
    legend_below(figure, (plane, time))
    return figure


class Mixed(RescaledStart):
    """A diagonal value matrix with a double eigenvalue."""

    until: of.Until = 12.0
    shown_until: of.PathsUntil = 1.6
    frames: of.Records = 241
    seed: of.Seed = 12
    azimuth: of.Azimuth = -52.0
    elevation: of.Elevation = 20.0
    eigenvalues: Annotated[tuple[float, float, float], means("eigenvalues of V", "λ")] = (1.0, 1.0, -0.5)


@picture(
    "clustering/mixed",
    EMERGENCE,
    "V = diag(1, 1, −½): in the plane F of the double eigenvalue the tokens run to the vertices of a polygon, while "
    "the third coordinate diverges like e^{t/2}; the clusters are vertical lines above the vertices.",
    quick=Mixed(),
    full=Mixed(frames=961),
)
def mixed(s: Mixed) -> Figure:
    """Space, the plane F with the polygon, and the diverging coordinate."""
    run = rescaled_run(np.diag(s.eigenvalues), s)
    z, times = run["tokens"].values, run.time
    figure, ((space, plane, time),) = new_figure(1, 3, width=3.4, height=3.2)
    feet = np.pad(_distinct(z[-1][:, :2], 0.2), ((0, 0), (0, 1)))
    _space(space, z[times <= s.shown_until], feet, np.array([0.0, 0.0, 1.0]), View(s.azimuth, s.elevation))
    space.set_title(f"d = 3, n = {s.n}, t ≤ {s.shown_until:g}")
    _shadow(plane, z[..., :2], NAMES[:2])
    if len(feet) > 2:
        corners = feet[ConvexHull(feet[:, :2]).vertices, :2]
        plane.fill(*corners.T, color=COLOURS[3], alpha=0.16, lw=0, zorder=1)
        plane.plot(*np.vstack([corners, corners[:1]]).T, color=COLOURS[3], lw=1.1, zorder=2, label="limit polygon")
    plane.set_title(f"plane F: λ = 1 twice, t ≤ {s.until:g}")
    time.semilogy(times, np.abs(z[..., 2]), color=COLOURS[4], lw=0.7, alpha=0.7)
    time.plot([], [], color=COLOURS[4], label="third coordinate")
    rate = -s.eigenvalues[2]
    theory_line(time, times, 2 * s.box * np.exp(rate * times), label=rf"slope of $e^{{{rate:g}t}}$")
    number = f"{s.eigenvalues[2]:g}".replace("-", "−")
    time.set(xlabel="depth-time $t$", ylabel="$|z_3|$", title=f"complement G: λ = {number}")
    legend_below(figure, (plane, time))
    return figure
