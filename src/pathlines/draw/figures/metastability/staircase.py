"""The energy staircase, merging times over β, and the certificate against the truth.

Dynamic metastability in the self-attention model, arXiv:2410.06833.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.staircase_figure import steps
from pathlines.draw.style import COLOURS, MUTED, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.limit.metastability.caps import cap_certificate
from pathlines.limit.metastability.staircase import isolated_pairs

KINDS = ("usa", "sa")


class Stairs(Setting):
    """Clusters on the circle."""

    angles: of.Angles = (0.0, 0.5, 1.1, 2.4)
    betas: of.Betas = (20.0, 100.0, 1000.0)
    delta: Annotated[of.Positive | Literal["kernel"], means("clusters this near are one; kernel: 1/√(β ln β)", "δ")] = (
        "kernel"
    )


@picture(
    "metastability/staircase",
    METASTABILITY,
    "Energy E = n⁻²Σe^{β(⟨xᵢ,xⱼ⟩−1)} of well-prepared tokens on the circle, followed to the last merger. On the scale "
    "of log t (divided by β, top) and in rescaled time (below) it is a staircase that sharpens with β: it rests at Σm² "
    "(dotted) and jumps by 2m_pm_q at each merger; the last step is one. At β = 1000 times exceed e^{1200}.",
    quick=Stairs(),
    full=Stairs(angles=(0.0, 0.3, 0.65, 1.05, 1.5, 2.0, 2.6)),
)
def staircases(s: Stairs) -> Figure:
    """Two clocks by two kinds."""
    figure, grid = new_figure(2, 2, width=4.2, height=2.5)
    for column, kind in enumerate(KINDS):
        for colour, beta in zip(COLOURS, s.betas):
            found = cluster_flow(s.angles, beta, kind=kind, delta=s.delta)
            times, energies = steps(found, "log10")
            grid[0][column].plot(times * np.log(10) / beta, energies, color=colour, label=f"β = {beta:g}")
            grid[1][column].plot(*steps(found, "rescaled"), color=colour, label=f"β = {beta:g}")
        for row in range(2):
            for level in found.levels:
                grid[row][column].axhline(level, color=MUTED, lw=0.6, ls=(0, (1, 2)), zorder=1)
            grid[row][column].set(ylabel="energy $E$", ylim=(0.1, 1.04))
        grid[0][column].set(title=kind.upper(), xlabel=r"$\ln\,t\,/\,\beta$", xlim=(-0.05, None))
        grid[1][column].set(xlabel="rescaled time")
    legend_below(figure, [grid[0][0]])
    return figure


class Mergers(Setting):
    """Clusters on the circle."""

    angles: of.Angles = (0.0, 0.9, 2.0, 3.3, 4.9)
    beta_max: of.HighestBeta = 100.0
    points: Annotated[of.Count, means("inverse temperatures at which clusters are followed")] = 10
    lines: Annotated[of.Count, means("inverse temperatures of the dashed curves")] = 40


@picture(
    "metastability/merging-times",
    METASTABILITY,
    "Logarithm of the time of every merger against β. Each grows like β(1−cos gap) with the gap that the pair has when "
    "its turn comes; dashed lines take every pair as if it were alone (closed forms) and become exact for large β.",
    quick=Mergers(),
    full=Mergers(beta_max=400.0, points=24, lines=120),
)
def merging_times(s: Mergers) -> Figure:
    """One panel a kind."""
    figure, (panels,) = new_figure(1, 2, width=4.0, height=3.1)
    for axes, kind in zip(panels, KINDS):
        betas = np.linspace(4.0, s.beta_max, s.points)
        times = np.array([cluster_flow(s.angles, b, kind=kind).log_times for b in betas])
        fine = np.linspace(4.0, s.beta_max, s.lines)
        alone = np.array([isolated_pairs(s.angles, b, kind=kind).log_times for b in fine])
        for k, colour in zip(range(times.shape[1]), COLOURS):
            axes.plot(betas, times[:, k], "o", ms=4, color=colour, label=f"merger {k + 1}")
            theory_line(axes, fine, alone[:, k], label="pairs alone, closed form" if k == times.shape[1] - 1 else None)
        axes.set(xlabel="inverse temperature β", ylabel=r"$\ln\,t$", title=kind.upper())
    legend_below(figure, panels)
    return figure


class Pairs(Setting):
    """Gaps of two clusters."""

    gaps: Annotated[of.Positives, means("angles between the clusters", unit="radians")] = (1.2, 1.8, 2.6)
    beta_max: of.HighestBeta = 120.0
    points: Annotated[of.Count, means("inverse temperatures on the axis")] = 16


@picture(
    "metastability/certificate",
    METASTABILITY,
    "How conservative the metastability theorem is: the guaranteed time T₂ until which tokens stay in their doubled "
    "caps (best over partitions and cap sizes) against the time at which clusters truly leave them, for clusters at "
    "several angles. Both grow like e^{(1−cos)β}, the certificate with the cosine between the caps' edges; "
    "below some β it says nothing.",
    quick=Pairs(),
    full=Pairs(gaps=(0.9, 1.2, 1.8, 2.6), beta_max=400.0, points=40),
)
def certificates(s: Pairs) -> Figure:
    """ln of both times over β, and their ratio."""
    figure, ((left, right),) = new_figure(1, 2, width=4.2, height=3.1)
    betas = np.linspace(5.0, s.beta_max, s.points)
    for gap, colour in zip(s.gaps, COLOURS):
        promised, true = np.full(len(betas), np.nan), np.full(len(betas), np.nan)
        for i, beta in enumerate(betas):
            found = cap_certificate([0.0, gap], float(beta))
            if found is not None and len(found.centres) == 2:
                promised[i], true[i] = found.log_exit, exit_time(gap, float(beta), found.epsilon)
        left.plot(betas, true, color=colour, label=f"exit, gap {gap:g}")
        theory_line(left, betas, promised, label="certificate $T_2$" if gap == s.gaps[-1] else None)
        right.plot(betas, promised / true, color=colour)
    left.set(xlabel="inverse temperature β", ylabel=r"$\ln\,t$", title="certified and true exit time (USA)")
    right.set(xlabel="inverse temperature β", ylabel=r"$\ln\,T_2\,/\,\ln\,t_{exit}$", ylim=(0, 1.02), title="share")
    legend_below(figure, [left])
    return figure


def exit_time(gap: float, beta: float, epsilon: float) -> float:
    """ln t at which two equal clusters at angle ``gap`` leave caps of size 2ε around their starts (USA)."""
    turned = float(np.arccos(1 - 2 * epsilon))
    return float(cluster_flow([0.0, gap], beta, delta=max(gap - 2 * turned, 1e-3)).log_times[0])
