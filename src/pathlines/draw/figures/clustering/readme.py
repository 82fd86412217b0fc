"""The story in one picture: gathering, plateaus, phases (A mathematical perspective, arXiv:2312.10794)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.figures.clustering.phase_diagram import draw_gamma, draw_phase
from pathlines.draw.figures.clustering.sphere_snapshots import cluster_inks, draw_snapshot, facing, gathering
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar
from pathlines.draw.style import COLOURS
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run
from pathlines.observable.clusters import cluster_count
from pathlines.observable.energy import energy_fraction
from pathlines.sweep.phase import phase_diagram

COUNT = cluster_count.at(delta=1e-3)


class Overview(Setting):
    """The sphere on the left, the diagram on the right."""

    n: of.Tokens = 200
    beta: of.Beta = 9.0
    times: Annotated[of.NonNegatives, means("when the four spheres are shown", "t", unit="depth-time")] = (
        0.0,
        2.0,
        6.0,
        100.0,
    )
    until: of.Until = 1000.0
    frames: of.Records = 400
    seed: of.Seed = 1
    azimuth: of.Azimuth = 45.0
    elevation: of.Elevation = -25.0
    trail: of.Trail = 1.0
    phase_n: Annotated[of.Count, means("tokens of the phase diagram", "n")] = 32
    phase_d: Annotated[of.Count, means("dimension of the phase diagram", "d")] = 64
    beta_max: of.HighestBeta = 9.0
    betas: of.BetaPoints = 30
    phase_until: Annotated[of.Positive, means("end of the phase diagram", "T", unit="depth-time")] = 30.0
    phase_times: Annotated[of.Count, means("times on the axis of the phase diagram")] = 121
    samples: of.Samples = 32
    delta: of.Nearness = 0.001


def _staircase(axes: Axes, run: Run, s: Overview) -> None:
    """Energy on the left axis, number of clusters on the right one, time on a log scale."""
    late = run.time > 0
    axes.semilogx(run.time[late], run["energy_fraction"].values[late], color=COLOURS[0], lw=2)
    axes.set(xlabel="depth-time $t$", ylim=(0, 1), xlim=(run.time[late][0], s.until))
    axes.set_ylabel(r"energy $E_\beta/E_{\max}$", color=COLOURS[0])
    axes.tick_params(axis="y", labelcolor=COLOURS[0])
    count = axes.twinx()
    count.step(run.time[late], run[COUNT.name].values[late], where="post", color=COLOURS[1], lw=1.6)
    count.set(yscale="log", ylim=(1, 1.15 * s.n))
    ticks = [1, 2, 3, 5, 10, 50, 200]
    count.set_yticks([k for k in ticks if k <= s.n], [str(k) for k in ticks if k <= s.n])
    count.minorticks_off()
    count.grid(False)
    count.set_ylabel("number of clusters", color=COLOURS[1])
    count.tick_params(axis="y", labelcolor=COLOURS[1])
    axes.set_title("long plateaus, sudden mergers")


@picture(
    "clustering/readme",
    PERSPECTIVE,
    "Tokens under self-attention (Q = K = V = I) gather in clusters on the sphere; the energy climbs a staircase while "
    "clusters wait and merge; over time and inverse temperature, high dimension has a sharp boundary whose exact "
    "equation (dashed) is known.",
    quick=Overview(),
    full=Overview(samples=512, betas=90, phase_times=200),
)
def readme(s: Overview) -> Figure:
    """Four spheres, a staircase, a phase diagram."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[3.0, 3.4, 3.6])
    trails = [np.linspace(max(0.0, t - s.trail), t, 20) for t in s.times]
    times = np.unique(np.concatenate([[0.0], np.geomspace(0.1, s.until, s.frames), *trails]))
    run = gathering(s.n, 3, s.beta, times, s.seed, (COUNT, energy_fraction))
    inks, view = cluster_inks(run, s.times[-1]), facing(run, s.times[-1], s.azimuth, s.elevation)
    for axes, t in zip(left.subplots(2, 2).flat, s.times):
        draw_snapshot(axes, run, t, s.trail, inks, view, size=8)
        axes.set_title(f"t = {t:g}", loc="center", fontsize=8.5, fontweight="normal", pad=2)
    left.suptitle(f"{s.n} tokens on the sphere, β = {s.beta:g}", fontsize=9.5, fontweight="bold", x=0.06, ha="left")
    _staircase(middle.subplots(), run, s)
    axes = right.subplots()
    betas, grid = np.linspace(0.1, s.beta_max, s.betas), np.linspace(0, s.phase_until, s.phase_times)
    data = phase_diagram(s.phase_d, betas, grid, s.samples, n=s.phase_n, delta=s.delta)
    shown = draw_phase(axes, data, half=False)
    draw_gamma(axes, s.phase_n, s.delta)
    axes.set_title(f"merged pairs, n = {s.phase_n}, d = {s.phase_d}")
    gamma = r"exact $\Gamma$"
    axes.text(0.97, 0.06, f"dashed: {gamma}", transform=axes.transAxes, ha="right", color="white", fontsize=8.5)
    colour_bar(right, shown, axes, "share of merged pairs")
    return figure
