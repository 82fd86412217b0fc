"""Retrieval profiles drawn: theory dashed over simulation with its band, or masks side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, house_style, new_figure, theory_line
from pathlines.limit.causal.forecast import RetrievalForecast


def retrieval_figure(found: RetrievalForecast, measured: xr.Dataset | None = None) -> Figure:
    """S_N by source position: sum over paths, closed form, simulation with two standard errors."""
    with house_style():
        figure, ((axes,),) = new_figure(width=5.6, height=3.2)
        position = np.arange(1, found.n) / found.n
        if measured is not None:
            value, error = measured["profile"].values, measured["error"].values
            prompts = int(measured.attrs["prompts"])
            axes.fill_between(position, value - 2 * error, value + 2 * error, color=COLOURS[0], alpha=0.3, lw=0)
            axes.plot(position, value, color=COLOURS[0], lw=1.0, label=f"{prompts} prompts, ± 2 s.e.")
        theory_line(axes, position, np.asarray(found.profile), label=f"paths of attention, N = {found.n}")
        if found.closed_form is not None:
            axes.plot(position, found.closed_form, ":", color=COLOURS[1], label="closed form, N → ∞")
        at = found.worst_position / found.n
        axes.plot([at], [found.worst], "o", color=COLOURS[1], ms=5, zorder=5)
        axes.annotate("worst", (at, found.worst), (0, -14), textcoords="offset points", ha="center", color=MUTED)
        axes.set(
            xlabel="source position $i/N$",
            ylabel="retrieval profile $S$",
            title=f"{found.regime}, depth {found.depth:g}",
        )
        axes.margins(y=0.14)
        legend_below(figure, [axes], columns=3)
        return figure


def masks_figure(found: Mapping[str, RetrievalForecast]) -> Figure:
    """Profiles of several masks, on a logarithmic axis: windows lose the past by orders of magnitude."""
    with house_style():
        figure, ((axes,),) = new_figure(width=5.6, height=3.2)
        for k, (name, one) in enumerate(found.items()):
            position = np.arange(1, one.n) / one.n
            style = ("-", (0, (5, 2)), (0, (2, 2)), "-.")[k % 4]
            axes.plot(position, np.maximum(one.profile, 1e-300), ls=style, color=COLOURS[k % len(COLOURS)], label=name)
        lowest = min(one.worst for one in found.values())
        axes.set(xlabel="source position $i/N$", ylabel="retrieval profile $S$", yscale="log")
        axes.set_ylim(bottom=max(lowest, 1e-6) / 2)
        legend_below(figure, [axes], columns=4)
        return figure
