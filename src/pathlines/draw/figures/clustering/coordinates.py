"""Many dimensions: which coordinates settle (The emergence of clusters, arXiv:2305.05465)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.model.clustering.rescaled import RescaledAttention


def sparse_spectrum(d: int, density: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (decreasing) and eigenvectors of a sparse symmetric Gaussian matrix, none left in (-1, 1)."""
    upper = np.triu(np.where(rng.random((d, d)) < density, rng.standard_normal((d, d)), 0.0))
    values, vectors = np.linalg.eigh(upper + np.triu(upper, 1).T)
    small = np.abs(values) < 1
    values[small] = rng.choice([-1, 1], small.sum()) * rng.uniform(1, 2, small.sum())
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def follow_leaders(values: np.ndarray, z: np.ndarray, times: np.ndarray, step: float) -> list[np.ndarray]:
    """dz_i/dt = V(z_l - z_i), l(t) = argmax_j <e^{tV}z_i, e^{tV}z_j>, V = diag(values): states at ``times``.

    Past the horizon of the softmax its scores, ~ e^{2λ₁t}, differ by far more than one unless they tie to rounding, so
    this is the same equation. Steps are exact for a leader at rest; scores are scaled by e^{-2λ₁t} and stay finite.
    """
    states = [z]
    for before, after in pairwise(times):
        count = int(np.ceil((after - before) / step))
        h = (after - before) / count
        decay = np.exp(-h * values)
        for k in range(count):
            grown = z * np.exp((before + k * h) * (values - values[0]))
            leader = z[np.argmax(grown @ grown.T, axis=1)]
            z = leader + decay * (z - leader)
        states.append(z)
    return states


class ManyCoordinates(Setting):
    """A sparse random value matrix, and starts in a cube."""

    n: of.Tokens = 64
    d: of.Dimension = 64
    density: Annotated[of.Share, means("share of the entries of V that are not zero")] = 0.1
    start: of.Box = 0.5
    until: of.Until = 15.0
    frames: of.Records = 151
    step: of.TimeStep = 0.01
    seed: of.Seed = 6


def _solve(values: np.ndarray, start: np.ndarray, s: ManyCoordinates) -> tuple[np.ndarray, np.ndarray]:
    """Times and tokens in the eigenbasis, where coordinates of size e^{100} cannot drown the others."""
    model = RescaledAttention(np.diag(values))
    horizon = min(0.99 * model.horizon(start)[0], s.until)
    early = np.linspace(0, horizon, s.frames)
    run = flow(model, start, times=early)
    if horizon == s.until:
        return early, run["tokens"].values
    late = np.linspace(horizon, s.until, s.frames)
    rest = follow_leaders(values, run["tokens"].values[-1], late, s.step)
    return np.concatenate([early, late[1:]]), np.concatenate([run["tokens"].values, rest[1:]])


def _settled(axes: Axes, z: np.ndarray, groups: tuple[np.ndarray, ...]) -> None:
    index = np.arange(1, z.shape[1] + 1)
    for group, colour, sign in zip(groups, COLOURS, "+−"):
        mean, spread = z[group].mean(axis=0), z[group].std(axis=0)
        label = rf"$\varphi_1^* {'>' if sign == '+' else '<'} 0$: {group.sum()} tokens, mean ± std"
        axes.errorbar(index, mean, spread, fmt="o", ms=2.8, color=colour, elinewidth=1.0, capsize=1.6, label=label)
    axes.axhline(0, color="#9aa4ae", lw=0.8, zorder=0)
    axes.set(
        xlabel="coordinate $k$ with $\\lambda_k > 0$, leading first", ylabel=r"settled coordinate $\varphi_k^*(z_i)$"
    )


def _diverging(axes: Axes, z: np.ndarray, values: np.ndarray, first: int, groups: tuple[np.ndarray, ...]) -> None:
    index = np.arange(first, first + z.shape[1])
    for group, colour in zip(groups, COLOURS):
        axes.plot(index, z[group].T, ".", ms=3.2, color=colour, alpha=0.4, mew=0)
    reach = np.exp(-values)
    theory_line(axes, index, reach, label=r"$\pm e^{|\lambda_k|t}$")
    theory_line(axes, index, -reach, label=None)
    axes.set_yscale("symlog", linthresh=1.0)
    top = int(np.ceil(np.log10(reach.max())))
    marks = [10.0**k for k in range(0, top + 1, max(1, top // 2))]
    axes.set_yticks([-m for m in marks[:0:-1]] + [0.0] + marks[1:])
    axes.yaxis.minorticks_off()
    axes.set(xlabel="coordinate $k$ with $\\lambda_k < 0$", ylabel=r"$\varphi_k^*(z_i)$, symmetric log scale")


@picture(
    "clustering/high-dimensional-coordinates",
    EMERGENCE,
    "Tokens in high dimension with a random symmetric V (no eigenvalue in (−1, 1)), coordinates in its eigenbasis. "
    "Left: coordinates with λₖ > 0 take two values, one for each sign of the leading coordinate. Middle: the spread "
    "inside the two groups over time. Right: coordinates with λₖ < 0 diverge like e^{|λₖ|t} in the rescaled frame.",
    quick=ManyCoordinates(),
    full=ManyCoordinates(n=128, d=128, frames=301, step=0.005),
)
def high_dimensional_coordinates(s: ManyCoordinates) -> Figure:
    """Limits, spreads, divergence."""
    rng = np.random.default_rng(s.seed)
    values, vectors = sparse_spectrum(s.d, s.density, rng)
    times, z = _solve(values, rng.uniform(-s.start, s.start, (s.n, s.d)) @ vectors, s)
    positive = int((values > 0).sum())
    groups = tuple(g for g in (z[-1, :, 0] > 0, z[-1, :, 0] <= 0) if g.any())
    figure, ((settled, spread, diverging),) = new_figure(1, 3, width=3.6, height=3.0)
    _settled(settled, z[-1][:, :positive], groups)
    settled.set_title(f"n = {s.n}, d = {s.d}, t = {s.until:g}")
    inside = sum(g.mean() * z[:, g, :positive].var(axis=1) for g in groups)
    for k in range(positive - 1, -1, -1):
        spread.semilogy(times, np.sqrt(np.maximum(inside[:, k], 1e-34)), color=COLOURS[2], lw=0.7, alpha=0.55)
    spread.plot([], [], color=COLOURS[2], lw=1, label="one settling coordinate")
    spread.set(xlabel="depth-time $t$", ylabel="std inside the two groups", title=f"{positive} coordinates settle")
    _diverging(diverging, z[-1][:, positive:], values[positive:] * s.until, positive + 1, groups)
    diverging.set_title(f"{s.d - positive} coordinates diverge")
    legend_below(figure, (settled, spread, diverging))
    return figure
