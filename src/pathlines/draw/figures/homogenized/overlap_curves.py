"""Token similarity against depth, random against identity weights (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline

from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import HEAT, INK, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.limit.clustering.equiangular import overlap_at
from pathlines.limit.homogenized.overlap_curve import overlap_curve

CONVENTIONS = ("scaled", "unit")


def logit_scale(beta: float, d: int, sigma_a: str) -> float:
    """b of β for p = d: β when σ_A = d^{-1/4} ("scaled"), β√d when σ_A = 1 ("unit")."""
    require(sigma_a in CONVENTIONS, "sigma_a", "be 'scaled' (σ_A = d^-1/4) or 'unit' (σ_A = 1)", sigma_a)
    return beta * math.sqrt(d) if sigma_a == "unit" else beta


def _ink(place: float) -> tuple[Any, ...]:
    return HEAT(0.28 + 0.7 * place)


def _finish_curves(axes: Axes, symbol: str, until: float, title: str) -> None:
    axes.set(xlabel=symbol, ylabel=r"overlap $\gamma$", xlim=(0, until), ylim=(-0.02, 1.02), title=title)


def _map(axes: Axes, times: np.ndarray, betas: np.ndarray, gamma: np.ndarray, symbol: str) -> Any:
    """γ over (time, β) with the level ½."""
    shown = axes.pcolormesh(times, betas, gamma, cmap=HEAT, vmin=0, vmax=1, shading="gouraud", rasterized=True)
    level = axes.contour(times, betas, gamma, levels=[0.5], colors=["white"], linewidths=1.6)
    for text in axes.clabel(level, fmt=lambda _: "γ = ½", fontsize=8):
        text.set(color=INK, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85})
    axes.set(yscale="log", xlabel=symbol, ylabel=r"inverse temperature $\beta$")
    axes.grid(False)
    return shown


class Curves(Setting):
    """Inverse temperatures and scaling of the scores."""

    n: of.Tokens = 32
    d: of.Dimension = 128
    sigma_a: Annotated[Literal["scaled", "one"], means("entries of A: d^{-1/4} (scaled) or 1")] = "scaled"
    curves: Annotated[of.Positives, means("inverse temperatures of the curves", "β")] = (0.5, 2.0, 4.0, 8.0, 16.0)
    betas: Annotated[of.Count, means("inverse temperatures that are computed")] = 11
    rows: Annotated[of.Count, means("inverse temperatures of the maps")] = 81
    until: of.Tau = 16.0
    frames: of.Records = 161


@picture(
    "homogenized/overlap-curves",
    HOMOGENIZED,
    "Overlap γ of n orthogonal tokens against depth for several β. Left: random weights in diffusive time τ, the "
    "printed drift 𝖻 (d = ∞, solid) and the exact drift 𝒟_d at this d (dashed), wide heads; σ_A = d^-1/4 makes the "
    "logit scale b = β, σ_A = 1 makes it β√d. Right: identity weights, on a clock twice as fast, so that β = 0 is the "
    "same curve in both. Below, all β with the level γ = ½: fixed weights freeze exponentially in β, random ones do "
    "not.",
    quick=Curves(),
    full=Curves(curves=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0), betas=31, rows=321, frames=641),
)
def overlap_curves(s: Curves) -> Figure:
    """Curves above, maps below."""
    curves = np.sort(s.curves)
    betas = np.union1d(np.round(np.geomspace(curves[0], curves[-1], s.betas), 6), curves)
    rows = np.geomspace(curves[0], curves[-1], s.rows)
    tau = np.linspace(0, s.until, s.frames)
    scales = [logit_scale(float(b), s.d, s.sigma_a) for b in betas]
    random = np.array([overlap_curve(tau, s.n, b) for b in scales])
    figure, (above, below) = new_figure(2, 2, width=4.3, height=2.7, height_ratios=[1.1, 1])
    for k in np.searchsorted(betas, curves):
        ink, label = _ink(k / max(1, len(betas) - 1)), f"β = {betas[k]:.3g}"
        above[0].plot(tau, random[k], color=ink, label=label)
        above[0].plot(tau, overlap_curve(tau, s.n, scales[k], d=s.d), color=THEORY, ls=(0, (3, 2)), lw=0.9, zorder=5)
        above[1].plot(0.5 * tau, overlap_at(0.5 * tau, s.n, betas[k]), color=ink)
    above[0].plot([], [], color=MUTED, label=r"printed drift $\mathsf{b}$, $d = \infty$")
    above[0].plot([], [], color=THEORY, ls=(0, (3, 2)), lw=0.9, label=rf"exact drift $\mathcal{{D}}_d$, d = {s.d}")
    power = r"$\sigma_A = d^{-1/4}$, $b = \beta$" if s.sigma_a == "scaled" else r"$\sigma_A = 1$, $b = \beta\sqrt{d}$"
    _finish_curves(above[0], r"diffusive time $\tau$", s.until, f"random weights, n = {s.n}, {power}")
    _finish_curves(above[1], "time $t$", 0.5 * s.until, "identity weights (arXiv:2312.10794)")
    between = np.clip(CubicSpline(np.log(betas), random)(np.log(rows)), 0, 1)
    _map(below[0], tau, rows, between, r"diffusive time $\tau$")
    shown = _map(below[1], 0.5 * tau, rows, overlap_at(0.5 * tau, s.n, rows[:, None]), "time $t$")
    colour_bar(figure, shown, below.tolist(), r"overlap $\gamma$")
    legend_below(figure, [above[0]], columns=4)
    return figure
