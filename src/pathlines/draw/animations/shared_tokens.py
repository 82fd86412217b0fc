"""Three prompts that share tokens travel to targets that share atoms.

Measure-to-measure interpolation using Transformers, arXiv:2411.04551: attention splits what is shared, gates move one
token at a time past all others, reversed attention joins what the targets share.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.draw.animation import Reel, animation
from pathlines.draw.figures.transport.three_prompts import (
    Prompts,
    course,
    draw_prompts,
    draw_ruler,
    draw_targets,
    draw_timeline,
)
from pathlines.draw.orthographic import View, draw_sphere
from pathlines.draw.style import COLOURS, INK, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import means

HOLD = 12
"""Frames for which the last one stays."""


class Journey(Prompts):
    """The journey, filmed."""

    in_attention: Annotated[of.Count, means("frames in a layer of attention")] = 24
    in_a_gate: Annotated[of.Count, means("frames in a gate")] = 3


@animation(
    "transport/shared-tokens",
    MEASURE_TO_MEASURE,
    "Three prompts (colours) that share tokens go to three targets (rings) that share atoms, by one list of layers. "
    "Left: attention splits the shared tokens, gates move one token at a time while all others return to their places, "
    "reversed attention joins them. Right: W₂ of each prompt to its target over the pieces of the ruler, attention in "
    "violet and gates in grey.",
    quick=Journey(),
    full=Journey(in_attention=48, in_a_gate=6),
)
def shared_tokens(s: Journey) -> Reel:
    """Sphere on the left, timeline on the right."""
    found = course(s.prompts, s.n, s.shared, s.seed, (s.in_attention, s.in_a_gate))
    figure, ((left, right),) = new_figure(1, 2, width=4.2, height=3.9)
    view = View(s.azimuth, s.elevation)
    draw_sphere(left, view)
    draw_targets(left, view, found.targets)
    clock = left.text(0, -1.14, "", ha="center", va="top", fontsize=9, color=INK)
    left.set(ylim=(-1.3, 1.06))
    draw_timeline(right, found)
    for line in right.lines:
        line.set(alpha=0.25, lw=1.0)
    lines = [right.plot([], [], color=COLOURS[k], lw=2.0)[0] for k in range(s.prompts)]
    right.set_ylim(0, 1.18 * found.w2.max())  # room for the legend
    right.legend(lines, [f"prompt {k + 1}" for k in range(s.prompts)], loc="upper center", ncols=s.prompts)
    draw_ruler(right, found.pieces)
    names = np.array([name for name, _ in found.stages])
    ends = np.array([count for _, count in found.stages])
    dots = len(left.collections)

    def show(k: int) -> None:
        frame = min(k, len(found.at) - 1)
        for old in list(left.collections)[dots:]:
            old.remove()
        draw_prompts(left, view, found.tokens[frame])
        stage = names[min(int(np.searchsorted(ends, found.at[frame])), len(names) - 1)]
        clock.set_text(f"piece {int(np.ceil(found.at[frame]))} of {len(found.pieces)}: {stage}")
        for line, w2 in zip(lines, found.w2.T, strict=True):
            line.set_data(found.at[: frame + 1], w2[: frame + 1])

    return Reel(figure, len(found.at) + HOLD, show)
