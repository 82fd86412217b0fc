"""The shapes of the retrieval profile in the plane of ALiBi slope and depth (beyond arXiv:2605.09213; derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, INK, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.limit.causal.profile import Profile


class Shapes(Setting):
    """The axis of slopes."""

    slopes: Annotated[of.Count, means("slopes on the axis")] = 60
    largest: Annotated[of.Positive, means("largest ALiBi slope shown", "λ")] = 8.0


@picture(
    "causal/shape-diagram",
    KINETIC,
    "Shapes of the retrieval profile of a single mode, by slope λ and x = at. Below t_rec it is a U; between t_rec and "
    "t_mono, for λ > ln 4, recency is buried (a minimum and a maximum); above, only primacy is left. Shaded: where the "
    "theorem's condition x ≤ min{3−√3, 2(1−e^{−λ})} proves the U.",
    quick=Shapes(),
)
def shape_diagram(s: Shapes) -> Figure:
    """Two curves and what lies between them."""
    figure, ((axes,),) = new_figure(width=5.0, height=3.3)
    slopes = np.linspace(0.05, s.largest, s.slopes)
    modes = [Profile((1.0,), (1.0,), float(v), 1.0) for v in slopes]
    lost, monotone = (np.asarray([getattr(p, name) for p in modes]) for name in ("recency_lost", "monotone_from"))
    proved = np.minimum(3 - np.sqrt(3), -2 * np.expm1(-slopes))
    axes.fill_between(slopes, 0, proved, color=COLOURS[2], alpha=0.18, lw=0, label="the theorem proves a U")
    axes.fill_between(slopes, lost, monotone, color=COLOURS[3], alpha=0.3, lw=0)
    axes.plot(slopes, lost, color=COLOURS[0], label="$t_{rec}$: recency is lost")
    axes.plot(slopes, monotone, color=COLOURS[1], label="$t_{mono}$: only primacy is left")
    axes.plot([np.log(4)], [1.5], "o", color=INK, ms=5, zorder=6)
    axes.annotate(r"$\lambda = \ln 4$", (np.log(4), 1.5), (-6, 9), textcoords="offset points", ha="right")
    for x, y, word in ((5.0, 0.62, "U"), (6.4, 2.7, "buried recency"), (2.4, 3.6, "primacy only")):
        axes.text(x, y, word, ha="center", color=INK)
    axes.set(
        xlabel=r"ALiBi slope $\lambda$", ylabel=r"depth $x = at$", xlim=(0, s.largest), ylim=(0, 1.08 * monotone.max())
    )
    legend_below(figure, [axes], columns=3)
    return figure
