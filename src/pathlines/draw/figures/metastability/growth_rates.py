"""How fast each mode grows, and which one is first over β and the dimension (arXiv:2410.23228)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from scipy import special

from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import COLOURS, HEAT, INK, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.growth import dominant_degree, growth_rates, threshold


def printed_curve(k: Any, beta: float) -> np.ndarray:
    """k² I_k(β)/(πβ) at real k: the coefficient the paper plots, 1/π times the rate λ_k of the printed kernel."""
    k = np.asarray(k, float)
    return k**2 * special.iv(k, beta) / (np.pi * beta)


class Growth(Setting):
    """Inverse temperatures of the curves."""

    betas: of.Betas = (5.0, 7.0)
    modes: Annotated[of.Count, means("degrees shown on the left", "k")] = 10
    more: Annotated[of.NonNegatives, means("inverse temperatures on the right", "β")] = (5.0, 9.0, 25.0, 81.0)


@picture(
    "metastability/growth-rates",
    METASTABLE_EMERGENCE,
    "Left: the coefficients k²Iₖ(β)/(πβ) as the paper plots them (1/π times the growth rate of unnormalised attention "
    "with the printed kernel), with the interpolation in k; the largest, ringed, is at k* = 3 for β = 5 and 4 for "
    "β = 7. Right: the growth rates of softmax attention, which have the same maximum and stay below 0.76: the larger "
    "β, the more modes are nearly as fast as the first.",
    quick=Growth(),
)
def growth_curves(s: Growth) -> Figure:
    """The published curves, and those of softmax."""
    figure, ((left, right),) = new_figure(1, 2, width=3.7, height=2.9)
    fine, degrees = np.linspace(0, s.modes, 300), np.arange(s.modes + 1)
    for ink, beta in zip(COLOURS, s.betas):
        left.plot(fine, printed_curve(fine, beta), color=ink, lw=1.2, alpha=0.8)
        left.plot(degrees, printed_curve(degrees, beta), "o", color=ink, ms=4, label=f"β = {beta:g}")
        top = dominant_degree(beta, 2)
        left.plot(top, printed_curve(top, beta), "o", mfc="none", mec=INK, ms=10, mew=1.1)
    left.set(xlabel="mode $k$", ylabel=r"$k^2 I_k(\beta)/(\pi\beta)$", title="as printed")
    left.legend(loc="upper right")
    most = 2 * dominant_degree(max(s.more), 2)
    for ink, beta in zip(COLOURS, s.more):
        rates = growth_rates(beta, 2, most)
        right.plot(np.arange(1, most + 1), rates, "-o", color=ink, ms=2.6, lw=1.0, label=f"β = {beta:g}")
    right.axhline(2 / math.e, color=INK, lw=1.0, ls=(0, (4, 2.2)), label="2/e")
    right.set(xlabel="mode $k$", ylabel=r"growth rate $\lambda_k$", title="softmax attention", ylim=(0, 1.0))
    right.legend(loc="upper right", ncols=3)
    return figure


class DegreeMap(Setting):
    """Axes of the map."""

    beta_min: of.LowestBeta = 0.5
    beta_max: of.HighestBeta = 400.0
    d_max: Annotated[of.Count, means("largest dimension", "d")] = 256
    columns: Annotated[of.Count, means("inverse temperatures on the axis")] = 90
    rows: Annotated[of.Count, means("dimensions on the axis")] = 60
    shown: Annotated[of.Count, means("degrees told apart by colour", "k")] = 12


@picture(
    "metastability/dominant-degree",
    METASTABLE_EMERGENCE,
    "The degree k* that grows fastest out of uniform tokens, over inverse temperature and dimension. Lines: exact "
    "thresholds between neighbouring degrees; dashed: β = 2d/3, which the first of them approaches in high dimension. "
    "Left of it there is one cluster from the beginning: a model with β of order √d has no phase of several clusters.",
    quick=DegreeMap(),
    full=DegreeMap(columns=240, rows=160),
)
def degree_map(s: DegreeMap) -> Figure:
    """k*(β, d)."""
    betas = np.geomspace(s.beta_min, s.beta_max, s.columns)
    dimensions = np.unique(np.round(np.geomspace(2, s.d_max, s.rows)).astype(int))
    degrees = np.array([[dominant_degree(b, int(d)) for b in betas] for d in dimensions])
    figure, ((axes,),) = new_figure(1, 1, width=5.6, height=3.7)
    palette = ListedColormap([HEAT(x) for x in np.linspace(0.02, 0.92, s.shown)])
    steps = BoundaryNorm(np.arange(0.5, s.shown + 1), s.shown)
    shown = axes.pcolormesh(
        betas, dimensions, np.minimum(degrees, s.shown), cmap=palette, norm=steps, shading="nearest"
    )
    for k in range(1, s.shown):
        line = np.array([threshold(k, int(d)) for d in dimensions])
        inside = line <= s.beta_max
        label = "exact thresholds k → k+1" if k == 1 else None
        axes.plot(line[inside], dimensions[inside], color="white", lw=0.9, label=label)
    theory_line(axes, 2 * dimensions / 3, dimensions, label="β = 2d/3")
    axes.set(xscale="log", yscale="log", xlim=(s.beta_min, s.beta_max), ylim=(2, s.d_max))
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel="dimension $d$")
    axes.grid(False)
    bar = colour_bar(figure, shown, [axes], "fastest degree $k^*$", ticks=np.arange(1, s.shown + 1))
    bar.ax.set_yticklabels([*map(str, range(1, s.shown)), f"≥ {s.shown}"])
    bar.ax.minorticks_off()
    legend_below(figure, [axes], facecolor="#c8d3de", frameon=True, edgecolor="none")
    return figure
