"""Gaussian clouds over depth as moving ellipses, one panel for each fate (arXiv:2501.18322)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.draw.animation import Reel, animation
from pathlines.draw.figures.gaussian.cloud_drawing import CLASS_COLOURS, ellipse
from pathlines.draw.figures.gaussian.disc_of_starts import paths
from pathlines.draw.style import GRID, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.gaussian_fate import fates
from pathlines.model.gaussian.examples import EXAMPLES


def _between(course: np.ndarray, frames: int) -> np.ndarray:
    """Covariances at even steps of the record, linearly between records: a mixture of covariances is one."""
    at = np.linspace(0, len(course) - 1, frames)
    low = np.minimum(at.astype(int), len(course) - 2)
    share = (at - low)[:, None, None]
    return (1 - share) * course[low] + share * course[low + 1]


class Ellipses(Setting):
    """Weights and starts of the clouds."""

    examples: of.PublishedWeights = ("line", "two-lines", "both", "blow-up")
    frames: Annotated[of.Count, means("frames of the film")] = 60
    until: of.ScaleFree = 30.0
    flat: Annotated[of.Share, means("how flat the second cloud is at the start")] = 0.95


@animation(
    "gaussian/ellipses",
    UNIFIED,
    "One-sigma ellipses of Gaussian token clouds over depth, softmax attention with the weights of the published "
    "figures, from a round cloud and a flat upright one. Time runs like the logarithm of the scale-free depth; the "
    "scale of each panel follows its cloud, whose size is written beside it.",
    quick=Ellipses(),
    full=Ellipses(frames=180),
)
def ellipses(s: Ellipses) -> Reel:
    """One panel an example, two clouds a panel."""
    starts = np.array([np.eye(2) / 2, np.diag([1 - s.flat, 1 + s.flat]) / 2])
    figure, (panels,) = new_figure(1, len(s.examples), width=2.3, height=2.6)
    tracks, shown = [], []
    for axes, name in zip(panels, s.examples, strict=True):
        model = EXAMPLES[name].model()
        found = fates(model, np.linalg.cholesky(starts), rtol=1e-7)
        tracks.append([_between(course, s.frames) for course in paths(model, starts, s.until)])
        inks = [CLASS_COLOURS[f.kind] for f in found]
        patches = [axes.add_patch(ellipse(c, ec=ink, lw=1.8)) for c, ink in zip(starts, inks, strict=True)]
        text = axes.text(0.03, 0.03, "", transform=axes.transAxes, color=MUTED, fontsize=7.5)
        axes.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], title=EXAMPLES[name].title)
        axes.axhline(0, color=GRID, lw=0.6)
        axes.axvline(0, color=GRID, lw=0.6)
        shown.append((patches, text))

    def show(k: int) -> None:
        for track, (patches, text) in zip(tracks, shown, strict=True):
            sizes = [np.sqrt(np.trace(course[k])) for course in track]
            for course, patch, size in zip(track, patches, sizes, strict=True):
                new = ellipse(course[k] / size**2)
                patch.set(width=new.width, height=new.height, angle=new.angle)
            text.set_text("sizes " + ", ".join(f"{x:.3g}" for x in sizes))

    return Reel(figure, s.frames, show)
