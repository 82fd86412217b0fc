"""Attention becomes Boolean and of low rank (The emergence of clusters, arXiv:2305.05465)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from pathlines.domain import Euclidean
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar
from pathlines.draw.style import COLOURS, HEAT, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.euclidean import classify_value
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import attention_matrix, attention_rank


def positive_value(d: int, seed: int) -> np.ndarray:
    """A matrix with uniform(0, 1) entries, scaled to leading eigenvalue 1 (simple, by Perron and Frobenius)."""
    matrix = np.random.default_rng(seed).random((d, d))
    return matrix / np.abs(np.linalg.eigvals(matrix)).max()


def _heat(axes: Axes, weights: np.ndarray, t: float, norm: PowerNorm) -> Any:
    shown = axes.imshow(weights, cmap=HEAT, norm=norm, interpolation="nearest")
    axes.grid(False)
    n = len(weights)
    axes.set_xticks([0, n - 1], ["1", str(n)])
    axes.set_yticks([0, n - 1], ["1", str(n)])
    axes.tick_params(length=0)
    axes.set_xlabel("token $j$", labelpad=-6)
    axes.set_title(f"t = {t:g}", fontsize=9, loc="center")
    for side in axes.spines.values():
        side.set(visible=True, linewidth=0.6)
    return shown


class Matrices(Setting):
    """Starts in a cube, and when the matrices are shown."""

    n: of.Tokens = 40
    d: Annotated[of.Count, means("dimension of the lower row", "d")] = 80
    start: of.Box = 1.0
    times: of.Shown = (0.0, 1.0, 2.5, 4.0)
    until: of.Until = 8.0
    frames: of.Records = 81
    tolerance: Annotated[of.Positive, means("singular values count to the rank above this share")] = 1e-06
    seed: of.Seed = 0


@picture(
    "clustering/attention-matrix",
    EMERGENCE,
    "The attention matrix P(t) along the true dynamics, tokens sorted by their leading coordinate at t = 0. In d = 1 "
    "(above) and in high dimension with a leading eigenvalue (below) the rows become unit vectors that point to the "
    "two extreme tokens: P ends Boolean and of rank two.",
    quick=Matrices(),
    full=Matrices(until=12.0, frames=481),
)
def attention_matrices(s: Matrices) -> Figure:
    """Heat maps at a few times, and the rank at all times."""
    columns = len(s.times) + 1
    figure, rows = new_figure(2, columns, 1.95, 2.15, width_ratios=[1] * (columns - 1) + [1.45])
    norm = PowerNorm(0.5, 0, 1)
    times = np.union1d(np.linspace(0, s.until, s.frames), s.times)
    for panels, d in zip(rows, (1, s.d)):
        value = np.ones((1, 1)) if d == 1 else positive_value(d, s.seed)
        start = np.asarray(Euclidean(d).cube(jax.random.key(s.seed), s.n, -s.start, s.start))
        dual = classify_value(value).left if d > 1 else np.ones(1)
        start = start[np.argsort(start @ dual)]
        record = [attention_matrix, attention_rank.at(tolerance=s.tolerance), positions]
        run = flow(RescaledAttention(value), start, times=times, record=record)
        for axes, t in zip(panels, s.times):
            shown = _heat(axes, run["attention_matrix"].values[np.searchsorted(run.time, t)], t, norm)
            axes.set_ylabel("token $i$", labelpad=-8)
        panels[0].set_ylabel(f"d = {d}, n = {s.n}\ntoken $i$", labelpad=-4)
        rank = panels[-1]
        rank.step(run.time, run[record[1].name].values, where="post", color=COLOURS[0])
        rank.axhline(2, color=THEORY, ls=(0, (4, 2.2)), lw=1.1)
        rank.annotate("2", (s.until, 2), (4, 0), textcoords="offset points", va="center", annotation_clip=False)
        rank.set(xlabel="depth-time $t$", ylabel="rank of $P(t)$", ylim=(0, None), xlim=(0, s.until))
        exponent = f"{np.log10(s.tolerance):.0f}".replace("-", "−")
        rank.set_title(f"singular values > $10^{{{exponent}}}$", fontsize=9)
    colour_bar(figure, shown, rows[:, -1].tolist(), "attention $P_{ij}$", aspect=34, shrink=0.85, pad=0.08)
    return figure
