"""When common noise brings tokens together: the map of Λ, and pairs beside their law (arXiv:2604.26898; derived)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, INK, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import SYNCHRONIZATION
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.limit.followups.synchronisation import (
    critical_dimension,
    pair_mean,
    synchronisation_map,
)
from pathlines.model.followups.synchronising_pair import SynchronisingPair

Size = Annotated[of.Positive, means("standard deviation of the entries of W₁", "σ_w")]


class Map(Setting):
    """One activation, and the pairs that are followed."""

    activation: Annotated[str, means("activation: linear, relu, erf, gelu, tanh or silu", "φ")] = "tanh"
    sigma_w: Size = 1.0
    sigma_b: Annotated[of.NonNegative, means("standard deviation of the biases", "σ_b")] = 0.0
    attention: Annotated[of.NonNegative, means("strength of attention", "v")] = 0.0
    beta: of.Beta = 1.0
    d: of.Dimension = 40
    widest: Annotated[of.Positive, means("largest σ_w of the map")] = 3.0
    largest: Annotated[of.Count, means("largest dimension of the map")] = 80
    side: of.MapSide = 41
    gap: Annotated[of.Positive, means("1 − overlap of the pairs at the start", "1 − ρ₀")] = 0.01
    until: Annotated[of.Positive, means("until when pairs are followed", "t")] = 1.0
    runs: Annotated[of.Whole, means("pairs that are followed; 0: theory only")] = 200
    seed: of.Seed = 1


@picture(
    "followups/synchronisation",
    SYNCHRONIZATION,
    "Left: the exponent Λ of a small gap between two tokens under the common noise of random perceptrons, in units of "
    "k(1), over their dimension and the size of their weights: blue, noise synchronises; red, noise separates; on the "
    "black line, the critical dimension, it does neither (dot: the pairs on the right). Right: mean of log(1 − ρ) of "
    "simulated pairs in layers of step h = 0.005 (band: two standard errors), beside the backward equation of the "
    "diffusion (dashed), at the dimension of the dot and at an eighth of it.",
    quick=Map(),
    full=Map(runs=2000, side=81),
)
def synchronisation(s: Map) -> Figure:
    """The map and two dimensions."""
    figure, ((left, right),) = new_figure(1, 2, width=4.2, height=3.2)
    _map(figure, left, s)
    for k, d in enumerate(dict.fromkeys((max(2, s.d // 8), s.d))):
        _pairs(right, s, d, COLOURS[k])
    right.set(xlabel="time $t$", ylabel=r"$\mathbb{E}\,\log(1-\rho)$", title="pairs")
    right.legend()
    return figure


def _map(figure: Figure, axes: Axes, s: Map) -> None:
    dims = np.linspace(2, max(s.largest, s.d, 3), s.side)
    sizes = np.linspace(max(s.widest, s.sigma_w) / s.side, max(s.widest, s.sigma_w), s.side)
    found = synchronisation_map(dims, sizes, s.activation, s.sigma_b, s.attention)
    reach = float(np.abs(found).max())
    norm = SymLogNorm(1.0, vmin=-reach, vmax=reach)  # relu sinks to -2 while tanh climbs to 100
    shown = axes.pcolormesh(dims, sizes, found, cmap="RdBu_r", norm=norm, shading="nearest", rasterized=True)
    axes.grid(visible=False)
    bar = figure.colorbar(shown, ax=axes).ax
    bar.set_xlabel(r"$\Lambda/k(1)$", fontsize=9)
    bar.xaxis.set_label_position("top")
    fine = np.linspace(sizes[0], sizes[-1], 8 * s.side)
    edge = np.array([critical_dimension(s.activation, w, s.sigma_b, s.attention) for w in fine])
    axes.plot(np.where(edge <= dims[-1], edge, np.nan), fine, color=INK, lw=1.4)
    axes.plot(s.d, s.sigma_w, "o", ms=5, mfc="white", mec=INK)
    bias = f", $\\sigma_b$ = {s.sigma_b:g}" if s.sigma_b else ""
    pull = f", $v$ = {s.attention:g}" if s.attention else ""
    axes.set(xlabel="dimension $d$", ylabel=r"weights $\sigma_w$", title=f"{s.activation}{bias}{pull}")


def _pairs(axes: Axes, s: Map, d: int, colour: Any) -> None:
    times = np.linspace(0, s.until, 11)
    if s.runs > 1:
        every = max(1, round(s.until / 10 / 0.005))
        model = SynchronisingPair(
            s.activation,
            s.sigma_w,
            s.sigma_b,
            attention=s.attention,
            beta=s.beta,
            time_step=s.until / (10 * every),
            dimension=d,
        )
        start = np.zeros((2, max(s.d, d)))
        start[:, :d] = Sphere(d).simplex(2, 1 - s.gap)
        key = jax.random.key(s.seed)
        run = chain(model, start, depth=10 * every, every=every, key=key, runs=s.runs, record="deficits")
        logs = np.log(run["deficits"].values[:, :, 0, 1])
        mean, error = logs.mean(axis=0), logs.std(axis=0) / math.sqrt(s.runs)
        axes.plot(times, mean, color=colour, label=f"d = {d}, {s.runs} pairs")
        axes.fill_between(times, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.2, lw=0)
    fields = (s.activation, s.sigma_w, s.sigma_b, s.attention, s.beta)
    law, own = pair_mean("log", s.gap, times, d, *fields).values, {} if s.runs > 1 else {"color": colour}
    theory_line(axes, times, law, f"limit, d = {d}", **own)
