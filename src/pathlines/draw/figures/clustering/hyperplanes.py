"""A leading eigenvalue: parallel hyperplanes (The emergence of clusters, arXiv:2305.05465)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.domain import Euclidean
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.orthographic import View, draw_box, draw_faces, draw_paths, draw_points
from pathlines.draw.style import COLOURS, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.limit.clustering.euclidean import classify_value, hyperplane_values
from pathlines.model.clustering.rescaled import RescaledAttention

NAMES = ("$z_1$", "$z_2$", "$z_3$")


class RescaledStart(Setting):
    """Tokens that start in a cube, and the view."""

    n: of.Tokens = 20
    box: of.Box = 5.0
    until: of.Until = 5.0
    frames: of.Records = 201
    seed: of.Seed = 2
    elevation: of.Elevation = 16.0


def rescaled_run(value: np.ndarray, s: RescaledStart) -> Run:
    """n tokens uniform on a cube, Q = K = I and the given V, in the frame that grows with e^{tV}."""
    start = Euclidean(len(value)).cube(jax.random.key(s.seed), s.n, -s.box, s.box)
    return flow(RescaledAttention(value), start, times=np.linspace(0, s.until, s.frames))


def draw_tokens(axes: Axes, view: View, z: np.ndarray, size: float = 24.0) -> None:
    """Paths (times, tokens, 3) in space: start hollow, end filled."""
    draw_paths(axes, view, z, COLOURS[0], width=0.9, zorder=3)
    draw_points(axes, view, z[0], "white", 11, edgecolors=COLOURS[0], linewidths=0.7, zorder=4)
    draw_points(axes, view, z[-1], COLOURS[1], size, zorder=5)


def _plane(axes: Axes, z: np.ndarray, dual: np.ndarray, levels: list[float]) -> None:
    axes.plot(z[..., 0], z[..., 1], color=COLOURS[0], lw=0.8, alpha=0.6)
    axes.scatter(*z[0].T, s=13, facecolor="white", edgecolor=COLOURS[0], lw=0.8, zorder=4, label="token at t = 0")
    axes.scatter(*z[-1].T, s=24, color=COLOURS[1], edgecolor="white", lw=0.35, zorder=5, label="token at the end")
    box = np.array([z.min(axis=(0, 1)), z.max(axis=(0, 1))])
    box += 0.06 * np.ptp(box, axis=0) * np.array([[-1], [1]])
    axes.set(xlim=box[:, 0], ylim=box[:, 1])
    axes.set_aspect("equal", adjustable="datalim")
    for level in levels:
        point = level * dual / (dual @ dual)
        style = {"color": THEORY, "ls": (0, (4, 2.2)) if level else (0, (1, 2)), "lw": 1.2, "zorder": 2}
        axes.axline(point, point + np.array([-dual[1], dual[0]]), **style)
    axes.set(xlabel=NAMES[0], ylabel=NAMES[1])


def _sheet(dual: np.ndarray, level: float, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
    """The polygon {φ₁*(z) = level} ∩ box."""
    corners = []
    for axis in range(3):
        others = [i for i in range(3) if i != axis]
        for a in (low[others[0]], high[others[0]]):
            for b in (low[others[1]], high[others[1]]):
                value = (level - dual[others[0]] * a - dual[others[1]] * b) / dual[axis]
                if low[axis] <= value <= high[axis]:
                    point = np.empty(3)
                    point[axis], point[others[0]], point[others[1]] = value, a, b
                    corners.append(point)
    if len(corners) < 3:
        return None
    points = np.array(corners)
    flat = (points - points.mean(axis=0)) @ np.linalg.svd(points - points.mean(axis=0))[2][:2].T
    return points[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))]


def _space(axes: Axes, z: np.ndarray, dual: np.ndarray, levels: list[float], view: View) -> None:
    low, high = z.min(axis=(0, 1)) - 0.3, z.max(axis=(0, 1)) + 0.3
    draw_box(axes, view, low, high, NAMES)
    for level in levels:
        sheet = _sheet(dual, level, low, high)
        if level and sheet is not None:
            draw_faces(axes, view, [sheet], COLOURS[3], 0.28, zorder=2)
    draw_tokens(axes, view, z)


def _coordinate(axes: Axes, times: np.ndarray, values: np.ndarray, levels: list[float]) -> None:
    axes.plot(times, values, color=COLOURS[0], lw=0.8, alpha=0.75)
    for level in levels:
        style = {"color": THEORY, "ls": (0, (4, 2.2)) if level else (0, (1, 2)), "lw": 1.2, "zorder": 5}
        axes.axhline(level, label="limit hyperplanes a, b" if level else "0", **style)
    axes.set(xlabel="depth-time $t$", ylabel=r"leading coordinate $\varphi_1^*(z_i)$")


def _eigenvalues(value: np.ndarray) -> str:
    values = np.linalg.eigvals(value)
    parts = [f"{v.real:.2f}" for v in values if v.imag == 0]
    parts += [f"{v.real:.2f} ± {v.imag:.2f}i" for v in values if v.imag > 0]
    return ", ".join(parts).replace("-", "−")


class Hyperplanes(RescaledStart):
    """Three value matrices."""

    azimuths: Annotated[tuple[float, float], means("azimuths of the views in space", unit="degrees")] = (-48.0, -42.0)
    flat: Annotated[of.Matrix, means("value matrix in the plane", "V")] = (
        (0.64709742, 0.81911926),
        (0.61210449, 0.63263484),
    )
    negative: Annotated[of.Matrix, means("value matrix in space, complex pair of negative real part", "V")] = (
        (0.2362413, 0.0599536, 0.40506019),
        (0.81321448, 0.49948705, 0.33754772),
        (0.2160645, 0.38505272, 0.14588075),
    )
    positive: Annotated[of.Matrix, means("value matrix in space, complex pair of positive real part", "V")] = (
        (0.18608476, 0.34391026, 0.13905949),
        (0.35244288, 0.6694859, 0.39992145),
        (0.46685606, 0.17094454, 0.42092308),
    )


@picture(
    "clustering/hyperplanes",
    EMERGENCE,
    "Rescaled tokens in R^d when V has one leading positive eigenvalue λ₁ (left: d = 2; middle and right: d = 3 with a "
    "complex pair of negative and of positive real part). The leading coordinate φ₁*(z) of every token converges to "
    "one of at most three values a, 0, b, so the tokens settle on parallel hyperplanes.",
    quick=Hyperplanes(),
    full=Hyperplanes(frames=801, until=8.0),
)
def hyperplanes(s: Hyperplanes) -> Figure:
    """Tokens above, their leading coordinate below."""
    figure, (above, below) = new_figure(2, 3, width=3.4, height=2.7, height_ratios=[1.25, 1])
    views = (None, *(View(a, s.elevation) for a in s.azimuths))
    for top, bottom, matrix, view in zip(above, below, (s.flat, s.negative, s.positive), views):
        value = np.array(matrix)
        dual = classify_value(value).left
        assert dual is not None
        run = rescaled_run(value, s)
        z = run["tokens"].values
        levels = list(hyperplane_values(z[-1], dual))
        if view is None:
            _plane(top, z, dual, levels)
        else:
            _space(top, z, dual, levels, view)
        top.set_title(f"d = {len(value)}, n = {s.n}, λ = {_eigenvalues(value)}")
        _coordinate(bottom, run.time, z @ dual, levels)
    legend_below(figure, (above[0], below[0]))
    return figure
