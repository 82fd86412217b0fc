"""A picture of one staircase: energy over ln t and over rescaled time, and where the clusters are."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.style import COLOURS, MUTED, house_style, new_figure
from pathlines.integrate.staircase import Staircase


def steps(found: Staircase, clock: str) -> tuple[np.ndarray, np.ndarray]:
    """Times ("log10" or "rescaled") and energies, led by the first plateau and followed by the last."""
    if clock == "rescaled":
        times, energies = found.rescaled_time, found.energy
        tail = 0.08 * max(times[-1], 1e-9)
        return np.append(times, times[-1] + tail), np.append(energies, energies[-1])
    known = np.isfinite(found.log_time)
    times, energies = found.log_time[known] / np.log(10), found.energy[known]
    begin = min(0.0, times[0])
    tail = 0.06 * (times[-1] - begin)
    return np.concatenate([[begin], times, [times[-1] + tail]]), np.concatenate([energies[:1], energies, energies[-1:]])


def staircase_figure(found: Staircase) -> Figure:
    """Energy on both clocks; on the circle also the angles, thickness by mass."""
    with house_style():
        panels = 3 if found.positions.ndim == 2 else 2
        figure, (axes,) = new_figure(1, panels, width=3.3, height=2.7)
        for place, clock, label in zip(axes, ("log10", "rescaled"), (r"$\log_{10}\,t$", "rescaled time")):
            place.plot(*steps(found, clock), color=COLOURS[0])
            for level in found.levels:
                place.axhline(level, color=MUTED, lw=0.5, ls=(0, (2, 2)), zorder=1)
            place.set(xlabel=label, ylabel="energy $E$", ylim=(0, 1.05))
        if panels == 3:
            _paths(axes[2], found)
        figure.suptitle(f"{found.kind.upper()}, β = {found.beta:g}, {found.outcome}", fontsize=8, color=MUTED, x=0.01,
                        ha="left")  # fmt: skip
    return figure


def _paths(axes: Axes, found: Staircase) -> None:
    known = np.isfinite(found.log_time)
    times = found.log_time[known] / np.log(10)
    for k, mass in enumerate(found.masses):
        angles = found.positions[known, k]
        # a pair that met across the end of the unwrapped angles goes on one turn away: lift the pen there
        turned = np.flatnonzero(np.abs(np.diff(angles)) > np.pi) + 1
        axes.plot(np.insert(times, turned, np.nan), np.insert(angles, turned, np.nan),
                  color=COLOURS[k % len(COLOURS)], lw=0.8 + 3 * mass)  # fmt: skip
    axes.set(xlabel=r"$\log_{10}\,t$", ylabel="angle of each cluster")
