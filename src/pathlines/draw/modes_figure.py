"""Drawings of the modes of a density estimator: of one sample, and of many against theory."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, house_style, new_figure, theory_line
from pathlines.limit.metastability.kde_modes import belt, bracket, last_mode, mode_density
from pathlines.observable.kde_modes import ModeTable


def estimator(t: np.ndarray, samples: np.ndarray, beta: float) -> np.ndarray:
    """P̂(t), in blocks of points: O(len(t) · n) time."""
    blocks = np.array_split(t, 1 + len(t) * len(samples) // (1 << 22))
    bumps = [np.exp(-beta * (b[:, None] - samples) ** 2 / 2).mean(axis=1) for b in blocks]
    return np.sqrt(beta / (2 * np.pi)) * np.concatenate(bumps)


def sample_figure(samples: np.ndarray, table: ModeTable) -> Figure:
    """The estimator of one sample, its modes and the samples themselves."""
    with house_style():
        figure, ((axes,),) = new_figure(width=5.6, height=3.0)
        h = table.beta**-0.5
        t = np.linspace(samples.min() - 3 * h, samples.max() + 3 * h, 1500)
        t = np.unique(np.concatenate([t, table.position]))
        axes.plot(t, estimator(t, samples, table.beta), color=COLOURS[0], label=r"$\hat P_n$")
        height = estimator(table.position, samples, table.beta)
        axes.plot(table.position, height, "v", color=COLOURS[1], ms=5, label=f"{table.count[0]} modes")
        axes.plot(samples, np.zeros_like(samples), "|", color=MUTED, ms=7, label=f"{len(samples)} samples")
        axes.set(xlabel="$t$", ylabel="density", title=rf"bandwidth $\beta^{{-1/2}}$ = {h:.3g}")
        legend_below(figure, [axes])
        return figure


def ensemble_figure(n: int, table: ModeTable) -> Figure:
    """How many modes there are, and where, over many samples of n normals."""
    with house_style():
        figure, ((left, right),) = new_figure(1, 2, width=3.8, height=2.8)
        draw_counts(left, n, table)
        draw_positions(right, n, table)
        left.set_title(f"n = {n}, β = {table.beta:g}")
        legend_below(figure, [left, right], columns=4)
        return figure


def draw_counts(axes: Axes, n: int, table: ModeTable) -> None:
    """Histogram of the number of modes, its mean and the bracket of theory."""
    values, times = np.unique(table.count, return_counts=True)
    axes.bar(values, times / times.sum(), color=COLOURS[0], width=0.8, alpha=0.75, label="share of samples")
    axes.axvline(table.mean, color=COLOURS[1], label="mean")
    low, high = bracket(n, table.beta)
    if np.isfinite(low):
        axes.axvspan(low, high, color=COLOURS[3], alpha=0.25, lw=0, label="bracket of the mean")
    axes.set(xlabel="number of modes", ylabel="share of samples")


def draw_positions(axes: Axes, n: int, table: ModeTable, bins: int = 60) -> None:
    """Modes a unit of t, the Kac-Rice density, and the belt shaded."""
    edge = last_mode(n, table.beta)
    reach = max(np.abs(table.position).max(), 1.0) * 1.02
    edges = np.linspace(-reach, reach, bins + 1)
    heights = np.histogram(table.position, edges)[0] / (len(table.count) * np.diff(edges))
    axes.stairs(heights, edges, fill=True, color=COLOURS[0], alpha=0.75, label="modes of samples")
    if np.isfinite(edge):
        t = np.linspace(-edge, edge, 500)
        theory_line(axes, t, mode_density(t, n, table.beta), label="Kac–Rice density")
        for k, (a, b) in enumerate(belt(n, table.beta)):
            axes.axvspan(a, b, color=COLOURS[3], alpha=0.22, lw=0, zorder=0, label="belt" if k == 0 else None)
    axes.set(xlabel="position $t$", ylabel="modes per unit of $t$")
