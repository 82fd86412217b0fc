"""Tokens gathering on the sphere (A mathematical perspective on Transformers, arXiv:2312.10794)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.orthographic import PANE, View, draw_on_sphere, draw_paths, draw_sphere
from pathlines.draw.style import COLOURS, INK, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention
from pathlines.observable.clusters import cluster_labels

LABELS = cluster_labels.at(delta=1e-2)
COINCIDENT = 1e-4


def gathering(n: int, d: int, beta: float, times: Any, seed: int, record: tuple[Any, ...] = ()) -> Run:
    """SA from n uniform tokens: positions, clusters and what else is asked for, at ``times``."""
    start = Sphere(d).uniform(jax.random.key(seed), n)
    return flow(SelfAttention(beta), start, times=times, record=[positions, LABELS, *record])


def clusters_at(run: Run, t: float) -> np.ndarray:
    """The cluster of each token at the recorded time nearest to t, as the number of its first token."""
    return run[LABELS.name].values[np.argmin(np.abs(run.time - t))].astype(int)


def cluster_inks(run: Run, t: float) -> np.ndarray:
    """One colour a token: that of the cluster it is in at time t, the largest cluster first."""
    labels = clusters_at(run, t)
    names, sizes = np.unique(labels, return_counts=True)
    rank = {label: i for i, label in enumerate(names[np.argsort(-sizes, kind="stable")])}
    return np.array([to_rgb(COLOURS[rank[label] % len(COLOURS)]) for label in labels])


def facing(run: Run, t: float, azimuth: float, elevation: float) -> View:
    """A view turned by ``azimuth`` from the largest cluster at time t, so that it is on the near side."""
    largest = np.bincount(clusters_at(run, t)).argmax()
    x, y = run["tokens"].values[np.argmin(np.abs(run.time - t)), largest, :2]
    return View(float(np.degrees(np.arctan2(y, x))) + azimuth, elevation)


def draw_snapshot(axes: Axes, run: Run, t: float, trail: float, inks: np.ndarray, view: View, size: float) -> None:
    """Tokens at time t with where they were during the last ``trail``.

    The area of a dot grows like the square root of the number of tokens that coincide there.
    """
    x = run["tokens"].values
    here = int(np.argmin(np.abs(run.time - t)))
    recent = x[(run.time >= t - trail) & (run.time <= run.time[here])]
    area = size * np.sqrt((x[here] @ x[here].T > 1 - COINCIDENT).sum(axis=1))
    if x.shape[2] == 3:
        draw_sphere(axes, view)
        if len(recent) > 1:
            pieces = np.tile(inks, (len(recent) - 1, 1))
            draw_paths(
                axes, view, recent, _ordered(view, recent, pieces), width=0.6, least=0.12, zorder=3, rasterized=True
            )
        draw_on_sphere(axes, view, x[here], inks, area)
    else:
        _circle(axes, x[here], recent, inks, area)


def _ordered(view: View, paths: np.ndarray, inks: np.ndarray) -> np.ndarray:
    """Colours in the order in which ``draw_paths`` draws pieces, the farthest first."""
    depth = view.project(paths)[1]
    return inks[np.argsort((0.5 * (depth[:-1] + depth[1:])).reshape(-1))]


def _circle(axes: Axes, x: np.ndarray, recent: np.ndarray, inks: np.ndarray, area: np.ndarray) -> None:
    axes.add_patch(Circle((0, 0), 1.0, facecolor=PANE, edgecolor=MUTED, lw=0.8, zorder=0))
    for i in range(recent.shape[1]):
        axes.plot(*recent[:, i].T, color=inks[i], lw=2.2, alpha=0.3, zorder=2, solid_capstyle="butt")
    axes.scatter(*x.T, s=area, c=inks, edgecolors="white", linewidths=0.35, zorder=4)
    axes.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
    axes.set_axis_off()


class Snapshots(Setting):
    """One uniform start per row, and the view."""

    n: of.Tokens = 64
    rows: Annotated[tuple[tuple[of.Count, of.NonNegative], ...], means("each row", "d, β")] = (
        (3, 1.0),
        (3, 9.0),
        (2, 9.0),
    )
    times: of.Shown = (0.0, 1.0, 3.0, 6.0, 15.0)
    trail: of.Trail = 1.0
    frames: of.Records = 151
    seed: of.Seed = 0
    azimuth: of.Azimuth = 35.0
    elevation: of.Elevation = 22.0


@picture(
    "clustering/sphere-snapshots",
    PERSPECTIVE,
    "Self-attention with Q = K = V = I from uniform tokens: straight collapse to one point at β = 1, several clusters "
    "that outlast the picture at large β. Colours are the clusters at the last time, dots grow with the number of "
    "tokens in them, trails show recent motion, and what is on the far side is pale.",
    quick=Snapshots(),
    full=Snapshots(frames=601),
)
def sphere_snapshots(s: Snapshots) -> Figure:
    """One row per setting, one column per time."""
    figure, grid = new_figure(len(s.rows), len(s.times), width=1.75, height=1.9)
    times = np.union1d(np.linspace(0, s.times[-1], s.frames), s.times)
    for panels, (d, beta) in zip(grid, s.rows):
        run = gathering(s.n, int(d), beta, times, s.seed)
        inks, view = cluster_inks(run, s.times[-1]), facing(run, s.times[-1], s.azimuth, s.elevation)
        for axes, t in zip(panels, s.times):
            draw_snapshot(axes, run, t, s.trail, inks, view, size=15)
        label = f"d = {d:g}, β = {beta:g}"
        panels[0].text(-1.28, 0, label, rotation=90, ha="center", va="center", fontweight="bold", color=INK)
    for axes, t in zip(grid[0], s.times):
        axes.set_title(f"n = {s.n}, t = {t:g}" if t == s.times[0] else f"t = {t:g}", loc="center")
    return figure
