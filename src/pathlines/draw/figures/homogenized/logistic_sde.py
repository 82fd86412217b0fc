"""Realisations of the logistic SDE, printed and corrected (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.limit.homogenized.slow_overlap import brownian_expectation, expected_overlap_power
from pathlines.model.homogenized.low_temperature_pair import LogisticPair, LowTemperaturePair

INKS = {1.0: COLOURS[1], 2.0: COLOURS[0]}
NAMES = {1.0: "κ = 1 (printed)", 2.0: "κ = 2 (corrected)"}


class Pairs(Setting):
    """Paths of the pair, and its layers."""

    paths: of.ShownPaths = 10
    start: Annotated[of.Cosine, means("overlap at the start", "R₀")] = 0.0
    until: Annotated[of.Positive, means("where the paths end", unit="slow time")] = 10.0
    time_step: Annotated[of.Positive, means("step of the paths", unit="slow time")] = 0.01
    frames: of.Records = 500
    times: Annotated[of.Count, means("times at which the printed law is solved")] = 16
    d: of.Dimension = 48
    step: of.Step = 0.25
    chain_until: Annotated[of.Positive, means("where the layers end", unit="slow time")] = 2.0
    runs: of.Runs = 600
    seed: of.Seed = 5


def _paths(axes: Axes, kappa: float, s: Pairs) -> None:
    """A few paths R = tanh y, y integrated with additive noise; the same noise for every κ."""
    every = max(1, round(s.until / s.time_step / s.frames))
    depth = every * round(s.until / s.time_step / every)
    model = LogisticPair(kappa, s.time_step)
    run = chain(model, s.start, depth=depth, every=every, key=jax.random.key(s.seed), runs=s.paths)
    axes.plot(run.time, np.tanh(run["state"].values).T, color=INKS[kappa], lw=0.9, alpha=0.8)
    axes.set(xlabel=r"slow time $t = \tau/d$", ylabel="overlap $R$", ylim=(-1.05, 1.05), xlim=(0, s.until))
    axes.set_title(NAMES[kappa])


def _second_moments(axes: Axes, s: Pairs) -> None:
    """Exact E R² for both κ, and the chain of layers N(x + ηVAx/|Ax|) itself."""
    fine, times = np.linspace(0, s.until, 201), s.until * np.linspace(0, 1, s.times) ** 2
    printed = PchipInterpolator(np.sqrt(times), expected_overlap_power(times, 1.0, s.start))(np.sqrt(fine))
    axes.plot(fine, printed, color=INKS[1.0], label="κ = 1 (printed), exact")
    right = [brownian_expectation(np.square, float(t), s.start) for t in fine]
    axes.plot(fine, right, color=INKS[2.0], label="κ = 2 (corrected), exact")
    layer = LowTemperaturePair(s.d, s.step)
    every = max(1, round(s.chain_until / layer.clocks["slow"] / 12))
    depth = every * round(s.chain_until / layer.clocks["slow"] / every)
    run = chain(layer, s.start, depth=depth, every=every, key=jax.random.key(s.seed), runs=s.runs)
    squares = np.tanh(run["state"].values) ** 2
    error = squares.std(axis=0, ddof=1) / np.sqrt(s.runs)
    axes.errorbar(run.data["slow"], squares.mean(axis=0), 2 * error, fmt="o", ms=3.4, color=THEORY, lw=1, mfc="white",
                  zorder=6, label=f"layers, d = {s.d}, η = {s.step:g}, {s.runs} pairs, ± 2 s.e.")  # fmt: skip
    axes.set(xlabel=r"slow time $t = \tau/d$", ylabel=r"$\mathbf{E}\,R^2$", ylim=(0, 1), xlim=(0, s.until))
    axes.set_title("second moment")


@picture(
    "homogenized/logistic-sde",
    HOMOGENIZED,
    "Overlap R of two tokens at zero temperature in a mean field, dR = −κR(1−R²)dt + √2(1−R²)dB from R = 0, "
    "integrated in y = artanh R with the same noise in both panels. With the printed κ = 1 every path ends at ±1; "
    "with κ = 2, which A = WW'ᵀ gives, R = tanh(√2B) changes sign for ever. Right: exact E R², and the layers "
    "themselves, which follow κ = 2 as far as their finite d and η allow.",
    quick=Pairs(),
    full=Pairs(time_step=0.002, frames=1000, times=32, d=64, step=0.2, chain_until=10.0, runs=10000),
)
def logistic_sde(s: Pairs) -> Figure:
    """Paths for both κ, and second moments."""
    figure, (panels,) = new_figure(1, 3, width=3.3, height=2.9)
    _paths(panels[0], 1.0, s)
    _paths(panels[1], 2.0, s)
    _second_moments(panels[2], s)
    legend_below(figure, [panels[2]])
    return figure
