"""Tokens that park on the circle, and how many of them their centres cover (arXiv:2411.04990)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, GRID, INK, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import CAUSAL_CLUSTERING
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.causal.parking import centre_flags
from pathlines.model import SelfAttention

KINDS = (("centres", INK), ("strong centres", COLOURS[1]))


class Parked(NamedTuple):
    """Tokens (time, token, 2) of one prompt, and which of them are centres and strong centres."""

    tokens: np.ndarray
    centres: np.ndarray
    strong: np.ndarray

    def covered(self, radius: float) -> np.ndarray:
        """Share of the tokens within ``radius`` of a centre, and of a strong one, wherever these went: (2, time)."""
        shares = []
        for flags in (self.centres, self.strong):
            cosines = np.einsum("tid,tjd->tij", self.tokens, self.tokens[:, flags])
            shares.append((cosines >= np.cos(radius)).any(axis=2).mean(axis=1))
        return np.asarray(shares)


def parked(n: int, beta: float, c: float, times: Any, seed: int) -> Parked:
    """One uniform prompt on the circle under causal attention, with its centres at δ = cβ^{-1/2}."""
    start = np.asarray(Sphere(2).uniform(jax.random.key(seed), n=n))
    times = np.asarray(times, float)
    grid = times if times[0] == 0 else np.append(0.0, times)
    run = flow(SelfAttention(beta, mask="causal"), start, times=grid, record="tokens", rtol=1e-7)
    flags = (centre_flags(start, c / np.sqrt(beta), strong=strong) for strong in (False, True))
    return Parked(run["tokens"].values[len(grid) - len(times) :], *flags)


def draw_circle(axes: Axes) -> None:
    """The circle alone."""
    turn = np.linspace(0, 2 * np.pi, 400)
    axes.plot(np.cos(turn), np.sin(turn), color=GRID, lw=1.0, zorder=1)
    axes.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    axes.set_axis_off()


class Snapshots(Setting):
    """One prompt, looked at several times."""

    n: of.Tokens = 200
    beta: of.Beta = 64.0
    c: Annotated[of.Positive, means("separation of centres in units of β^{-1/2}", "c")] = 4.0
    times: Annotated[tuple[of.NonNegative, ...], means("when it is looked at", "t")] = (0.0, 5.0, 75.0, 150.0)
    seed: of.Seed = 2


@picture(
    "causal/parking-snapshots",
    CAUSAL_CLUSTERING,
    "Tokens on the circle under causal attention with Q = K = V = I. Strong centres (red diamonds, outside) were "
    "farther than δ = 4β^{−1/2} from all tokens before them, centres (black dots, inside) from all centres before "
    "them: strong ones stay, others move and merge, and both gather the rest.",
    quick=Snapshots(),
)
def parking_snapshots(s: Snapshots) -> Figure:
    """One circle a time."""
    figure, (panels,) = new_figure(1, len(s.times), width=2.3, height=2.7)
    course = parked(s.n, s.beta, s.c, s.times, s.seed)
    for axes, t, x in zip(panels, s.times, course.tokens, strict=True):
        draw_circle(axes)
        axes.plot(*x.T, "o", color=COLOURS[0], ms=4, alpha=0.35, mec="none", zorder=3, label="tokens")
        inside, outside = 0.93 * x[course.centres], 1.08 * x[course.strong]
        axes.plot(*inside.T, "o", color=KINDS[0][1], ms=3, zorder=4, label=KINDS[0][0])
        axes.plot(*outside.T, "D", color=KINDS[1][1], ms=4, zorder=5, label=KINDS[1][0])
        axes.set_title(f"t = {t:g}")
    legend_below(figure, [panels[0]], columns=3)
    return figure


class CoverageCurve(Setting):
    """Many prompts."""

    n: of.Tokens = 200
    beta: of.Beta = 64.0
    c: Annotated[of.Positive, means("separation of centres in units of β^{-1/2}", "c")] = 4.0
    until: of.Until = 100.0
    times: Annotated[of.Count, means("times on the curve")] = 26
    runs: of.Runs = 24
    seed: of.Seed = 0


@picture(
    "causal/parking-coverage",
    CAUSAL_CLUSTERING,
    "Share of the tokens within β^{−1/2} of a centre (black) and of a strong one (red): mean over random prompts, and "
    "the range from the 10th to the 90th percentile. Almost all tokens park at a centre, most at a strong one.",
    quick=CoverageCurve(),
    full=CoverageCurve(runs=1000, times=51),
)
def parking_coverage_figure(s: CoverageCurve) -> Figure:
    """Two bands."""
    figure, ((axes,),) = new_figure(1, 1, width=4.6, height=3.2)
    times = np.linspace(0, 1, s.times) ** 2 * s.until
    found = np.asarray([parked(s.n, s.beta, s.c, times, s.seed + k).covered(s.beta**-0.5) for k in range(s.runs)])
    for row, (name, ink) in enumerate(KINDS):
        low, high = np.percentile(found[:, row], [10, 90], axis=0)
        axes.fill_between(times, low, high, color=ink, alpha=0.15, lw=0)
        axes.plot(times, found[:, row].mean(axis=0), color=ink, label=name)
    axes.axhline(1.0, color=MUTED, lw=0.7)
    axes.set(
        xlabel="depth-time $t$", ylabel=r"share of tokens within $\beta^{-1/2}$", ylim=(0, 1.04), xlim=(0, s.until)
    )
    axes.set_title(f"n = {s.n}, β = {s.beta:g}, δ = {s.c:g}β$^{{-1/2}}$, {s.runs} prompts")
    legend_below(figure, [axes], columns=2)
    return figure
