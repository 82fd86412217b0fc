"""Fates over a plane of weights, and the window in which finite contexts follow (arXiv:2501.18322; derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from pathlines.draw.figures.gaussian.cloud_drawing import CLASS_COLOURS
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, INK, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.gaussian_fate import CLASSES, fates
from pathlines.limit.gaussian.context import CRITICAL, rate_exponent, scalar_critical_time
from pathlines.model.gaussian.closure import SoftmaxGaussian


class Plane(Setting):
    """The plane of weights."""

    points: of.MapSide = 32
    reach: Annotated[of.Positive, means("largest |a| and |v| shown")] = 2.0
    turn: Annotated[float, means("entry x of V", "x")] = 0.4
    rtol: of.Rtol = 1e-06


@picture(
    "gaussian/class-map",
    UNIFIED,
    "Fate of the round cloud Σ₀ = I under softmax attention over the plane of weights V = [[1, x], [−x, v]] with "
    "x = 0.4, A = [[a, 1], [0, −1]]: v upwards, a to the right. Regions of blow-up and convergence interlock; "
    "borders are where an extremal eigenvalue or the sign of uᵀAu changes.",
    quick=Plane(),
    full=Plane(points=96),
)
def class_map(s: Plane) -> Figure:
    """A map of classes; an even number of points keeps off a = -1/4, where A + Aᵀ is singular and rounding decides."""
    line = np.linspace(-s.reach, s.reach, s.points)
    a, v = (g.ravel() for g in np.meshgrid(line, line))
    models = [
        SoftmaxGaussian([[1.0, s.turn], [-s.turn, y]], [[x, 1.0], [0.0, -1.0]]) for x, y in zip(a, v, strict=True)
    ]
    found = fates(models, np.broadcast_to(np.eye(2), (len(a), 2, 2)), rtol=s.rtol)
    codes = np.array([CLASSES.index(f.kind) for f in found]).reshape(s.points, s.points)
    figure, ((axes,),) = new_figure(1, 1, width=4.4, height=3.9)
    norm = BoundaryNorm(np.arange(len(CLASSES) + 1) - 0.5, len(CLASSES))
    axes.pcolormesh(line, line, codes, cmap=ListedColormap([CLASS_COLOURS[c] for c in CLASSES]), norm=norm,
                    shading="nearest", rasterized=True, alpha=0.85)  # fmt: skip
    axes.set(xlabel="$a$", ylabel="$v$", title=r"fate of $\Sigma_0 = I$", aspect="equal")
    axes.grid(False)
    present = [c for k, c in enumerate(CLASSES) if (codes == k).any()]
    handles = [Patch(color=CLASS_COLOURS[c], alpha=0.85, label=c) for c in present]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


class Validity(Setting):
    """Starts on the line."""

    starts: Annotated[of.Positives, means("standard deviations at the start", "σ₀")] = (0.1, 0.2, 0.4, 0.6)
    largest: Annotated[of.Positive, means("largest θ shown", "θ")] = 3.0


@picture(
    "gaussian/validity-window",
    UNIFIED,
    "Where finite contexts follow the infinite-context theory, d = 1, v = a = 1. Left: θ(t) = aσ(t) for several starts "
    "grows to infinity at the blow-up time (vertical); the rate n^{-1/2} is lost at t_c, where θ = 1/√2 (dots). Right: "
    "exponent p of the mean-square error n^{-p} of the attention field over θ.",
    quick=Validity(),
)
def validity_window(s: Validity) -> Figure:
    """θ over depth, exponent over θ."""
    figure, ((left, right),) = new_figure(1, 2, width=3.5, height=2.7)
    for k, size in enumerate(s.starts):
        end = 1 / (2 * size)
        t = end * (1 - np.geomspace(1, 1e-2, 200))
        left.plot(t, size / (1 - t / end), color=COLOURS[k % 8], label=rf"$\sigma_0 = {size:g}$")
        left.axvline(end, color=COLOURS[k % 8], lw=0.7, alpha=0.6)
        left.plot([scalar_critical_time(1.0, 1.0, size)], [CRITICAL], "o", color=COLOURS[k % 8], ms=4, zorder=6)
    left.axhline(CRITICAL, color=THEORY, ls=(0, (4, 2.2)), lw=1.2, label=r"$1/\sqrt{2}$")
    left.set(yscale="log", xlabel="depth-time $t$", ylabel=r"$\theta(t)$", title="trust ends before the blow-up")
    theta = np.linspace(0.05, s.largest, 300)
    right.plot(theta, rate_exponent(theta), color=INK)
    right.axvline(CRITICAL, color=MUTED, lw=0.8)
    right.set(xlabel=r"$\theta$", ylabel="$p$", ylim=(0, 1.08), title=r"error of the field $\sim n^{-p/2}$")
    legend_below(figure, [left])
    return figure
