"""How much of the mass can sit together after descent, and when a limit has no atoms at all (arXiv:2601.21366)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_most, exactly, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.metastability.growth import growth_rates
from pathlines.limit.metastability.perceptron_closed_forms import HEAVIEST, linear_density
from pathlines.limit.metastability.perceptron_landscape import Landscape, perceptron_landscape
from pathlines.limit.metastability.perceptron_potential import on_circle, perceptron_potential
from pathlines.model.metastability.perceptron_landscape import neurons_in_plane
from pathlines.observable.perceptron_landscape import heaviest_mass, landscape_energy

ASCENT = Mistake(
    "neurons_in_plane",
    "ascent instead of descent",
    lambda right, size: lambda *a, **k: right(*a, **k, flow="ascent"),
    (1.0,),
)


# --- P5 and ER-13: the heaviest mass within 1/(2√β)


def _constant() -> float:
    """Repulsion inside a group of width ½ against what all others can do for it, from the kernel g(z) = e^{-z²/2}.

    -g'' = (1-z²)e^{-z²/2} is least at the end of the group, z = ½; the others give back at most max g''.
    """
    curvature = lambda z: (z * z - 1) * np.exp(-z * z / 2)  # noqa: E731
    held = -minimize_scalar(lambda z: -curvature(z), bounds=(1.0, 3.0), method="bounded").fun
    return float(held / (held - curvature(0.5) / 2))


class Heaviest(Setting):
    """Descent from a narrow start, at several β."""

    angles: of.Angles = (0.0, 2.0)
    strengths: of.Strengths = (0.001, -0.0007)
    activation: of.Activation = "relu"
    betas: of.Betas = (0.005, 9.0, 25.0)
    n: of.Tokens = 48
    width: of.HalfWidth = 0.02
    seed: of.Seed = 0
    until: of.Until = 300.0
    records: of.Records = 41
    rtol: of.Rtol = 1e-7


def _narrow(s: Heaviest) -> tuple[float, np.ndarray]:
    """(angle of the attracting neuron, tokens within ``width`` of it)."""
    centre = float(s.angles[int(np.argmin(s.strengths))])
    angles = centre + s.width * np.random.default_rng(s.seed).uniform(-1, 1, s.n)
    return centre, np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _spread(tokens: np.ndarray, centre: float) -> float:
    """Root mean square distance from the neuron."""
    return float(np.sqrt(np.mean(2 - 2 * tokens @ [np.cos(centre), np.sin(centre)])))


def simulate_heaviest(s: Heaviest) -> Evidence:
    """Descent from one narrow cluster at the attracting neuron, at each β; time in units of e^{-β}."""
    centre, start = _narrow(s)
    share = np.linspace(0, 1, s.records)
    runs = []
    for beta in s.betas:
        model = neurons_in_plane(
            beta, angles=s.angles, strengths=s.strengths, activation=s.activation, kernel="unscaled"
        )
        times = share * s.until * np.exp(-beta)
        runs.append(flow(model, start, times=times, record=(heaviest_mass, positions), rtol=s.rtol, form="tokens"))
    masses = [run["heaviest_mass"].values for run in runs]
    curves = tuple(Curve(f"β = {b:g}", share * s.until, m) for b, m in zip(s.betas, masses, strict=True))
    values = {
        "heaviest": [float(m[-1]) for m in masses],
        "spread": [_spread(run["tokens"].values[-1], centre) for run in runs],
        "constant": _constant(),
    }
    return Evidence(values, curves=curves, runs=tuple(runs))


def predict_heaviest(s: Heaviest) -> Evidence:
    """2e^{-3/2}/(2e^{-3/2} + ⅜e^{-1/8})."""
    line = Curve("0.5742", [0.0, s.until], [HEAVIEST, HEAVIEST])
    return Evidence({"heaviest": np.full(len(s.betas), HEAVIEST), "constant": HEAVIEST}, curves=(line,))


def predict_descent(s: Heaviest) -> Evidence:
    """The bound, and how far the cluster has spread in SciPy's solution of the same descent."""
    centre, start = _narrow(s)
    masses = np.full(s.n, 1 / s.n)
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation=s.activation)
    spreads = []
    for beta in s.betas:
        land = perceptron_landscape(potential, beta, "unscaled")

        def velocity(_: float, flat: np.ndarray, land: Landscape = land, unit: float = np.exp(-beta)) -> np.ndarray:
            x = flat.reshape(s.n, 2)
            return unit * land.velocity(x / np.linalg.norm(x, axis=1, keepdims=True), masses, -1).ravel()

        end = solve_ivp(velocity, (0, s.until), start.ravel(), "DOP853", rtol=s.rtol, atol=s.rtol / 10).y[:, -1]
        tokens = end.reshape(s.n, 2)
        spreads.append(_spread(tokens / np.linalg.norm(tokens, axis=1, keepdims=True), centre))
    found = predict_heaviest(s)
    return Evidence({**found.values, "spread": spreads}, curves=found.curves, source="theorem; SciPy's solution")


_WITHIN = {
    "heaviest": at_most("O(e^{-β}) at the smallest β", slack=1e-3),
    "spread": relative(1e-6, "two solvers at tolerance 1e-7"),
    "constant": absolute(1e-9, "digits of the reference value 0.574192278"),
}
_HEAVIEST_AXES = Axes("t e^β", "heaviest mass in an arc of 1/(2√β)")

claim(
    "metastability/P5",
    PERCEPTRON_LANDSCAPE,
    "no single cluster at large β",
    "At large β descent (kernel e^{β<x,y>}) leaves at most 2e^{−3/2}/(2e^{−3/2}+⅜e^{−1/8}) = 0.5742 of the mass in any "
    "arc of length 1/(2√β), even from one cluster, which spreads as the particles of the energy do.",
    where="§3.2, theorem on the mass of a cluster",
    models=("perceptron",),
    quick=Heaviest(strengths=(1.0, -0.7), betas=(9.0, 25.0, 49.0)),
    full=Heaviest(strengths=(1.0, -0.7), betas=(9.0, 16.0, 25.0, 49.0, 100.0), n=200, until=1000.0),
    within=_WITHIN,
    simulate=simulate_heaviest,
    predict=predict_descent,
    axes=_HEAVIEST_AXES,
    note="The bound needs β large against the weights: for the scaled kernel, ω < −1 holds all the mass in one atom.",
    mistakes=(ASCENT,),
)

claim(
    "metastability/ER-13",
    PERCEPTRON_LANDSCAPE,
    "no single cluster at any β, as stated",
    "With small weights descent leaves at most 0.5742 of the mass in any arc of length 1/(2√β), for every β > 0.",
    where="§3.2, bound on the mass of a cluster, read for every β",
    models=("perceptron",),
    quick=Heaviest(),
    within={"heaviest": _WITHIN["heaviest"]},
    simulate=simulate_heaviest,
    predict=predict_heaviest,
    expected="refuted",
    corrected_by="metastability/P5",
    axes=_HEAVIEST_AXES,
    note="For β < 1/(16π²) the arc is longer than the circle and holds everything (for β < 1/(4π²) any two points are "
    "within its length): the statement is one about large β.",
)


# --- ER-14: linear activation


class Atoms(Setting):
    """Descent with a smooth activation."""

    angles: of.Angles = (0.0, 2.0)
    strengths: of.Strengths = (0.02, -0.014)
    beta: of.Beta = 4.0
    n: of.Tokens = 100
    until: of.Until = 300.0
    records: of.Records = 61
    together: Annotated[of.Positive, means("tokens this near are one atom", unit="radians")] = 0.001
    rtol: of.Rtol = 1e-9


def simulate_spread(s: Atoms) -> Evidence:
    """Descent with a linear activation from equally spaced tokens; too strong neurons are refused at once."""
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation="linear")
    linear_density(perceptron_landscape(potential, s.beta))
    model = neurons_in_plane(s.beta, angles=s.angles, strengths=s.strengths, activation="linear")
    turn = 2 * np.pi * (np.arange(s.n) + 0.25) / s.n
    times = np.linspace(0.0, s.until, s.records)
    start = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    run = flow(model, start, times=times, record=(landscape_energy, positions), rtol=s.rtol)
    x = run["tokens"].values[-1]
    moments = x.T @ x / s.n - np.eye(2) / 2
    angles = np.sort(np.arctan2(x[:, 1], x[:, 0]))
    nearest = np.diff(angles, append=angles[0] + 2 * np.pi)
    alone = (nearest > s.together) & (np.roll(nearest, 1) > s.together)
    heights = run["landscape_energy"].values
    values = {"energy": heights[-1], "moments": moments.ravel(), "shared": 1 - float(np.mean(alone))}
    return Evidence(values, curves=(Curve(f"{s.n} tokens", times, heights),), runs=(run,))


def predict_spread(s: Atoms) -> Evidence:
    """The density 1 + xᵀSx: second moments S/4 about I/2."""
    potential = perceptron_potential(on_circle(s.angles), s.strengths, activation="linear")
    shape, height = linear_density(perceptron_landscape(potential, s.beta))
    line = Curve("min E, a density", [0.0, s.until], [height, height])
    needed = _relaxation(s, float(np.abs(shape).max()) / 4)
    return Evidence(
        {"energy": height, "moments": shape.ravel() / 4, "shared": 0.0},
        curves=(line,),
        undecided=dict.fromkeys(("energy", "moments"), f"until={needed:.3g} lets modes 2 and 4 relax")
        if s.until < needed
        else {},
    )


LEFT = 1e-7
"""Of the moments at the end of the descent."""


def _relaxation(s: Atoms, size: float) -> float:
    """When mode 2 and, of second order, mode 4 are within LEFT/10: they decay as fast as ascent grows them."""
    rates = growth_rates(s.beta, 2, 4, "usa")[[1, 3]]
    return float(np.max(np.log(10 * np.array([size, size**2]) / LEFT) / rates))


def predict_atoms(s: Atoms) -> Evidence:
    """In a finite sum of atoms every token shares its place with others."""
    return Evidence({"shared": 1.0}, source="printed statement, hypothesis dropped")


_LINEAR_AXES = Axes("depth-time t", "energy E")

ER_14B = claim(
    "metastability/ER-14b",
    PERCEPTRON_LANDSCAPE,
    "linear activation: a density, no atoms (derived)",
    "With a linear activation and small weights the minimiser on the circle is the density 1 + xᵀSx, S = −βQ/(2κg₂), "
    "Q the traceless part of Σ ω a aᵀ and g₂ = e^{−β}I₂(β): a polynomial of degree two, without atoms.",
    where="remark on linear activations; the density is derived",
    models=("perceptron",),
    quick=Atoms(),
    full=Atoms(n=500),
    within={
        "energy": absolute(1e-10, "quadratic in what is left of the moments; rounding"),
        "moments": absolute(LEFT, "modes still on their way, and solver tolerance 1e-9 over their rate"),
        "shared": exactly("a share of tokens"),
    },
    simulate=simulate_spread,
    predict=predict_spread,
    axes=_LINEAR_AXES,
    mistakes=(ASCENT,),
)

ER_14B.printed_as(
    "metastability/ER-14",
    "finitely many atoms, whatever the activation",
    "On the circle every limit of descent is a finite sum of atoms, for any activation.",
    where="theorem on atoms on the circle, read for any activation",
    within={"shared": exactly("a share of tokens")},
    predict=predict_atoms,
    note="The theorem asks for a potential that is not analytic (ReLU), or for strict second-order critical points.",
)
