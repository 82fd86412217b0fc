"""How fast a density becomes a point mass, and what finite n makes of it (arXiv:2504.14697; rates derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.claim.clustering.mean_field import W2_SQUARED
from pathlines.claim.followups.quantitative import (
    Quantiles,
    Rates,
    local_rates,
    measured_distance,
    quantile_tokens,
    unnormalised,
)
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import QUANTITATIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.followups.quantitative import sharp_rate


class Paths(Setting):
    """A density 1 + ½cos θ on the circle, and quantiles of it."""

    betas: Annotated[tuple[float, ...], means("inverse temperatures of the densities", "β")] = (0.0, 0.3, 0.6)
    sizes: of.Sizes = (100, 1000)
    beta: of.Beta = 0.3
    until: of.Until = 20.0
    panels: of.Panels = 22
    measured: Annotated[tuple[float, ...], means("where rates are measured", "β")] = (-0.8, -0.2, 0.3, 0.8)


@picture(
    "followups/sharp-rates",
    QUANTITATIVE,
    "Left: W₂ to the limiting point mass under unnormalised attention on the circle, from a density carried by "
    "weighted tokens; dashed, e^{−rt}, r = min(e^β, ½e^{−β}). Middle: local rate for n quantiles of the same density: "
    "each follows the mean field until its last token has left the antipode, then contracts at e^β (dashed: both). "
    "Right: the sharp rate over β for d = 2 and 3 (dashed), with measured rates.",
    quick=Paths(),
)
def sharp_rates_figure(s: Paths) -> Figure:
    """Distances, local rates, rates."""
    figure, ((left, middle, right),) = new_figure(1, 3, width=3.5, height=3.0)
    _distances(left, s)
    _finite(middle, s)
    _rates(right, s)
    return figure


def _distances(axes: Axes, s: Paths) -> None:
    times = np.linspace(0.0, s.until, 61)
    for k, beta in enumerate(s.betas):
        values = np.sqrt(measured_distance(Rates(panels=s.panels), beta, times)[0])
        axes.semilogy(times, values, color=COLOURS[k], label=f"β = {beta:g}")
        half, rate = len(times) // 2, sharp_rate(2, beta)
        line = 0.6 * values[half] * np.exp(-rate * (times[half:] - times[half]))
        theory_line(axes, times[half:], line, "$e^{-rt}$" if k == 0 else None)
    axes.set(xlabel="depth-time $t$", ylabel="$W_2$ to the point mass", title="densities")
    axes.legend(loc="lower left")


def _finite(axes: Axes, s: Paths) -> None:
    times = np.linspace(0.0, s.until, 97)
    middle = 0.5 * (times[1:] + times[:-1])
    for k, n in enumerate(s.sizes):
        tokens = quantile_tokens(n, Quantiles().tilt)
        run = flow(unnormalised(s.beta, 2), tokens, times=times, record=W2_SQUARED, rtol=1e-9, atol=1e-14)
        square = run["w2_squared"].values
        kept = square[1:] > 1e-22
        axes.plot(middle[kept], local_rates(times, square)[kept], color=COLOURS[k], label=f"n = {n}")
    ends = [0.0, s.until]
    for rate, label in ((sharp_rate(2, s.beta), "$\\frac{1}{2}e^{-\\beta}$ and $e^{\\beta}$"), (np.exp(s.beta), None)):
        theory_line(axes, ends, [rate, rate], label)
    axes.set(xlabel="depth-time $t$", ylabel="local rate of $W_2$", title=f"finite n, β = {s.beta:g}")
    axes.legend(loc="center right")


def _rates(axes: Axes, s: Paths) -> None:
    betas = np.linspace(min(s.measured) - 0.2, max(s.measured) + 0.2, 121)
    window = np.linspace(0.4, 0.6, 4) * s.until
    for k, d in enumerate((2, 3)):
        theory_line(axes, betas, [sharp_rate(d, b) for b in betas], "sharp rate" if k == 0 else None)
        found = []
        for beta in s.measured:
            late = min(1.0, np.exp(beta)) * window  # the last mass to leave stays on the grid
            squares = measured_distance(Rates(d=d, panels=s.panels, points=3), beta, np.concatenate([[0.0], late]))[0]
            found.append(local_rates(late, squares[1:])[-1])
        axes.plot(s.measured, found, "os"[k], color=COLOURS[k], ms=5, label=f"d = {d}")
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel="rate $r$", title="sharp rate")
    axes.legend()
