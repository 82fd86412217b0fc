"""How the overlaps of pairs move to one (A mathematical perspective on Transformers, arXiv:2312.10794)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import HEAT, INK, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.integrate.side_by_side import side_by_side
from pathlines.limit.clustering.equiangular import overlap_at
from pathlines.model import SelfAttention
from pathlines.observable.pairs import pair_histogram


class Histograms(Setting):
    """Uniform starts in several dimensions."""

    n: of.Tokens = 32
    dimensions: of.Dimensions = (2, 8, 512)
    beta: of.Beta = 4.0
    times: of.Shown = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
    bins: of.Bins = 60
    runs: of.Runs = 64
    rtol: of.Rtol = 1e-05
    seed: of.Seed = 0


def _starts(d: int, s: Histograms) -> Array:
    """Uniform starts as (runs, n, n): in their span for d ≥ n, padded with zeros below; neither changes an overlap."""
    keys = jax.random.split(jax.random.key(s.seed), s.runs)
    if d >= s.n:
        return jax.vmap(lambda key: Sphere(d).uniform_span(key, s.n))(keys)
    tokens = jax.vmap(lambda key: Sphere(d).uniform(key, s.n))(keys)
    return jnp.pad(tokens, ((0, 0), (0, 0), (0, s.n - d)))


def _densities(s: Histograms) -> np.ndarray:
    """(dimensions, times, bins): the law of the overlap of a pair, over pairs and runs."""
    starts = jnp.concatenate([_starts(d, s) for d in s.dimensions])
    counted = pair_histogram.at(bins=s.bins)
    models = [SelfAttention(s.beta)] * len(starts)
    data = side_by_side(models, starts, times=s.times, record=counted, rtol=s.rtol)
    shares = data[counted.name].values.reshape(len(s.dimensions), s.runs, len(s.times), s.bins)
    return shares.mean(axis=1) * s.bins / 2


def _ridges(axes: Axes, d: int, density: np.ndarray, s: Histograms) -> None:
    """One ridge a time, earliest on top; the last cell, where merged pairs pile up, is cut and given as a number."""
    edges = np.linspace(-1, 1, s.bins + 1)
    step = 0.75 * np.sqrt(density[:, :-1]).max() if d >= s.n else 1.15 * np.sqrt(density[:, :-1]).max()
    heights = np.minimum(np.sqrt(density), 1.3 * step)
    for k, height in enumerate(heights):
        base = -k * step
        ink = HEAT(0.3 + 0.6 * k / max(1, len(heights) - 1))
        axes.stairs(base + height, edges, baseline=base, fill=True, color=ink, zorder=2 * k + 1)
        axes.stairs(base + height, edges, baseline=base, color="white", lw=0.6, zorder=2 * k + 2)
        axes.plot([-1, 1], [base, base], color=ink, lw=0.8, zorder=2 * k + 1)
        axes.text(-1.05, base, f"t = {s.times[k]:g}", ha="right", va="bottom", fontsize=8, color=INK)
        share = 200 * density[k, -1] / s.bins
        axes.text(1.05, base, f"{share:.0f} %", ha="left", va="bottom", fontsize=8, color=INK)
        if d >= s.n:
            gamma = float(overlap_at(s.times[k], s.n, s.beta))
            style = {"color": THEORY, "ls": (0, (3, 1.6)), "lw": 1.2, "zorder": 2 * len(heights) + 3}
            label = r"equiangular $\gamma_\beta(t)$" if k == 0 else None
            axes.plot([gamma, gamma], [base, base + 0.9 * step], label=label, **style)
    axes.text(1.05, 1.05 * step, f"> {edges[-2]:.2f}", ha="left", va="bottom", fontsize=8, color=INK)
    axes.set(xlim=(-1, 1), ylim=(-(len(heights) - 1) * step - 0.1 * step, 1.35 * step))
    axes.set(xlabel=r"overlap $\langle x_i, x_j\rangle$ of a pair", title=f"n = {s.n}, d = {d}, β = {s.beta:g}")
    axes.set_ylabel(r"$\sqrt{\mathrm{density}}$, shifted by time", labelpad=34)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


@picture(
    "clustering/histograms",
    PERSPECTIVE,
    "Histograms of the overlaps of pairs (diagonal excluded) at successive times, pooled over independent runs; on the "
    "right the share of the pairs in the last cell, where the peak is cut. In low "
    "dimension overlaps scatter over the whole interval while clusters merge; in high dimension they stay together and "
    "follow the equiangular curve γ_β(t).",
    quick=Histograms(),
    full=Histograms(runs=1024, bins=100),
)
def histograms(s: Histograms) -> Figure:
    """One ridge plot a dimension."""
    figure, (panels,) = new_figure(1, len(s.dimensions), width=3.3, height=3.7)
    for axes, d, density in zip(panels, s.dimensions, _densities(s)):
        _ridges(axes, d, density, s)
    if any(d >= s.n for d in s.dimensions):
        legend_below(figure, panels)
    return figure
