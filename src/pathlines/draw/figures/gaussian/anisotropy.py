"""Ellipses over depth for the three kinds of attention, and their anisotropy (arXiv:2501.18322)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.figures.gaussian.cloud_drawing import ellipse
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, HEAT, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.model.gaussian.closure import sigma_points
from pathlines.model.gaussian.examples import EXAMPLES

_NAMES = {"softmax": "softmax", "l2": "l2", "sinkhorn": "Sinkhorn (ε = 1)"}


class Anisotropy(Setting):
    """One set of weights under several kinds of attention."""

    example: Annotated[str, means("published weights: zero, line, two-lines, blow-up or both")] = "line"
    kinds: of.ClosureKinds = ("softmax", "l2", "sinkhorn")
    until: of.Until = 24.0
    ellipses: of.Ellipses = 8
    frames: of.Records = 61


@picture(
    "gaussian/anisotropy",
    UNIFIED,
    "The same weights under softmax, l2 and Sinkhorn attention: one-sigma ellipses of a cloud at equal depths (drawn "
    "side by side, at true size) and, below, the share λ₁/tr Σ of the leading axis. All three flatten the cloud onto "
    "the kernel of Q, at their own pace.",
    quick=Anisotropy(),
)
def anisotropy(s: Anisotropy) -> Figure:
    """Rows of ellipses, then curves."""
    example = EXAMPLES[s.example]
    start = sigma_points(np.zeros(2), example.start)
    times = np.linspace(0, s.until, s.frames)
    figure, panels = new_figure(2, 1, width=6.4, height=2.4, height_ratios=[1.25, 1])
    (top,), (below,) = panels
    chosen = np.linspace(0, s.frames - 1, s.ellipses).round().astype(int)
    for row, kind in enumerate(s.kinds):
        run = flow(example.model(kind), start, times=times, record=("covariance", "anisotropy"), rtol=1e-8)
        ink = COLOURS[row]
        for column, k in enumerate(chosen):
            shade = HEAT(0.35 + 0.6 * column / len(chosen))
            cov = run["covariance"].values[k]
            top.add_patch(ellipse(cov, (2.0 * column, -1.9 * row), ec=ink, fc=(*shade[:3], 0.12), lw=1.4))
        dashes = "-" if row < 2 else (0, (4, 2))  # Sinkhorn runs along softmax
        below.plot(times, run["anisotropy"].values, color=ink, ls=dashes, label=_NAMES.get(kind, kind))
    top.set(aspect="equal", xlim=(-1, 2 * len(chosen) - 1), ylim=(-1.9 * len(s.kinds) + 0.85, 1.0))
    top.set(xticks=2.0 * np.arange(len(chosen)), xticklabels=[f"{times[k]:.1f}" for k in chosen])
    top.set(yticks=-1.9 * np.arange(len(s.kinds)), yticklabels=[_NAMES.get(k, k) for k in s.kinds])
    top.set(xlabel="depth-time $t$", ylabel="attention", title=example.title)
    top.grid(False)
    below.set(xlabel="depth-time $t$", ylabel=r"$\lambda_1/\mathrm{tr}\,\Sigma$", xlim=(0, s.until))
    legend_below(figure, [below])
    return figure
