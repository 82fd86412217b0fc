"""Three prompts that share tokens, sent to three targets that share atoms by one list of layers (arXiv:2411.04551)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.optimize import linear_sum_assignment

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.orthographic import View, draw_on_sphere, draw_sphere
from pathlines.draw.style import COLOURS, MUTED
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.interpolate import MeasureInterpolator
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.schedule import Piece, SphereSchedule

ATTENTION, GATE = COLOURS[4], "#c3ccd5"
"""Inks of the ruler."""


class Prompts(Setting):
    """Random prompts and targets on S²."""

    prompts: Annotated[of.Count, means("prompts", "N")] = 3
    n: of.Tokens = 4
    shared: Annotated[of.Count, means("tokens that all prompts share, and atoms that all targets share")] = 2
    azimuth: of.Azimuth = -50.0
    elevation: of.Elevation = 25.0
    seed: of.Seed = 3


class Course(NamedTuple):
    """Where all prompts are along the schedule: ``at`` counts pieces, ``tokens`` is (frames, N, n, d).

    ``images`` are the targets before the last stage, where the gates bring the tokens.
    """

    at: np.ndarray
    tokens: np.ndarray
    w2: np.ndarray
    targets: np.ndarray
    images: np.ndarray
    pieces: Sequence[Piece]
    stages: list[tuple[str, int]]


def course(prompts: int, n: int, shared: int, seed: int, frames: tuple[int, int]) -> Course:
    """Fit, then follow: ``frames`` in a layer of attention and in a gate."""
    rng = np.random.default_rng(seed)
    sides = [np.array([np.vstack([c, _unit(rng, n - shared)]) for _ in range(prompts)]) for c in _unit(rng, 2, shared)]
    fitted = MeasureInterpolator(seed=seed).fit(list(sides[0]), list(sides[1]))
    pieces = fitted.schedule_.pieces
    at, tokens = [0.0], [sides[0]]
    for k, piece in enumerate(pieces):
        count, before = frames[isinstance(piece, Gate)], [Measure(x, np.full(n, 1 / n)) for x in tokens[-1]]
        for share in np.arange(1, count + 1) / count:
            part = SphereSchedule(3, [piece._replace(duration=share * piece.duration)])
            tokens.append(np.array([m.points for m in part.push(before)]))
            at.append(k + float(share))
    w2 = np.array([[_w2(x, y) for x, y in zip(frame, sides[1], strict=True)] for frame in tokens])
    stages = [(stage.name, stage.pieces) for stage in fitted.timeline_]
    goals = [Measure(y, np.full(n, 1 / n)) for y in sides[1]]
    images = np.array([m.points for m in SphereSchedule(3, pieces[stages[-2][1] :]).push(goals, inverse=True)])
    return Course(np.array(at), np.array(tokens), w2, sides[1], images, pieces, stages)


def _unit(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.standard_normal((*shape, 3))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _w2(x: np.ndarray, y: np.ndarray) -> float:
    cost = np.sum((x[:, None] - y[None]) ** 2, axis=2)
    return float(np.sqrt(cost[linear_sum_assignment(cost)].mean()))


def draw_prompts(axes: Axes, view: View, tokens: np.ndarray, size: float = 30.0) -> None:
    """Tokens of each prompt in its ink; where several prompts have one, the later ones are dots on larger dots."""
    for k, (x, later) in enumerate(zip(tokens, _later(tokens), strict=True)):
        draw_on_sphere(axes, view, x, COLOURS[k], size * (1 + 1.4 * later), zorder=4 + k)


def draw_targets(axes: Axes, view: View, targets: np.ndarray) -> None:
    """Rings where the atoms of the targets are, one inside the other where they are shared."""
    for k, (y, later) in enumerate(zip(targets, _later(targets), strict=True)):
        flat, depth = view.project(y)
        for (a, b), near, more in zip(flat, depth > 0, later, strict=True):
            style = {"mfc": "none", "mec": COLOURS[k], "ms": 9 + 3.4 * more, "mew": 1.2, "alpha": 1.0 if near else 0.45}
            axes.plot(a, b, "o", zorder=3, **style)


def _later(clouds: np.ndarray) -> np.ndarray:
    """For each point (N, n) how many later clouds have one at the same place."""
    gaps = np.linalg.norm(clouds[:, :, None, None] - clouds[None, None], axis=-1).min(axis=3)  # (N, n, N)
    order = np.arange(len(clouds))
    return np.sum((gaps < 1e-3) & (order[None, None] > order[:, None, None]), axis=2)


def draw_ruler(axes: Axes, pieces: Sequence[Piece]) -> None:
    """One box a piece under the axis: attention dark, gates pale."""
    low, high = axes.get_ylim()
    height = 0.05 * (high - low)
    for k, piece in enumerate(pieces):
        ink = GATE if isinstance(piece, Gate) else ATTENTION
        axes.add_patch(Rectangle((k, low - 1.6 * height), 1, height, fc=ink, ec="white", lw=0.6, clip_on=False))
    axes.set(ylim=(low - 2 * height, high), xlim=(0, len(pieces)))


def draw_timeline(axes: Axes, course: Course, upto: int | None = None) -> None:
    """W₂ of each prompt over the pieces."""
    end = len(course.at) if upto is None else upto
    for k, w2 in enumerate(course.w2.T):
        axes.plot(course.at[:end], w2[:end], color=COLOURS[k], label=f"prompt {k + 1}")
    axes.set(xlabel="pieces", ylabel="$W_2$ to the target", ylim=(0, 1.05 * course.w2.max()))


@picture(
    "transport/three-prompts",
    MEASURE_TO_MEASURE,
    "Three prompts (colours) share two tokens (dots on dots), their targets (rings) two atoms. Attention pulls the "
    "copies of the shared tokens apart, gates bring every token to the image of its target, reversed attention joins "
    "what the targets share; in brackets: pieces so far. Below: W₂ of each prompt over the pieces, zero at the end; "
    "the ruler shows attention (violet) and gates (grey).",
    quick=Prompts(),
)
def three_prompts(s: Prompts) -> Figure:
    """Four spheres over one timeline."""
    found = course(s.prompts, s.n, s.shared, s.seed, (12, 4))
    figure = Figure(figsize=(9.2, 4.9), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(1.0, 0.72))
    view = View(s.azimuth, s.elevation)
    words = {"attention": "attention: split", "gates": "gates: matched", "reversed": "reversed: joined"}
    shown = [("start", 0), *found.stages[1:]]
    for k, (name, count) in enumerate(shown[:4]):
        axes = figure.add_subplot(grid[0, k])
        draw_sphere(axes, view)
        draw_targets(axes, view, found.targets if k in (0, len(shown) - 1) else found.images)
        draw_prompts(axes, view, found.tokens[int(np.searchsorted(found.at, count))])
        axes.set_title(f"{words.get(name.split()[0], name)} ({count})" if count else name)
    line = figure.add_subplot(grid[1, :])
    draw_timeline(line, found)
    for _, count in found.stages[1:-1]:
        line.axvline(count, color=MUTED, lw=0.8, ls=":")
    draw_ruler(line, found.pieces)
    line.plot([], [], "o", mfc="none", mec=MUTED, ms=9, mew=1.2, label="atoms of the targets")
    line.plot([], [], "s", color=ATTENTION, ms=7, label="attention")
    line.plot([], [], "s", color=GATE, ms=7, label="gate")
    legend_below(figure, [line])
    return figure
