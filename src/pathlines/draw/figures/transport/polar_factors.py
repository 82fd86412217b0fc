"""The polar factors of a map: what permutes, and what stretches."""

from __future__ import annotations

from typing import Annotated

from matplotlib.figure import Figure
from msgspec import Meta

from pathlines.claim.transport.maps import stretched_twist
from pathlines.draw.figures.transport.square import draw_flow, draw_map, framed
from pathlines.draw.gallery import picture
from pathlines.draw.style import new_figure
from pathlines.foundation.papers.transport import CONDITIONAL_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.transport.euclid.diffeo import DiffeoFlow


class Factors(Setting):
    """A twist, then a stretch."""

    m: Annotated[Annotated[int, Meta(ge=2, le=32)], means("cells along a side", "m")] = 16
    resolution: Annotated[Annotated[int, Meta(ge=8, le=400)], means("points along a side")] = 130


@picture(
    "transport/polar-factors",
    CONDITIONAL_FLOWS,
    "A map φ of the square (right: a twist, then a stretch) as D ∘ s: s permutes cells and preserves area, D is "
    "triangular and has the density of φ_#Leb. Colours are the first coordinate at the start; the L² error of the map "
    "and the total variation of the pushed measures stand below.",
    quick=Factors(),
    full=Factors(m=32, resolution=250),
)
def polar_factors(s: Factors) -> Figure:
    """Start, s, D ∘ s, φ."""
    figure, (panels,) = new_figure(1, 4, width=2.4, height=2.6)
    flow = DiffeoFlow(stretched_twist, s.m).fit()
    permuted = flow.parts_[0]
    draw_map(panels[0], lambda x: x, s.resolution)
    draw_flow(panels[1], permuted, 2 * s.resolution)
    draw_flow(panels[2], flow.schedule_, 2 * s.resolution)
    draw_map(panels[3], stretched_twist, s.resolution)
    counts = (permuted.count, flow.report_.pieces)
    titles = ("start", f"$s$: {counts[0]} pieces", f"$D \\circ s$: {counts[1]} pieces", "$\\varphi$")
    for panel, title in zip(panels, titles):
        framed(panel, title)
    said = flow.report_
    words = f"$L^2$ error {said.map_error:.3f}, TV {said.tv:.3f}"
    panels[2].text(0.5, -0.2, words, transform=panels[2].transAxes, ha="center", fontsize=8)
    return figure
