"""The three curves of a probe, for each observable."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, band, house_style, new_figure, theory_line
from pathlines.probing.curves import OBSERVABLES
from pathlines.probing.examine import Probed


def probe_figure(probed: Probed) -> Figure:
    """Mean cosine, effective rank, RMS and attention entropy against depth."""
    with house_style():
        figure, axes = new_figure(2, 2, width=3.9, height=2.5)
        for panel, name in zip(axes.flat, OBSERVABLES, strict=True):
            _panel(panel, probed, name)
        legend_below(figure, axes.flat)
        return figure


def _panel(axes: Axes, probed: Probed, name: str) -> None:
    trained, initial = probed.trained[name].mean, probed.initial[name]
    layers = np.arange(len(trained))
    mean, spread = np.asarray(initial.mean), np.asarray(initial.spread)
    label = f"random initialisation, {probed.seeds} seeds ± s.d."
    band(axes, layers, mean, spread, COLOURS[1], label, multiple=1.0)
    axes.plot(layers, trained, color=COLOURS[0], label="trained", marker="o" if probed.layers <= 40 else "", ms=3.2)
    if probed.theory is not None:
        theory_line(axes, layers, probed.theory[name].mean, "theory at initialisation")
    if probed.layers > probed.trained_layers:
        axes.axvline(probed.trained_layers, color=MUTED, lw=0.8, ls=":", label="trained depth")
    if name == "residual_rms" and max(trained) > 30 * min(trained):
        axes.set_yscale("log")
    if name == "mean_cosine":
        axes.set_ylim(min(-0.02, min(trained)), 1.02)
    axes.set(xlabel=r"layer $\ell$", ylabel=OBSERVABLES[name], xlim=(0, layers[-1]))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
