"""The critical scaling β = γ ln n (Critical attention scaling in long-context transformers, arXiv:2510.05554)."""

from __future__ import annotations

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.attention import SoftmaxAttention
from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import COLOURS, HEAT, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import LONG_CONTEXT
from pathlines.foundation.setting import Setting, means
from pathlines.kernels import attend
from pathlines.limit.clustering.long_context import critical_gamma, output_overlap, output_overlap_limit


def layer_overlap(n: int, gamma: float, rho: float) -> float:
    """⟨A₁, A₂⟩/(|A₁||A₂|) after one attention layer without residual, from n tokens with common overlap ρ."""
    x = Sphere(n).simplex(n, rho)
    out, _ = attend(SoftmaxAttention(), gamma * np.log(n) * x, x, x, jnp.full(n, 1.0 / n))
    first, second = np.asarray(out[:2])
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


class Contexts(Setting):
    """Numbers of tokens, and the axes."""

    sizes: of.Sizes = (100, 10000, 1000000)
    rho_max: Annotated[of.Share, means("largest correlation before", "ρ")] = 0.8
    gamma_max: Annotated[of.Positive, means("largest β/ln n shown", "γ")] = 5.0
    grid: of.MapSide = 161
    rho: Annotated[of.Share, means("correlation before, of the cut", "ρ")] = 0.5
    points: Annotated[of.Count, means("simulated layers")] = 14
    simulated: Annotated[of.Count, means("tokens of the simulated layers", "n")] = 100


def _map(axes: Axes, n: int, s: Contexts) -> Any:
    rho = np.linspace(0.005, s.rho_max, s.grid)
    gamma = np.linspace(0.0, s.gamma_max, s.grid)
    values = output_overlap(n, gamma[:, None], rho[None, :])
    shown = axes.pcolormesh(rho, gamma, values, cmap=HEAT, vmin=0, vmax=1, shading="gouraud", rasterized=True)
    theory_line(axes, rho, critical_gamma(rho), label=r"$\gamma_c = 1/(1-\rho)$")
    power = round(np.log10(n))
    axes.set(xlabel=r"correlation before, $\rho$", ylabel=r"$\gamma = \beta/\ln n$", title=f"n = $10^{power}$")
    axes.set(xlim=(0, s.rho_max), ylim=(0, s.gamma_max))
    axes.grid(False)
    return shown


def _cut(axes: Axes, s: Contexts) -> None:
    gamma = np.linspace(0, s.gamma_max, 401)
    for n, colour in zip(s.sizes, (COLOURS[5], COLOURS[0], COLOURS[4])):
        power = round(np.log10(n))
        axes.plot(gamma, output_overlap(n, gamma, s.rho), color=colour, label=rf"formula, $n = 10^{power}$")
    points = np.linspace(0.2, s.gamma_max, s.points)
    simulated = [layer_overlap(s.simulated, g, s.rho) for g in points]
    axes.plot(points, simulated, "o", ms=4, mfc="white", color=COLOURS[1], label=f"attention layer, n = {s.simulated}")
    critical = 1 / (1 - s.rho)
    theory_line(axes, [0, critical, critical, s.gamma_max], [1, 1, s.rho, s.rho], label="limit $n → ∞$")
    axes.plot(critical, float(output_overlap_limit(critical, s.rho)), "D", ms=5, color="black", zorder=6)
    axes.annotate("4ρ/(1+3ρ)", (critical, float(output_overlap_limit(critical, s.rho))), (8, 3), fontsize=8,
                  textcoords="offset points")  # fmt: skip
    axes.set(xlabel=r"$\gamma = \beta/\ln n$", ylabel=r"correlation after, $\rho_{out}$", title=f"cut at ρ = {s.rho:g}")


@picture(
    "clustering/long-context",
    LONG_CONTEXT,
    "One attention layer without residual on n tokens of common correlation ρ, at β = γ ln n: below γ_c = 1/(1−ρ) the "
    "layer collapses its input, above it copies it, and the transition sharpens as the context grows. Circles are the "
    "layer itself, lines the exact finite-n formula.",
    quick=Contexts(),
    full=Contexts(grid=641, points=28, simulated=1000),
)
def long_context(s: Contexts) -> Figure:
    """Maps at growing n, and a cut."""
    figure, (panels,) = new_figure(1, len(s.sizes) + 1, width=2.85, height=3.0, width_ratios=[1] * len(s.sizes) + [1.2])
    for axes, n in zip(panels, s.sizes):
        shown = _map(axes, n, s)
    colour_bar(figure, shown, panels[-2], r"correlation after, $\rho_{out}$")
    _cut(panels[-1], s)
    legend_below(figure, (panels[0], panels[-1]))
    return figure
