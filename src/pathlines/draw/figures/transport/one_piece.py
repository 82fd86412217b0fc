"""One ReLU piece acting on a Gaussian."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, HEAT, INK, MUTED, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import NORMALIZING_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.transport.euclid.schedule import EuclideanSchedule

Pair = tuple[float, float]


class Piece(Setting):
    """A piece of the plane; on the line it has the weight |w| and a = 1."""

    w: Annotated[Pair, means("where points are moved to", "w")] = (1.0, -0.5)
    a: Annotated[Pair, means("normal of the half-space that moves", "a")] = (0.8, 0.6)
    b: Annotated[float, means("bias: points with a·x + b > 0 move", "b")] = -0.1
    t: Annotated[of.Positive, means("duration", "t")] = 0.7


@picture(
    "transport/one-piece",
    NORMALIZING_FLOWS,
    "One neuron x' = w(a·x + b)₊ moves a Gaussian. Left: on the line, before (dashed) and after; beyond the hinge it "
    "is stretched, and the density jumps there by the factor e^{−a·w t}. Right: in the plane, the exact density after "
    "the piece, with the velocity field; the half-space on the other side of the hinge stays as it was.",
    quick=Piece(),
)
def one_piece(s: Piece) -> Figure:
    """A line; a plane."""
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.3)
    line = EuclideanSchedule([[float(np.hypot(*s.w))]], [[1.0]], [s.b], [s.t])
    y = np.linspace(-3.5, 5.5, 1200)
    left.plot(y, np.exp(line.log_prob(y[:, None])), color=COLOURS[0], label="after the piece")
    theory_line(left, y, np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi), label="before")
    left.axvline(-s.b, color=MUTED, linewidth=1, label="hinge")
    left.set(xlabel="$y$", ylabel="density", ylim=(0, None))
    left.legend(loc="upper right")
    flow = EuclideanSchedule([s.w], [s.a], [s.b], [s.t])
    x = np.linspace(-3.2, 3.8, 281)
    grid = np.stack(np.meshgrid(x, x), -1)
    density = np.exp(flow.log_prob(grid.reshape(-1, 2))).reshape(len(x), len(x))
    image = right.pcolormesh(x, x, density, cmap=HEAT, shading="nearest", rasterized=True)
    figure.colorbar(image, ax=right, label="density", shrink=0.85)
    at = np.stack(np.meshgrid(np.linspace(-2.8, 3.4, 11), np.linspace(-2.8, 3.4, 11)), -1).reshape(-1, 2)
    speed = np.maximum(at @ np.array(s.a) + s.b, 0)
    moving = speed > 0
    arrows = speed[moving, None] * np.array(s.w)
    right.quiver(*at[moving].T, *arrows.T, color=COLOURS[1], width=0.005, angles="xy", scale=28)
    normal = np.array(s.a) / np.linalg.norm(s.a)
    foot, along = -s.b * normal / np.linalg.norm(s.a), np.array([-normal[1], normal[0]])
    ends = np.array([foot - 9 * along, foot + 9 * along])
    right.plot(*ends.T, color=INK, linewidth=1)
    right.set(xlabel="$x_1$", ylabel="$x_2$", xlim=x[[0, -1]], ylim=x[[0, -1]], aspect="equal")
    right.grid(False)
    return figure
