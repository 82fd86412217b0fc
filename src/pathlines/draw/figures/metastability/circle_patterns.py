"""The published runs on the circle: tokens, histograms and densities (arXiv:2410.23228)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.attention import UnnormalisedAttention
from pathlines.domain import Sphere
from pathlines.domain.circle_law import QuietMoments, circle_quantiles, effective_tokens, on_circle
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, HEAT, INK, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.metastability.growth import dominant_degree
from pathlines.model import SelfAttention
from pathlines.observable.patterns import recovered_density

TURN = 2 * np.pi


def centres(angles: np.ndarray, k: int) -> np.ndarray:
    """(2πj - arg m_k)/k: where k clusters will be if mode k wins."""
    phase = np.angle(np.exp(-1j * k * angles).mean())
    return np.sort((TURN * np.arange(k) - phase) / k % TURN)


def _angles(beta: float, tokens: Any, times: np.ndarray, step: float) -> np.ndarray:
    """(times, n) angles under USA with the printed kernel, by RK4."""
    model = SelfAttention(beta, attention=UnnormalisedAttention())
    run = flow(model, tokens, times=times, record="tokens", method="rk4", step=step)
    x = run["tokens"].values
    return np.unwrap(np.arctan2(x[..., 1], x[..., 0]), axis=0)


def _tracks(axes: Axes, times: np.ndarray, angles: np.ndarray, expected: np.ndarray, look: float) -> None:
    """Angles over time, broken where they leave [0, 2π)."""
    turned = angles % TURN
    turned[1:][np.abs(np.diff(turned, axis=0)) > np.pi] = np.nan
    axes.plot(times, turned, color=COLOURS[0], lw=0.5, alpha=0.35)
    for j, angle in enumerate(expected):
        label = "predicted centres" if j == 0 else None
        axes.axhline(angle, color=COLOURS[1], lw=1.3, ls=(0, (4, 2.2)), zorder=5, label=label)
    axes.axvline(look, color=INK, lw=0.9, ls=":", label="time of the histogram")
    axes.set(xlabel="depth-time $t$, printed kernel", ylabel=r"angle $\theta$", ylim=(0, TURN), xlim=(0, times[-1]))
    axes.set_yticks([0, np.pi, TURN], ["0", "π", "2π"])
    axes.grid(False)


def _histogram(axes: Axes, angles: np.ndarray, expected: np.ndarray, bins: int) -> None:
    axes.hist(angles % TURN, bins=bins, range=(0, TURN), color=COLOURS[0], alpha=0.85)
    for angle in expected:
        axes.axvline(angle, color=COLOURS[1], lw=1.3, ls=(0, (4, 2.2)))
    axes.set(xlabel=r"angle $\theta$", ylabel="tokens", xlim=(0, TURN))
    axes.set_xticks([0, np.pi, TURN], ["0", "π", "2π"])


class CircleTokens(Setting):
    """Uniform tokens on the circle."""

    n: of.Tokens = 20000
    cells: Annotated[
        tuple[tuple[of.Positive, of.Positive, of.Positive], ...],
        means("each row: β, its end, when it is counted", "β, T, t"),
    ] = ((5.0, 0.6, 0.3), (7.0, 0.1, 0.045))
    steps: of.IntegratorSteps = 120
    tracks: Annotated[of.Count, means("tokens whose paths are shown")] = 160
    bins: of.Bins = 100
    seed: of.Seed = 0


@picture(
    "metastability/circle-tokens",
    METASTABLE_EMERGENCE,
    "Tokens on the circle under unnormalised attention with the printed kernel, from i.i.d. uniform starts, at the "
    "published settings. Left: angles of some of the tokens; dashed: the centres (2πj − arg mₖ)/k expected when the "
    "fastest mode k* wins. Right: histogram at the marked time. Fourier sums and RK4 with 120 steps replace thousands "
    "of Euler steps over all pairs; another seed may show another number of clusters (claim S4).",
    quick=CircleTokens(),
)
def circle_tokens(s: CircleTokens) -> Figure:
    """One row per β."""
    figure, rows = new_figure(len(s.cells), 2, width=4.1, height=2.5)
    tokens = Sphere(2).uniform(jax.random.key(s.seed), s.n)
    for (left, right), (beta, until, look) in zip(rows, s.cells):
        step = until / s.steps
        times = np.unique(np.append(np.linspace(0, until, s.steps // 2 + 1), look))
        angles = _angles(beta, tokens, times, step)
        k = dominant_degree(beta, 2)
        expected = centres(angles[0], k)
        _tracks(left, times, angles[:, :: max(1, s.n // s.tracks)], expected, look)
        _histogram(right, angles[np.searchsorted(times, look)], expected, s.bins)
        left.set_title(f"β = {beta:g}, N = {s.n}, k* = {k}")
        right.set_title(f"t = {look:g}")
    legend_below(figure, [rows[0][0]])
    return figure


class Profile(Setting):
    """The published start, carried by tokens."""

    cells: Annotated[tuple[tuple[of.Positive, of.Positive], ...], means("each panel, with its end", "β, T")] = (
        (5.0, 0.5),
        (7.0, 0.08),
    )
    noise: Annotated[of.Positive, means("noise of each cell of the published start")] = 0.01
    grid: Annotated[of.Count, means("cells of the published start")] = 10000
    points: of.Carriers = 1200
    modes: Annotated[of.Count, means("Fourier modes of the start that are noisy")] = 40
    frames: Annotated[of.Count, means("densities shown")] = 6
    steps: of.IntegratorSteps = 100
    top: Annotated[of.Positive, means("largest density shown", "ρ")] = 30.0
    seed: of.Seed = 3


@picture(
    "metastability/density-profile",
    METASTABLE_EMERGENCE,
    "The mean-field equation from a uniform density with white noise 0.01 on 10⁴ points, which is the noise of "
    "2.5·10⁶ tokens, under unnormalised attention with the printed kernel. The density is recovered from quantile "
    "points that carry equal masses; a profile of period 2π/k* appears first, then its peaks sharpen, later ones over "
    "more than the height shown.",
    quick=Profile(),
)
def density_profile(s: Profile) -> Figure:
    """One panel per β, one line per time."""
    figure, (panels,) = new_figure(1, len(s.cells), width=4.1, height=2.9)
    law = QuietMoments(effective_tokens(s.noise, s.grid), s.modes)
    start = on_circle(circle_quantiles(law(jax.random.key(s.seed)), s.points))
    for axes, (beta, until) in zip(panels, s.cells):
        times = np.linspace(until / 2, until, s.frames)
        angles = _angles(beta, start, np.append(0.0, times), until / s.steps)
        for j, row in enumerate(angles):
            order = np.argsort(row % TURN)
            ink = HEAT(0.2 + 0.75 * j / s.frames)
            axes.plot((row % TURN)[order], recovered_density(row)[order], color=ink, lw=1.1,
                      label=f"{(0 if j == 0 else times[j - 1] / until):.2g}")  # fmt: skip
        axes.axhline(1 / TURN, color=THEORY, lw=0.8, ls=":")
        axes.set(xlabel=r"angle $\theta$", ylabel=r"density $\rho$", xlim=(0, TURN), yscale="log", ylim=(3e-3, s.top))
        axes.set_xticks([0, np.pi, TURN], ["0", "π", "2π"])
        axes.set_title(f"β = {beta:g}, k* = {dominant_degree(beta, 2)}, T = {until:g}")
    legend_below(figure, [panels[0]], title="time t/T")
    return figure
