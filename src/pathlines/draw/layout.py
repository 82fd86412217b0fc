"""Legends and colour bars that never cover data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure

from pathlines.draw.style import MUTED


def legend_below(figure: Figure, panels: Iterable[Axes], columns: int | None = None, **kwargs: Any) -> None:
    """One legend under all panels, each label once."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    style = {"loc": "outside lower center", "handlelength": 1.9, "columnspacing": 1.6, **kwargs}
    figure.legend(list(entries.values()), list(entries), ncols=columns or len(entries), **style)


def colour_bar(figure: Figure, mappable: Any, panels: Any, label: str, **kwargs: Any) -> Colorbar:
    """A thin colour bar with a quiet outline."""
    bar = figure.colorbar(mappable, ax=panels, **{"shrink": 0.9, "aspect": 26, "pad": 0.03, **kwargs})
    bar.set_label(label)
    bar.outline.set_edgecolor(MUTED)
    bar.outline.set_linewidth(0.6)
    bar.ax.tick_params(which="both", color=MUTED, width=0.6)
    return bar
