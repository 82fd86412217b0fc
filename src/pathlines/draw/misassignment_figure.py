"""Drawings of concentration at low temperature: the start with its separatrices, the distance with its plateau."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.style import COLOURS, MUTED, house_style, new_figure, theory_line
from pathlines.limit.followups.separatrix import Density, Misassignment, distances, normalised


def misassignment_figure(
    density: Density, beta: float, value: Any, known: Misassignment, until: float, found: Any = None
) -> Figure:
    """Left the density with the mass that goes to the wrong pole; right theory, and a simulation if there is one."""
    with house_style():
        figure, ((left, right),) = new_figure(1, 2, width=3.8, height=3.0)
        draw_start(left, density, known)
        t = np.linspace(0, until, 200)
        if found is not None:
            right.semilogy(found.times, found.distance, color=COLOURS[0], label="simulated")
        if known.reliable:
            theory_line(right, t, distances(density, beta, value, t), "theory")
            right.axhline(known.plateau, color=COLOURS[1], lw=1.0, ls=":", label="plateau 2√mis")
        right.set(
            yscale="log", xlabel="depth-time $t$", ylabel="distance to the projected start", title=f"β = {beta:g}"
        )
        if known.reliable or found is not None:
            right.legend()
        return figure


def draw_start(axes: Axes, density: Density, known: Misassignment) -> None:
    """The density over the angle from e_1; what lies between the two separatrices is red, drawn at least 1° wide.

    Nothing is red if β is too small for the theory.
    """
    pole = np.arctan2(known.axis[1], known.axis[0])
    theta, rho = np.linspace(-np.pi, np.pi, 721), normalised(density)
    axes.plot(np.rad2deg(theta), rho(pole + theta), color=COLOURS[0])
    axes.set_ylim(bottom=0)
    for at, shift in zip((np.pi / 2, -np.pi / 2), known.shifts, strict=True):
        axes.axvline(np.rad2deg(at), color=MUTED, lw=0.8)
        if not known.reliable:
            continue
        wide = np.sign(shift) * max(abs(shift), np.pi / 180) if shift else 0.0
        band = np.linspace(at, at + wide, 20)
        axes.fill_between(np.rad2deg(band), rho(pole + band), color=COLOURS[1], lw=0)
    axes.set(xlabel="angle from $e_1$ (degrees)", ylabel=r"density $\rho_0$")
    axes.set_title(f"{known.mass:.2%} to the wrong pole" if known.reliable else "β is too small for the theory")
    axes.set_xticks([-180, -90, 0, 90, 180])
