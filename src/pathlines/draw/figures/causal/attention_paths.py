"""Retrieval as a sum over paths of attention, and two rival theories (derived; see ``limit.causal.paths``)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.limit.causal.paths import hop_contributions, path_influence, rollout


class Hops(Setting):
    """A causal mask with ALiBi and how its hops are shown."""

    n: of.Tokens = 256
    slope: Annotated[of.NonNegative, means("ALiBi slope", "λ")] = 2.0
    x: Annotated[of.NonNegative, means("depth times rate of a hop", "x")] = 1.2
    hops: Annotated[of.Count, means("hops shown one by one")] = 4
    layers: Annotated[of.Count, means("layers of the rivals", "L")] = 6
    skip: Annotated[of.Share, means("residual share of rollout", "α")] = 0.5


@picture(
    "causal/attention-paths",
    KINETIC,
    "Left: the influence of each token on the last one, split by the number of hops of attention; one hop makes "
    "recency, many hops make primacy. Right: the same mask under other weights of a hop, each over its mean: e^{xP} "
    "(flow), powers of the mask (arXiv:2603.10123) and rollout with a residual share (arXiv:2602.16837).",
    quick=Hops(),
)
def attention_paths(s: Hops) -> Figure:
    """Stacked hops; rivals."""
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.0)
    mask, sigma = (s.n, s.slope), np.arange(1, s.n) / s.n
    parts = hop_contributions(mask, s.x, 40)[:, :-1]
    shown = [*parts[1 : s.hops + 1], parts[s.hops + 1 :].sum(axis=0)]
    labels = [f"{k} hop{'s' if k > 1 else ''}" for k in range(1, s.hops + 1)] + ["more hops"]
    left.stackplot(sigma, shown, labels=labels, colors=COLOURS[: len(shown)], alpha=0.75, lw=0)
    left.plot(sigma, parts[1:].sum(axis=0), color=THEORY, lw=1.1)
    top = float(np.sort(parts[1:].sum(axis=0))[-max(2, s.n // 50)])
    left.set(
        xlabel="source position $i/N$",
        ylabel=r"$N[e^{xP}]_{Ni}$",
        ylim=(0, 1.3 * top),
        title=f"λ = {s.slope:g}, x = {s.x:g}",
    )
    rivals = (
        (f"flow, x = {s.x:g}", path_influence(mask, s.x)),
        (f"powers of the mask, L = {s.layers}", rollout(mask, 0.0, s.layers)),
        (f"rollout, α = {s.skip:g}, L = {s.layers}", rollout(mask, s.skip, s.layers)),
    )
    for k, (label, row) in enumerate(rivals):
        right.plot(sigma, row[:-1] / row[:-1].mean(), color=COLOURS[k], label=label)
    right.set(
        xlabel="source position $i/N$",
        ylabel="influence over its mean",
        yscale="log",
        ylim=(1e-3, None),
        title="rival theories",
    )
    legend_below(figure, [left, right], columns=4)
    return figure
