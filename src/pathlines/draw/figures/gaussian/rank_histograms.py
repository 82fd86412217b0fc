"""Ranks of limit covariances, and what a threshold makes of them (A Unified Perspective, arXiv:2501.18322)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pathlines.claim.gaussian.common_limit import random_limits
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, THEORY, new_figure
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.orthogonal import rank_counts


@picture(
    "gaussian/rank-histograms",
    UNIFIED,
    "Limits of softmax attention with V = I, K = −Q, Q Gaussian with ⌊d/2⌋ rows. Counting eigenvalues above 0.1, as in "
    "the published histograms, gives the law of a Wishart matrix (dots, exact); the rank itself, with a relative "
    "threshold, is ⌈d/2⌉ in every draw.",
    quick={"dimensions": [3, 4, 5], "draws": 60, "threshold": 0.1, "seed": 6},
    full={"draws": 400},
)
def rank_histograms(s: Any) -> Figure:
    """One panel per dimension."""
    figure, (panels,) = new_figure(1, len(s.dimensions), width=2.7, height=2.5, sharey=True)
    for axes, d in zip(panels, s.dimensions, strict=True):
        found = random_limits(d, s.draws, s.seed)
        ranks = np.array([f.rank for f in found])
        most = -(-d // 2)
        k = np.arange(most + 1)
        above = np.array([np.sum(np.array(f.eigenvalues) > s.threshold) for f in found])
        for shift, counts, ink, label in (
            (-0.2, above, COLOURS[3], f"eigenvalues above {s.threshold:g}"),
            (0.2, ranks, COLOURS[0], "rank"),
        ):
            heights = np.bincount(counts, minlength=most + 1)[: most + 1] / s.draws
            axes.bar(k + shift, heights, 0.38, color=ink, label=label, lw=0)
        axes.plot(k - 0.2, rank_counts(d, s.threshold), "o", color=THEORY, ms=4, label="Wishart law", zorder=5)
        axes.set(xlabel="count", xticks=k, title=f"d = {d}")
    panels[0].set_ylabel("fraction of draws")
    for axes in panels[1:]:
        axes.set_ylabel(" ")
    legend_below(figure, panels)
    return figure
