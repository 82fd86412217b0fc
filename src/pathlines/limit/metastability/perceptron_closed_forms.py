"""Perceptron landscape: what is known in closed form (Perceptrons and localization of attention's mean-field landscape,
arXiv:2601.21366; two atoms and rates derived).

A neuron that attracts with c > 0 (v = -c cos²θ near it) holds a mass M in one point iff κM < c: deviations from the
mean grow at rate κM - c, the mean relaxes at rate c. Beyond, two halves at ±δ are at rest,

    cos 2δ = 1 + ln(c/κM)/β,   E = M(κM + c)/(4β) - (cM/4)(1 + cos 2δ),

and on the circle they last while (c/2)(β sin²2δ + cos 2δ) ≥ κM/2: where it is less each of them splits again. On S² the
mass spreads along a ring instead. κ = 1 for the kernel e^{β(<x,y>-1)}, e^β for e^{β<x,y>}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.limit.metastability.perceptron_landscape import SOURCES as SOURCES
from pathlines.limit.metastability.perceptron_landscape import Landscape, perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import lowest_points
from pathlines.limit.metastability.perceptron_potential import ACTIVATIONS, Potential, perceptron_potential

HEAVIEST = 2 * np.exp(-1.5) / (2 * np.exp(-1.5) + 0.375 * np.exp(-0.125))
"""0.574192…: descent at large β leaves no more in an arc of length 1/(2√β), up to O(e^{-β}) (unscaled kernel)."""


@dataclass(frozen=True)
class TwoAtoms:
    """Halves at ±``delta`` from the neuron and their energy; ``delta`` = 0 where the mass stays in one point."""

    delta: float
    energy: float


def two_atoms(beta: float, pull: float, mass: float = 1.0, scale: float = 1.0) -> TwoAtoms:
    """The stationary state of ``mass`` M at one attracting ReLU neuron of ``pull`` c, alone, for κ = ``scale``."""
    beta, c = (finite_number(n, v, 0.0, open_low=True) for n, v in (("beta", beta), ("pull", pull)))
    m, kappa = (finite_number(n, v, 0.0, open_low=True) for n, v in (("mass", mass), ("scale", scale)))
    if c >= kappa * m:
        return TwoAtoms(0.0, m * m * kappa / (2 * beta) - c * m / 2)
    cosine = 1 + np.log(c / (kappa * m)) / beta
    least = kappa * m * np.exp(-2 * beta)
    require(cosine > -1, "pull", f"be above κM e^(-2β) = {least:g} (weaker neurons hold no pair)", pull)
    return TwoAtoms(float(np.arccos(cosine) / 2), float(m * (kappa * m + c) / (4 * beta) - c * m / 4 * (1 + cosine)))


def half_rate(beta: float, pull: float, mass: float = 1.0, scale: float = 1.0) -> float:
    """(c/2)(β sin²2δ + cos 2δ) - κM/2: how fast the tokens of one half of ``two_atoms`` close on each other.

    The curvature of f at a half: -κM/2 of its own mass, (κM/2)e^{β(cos 2δ-1)}(β sin²2δ - cos 2δ) of the other half, in
    which κM e^{β(cos 2δ-1)} = c, and c cos 2δ of the neuron.
    """
    twice = 2 * two_atoms(beta, pull, mass, scale).delta
    return float(pull / 2 * (beta * np.sin(twice) ** 2 + np.cos(twice)) - scale * mass / 2)


def halves_last(beta: float, pull: float, mass: float = 1.0, scale: float = 1.0) -> bool:
    """Whether neither half of ``two_atoms`` splits again on the circle."""
    return half_rate(beta, pull, mass, scale) >= 0


def splitting_rate(pull: float, mass: float = 1.0, scale: float = 1.0) -> float:
    """κM - c: how fast a point of mass M at the neuron falls apart (negative: how fast it closes)."""
    return float(scale * mass - pull)


@dataclass(frozen=True)
class Splitting:
    """What attracting neuron number ``neuron`` does to a point of mass one: it splits at ``rate`` κ - c (if positive).

    ``delta``: into halves at ±δ that last (circle, ReLU without bias); ``None`` where they do not or there is no closed
    form. ``again`` says that halves split again: there are more than two atoms. ``largest`` = c/κ is the mass that
    stays in one point; ``alone`` that no other neuron acts at this one, so that rate and mass are exact.
    """

    neuron: int
    pull: float
    rate: float
    largest: float
    delta: float | None
    again: bool
    alone: bool


def splitting(land: Landscape) -> list[Splitting]:
    """The criterion at each attracting neuron."""
    potential, found = land.potential, []
    for j, c in enumerate(potential.pulls()):
        if c <= 0:
            continue
        here = potential.directions[j : j + 1] / potential.lengths[j]
        inputs = (here @ potential.directions.T + potential.biases)[0]
        outputs = ACTIVATIONS[potential.activation].value(inputs) * potential.strengths
        alone = not np.delete(outputs, j).any()
        plain = potential.d == 2 and potential.activation == "relu" and potential.biases[j] == 0
        pair = plain and c > land.scale * np.exp(-2 * land.beta)
        last = pair and (c >= land.scale or halves_last(land.beta, float(c), scale=land.scale))
        delta = two_atoms(land.beta, float(c), scale=land.scale).delta if last else None
        rate, largest = splitting_rate(c, scale=land.scale), float(c / land.scale)
        found.append(Splitting(j, float(c), rate, largest, delta, plain and not last, bool(alone)))
    return found


def greatest(potential: Potential, points: int = 3600) -> tuple[np.ndarray, float]:
    """argmax v (one of them) and max v over the sphere, d = 2 or 3."""
    flipped = perceptron_potential(
        potential.directions, -2 * potential.strengths, potential.biases, potential.activation
    )
    nothing = np.zeros((1, potential.d)), np.zeros(1)
    where, value = lowest_points(perceptron_landscape(flipped, 1.0), *nothing, points)
    return where[0], -float(value[0])


def maximum(land: Landscape) -> float:
    """max E = κ/(2β) + ½ max v, reached by one point where v is greatest."""
    return land.scale / (2 * land.beta) + greatest(land.potential)[1] / 2


def atom_count_bound(beta: float, mass: float, arcs: int, length: float) -> float:
    """(K/ε)(1 + 2L√β)·0.5742: at most so many atoms of mass ≥ ε = ``mass`` on K ``arcs`` of ``length`` ≤ L."""
    beta = finite_number("beta", beta, 0.0, open_low=True)
    least, reach = finite_number("mass", mass, 0.0, 1.0, open_low=True), finite_number("length", length, 0.0)
    return float(positive_integer("arcs", arcs) / least * (1 + 2 * reach * np.sqrt(beta)) * HEAVIEST)


def linear_density(land: Landscape) -> tuple[np.ndarray, float]:
    """(S, E): density 1 + xᵀSx relative to the uniform law on the circle that minimises E when σ is linear.

    v is a quadratic form; its harmonic of degree two, xᵀQx with tr Q = 0, is balanced by the eigenvalue
    g_2 = e^{-β}I_2(β) of the kernel: S = -βQ/(2κg_2). It is a density while |S| ≤ 1, and then the minimiser has no
    atoms (derived). E = κI_0e^{-β}/(2β) + ¼tr A + <S,Q>/16 for v = xᵀAx.
    """
    potential, beta = land.potential, land.beta
    require(
        potential.activation == "linear" and potential.d == 2,
        "potential",
        "be linear on the circle",
        potential.activation,
    )
    require(not potential.biases.any(), "biases", "be zero", potential.biases)
    form = np.einsum("j,ja,jb->ab", potential.strengths, potential.directions, potential.directions)
    quadrupole = form - np.trace(form) / 2 * np.eye(2)
    shape = -beta * quadrupole / (2 * land.scale * special.ive(2, beta))
    largest = float(np.abs(np.linalg.eigvalsh(shape)).max())
    must = f"be at most {1 / max(largest, 1.0):.4g} times as large (the density must stay positive)"
    require(largest <= 1, "strengths", must, potential.strengths)
    base = land.scale * special.ive(0, beta) / (2 * beta) + np.trace(form) / 4
    return shape, float(base + np.sum(shape * quadrupole) / 16)
