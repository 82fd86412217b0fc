"""The certified minimiser of the perceptron landscape on the circle (arXiv:2601.21366)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.perceptron_landscape import Landscape, perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import Minimiser, perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential

FLOOR = 1e-7
TURN = {"ticks": [0, np.pi / 2, np.pi, 3 * np.pi / 2, 2 * np.pi], "labels": ["0", "π/2", "π", "3π/2", "2π"]}


def _variation(axes: Axes, land: Landscape, found: Minimiser, theta: np.ndarray) -> None:
    theta = np.sort(np.concatenate([theta, found.angles]))
    above = land.scale * land.first_variation(on_circle(theta), found.atoms, found.masses) - found.multiplier
    axes.plot(theta, np.maximum(above, FLOOR), color=COLOURS[0], label="$f-c$")
    axes.plot(found.angles, np.full(len(found.masses), FLOOR), "o", ms=5, color=COLOURS[1], zorder=6, clip_on=False,
              label="atoms")  # fmt: skip
    axes.set(yscale="log", ylim=(FLOOR, 3 * above.max()))
    gap = f"{found.kkt_gap:.0e}" if found.kkt_gap > 0 else "0"
    axes.set_title(f"β = {land.beta:g}:  E = {found.energy:.6f},  gap {gap}")


def _masses(axes: Axes, land: Landscape, found: Minimiser, theta: np.ndarray) -> None:
    axes.vlines(found.angles, 0, found.masses, color=COLOURS[1], lw=2.2, zorder=4)
    axes.plot(found.angles, found.masses, "o", ms=5, color=COLOURS[1], zorder=6)
    axes.plot(theta, land.potential.value(on_circle(theta)) / 2, color=MUTED, lw=1.3, label=r"potential $\frac{1}{2}v$")
    axes.axhline(0, color=MUTED, lw=0.6)


class Neurons(Setting):
    """Neurons on the circle and inverse temperatures."""

    directions: Annotated[of.Matrix, means("directions of the neurons", "a")] = tuple(
        map(tuple, on_circle([0.0, 2.0]).tolist())
    )
    strengths: of.Strengths = (1.0, -0.7)
    biases: Annotated[of.Vector, means("biases of the neurons", "b")] = (0.0, 0.0)
    activation: of.Activation = "relu"
    betas: of.Betas = (1.0, 4.0, 25.0)
    kernel: of.EnergyKernel = "scaled"


@picture(
    "metastability/perceptron-minimiser",
    PERCEPTRON_LANDSCAPE,
    "The global minimiser of the energy of attention with a perceptron, for several β. Above, its first variation f "
    "against its mean c: equal at the atoms, larger everywhere else, which proves that no measure has less energy; the "
    "gap c − min f bounds what is left. Below, the masses of the atoms over the potential ½v. An attracting neuron of "
    "strength below one splits its mass; far atoms appear where the mass has no room near it.",
    quick=Neurons(),
    full=Neurons(betas=(1.0, 2.0, 4.0, 25.0)),
)
def certified_minimisers(s: Neurons) -> Figure:
    """f above, masses and potential below; a column for each β."""
    potential = perceptron_potential(s.directions, s.strengths, s.biases, s.activation)
    theta = np.linspace(0, 2 * np.pi, 1441)
    width = 3.6 if len(s.betas) > 1 else 5.2
    figure, (above, below) = new_figure(2, len(s.betas), width=width, height=2.3, sharex=True)
    for k, beta in enumerate(s.betas):
        land = perceptron_landscape(potential, beta, s.kernel)
        found = perceptron_minimiser(land)
        _variation(above[k], land, found, theta)
        _masses(below[k], land, found, theta)
        above[k].set(ylabel="first variation, $f-c$", xlabel="angle θ")
        below[k].set(xlabel="angle θ", ylabel="mass,  ½v", xlim=(0, 2 * np.pi))
        below[k].set_xticks(**TURN)
    legend_below(figure, [above[0], below[0]])
    return figure
