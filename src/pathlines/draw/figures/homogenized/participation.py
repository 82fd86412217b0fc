"""How concentrated random attention is (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import HEAT, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.limit.homogenized.participation import participations
from pathlines.limit.homogenized.simplex import simplex_table


class Participation(Setting):
    """Logit scales, and where narrow heads are computed."""

    n: of.Tokens = 32
    scales: Annotated[of.NonNegatives, means("logit scales", "b")] = (1.0, 2.0, 4.0, 8.0)
    width: Annotated[of.Count, means("width of narrow heads", "p")] = 16
    narrow: Annotated[of.NonNegatives, means("logit scales with narrow heads", "b")] = (2.0, 8.0)
    points: Annotated[of.Count, means("overlaps at which narrow heads are computed")] = 6
    frames: Annotated[of.Count, means("points of a curve")] = 161


@picture(
    "homogenized/participation",
    HOMOGENIZED,
    "Attention of n tokens of common overlap γ: f = E Σ π_ik² (1/f keys share the attention of one token) and g = E Σ "
    "π_ik π_jk (how much two tokens attend to the same keys), for several logit scales b. Wide heads solid, narrow "
    "heads dashed with circles where they were computed. At γ = 0 wide heads have g = 1/n whatever b, narrow ones "
    "more; at γ = 1 both are 1/n.",
    quick=Participation(),
    full=Participation(narrow=(1.0, 2.0, 4.0, 8.0), points=17),
)
def participation(s: Participation) -> Figure:
    """f on the left, g on the right."""
    figure, ((left, right),) = new_figure(1, 2, width=4.1, height=3.0)
    gamma = 1 - np.linspace(1 + 0.999 / (s.n - 1), 0, s.frames) ** 2 / (1 + 0.999 / (s.n - 1))
    coarse = 1 - np.linspace(1, 0, s.points) ** 2
    for k, b in enumerate(s.scales):
        ink, table = HEAT(0.3 + 0.65 * k / max(1, len(s.scales) - 1)), simplex_table(s.n, b)
        left.plot(gamma, table.f(gamma), color=ink, label=f"b = {b:g}")
        right.plot(gamma, table.g(gamma), color=ink)
        if b in s.narrow:
            found = [participations(np.array([float(s.n)]), b, float(x), s.width, light=True) for x in coarse]
            fine = np.linspace(0, 1, s.frames)
            for axes, values in zip((left, right), np.array(found)[..., 0].T):
                wide = table.f if axes is left else table.g
                ratio = PchipInterpolator(np.sqrt(1 - coarse)[::-1], (values / wide(coarse))[::-1])
                axes.plot(fine, ratio(np.sqrt(1 - fine)) * wide(fine), color=ink, ls=(0, (3, 2)), lw=1.1)
                axes.plot(coarse, values, "o", color=ink, ms=3.2, mfc="white", zorder=5)
    left.plot([], [], color=MUTED, label="p = ∞")
    left.plot([], [], color=MUTED, ls=(0, (3, 2)), lw=1.1, marker="o", ms=3.2, mfc="white", label=f"p = {s.width}")
    for axes in (left, right):
        axes.axhline(1 / s.n, color=MUTED, ls=":", lw=1.1, label="1/n")
        axes.set(xlabel=r"overlap $\gamma$", xlim=(gamma[0], 1), ylim=(0, None))
    left.set(ylabel=r"$f(\gamma) = \mathbf{E}\,\sum_k \pi_{ik}^2$", title=f"concentration, n = {s.n}")
    right.set(ylabel=r"$g(\gamma) = \mathbf{E}\,\sum_k \pi_{ik}\pi_{jk}$", title=f"coincidence, n = {s.n}")
    legend_below(figure, [left])
    return figure
