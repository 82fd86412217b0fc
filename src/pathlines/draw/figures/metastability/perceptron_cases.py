"""Attention with a perceptron: ascent and descent, with and without softmax (arXiv:2601.21366)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import COLOURS, INK, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.metastability.perceptron_closed_forms import greatest, maximum
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import Potential, on_circle, perceptron_potential
from pathlines.model.metastability.perceptron_landscape import neurons_in_plane
from pathlines.observable.perceptron_landscape import landscape_energy

HILLS = LinearSegmentedColormap.from_list("hills", ["#5aa9cf", "#c5dfec", "#fbfbfb", "#f3d9b1", "#dfa24a"])
"""Potential: low blue, high amber, pale enough for ink on it."""


class Neurons(Setting):
    """Neurons, tokens and times."""

    angles: Annotated[of.Vector, means("angles of the neurons on the circle", "θ", unit="radians")] = (0.0, 2.0)
    strengths: of.Strengths = (1.0, -0.7)
    activation: of.Activation = "relu"
    beta: of.Beta = 4.0
    n: of.Tokens = 60
    seed: of.Seed = 1
    first: Annotated[of.Positive, means("first time shown", unit="depth-time")] = 0.02
    until: of.Until = 200.0
    records: Annotated[of.Count, means("recorded times, evenly spaced in log t")] = 121


def _run(s: Neurons, direction: str, kind: str) -> Run:
    model = neurons_in_plane(
        s.beta, angles=s.angles, strengths=s.strengths, activation=s.activation, flow=direction, kind=kind
    )
    times = np.concatenate([[0.0], np.geomspace(s.first, s.until, s.records)])
    start = Sphere(2).uniform(jax.random.key(s.seed), s.n)
    return flow(model, start, times=times, record=(landscape_energy, positions), rtol=1e-7)


def _wrapped(angles: np.ndarray) -> np.ndarray:
    """Angles in [-π/2, 3π/2)."""
    return np.mod(angles + np.pi / 2, 2 * np.pi) - np.pi / 2


def _broken(angles: np.ndarray) -> np.ndarray:
    """The same with a gap where a token crosses the cut."""
    wrapped = _wrapped(angles)
    jump = np.abs(np.diff(wrapped, axis=0, prepend=wrapped[:1])) > np.pi
    return np.where(jump, np.nan, wrapped)


def _trajectories(axes: Axes, run: Run, potential: Potential, marks: np.ndarray, s: Neurons) -> Any:
    theta = np.linspace(-np.pi / 2, 3 * np.pi / 2, 361)
    v = potential.value(on_circle(theta))
    top = max(float(np.abs(v).max()), 1e-12)
    heights, norm = np.stack([v, v], axis=-1), TwoSlopeNorm(0, -top, top)
    shown = axes.pcolormesh(
        [s.first, s.until], theta, heights, cmap=HILLS, norm=norm, shading="gouraud", rasterized=True
    )
    x = run["tokens"].values[1:]
    axes.plot(run.time[1:], _broken(np.arctan2(x[..., 1], x[..., 0])), color=INK, lw=0.55, alpha=0.75)
    for k, mark in enumerate(marks):
        theory_line(
            axes, [s.first, s.until], [mark, mark], label="certified optimum" if k == 0 else None, color=COLOURS[4]
        )
    axes.set(xscale="log", xlabel="depth-time t", ylabel="angle θ", ylim=(theta[0], theta[-1]), xlim=(s.first, s.until))
    axes.set_yticks(np.pi / 2 * np.arange(-1, 4), ["−π/2", "0", "π/2", "π", "3π/2"])
    axes.grid(False)
    return shown


@picture(
    "metastability/perceptron-cases",
    PERCEPTRON_LANDSCAPE,
    "Tokens on the circle under attention and a perceptron with potential v (background), from one uniform start. "
    "Above, ascent gathers them at the maximum of v, save what attention holds together where v is flat; below, "
    "descent spreads them into atoms where v is low (dashed: the certified minimiser). Descent of equal masses stays "
    "above the minimum: mass keeps to the well it fell into. Right, the energy: monotone for USA, whose gradient flow "
    "this is; SA has no such guarantee.",
    quick=Neurons(),
    full=Neurons(n=500),
)
def perceptron_cases(s: Neurons) -> Figure:
    """Rows: ascent, descent; columns: USA, SA, energies."""
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation=s.activation)
    land = perceptron_landscape(potential, s.beta)
    best, peak = perceptron_minimiser(land), greatest(potential)[0]
    ends = {
        "ascent": (np.arctan2(peak[1:], peak[:1]), maximum(land)),
        "descent": (_wrapped(best.angles), best.energy),
    }
    figure, panels = new_figure(2, 3, width=3.6, height=2.6)
    shown = None
    for row, (direction, (marks, height)) in zip(panels, ends.items(), strict=True):
        for axes, kind, colour in zip(row, ("usa", "sa"), COLOURS, strict=False):
            run = _run(s, direction, kind)
            shown = _trajectories(axes, run, potential, marks, s)
            axes.set_title(f"{kind.upper()}, {direction}")
            row[2].plot(run.time[1:], run["landscape_energy"].values[1:], color=colour, label=f"energy, {kind.upper()}")
        theory_line(row[2], [s.first, s.until], [height, height], label="max E and min E")
        row[2].set(xscale="log", xlabel="depth-time t", ylabel="energy E", title=f"energy, {direction}")
        row[2].set(xlim=(s.first, s.until))
    colour_bar(figure, shown, panels[:, :2].ravel().tolist(), "potential v", location="left", pad=0.01)
    legend_below(figure, [panels[0, 0], panels[0, 2]])
    return figure
