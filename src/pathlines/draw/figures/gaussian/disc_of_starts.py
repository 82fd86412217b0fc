"""Covariances of trace one on the disc: where each start goes (A Unified Perspective, arXiv:2501.18322)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from pathlines.draw.figures.gaussian.cloud_drawing import CLASS_COLOURS, draw_disc, on_disc
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import HEAT, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting
from pathlines.integrate.gaussian_fate import Fate, fates
from pathlines.integrate.side_by_side import side_by_side
from pathlines.limit.gaussian.softmax import identity_value_blow_up
from pathlines.model.gaussian.closure import GaussianClosure, sigma_points
from pathlines.model.gaussian.examples import EXAMPLES, disc_of_covariances
from pathlines.model.gaussian.scaled import ScaledClosure


def paths(model: GaussianClosure, starts: np.ndarray, until: float) -> np.ndarray:
    """Covariances (run, time, 2, 2) in scale-free time: lines on the disc have no speed."""
    factors = np.linalg.cholesky(starts)
    models = [ScaledClosure(model, f) for f in factors]
    tokens = np.stack([sigma_points(np.zeros(2), c) for c in starts])
    times = np.concatenate([[0.0], np.geomspace(0.02, until, 40)])
    data = side_by_side(models, tokens, times=times, record="covariance", rtol=1e-6)
    return data["covariance"].values


def draw_starts(axes: Axes, covariances: np.ndarray, found: list[Fate], title: str) -> None:
    """Paths in the colour of their class, dots at the ends."""
    draw_disc(axes)
    seen = set()
    for path, fate in zip(covariances, found, strict=True):
        x, y = on_disc(path)
        ink = CLASS_COLOURS[fate.kind]
        axes.plot(x, y, color=ink, lw=0.7, alpha=0.8, zorder=3)
        axes.plot(x[:1], y[:1], ".", color=ink, ms=2.5, alpha=0.6, zorder=3)
        end_x, end_y = on_disc(np.asarray(fate.covariance))
        label = None if fate.kind in seen else fate.kind
        axes.plot([end_x], [end_y], "o", color=ink, ms=4.5, mec="white", mew=0.6, zorder=5, label=label, clip_on=False)
        seen.add(fate.kind)
    axes.set_title(title)


class Paths(Setting):
    """Starts on the disc of covariances, and weights."""

    examples: of.PublishedWeights = ("zero", "line", "two-lines", "blow-up", "both")
    side: of.DiscSide = 9
    reach: of.DiscReach = 0.95
    until: of.ScaleFree = 30.0
    kind: of.ClosureKind = "softmax"


@picture(
    "gaussian/disc-of-starts",
    UNIFIED,
    "Five sets of weights in the plane (those of the published figures), softmax attention. Each line is the path of "
    "one covariance, scaled to trace one, on the disc (Σ₁₁−Σ₂₂, 2Σ₁₂)/tr Σ, whose rim holds the covariances of rank "
    "one; its colour is the fate, the ringed dot the end. Clouds may vanish, flatten onto one line or one of two, "
    "explode, or do either depending on the start.",
    quick=Paths(),
    full=Paths(side=15),
)
def disc_of_starts(s: Paths) -> Figure:
    """One disc an example."""
    return _discs(s, [(EXAMPLES[name].title, EXAMPLES[name].model(s.kind)) for name in s.examples])


@picture(
    "gaussian/two-heads",
    UNIFIED,
    "The starts and weights of gaussian/disc-of-starts under two heads, one for each row of the matrices: A₁ + A₂ = A "
    "and C₁ + C₂ = V, but each head pairs its own row of V with its own scores. Where the second head is empty "
    "(“line”) only the first row of a covariance moves, and clouds converge without losing a dimension; of the "
    "others “two-lines” keep turning and are not decided, “blow-up” explode along an axis of the heads, and “both” all "
    "vanish.",
    quick=Paths(),
    full=Paths(side=15),
)
def two_heads(s: Paths) -> Figure:
    """One disc an example, its rows split among two heads."""
    return _discs(s, [(f"weights “{name}”", EXAMPLES[name].by_rows(s.kind)) for name in s.examples])


def _discs(s: Paths, models: list[tuple[str, GaussianClosure]]) -> Figure:
    """A disc for each title and model."""
    starts = disc_of_covariances(s.side, s.reach)
    figure, (panels,) = new_figure(1, len(models), width=2.5, height=2.9)
    for axes, (title, model) in zip(panels, models, strict=True):
        found = fates(model, np.linalg.cholesky(starts), rtol=1e-7)
        draw_starts(axes, paths(model, starts, s.until), found, title)
    for axes in panels[1:]:
        axes.set_yticklabels([])
        axes.set_ylabel(" ")
    legend_below(figure, panels)
    return figure


class Disc(Setting):
    """Starts on the disc of covariances."""

    side: of.DiscSide = 25
    reach: of.DiscReach = 0.98


@picture(
    "gaussian/blow-up-times",
    UNIFIED,
    "Depth T* at which a Gaussian cloud explodes under softmax attention, over the disc of starts of trace one, for "
    "the weights of the published blow-up figure (V = I, closed form) and for weights where only some starts explode "
    "(integrated; white starts converge). Starts along the unstable direction explode first.",
    quick=Disc(),
    full=Disc(side=61),
)
def blow_up_times(s: Disc) -> Figure:
    """Closed form on the left, integrated on the right."""
    starts = disc_of_covariances(s.side, s.reach)
    x, y = on_disc(starts)
    exact = [identity_value_blow_up(EXAMPLES["blow-up"].score, c)[0] for c in starts]
    found = fates(EXAMPLES["both"].model(), np.linalg.cholesky(starts), rtol=1e-6)
    seen = [np.nan if f.blow_up_time is None else f.blow_up_time for f in found]
    figure, (panels,) = new_figure(1, 2, width=3.7, height=3.0)
    size = (152 / s.side) ** 2  # points² of one cell, and a little more: no seams
    for axes, times, title in zip(panels, (exact, seen), ("V = I: every start", "convergence or blow-up"), strict=True):
        draw_disc(axes)
        known = np.isfinite(times)
        shown = axes.scatter(
            x[known],
            y[known],
            c=np.asarray(times)[known],
            cmap=HEAT,
            norm=LogNorm(),
            s=size,
            marker="s",
            lw=0,
            zorder=1,
        )
        axes.set_title(title)
        colour_bar(figure, shown, axes, "$T^*$")
    return figure
