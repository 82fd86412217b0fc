"""Who follows whom (The emergence of clusters in self-attention dynamics, arXiv:2305.05465)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from pathlines.domain import Euclidean
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import attention_matrix


def _graph(axes: Axes, z: np.ndarray, weights: np.ndarray, threshold: float) -> None:
    """Tokens, an edge for each P_ij above the threshold, as dark and wide as P_ij; leaders attend to themselves."""
    i, j = np.nonzero((weights > threshold) & ~np.eye(len(z), dtype=bool))
    share = weights[i, j]
    order = np.argsort(share)
    inks = [to_rgba(COLOURS[0], 0.04 + 0.75 * p) for p in share[order]]
    pieces = np.stack([z[i], z[j]], axis=1)[order]
    axes.add_collection(LineCollection(list(pieces), colors=inks, linewidths=0.4 + 1.6 * share[order], zorder=2))
    leads = np.diagonal(weights) > 0.5
    received = weights.sum(axis=0)
    area = 12 + 9 * received
    axes.scatter(*z[~leads].T, s=area[~leads], color=COLOURS[0], edgecolor="white", lw=0.6, zorder=3)
    axes.scatter(*z[leads].T, s=area[leads], color=COLOURS[1], edgecolor="white", lw=0.6, zorder=4)


class Leaders(Setting):
    """A start in a square, and the edges shown."""

    n: of.Tokens = 20
    start: of.Box = 1.0
    times: of.Shown = (0.0, 1.5, 3.0, 10.0)
    threshold: Annotated[of.Positive, means("weight of attention from which an edge is drawn")] = 0.0001
    seed: of.Seed = 9


@picture(
    "clustering/leaders",
    EMERGENCE,
    "The attention graph in d = 2 with random positive semi-definite V and A (Q = K = A): an edge i → j where P_ij "
    "exceeds the threshold, tokens as large as the attention they receive. Everybody listens to everybody at t = 0; in "
    "the end everybody follows one of a few leaders.",
    quick=Leaders(),
)
def leaders(s: Leaders) -> Figure:
    """The graph at a few times."""
    rng = np.random.default_rng(s.seed)
    b, c = rng.uniform(-1, 1, (2, 2, 2))
    value, score = b @ b.T, c @ c.T
    start = Euclidean(2).cube(jax.random.key(s.seed), s.n, -s.start, s.start)
    run = flow(RescaledAttention(value, score, score), start, times=s.times, record=[positions, attention_matrix])
    figure, panels = new_figure(1, len(s.times), width=2.6, height=2.9)
    z = run["tokens"].values
    low, high = z.min(axis=(0, 1)), z.max(axis=(0, 1))
    margin = 0.09 * np.ptp(z, axis=(0, 1)).max()
    for axes, tokens, weights, t in zip(panels[0], z, run["attention_matrix"].values, run.time):
        _graph(axes, tokens, weights, s.threshold)
        axes.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin), aspect="equal")
        axes.set(xlabel="$z_1$", ylabel="$z_2$", title=f"t = {t:g}")
    key = panels[0][0]
    key.scatter([], [], s=30, color=COLOURS[0], label="token")
    key.scatter([], [], s=60, color=COLOURS[1], label="leader, $P_{jj} > ½$")
    key.plot([], [], color=COLOURS[0], lw=1.4, alpha=0.7, label="attention, darker for larger $P_{ij}$")
    key.set_title(f"n = {s.n}, d = 2, t = {s.times[0]:g}")
    legend_below(figure, [key])
    return figure
