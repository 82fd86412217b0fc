"""Number and places of the modes of kernel density estimators (arXiv:2412.09080)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.modes_figure import draw_positions
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KDE_MODES
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.kde_modes import bracket, leading_constant, leading_order
from pathlines.observable.kde_modes import normal_modes


class Densities(Setting):
    """Normal samples and bandwidths."""

    sizes: Annotated[of.Counts, means("numbers of points", "n")] = (100, 1000, 10000)
    betas: Annotated[of.Positives, means("inverse squared bandwidths", "β")] = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    runs: of.Draws = 100
    diagonal: Annotated[of.Counts, means("numbers of points with β = n", "n")] = (30, 100, 300, 1000, 3000)
    places: Annotated[tuple[tuple[of.Count, of.Positive], ...], means("lower panels: points, bandwidth", "n, β")] = (
        (10000, 100.0),
        (10000, 1000.0),
    )
    places_runs: Annotated[of.Count, means("draws of the lower panels")] = 300
    seed: of.Seed = 0


def _against_beta(axes: Axes, s: Densities) -> None:
    """E #modes over β, one colour per n, with bracket and leading order."""
    for k, n in enumerate(s.sizes):
        betas = [b for b in s.betas if b <= n]
        tables = [normal_modes(n, b, s.runs, s.seed + i) for i, b in enumerate(betas)]
        fine = np.geomspace(betas[0], betas[-1], 60)
        low, high = np.array([bracket(n, b) for b in fine]).T
        label = "bracket $KR_T$ … $+2n(1-\\Phi(t_e))$" if k == 0 else None
        axes.fill_between(fine, low, high, color=COLOURS[k], alpha=0.2, lw=0, label=label)
        means, errors = [t.mean for t in tables], [2 * t.error for t in tables]
        axes.errorbar(betas, means, errors, fmt="o", ms=3.5, color=COLOURS[k], lw=1, label=f"n = {n}")
        label = "leading order" if k == 0 else None
        theory_line(axes, fine, leading_order(n, fine), label=label, color=COLOURS[k], lw=1.2)
    axes.set(xscale="log", yscale="log", xlabel=r"$\beta$ = bandwidth$^{-2}$", ylabel="expected number of modes")
    axes.set_ylim(bottom=0.8)
    axes.set_title("against β")


def _constant(axes: Axes, s: Densities) -> None:
    """E #modes/√(β log β) along β = n."""
    sizes = np.array(s.diagonal)
    scale = np.sqrt(sizes * np.log(sizes))
    tables = [normal_modes(int(n), float(n), s.runs, s.seed + 50 + i) for i, n in enumerate(sizes)]
    low, high = np.array([bracket(int(n), float(n)) for n in sizes]).T / scale
    axes.fill_between(sizes, low, high, color=COLOURS[4], alpha=0.2, lw=0)
    means, errors = np.array([[t.mean, 2 * t.error] for t in tables]).T / scale
    axes.errorbar(sizes, means, errors, fmt="o", ms=3.5, color=COLOURS[4], lw=1, label=r"$\beta = n$")
    limit = leading_constant(1.0)
    theory_line(axes, sizes, np.full(len(sizes), limit), label=f"limit {limit:.5f}", ls=(0, (1, 1.5)))
    axes.set(xscale="log", xlabel=r"$n = \beta$", ylabel=r"expected modes / $\sqrt{\beta\,\log\beta}$")
    axes.set_title("slow approach of the constant")


@picture(
    "metastability/kde-modes",
    KDE_MODES,
    "Modes of Gaussian kernel density estimators of n normal samples, bandwidth β^{-1/2}. Above left: expected number "
    "against β (points, ± 2 standard errors), the bounds of Kac-Rice theory (shaded) and the leading order (dashed). "
    "Right: divided by √(β log β) along β = n, where the limit 0.38985 is approached only logarithmically. Below: "
    "where the modes are, with the Kac-Rice density (dashed) and the belt to which they concentrate as n → ∞ (shaded).",
    quick=Densities(),
    full=Densities(
        betas=(3.0, 6.0, 10.0, 18.0, 30.0, 56.0, 100.0, 180.0, 300.0, 560.0, 1000.0, 3000.0, 10000.0),
        runs=1000,
        places_runs=3000,
        diagonal=(30, 100, 300, 1000, 3000, 10000, 30000),
    ),
)
def kde_modes(s: Densities) -> Figure:
    """Above: count and constant; below: places, one panel each."""
    figure, (above, below) = new_figure(2, 2, width=4.2, height=2.7)
    _against_beta(above[0], s)
    _constant(above[1], s)
    for axes, (n, beta) in zip(below, s.places, strict=True):
        draw_positions(axes, int(n), normal_modes(int(n), float(beta), s.places_runs, s.seed + 99))
        axes.set_title(f"where the modes are: n = {int(n)}, β = {beta:g}")
    legend_below(figure, [*above, *below], columns=4)
    return figure
