"""Two slips about the energy with a perceptron: its scale, and the primitive of GELU (arXiv:2601.21366)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from pathlines.attention import UnnormalisedAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting
from pathlines.integrate import flow
from pathlines.integrate.observe import Observable
from pathlines.limit.metastability.perceptron_landscape import Landscape, perceptron_landscape
from pathlines.limit.metastability.perceptron_potential import (
    gelu_primitive_as_released,
    on_circle,
    perceptron_potential,
)
from pathlines.model import SelfAttention, Snapshot
from pathlines.model.metastability.perceptron_landscape import PRIMITIVES, neurons_in_plane
from pathlines.model.parts.perceptron import Perceptron
from pathlines.observable.perceptron_landscape import landscape_energy
from pathlines.weights import IdentityWeights


class BothEnergies(Setting):
    """The energy of evenly spaced tokens."""

    angles: of.Angles = (0.0, 2.0)
    strengths: of.Strengths = (1.0, -0.7)
    activation: of.Activation = "relu"
    betas: of.Betas = (0.5, 2.0, 4.0)
    n: of.Tokens = 30


class GeluWork(Setting):
    """One run of ascent with GELU."""

    angles: of.Angles = (0.0, 2.0)
    strengths: of.Strengths = (1.0, -0.7)
    beta: of.Beta = 4.0
    n: of.Tokens = 20
    until: of.Until = 5.0
    records: of.Records = 26
    rtol: of.Rtol = 1e-11


def _tokens(s: BothEnergies | GeluWork) -> np.ndarray:
    """Deterministic and irregular: angles 2.4 i + sin(i)."""
    i = np.arange(s.n)
    return np.stack([np.cos(2.4 * i + np.sin(i)), np.sin(2.4 * i + np.sin(i))], axis=-1)


# --- ER-15: E_B with B = βI


def simulate_matrix_energy(s: BothEnergies) -> Evidence:
    """E_B = ½∬e^{<Bx,y>} + ½∫v and the speed of its flow, V = B = βI, at each β."""
    x = _tokens(s)
    a, omega = np.stack([np.cos(s.angles), np.sin(s.angles)], axis=-1), np.asarray(s.strengths)
    energies, speeds = [], []
    for beta in s.betas:
        block = Perceptron(omega * a.T, a, activation=s.activation)
        model = SelfAttention(beta, attention=UnnormalisedAttention(), weights=IdentityWeights(beta), perceptron=block)
        kernel = jnp.mean(model.attention_matrix(jnp.asarray(x), jnp.zeros(()))) * s.n
        energies.append(float(kernel / 2 + jnp.mean(PRIMITIVES[s.activation](x @ a.T) @ omega) / 2))
        speeds.append(float(jnp.sqrt(jnp.mean(jnp.sum(model.drift(jnp.asarray(x), jnp.zeros(())) ** 2, axis=-1)))))
    curves = (Curve("E_B", s.betas, energies),)
    return Evidence({"energy": energies, "speed": speeds}, curves=curves)


def _scaled_energy(s: BothEnergies, strengths: Callable[[float], np.ndarray], label: str) -> Evidence:
    """βE and the speed of its flow, with strengths that may depend on β."""
    x, masses, energies, speeds = _tokens(s), np.full(s.n, 1 / s.n), [], []
    for beta in s.betas:
        potential = perceptron_potential(on_circle(s.angles), strengths(beta), activation=s.activation)
        land = perceptron_landscape(potential, beta, "unscaled")
        energies.append(beta * land.energy(x, masses))
        speeds.append(beta * float(np.sqrt(np.mean(np.sum(land.velocity(x, masses, 1) ** 2, axis=1)))))
    return Evidence({"energy": energies, "speed": speeds}, curves=(Curve(label, s.betas, energies),))


def predict_printed_scale(s: BothEnergies) -> Evidence:
    """βE with the same strengths."""
    return _scaled_energy(s, lambda beta: np.asarray(s.strengths), "βE, same ω")


def predict_scale(s: BothEnergies) -> Evidence:
    """βE with ω/β."""
    return _scaled_energy(s, lambda beta: np.asarray(s.strengths) / beta, "βE, ω/β")


_SCALE_WITHIN = {
    "energy": relative(1e-12, "rounding: one formula, written twice"),
    "speed": relative(1e-12, "rounding"),
}
_SCALE_AXES = Axes("inverse temperature β", "energy E_B", y_scale="log")

ER_15B = claim(
    "metastability/ER-15b",
    PERCEPTRON_LANDSCAPE,
    "energy of a key-query matrix B (derived)",
    "For B = βI the energy E_B = ½∬e^{<Bx,y>} + ½∫v is βE with strengths ω/β: attention is β times stronger, the "
    "perceptron is not.",
    where="remark on the energy E_B of a general attention matrix, corrected",
    models=("usa",),
    quick=BothEnergies(),
    within=_SCALE_WITHIN,
    simulate=simulate_matrix_energy,
    predict=predict_scale,
    axes=_SCALE_AXES,
)

ER_15B.printed_as(
    "metastability/ER-15",
    "energy of a key-query matrix B, as stated",
    "For B = βI the energy E_B = ½∬e^{<Bx,y>} + ½∫v is βE, with the same perceptron.",
    where="remark on the energy E_B of a general attention matrix, as printed",
    predict=predict_printed_scale,
)


# --- ER-16: the primitive of GELU


def _work(snapshot: Snapshot) -> jax.Array:
    speed = jnp.sum(snapshot.model.drift(snapshot.state, snapshot.time) ** 2, axis=-1)
    return snapshot.masses @ speed


WORK = Observable("work", "work of the flow", "Σ mᵢ|ẋᵢ|²", _work, needs_tokens=True)


def simulate_work(s: GeluWork) -> Evidence:
    """∫Σ m|ẋ|² dt along ascent, carried by the solver, up to each recorded time."""
    model = neurons_in_plane(s.beta, angles=s.angles, strengths=s.strengths, activation="gelu", flow="ascent")
    times = np.linspace(0.0, s.until, s.records)
    run = flow(model, _tokens(s), times=times, record=landscape_energy, accumulate=WORK, method="dop853", rtol=s.rtol)
    work = run["integral_work"].values
    return Evidence({"work": work[1:]}, curves=(Curve("work of the flow", times, work),), runs=(run,))


def _climb(s: GeluWork, correction: Callable[[Landscape, np.ndarray], float], label: str) -> Evidence:
    """E(t) - E(0) along SciPy's solution of the same flow."""
    land = perceptron_landscape(perceptron_potential(on_circle(s.angles), s.strengths, activation="gelu"), s.beta)
    masses, start = np.full(s.n, 1 / s.n), _tokens(s)
    times = np.linspace(0.0, s.until, s.records)

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(s.n, 2)
        return land.velocity(x / np.linalg.norm(x, axis=1, keepdims=True), masses, 1).ravel()

    path = solve_ivp(velocity, (0, s.until), start.ravel(), "DOP853", times, rtol=s.rtol, atol=s.rtol).y.T
    heights = np.array([land.energy(x, masses) + correction(land, x) for x in path.reshape(-1, s.n, 2)])
    climbed = heights - heights[0]
    return Evidence({"work": climbed[1:]}, curves=(Curve(label, times, climbed),), source="SciPy's solution")


def predict_climb(s: GeluWork) -> Evidence:
    """With φ = s²Φ + sp - Φ."""
    return _climb(s, lambda land, x: 0.0, "E(t) − E(0)")


def predict_released_climb(s: GeluWork) -> Evidence:
    """With φ = s²Φ + sp."""

    def correction(land: Landscape, x: np.ndarray) -> float:
        wrong = gelu_primitive_as_released(x @ land.potential.directions.T) @ land.potential.strengths
        return float(np.mean(wrong - land.potential.value(x)) / 2)

    return _climb(s, correction, "E(t) − E(0), as released")


_GELU_WITHIN = {"work": absolute(1e-10, "solver tolerances 1e-11, some times")}
_GELU_AXES = Axes("depth-time t", "gain of energy")

ER_16B = claim(
    "metastability/ER-16b",
    PERCEPTRON_LANDSCAPE,
    "GELU energy (derived)",
    "With φ(s) = s²Φ(s) + s p(s) − Φ(s) in the potential, E(t) − E(0) is the work ∫Σ mᵢ|ẋᵢ|² dt of ascent with GELU.",
    where="released code, energy for GELU, corrected",
    models=("perceptron",),
    quick=GeluWork(),
    within=_GELU_WITHIN,
    simulate=simulate_work,
    predict=predict_climb,
    axes=_GELU_AXES,
)

ER_16B.printed_as(
    "metastability/ER-16",
    "GELU energy, as released",
    "With φ(s) = s²Φ(s) + s p(s) in the potential, E(t) − E(0) is the work ∫Σ mᵢ|ẋᵢ|² dt of ascent with GELU.",
    where="released code, energy for GELU",
    predict=predict_released_climb,
    note="The derivative of the released primitive is 2sΦ + p instead of 2sΦ; the released drift is right.",
)
