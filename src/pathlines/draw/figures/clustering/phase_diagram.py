"""The phase diagram of clustering over (time, β) (A mathematical perspective on Transformers, arXiv:2312.10794)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import COLOURS, HEAT, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.clustering.equiangular import phase_curve
from pathlines.sweep.phase import phase_diagram


def draw_phase(axes: Axes, data: xr.Dataset, half: bool = True) -> Any:
    """Heat map of p(t, β), with the line p = ½ where the diagram crosses it."""
    t, beta, p = data["time"].values, data["beta"].values, data["p"].values
    extent = (t[0], t[-1], beta[0], beta[-1])
    style = {"origin": "lower", "aspect": "auto", "interpolation": "bilinear", "vmin": 0, "vmax": 1}
    shown = axes.imshow(p, extent=extent, cmap=HEAT, **style)
    if half and p.min() < 0.5 < p.max():
        axes.contour(t, beta, p, levels=[0.5], colors=[COLOURS[3]], linewidths=1.3)
    axes.grid(False)
    axes.set(xlabel="depth-time $t$", ylabel=r"inverse temperature $\beta$")
    axes.set(xlim=(t[0], t[-1]), ylim=(beta[0], beta[-1]))
    return shown


def draw_gamma(axes: Axes, n: int, delta: float, kind: str = "sa") -> None:
    """The exact curve Γ, where the equiangular flow reaches overlap 1 - δ; white under black reads on any shade."""
    low, high = axes.get_ylim()
    beta = np.linspace(low, high, 400)
    t = phase_curve(beta, n, delta, kind)
    inside = t <= axes.get_xlim()[1]
    axes.plot(t[inside], beta[inside], color="white", lw=3.0, alpha=0.85, zorder=4)
    theory_line(axes, t[inside], beta[inside], label=r"exact $\Gamma$ (limit $d → ∞$)", lw=1.5)


class Diagram(Setting):
    """Uniform starts in several dimensions, and the axes."""

    dimensions: of.Dimensions = (2, 8, 512)
    columns: Annotated[of.Count, means("panels per row")] = 3
    n: of.Tokens = 32
    beta_min: of.LowestBeta = 0.1
    beta_max: of.HighestBeta = 9.0
    betas: of.BetaPoints = 24
    until: of.Until = 30.0
    times: of.TimePoints = 121
    samples: of.Samples = 32
    delta: of.Nearness = 0.001
    seed: of.Seed = 0


def _panels(s: Diagram, kind: str) -> Figure:
    rows = -(-len(s.dimensions) // s.columns)
    figure, grid = new_figure(rows, s.columns, width=2.75, height=2.6)
    betas = np.linspace(s.beta_min, s.beta_max, s.betas)
    times = np.linspace(0, s.until, s.times)
    for axes, d in zip(grid.flat, s.dimensions):
        data = phase_diagram(d, betas, times, s.samples, n=s.n, kind=kind, delta=s.delta, seed=s.seed)
        shown = draw_phase(axes, data)
        draw_gamma(axes, s.n, s.delta, kind)
        axes.set_title(f"d = {d}, n = {s.n}")
    for axes in list(grid.flat)[len(s.dimensions) :]:
        axes.remove()
    grid.flat[0].plot([], [], color=COLOURS[3], lw=1.3, label="p = ½")
    power = f"10^{{{np.log10(s.delta):.0f}}}".replace("-", "−")
    colour_bar(
        figure, shown, list(grid.flat)[: len(s.dimensions)], rf"$p = P(\langle x_1,x_2\rangle \geq 1 - {power})$"
    )
    legend_below(figure, [grid.flat[0]])
    return figure


@picture(
    "clustering/phase-diagram",
    PERSPECTIVE,
    "Probability that two of n uniform tokens have merged, over depth-time and inverse temperature, for growing "
    "dimension (true flow, not layers). Dashed: the exact curve Γ of the equiangular flow, which is the boundary in "
    "high dimension; in low dimension clusters form early and then wait.",
    quick=Diagram(),
    full=Diagram(dimensions=(2, 4, 8, 16, 32, 64, 128, 512), columns=4, betas=90, times=200, samples=2048),
)
def phase_diagram_sa(s: Diagram) -> Figure:
    """SA."""
    return _panels(s, "sa")


@picture(
    "clustering/phase-diagram-usa",
    PERSPECTIVE,
    "The same diagram for unnormalised attention, whose clock runs faster the larger β: collapse comes earlier, not "
    "later, so it is no time change of self-attention.",
    quick=Diagram(dimensions=(2, 16, 65536), beta_max=7.0, betas=16, until=1.0),
    full=Diagram(
        dimensions=(2, 4, 8, 16, 32, 128, 1024, 65536),
        beta_max=9.0,
        betas=90,
        until=1.0,
        columns=4,
        times=200,
        samples=256,
    ),
)
def phase_diagram_usa(s: Diagram) -> Figure:
    """USA."""
    return _panels(s, "usa")
