"""Ranks of limit covariances, and what a threshold makes of them (A Unified Perspective, arXiv:2501.18322)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.claim.gaussian.common_limit import random_limits
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.gaussian_fate import Fate, fates
from pathlines.limit.gaussian.orthogonal import rank_counts
from pathlines.model.gaussian.closure import gaussian_closure


class Ranks(Setting):
    """Random clouds of several dimensions."""

    dimensions: of.Dimensions = (3, 4, 5)
    draws: of.Draws = 60
    threshold: of.CountedFrom = 0.1
    seed: of.Seed = 6


@picture(
    "gaussian/rank-histograms",
    UNIFIED,
    "Limits of softmax attention with V = I, K = −Q, Q Gaussian with ⌊d/2⌋ rows. Counting eigenvalues above 0.1, as in "
    "the published histograms, gives the law of a Wishart matrix (dots, exact); the rank itself, with a relative "
    "threshold, is ⌈d/2⌉ in every draw.",
    quick=Ranks(),
    full=Ranks(draws=400),
)
def rank_histograms(s: Ranks) -> Figure:
    """One panel a dimension."""
    figure, (panels,) = new_figure(1, len(s.dimensions), width=2.7, height=2.5, sharey=True)
    for axes, d in zip(panels, s.dimensions, strict=True):
        _histogram(axes, d, random_limits(d, s.draws, s.seed), s.threshold, f"d = {d}", wishart=True)
    _finish(figure, panels)
    return figure


class RanksByKind(Setting):
    """The same for several kinds of attention."""

    kinds: of.ClosureKinds = ("softmax", "l2")
    dimensions: of.Dimensions = (3,)
    draws: of.Draws = 60
    threshold: of.CountedFrom = 0.1
    relative: Annotated[of.Positive, means("eigenvalues count to the rank above this share")] = 1e-06
    until: Annotated[of.Positive, means("where a cloud is given up", unit="depth-time")] = 100000000.0
    seed: of.Seed = 6


@picture(
    "gaussian/rank-histograms-kinds",
    UNIFIED,
    "The other published histograms: softmax and l2 attention, V = I or V = GᵀG, K = −Q with ⌊d/2⌋ rows, at scale-free "
    "time 10⁸. With V = I both kinds have the same limit, and counts above 0.1 the law of a Wishart matrix (dots, "
    "exact). With a random V there is no closed form; the rank, with a relative threshold of 10⁻⁶, is ⌈d/2⌉ but for "
    "clouds that are still relaxing, a third under softmax.",
    quick=RanksByKind(),
    full=RanksByKind(dimensions=(3, 4, 5), draws=100),
)
def rank_histograms_kinds(s: RanksByKind) -> Figure:
    """A row a dimension, a column a kind of attention and of V."""
    rows, cases = len(s.dimensions), [(kind, random) for random in (False, True) for kind in s.kinds]
    figure, grid = new_figure(rows, len(cases), width=2.1, height=2.5, sharey=True)
    for row, (panels, d) in enumerate(zip(grid, s.dimensions, strict=True)):
        for axes, (kind, random) in zip(panels, cases, strict=True):
            found = _limits(kind, random, d, s)
            title = f"{kind}, {'V = GᵀG' if random else 'V = I'}" + (f", d = {d}" if rows > 1 else "")
            _histogram(axes, d, found, s.threshold, title, wishart=not random)
        _finish(figure, panels, legend=row == 0)
    return figure


def _limits(kind: str, random: bool, d: int, s: RanksByKind) -> list[Fate]:
    """Fates of Σ₀ = FFᵀ, K = -Q: the same draws in all cases."""
    rng = np.random.default_rng(s.seed)
    queries, factors, roots = (rng.standard_normal((s.draws, rows, d)) for rows in (d // 2, d, d))
    values = [g.T @ g if random else np.eye(d) for g in roots]
    models = [gaussian_closure(kind, v, q, -q) for v, q in zip(values, queries, strict=True)]
    return fates(models, factors, until=s.until, rtol=1e-7, rank_tolerance=s.relative, still=1e-12)


def _histogram(axes: Axes, d: int, found: list[Fate], threshold: float, title: str, wishart: bool) -> None:
    """Bars of both counts, and the exact law of the first where it is known."""
    most, top = -(-d // 2), max(-(-d // 2), *(f.rank for f in found))
    k = np.arange(top + 1)
    above = np.array([np.sum(np.array(f.eigenvalues) > threshold) for f in found])
    for shift, counts, ink, label in (
        (-0.2, above, COLOURS[3], f"eigenvalues above {threshold:g}"),
        (0.2, np.array([f.rank for f in found]), COLOURS[0], "rank"),
    ):
        heights = np.bincount(counts, minlength=top + 1)[: top + 1] / len(found)
        axes.bar(k + shift, heights, 0.38, color=ink, label=label, lw=0)
    if wishart:
        law = rank_counts(d, threshold)
        axes.plot(np.arange(most + 1) - 0.2, law, "o", color=THEORY, ms=4, label="Wishart law", zorder=5)
    axes.set(xlabel="count", xticks=k, title=title)


def _finish(figure: Figure, panels: Sequence[Axes], legend: bool = True) -> None:
    panels[0].set_ylabel("fraction of draws")
    for axes in panels[1:]:
        axes.set_ylabel(" ")
    if legend:
        legend_below(figure, panels)
