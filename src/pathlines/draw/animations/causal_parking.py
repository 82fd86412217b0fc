"""Tokens that park one after another at the centres of the circle.

Clustering in causal attention masking, arXiv:2411.04990: causally masked tokens with Q = K = V = I on the circle gather
at early ones that are far from all before them, and move on only after times exponential in β.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.draw.animation import Reel, animation
from pathlines.draw.figures.causal.causal_parking import KINDS, draw_circle, parked
from pathlines.draw.style import COLOURS, INK, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import CAUSAL_CLUSTERING
from pathlines.foundation.setting import Setting, means

HOLD = 10
"""Frames for which the last one stays."""


class Parking(Setting):
    """One prompt, filmed."""

    n: of.Tokens = 200
    beta: of.Beta = 64.0
    c: Annotated[of.Positive, means("separation of centres in units of β^{-1/2}", "c")] = 4.0
    until: of.Until = 100.0
    frames: Annotated[of.Count, means("frames of the film")] = 80
    seed: of.Seed = 2


@animation(
    "causal/parking",
    CAUSAL_CLUSTERING,
    "Causally masked tokens on the circle. Strong centres (red diamonds, outside) rest and centres (black, inside) "
    "hardly move, while all others drift to the nearest one and park. Right: the share of tokens within β^{−1/2} of a "
    "centre and of a strong one. Time runs like a square: half of the frames show its first quarter.",
    quick=Parking(),
    full=Parking(n=400, beta=100.0, frames=240),
)
def parking(s: Parking) -> Reel:
    """Circle on the left, coverage on the right."""
    times = np.linspace(0, 1, s.frames) ** 2 * s.until
    course = parked(s.n, s.beta, s.c, times, s.seed)
    shares = course.covered(s.beta**-0.5)
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.8)
    draw_circle(left)
    (dots,) = left.plot([], [], "o", color=COLOURS[0], ms=5, alpha=0.35, mec="none", zorder=3)
    marks = [
        left.plot([], [], mark, color=ink, ms=size, zorder=4)[0]
        for mark, size, (_, ink) in zip("oD", (3.5, 5), KINDS, strict=True)
    ]
    clock = left.text(0, 0, "", ha="center", va="center", fontsize=12, color=INK)
    lines = []
    for share, (name, ink) in zip(shares, KINDS, strict=True):
        right.plot(times, share, color=ink, lw=1.0, alpha=0.25)
        lines.append(right.plot([], [], color=ink, lw=2.0, label=name)[0])
    right.axhline(1.0, color=MUTED, lw=0.7)
    right.set(xlabel="depth-time $t$", ylabel=r"share of tokens within $\beta^{-1/2}$", ylim=(0, 1.04))
    right.set_title(f"n = {s.n}, β = {s.beta:g}, δ = {s.c:g}β$^{{-1/2}}$")
    right.legend(loc="lower right")

    def show(k: int) -> None:
        frame = min(k, s.frames - 1)
        x = course.tokens[frame]
        dots.set_data(*x.T)
        for mark, flags, radius in zip(marks, (course.centres, course.strong), (0.93, 1.08), strict=True):
            mark.set_data(*(radius * x[flags]).T)
        clock.set_text(f"t = {times[frame]:.1f}")
        for line, share in zip(lines, shares, strict=True):
            line.set_data(times[: frame + 1], share[: frame + 1])

    return Reel(figure, s.frames + HOLD, show)
