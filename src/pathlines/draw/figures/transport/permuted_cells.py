"""Cells carried whole: a commutator of shears, and a twist of the square by many of them."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from pathlines.claim.transport.maps import twist
from pathlines.draw.figures.transport.square import draw_flow, draw_map, framed
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, MUTED, new_figure
from pathlines.foundation.papers.transport import CONDITIONAL_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.transport.euclid.cells import three_cycle
from pathlines.transport.euclid.diffeo import DiffeoFlow
from pathlines.transport.euclid.schedule import EuclideanSchedule

SIDE = 4
"""Cells along a side above."""


class Cells(Setting):
    """Permutations of cells."""

    grids: Annotated[tuple[Annotated[int, Meta(ge=2, le=32)], ...], means("cells along a side", "m")] = (4, 8, 16)
    resolution: Annotated[Annotated[int, Meta(ge=8, le=400)], means("points along a side of a frame")] = 120


@picture(
    "transport/permuted-cells",
    CONDITIONAL_FLOWS,
    "Above: a row of cells is shifted, then a column, then both back: three cells go round (colours) and all others "
    "return. Below: the square coloured by x₁, its twist, the twist by a permutation of cells, and the L² error of the "
    "permutation, which falls like 1/m (dashed).",
    quick=Cells(),
    full=Cells(grids=(4, 8, 16, 24, 32), resolution=200),
)
def permuted_cells(s: Cells) -> Figure:
    """A 3-cycle in four frames over a twist and its error."""
    figure, (above, below) = new_figure(2, 4, width=2.3, height=2.4)
    x = (np.stack(np.meshgrid(*[np.arange(s.resolution)] * 2), -1).reshape(-1, 2) + 0.5) / s.resolution
    cell = (x * SIDE).astype(int)
    moved = {(1, 1): COLOURS[0], (3, 1): COLOURS[1], (3, 2): COLOURS[3]}
    pale = ("#e4e8ec", "#f1f3f5")
    colours = [moved.get((int(i), int(j)), pale[int(i + j) % 2]) for i, j in cell]
    cycle = three_cycle(SIDE, (3, 1), 2, -1)
    for panel, pieces, title in zip(above, (0, 4, 8, 16), ("start", "row", "then column", "then both back")):
        part = EuclideanSchedule(*(getattr(cycle, n)[:pieces] for n in "wabt"))
        panel.scatter(*part.forward(x)[0].T, c=colours, s=2.4, marker="s", linewidths=0, rasterized=True)
        framed(panel, title)
        panel.set(xlim=(-0.05, 1.55), ylim=(-0.3, 1.3))
    flows = [DiffeoFlow(twist, m, volume=True).fit() for m in s.grids]
    shown = flows[-1]
    for panel, phi, title in ((below[0], lambda x: x, "start"), (below[1], twist, "twist")):
        draw_map(panel, phi, s.resolution)
        framed(panel, title)
    draw_flow(below[2], shown.schedule_, 2 * s.resolution)
    framed(below[2], f"{s.grids[-1]}² cells, {shown.report_.pieces} pieces")
    m, errors = np.array(s.grids), np.array([f.report_.map_error for f in flows])
    below[3].plot(m, errors, "o", color=COLOURS[0])
    below[3].plot(m, (errors * m)[-1] / m, "--", color=MUTED)
    below[3].set(xlabel="cells along a side $m$", ylabel="$L^2$ error", title="error", xscale="log", yscale="log")
    below[3].set_xticks(m, [str(k) for k in m])
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2) if 0.8 * errors.min() <= t <= 1.2 * errors.max()]
    below[3].set_yticks(ticks, [f"{t:g}" for t in ticks])
    below[3].minorticks_off()
    return figure
