"""How deep until tokens are alike, over context length and logit scale (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import COLOURS, HEAT, INK, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.sweep.half_collapse import half_collapse_times

EDGE = r"$b = \sqrt{2\,\log\,n}$"


class CollapseMap(Setting):
    """Axes of the map, and what is marked on it."""

    n_min: Annotated[of.Count, means("fewest tokens", "n")] = 8
    n_max: Annotated[of.Count, means("most tokens", "n")] = 16384
    ns: Annotated[of.Count, means("numbers of tokens on the axis")] = 23
    b_max: Annotated[of.Positive, means("largest standard deviation of a logit", "b")] = 8.0
    bs: Annotated[of.Count, means("logit scales on the axis")] = 17
    marked_n: Annotated[of.Counts, means("tokens at which times are written", "n")] = (16, 128, 1024, 8192)
    marked_b: Annotated[of.NonNegatives, means("logit scales at which times are written", "b")] = (
        0.0,
        1.0,
        2.0,
        3.0,
        4.0,
        6.0,
        8.0,
    )
    lines: Annotated[of.NonNegatives, means("logit scales of the curves", "b")] = (0.0, 2.0, 4.0, 6.0, 8.0)


def _map(axes: Axes, ns: np.ndarray, bs: np.ndarray, times: np.ndarray, s: CollapseMap) -> Any:
    """Contours of τ_½, the edge of condensation, and the values at the marked (n, b)."""
    norm = LogNorm(times.min(), times.max())
    shown = axes.pcolormesh(ns, bs, times.T, cmap=HEAT, norm=norm, shading="gouraud", rasterized=True)
    levels = [t for t in (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18) if times.min() < t < times.max()]
    axes.contour(ns, bs, times.T, levels=levels, colors=[INK], linewidths=0.6, alpha=0.6)
    axes.plot(ns, np.sqrt(2 * np.log(ns)), color=COLOURS[1], ls=(0, (4, 2.2)), lw=1.5, label=EDGE)
    for n in s.marked_n:
        for b in s.marked_b:
            value = times[np.searchsorted(ns, n), np.searchsorted(bs, b)]
            dark = norm(value) > 0.5
            axes.plot(n, b, "o", ms=2.6, color="white" if dark else INK, zorder=6, clip_on=False)
            under = b == bs[-1] or b < math.sqrt(2 * math.log(n)) < b + 0.5
            axes.annotate(f"{value:.2f}", (n, b), (4, -9 if under else 3), textcoords="offset points", fontsize=7,
                          color="white" if dark else INK, zorder=6, annotation_clip=False)  # fmt: skip
    axes.set(xscale="log", xlabel="context length $n$", ylabel="logit scale $b$", xlim=(ns[0], ns[-1]))
    axes.set(ylim=(0, bs[-1]), title="half-collapse time τ½ and its values at the dots")
    axes.set_xscale("log", base=2)
    axes.grid(False)
    return shown


@picture(
    "homogenized/collapse-map",
    HOMOGENIZED,
    "Diffusive time τ½ from orthogonal tokens to overlap ½ (d = p = ∞), over context length n and logit scale b. A "
    "longer context delays collapse like log(n+1) while b is below √(2 log n) (dashed); above it attention condenses "
    "on few keys and log n turns into a power of n. The number of layers is τ½/v, v = (η²/H) d σ_V². Right: the same "
    "along n, with b = ∞.",
    quick=CollapseMap(),
    full=CollapseMap(ns=45, bs=65),
)
def collapse_map(s: CollapseMap) -> Figure:
    """The map, and cuts along n."""
    ns = np.union1d(np.geomspace(s.n_min, s.n_max, s.ns).round().astype(int), s.marked_n)
    bs = np.union1d(np.linspace(0, s.b_max, s.bs), [*s.marked_b, *s.lines])
    times = half_collapse_times(ns, [*bs.tolist(), math.inf])
    figure, ((left, right),) = new_figure(1, 2, width=4.6, height=3.5, width_ratios=[1.25, 1])
    shown = _map(left, ns, bs, times[:, :-1], s)
    colour_bar(figure, shown, left, r"$\tau_{1/2}$", format="%g", ticks=[2, 3, 5, 7, 10, 15, 20]).ax.minorticks_off()
    for k, b in enumerate(s.lines):
        ink = HEAT(0.3 + 0.65 * k / max(1, len(s.lines) - 1))
        right.plot(ns, times[:, np.searchsorted(bs, b)], color=ink, label=f"b = {b:g}")
    right.plot(ns, times[:, -1], color=COLOURS[1], label="b = ∞")
    right.plot(ns, np.log(ns + 1), color=THEORY, ls=(0, (4, 2.2)), lw=1.0, label="log(n+1)", zorder=5)
    right.set(yscale="log", xlabel="context length $n$", ylabel=r"half-collapse time $\tau_{1/2}$")
    right.set_xscale("log", base=2)
    right.set(xlim=(ns[0], ns[-1]), title="cuts at fixed b")
    right.grid(True, which="minor", axis="y", color=MUTED, alpha=0.12)
    legend_below(figure, [left, right], columns=8)
    return figure
