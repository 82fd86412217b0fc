"""What the last position depends on: trained, before training, and theory."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, house_style, new_figure, theory_line
from pathlines.probing.retrieval import ProbedRetrieval


def probed_retrieval_figure(probed: ProbedRetrieval) -> Figure:
    """Influence on the last position against the source, as it is and over its least value."""
    with house_style():
        figure, ((left, right),) = new_figure(1, 2, width=3.9, height=2.9)
        positions = np.arange(1, probed.tokens + 1)
        curves = [("trained", probed.trained, COLOURS[0], "o"),
                  (f"random initialisation, {probed.seeds} seeds ± s.e.", probed.initial, COLOURS[1], "s")]  # fmt: skip
        for axes, relative in ((left, False), (right, True)):
            for label, found, colour, marker in curves:
                scale = min(found.influence) if relative else 1.0
                y, error = np.asarray(found.influence) / scale, np.asarray(found.error) / scale
                axes.errorbar(positions, y, error, color=colour, label=label, marker=marker, ms=3, lw=1.1, capsize=1.5)
            if probed.theory is not None:
                y = np.asarray(probed.theory) / (min(probed.theory) if relative else 1.0)
                theory_line(axes, positions, y, "theory at initialisation")
            axes.set(xlabel="source position $i$", yscale="log")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_ylabel(r"influence $\sqrt{\|\partial h_N/\partial h_i\|^2/d}$")
        right.set_ylabel("influence over its least value")
        legend_below(figure, [left])
        return figure
