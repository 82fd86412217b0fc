"""Low temperature: the mass that goes to the wrong pole, and the plateau it leaves (arXiv:2605.10931; derived)."""

from __future__ import annotations

from typing import Annotated

import jax.numpy as jnp
import numpy as np
from scipy.special import ive

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake, too_large
from pathlines.claim.tolerance import absolute, at_most, of_largest, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers.followups import LOW_TEMPERATURE
from pathlines.foundation.setting import Setting, at_least, means
from pathlines.integrate.concentration import concentrate
from pathlines.limit.followups import separatrix as theory
from pathlines.model.self_attention import SelfAttention
from pathlines.weights.fixed import FixedWeights

CONVENTION = (
    "softmax attention on the sphere with Q = K = I and scores β⟨x, y⟩; distances are particle by particle, in L²."
)
Values = Annotated[tuple[float, float], means("eigenvalues of V along the first and the second axis", "λ₁, λ₂")]
Concentrated = Annotated[of.NonNegative, means("concentration of the von Mises start", "κ")]
MeanAngle = Annotated[float, means("mean angle of the start, from the axis of λ₁", "φ", unit="degrees")]
Points = Annotated[int, at_least(200), means("weighted particles, geometric towards the separatrix", "n")]


LEAST = 1e-5
"""Mass of which the integrator's 1e-7 at the separatrix (followups/T3) is one per cent."""


class Plateau(Setting):
    """A von Mises start."""

    betas: of.Betas = (32.0, 128.0)
    value: Values = (1.0, 0.3)
    kappa: Concentrated = 1.0
    mean: MeanAngle = 45.0
    until: of.Until = 16.0
    n: Points = 1200


def matrix_of(value: tuple[float, float]) -> np.ndarray:
    """V; the second axis may have the larger eigenvalue."""
    return np.diag(np.array(value, float))


def start_of(kappa: float, mean: float) -> theory.Density:
    """The density of the engine's particles: its own formula, not that of the theory."""
    where = np.deg2rad(mean)
    return lambda angles: np.exp(kappa * np.cos(angles - where) - kappa)


def simulate_plateau(s: Plateau) -> Evidence:
    """One run for each β."""
    if not min(s.betas, default=0.0) > 0:
        raise ArgumentError(f"Setting `betas` must hold numbers > 0, but is {s.betas}.")
    found = [
        concentrate(start_of(s.kappa, s.mean), b, matrix_of(s.value), np.linspace(0, s.until, 33), s.n) for b in s.betas
    ]
    values = {"misassigned": np.array([f.misassigned for f in found])}
    values["plateau"] = np.array([f.distance[-1] for f in found])
    curves = tuple(Curve(f"β = {b:g}", f.times, f.distance) for b, f in zip(s.betas, found, strict=True))
    return Evidence(values, curves=curves, runs=tuple(f.run for f in found))


def predict_plateau(s: Plateau) -> Evidence:
    """Second order in 1/β."""
    rho = theory.von_mises(s.kappa, np.deg2rad(s.mean))
    known = [theory.misassignment(rho, b, matrix_of(s.value)) for b in s.betas]
    values = {"misassigned": np.array([k.mass for k in known]), "plateau": np.array([k.plateau for k in known])}
    advice = {}
    # what is left out: twice the square of the next order (an end where that vanishes has λ₁/(gap β) still), the poles
    steep = max(s.value) / (known[0].gap * min(s.betas)) > 0.1
    if steep or max(k.relative for k in known) > 0.06 or max(k.far for k in known) > 0.005:
        advice = dict.fromkeys(values, "a larger β: what is left out may be more than 0.5 %")
    if min(k.mass for k in known) < LEAST:
        advice = dict.fromkeys(values, "a start with a slope at ±90° (κ > 0): so little mass is not resolved")
    left = theory.distances(rho, np.inf, matrix_of(s.value), [s.until])[0]
    if min(k.mass for k in known) * 4 < 50 * left**2:
        advice["plateau"] = "a longer run or a smaller β: what is left between the poles still shows"
    if known[0].gap * s.until < np.log(100):
        advice["misassigned"] = "a longer run: the separatrix is not where it stays"
    t = np.linspace(0, s.until, 33)
    curves = tuple(Curve(f"theory, β = {b:g}", t, theory.distances(rho, b, matrix_of(s.value), t)) for b in s.betas)
    return Evidence(values, curves=curves, undecided=advice)


claim(
    "followups/T1",
    LOW_TEMPERATURE,
    "the plateau: how much mass goes to the wrong pole",
    "The separatrix at ±π/2 is displaced by −λ₁ ∂ log ρ₀/(2(λ₁−λ₂)β), so that mis(β) = λ₁ Σ± |∂ρ₀(±π/2)|/(2(λ₁−λ₂)β) "
    "+ O(β⁻²) goes to the wrong pole and the law stays at distance 2√mis(β) from the projected start, particle by "
    "particle (W₂ is as large only if all of it goes to the same pole, as here); here with the next order in 1/β. "
    "For V = diag(1, 0.3) and von Mises (κ = 1, mean π/4), mis = 0.1600756522/β.",
    where="abstract (the projected start is reached up to a power of β); the law derived",
    models=("sa",),
    quick=Plateau(),
    full=Plateau(betas=(16.0, 32.0, 64.0, 128.0), n=4000),
    within={
        "misassigned": relative(0.01, "the third order in 1/β, and the distance of particles at the separatrix"),
        "plateau": relative(0.01, "the same, half of it, and the particles that stand for what is at the separatrix"),
    },
    simulate=simulate_plateau,
    predict=predict_plateau,
    axes=Axes("depth-time", "distance to the projected start", y_scale="log"),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)


# --- T2: the approach


class Approach(Setting):
    """One large β."""

    beta: of.Beta = 512.0
    value: Values = (1.0, 0.3)
    kappa: Concentrated = 1.0
    mean: MeanAngle = 45.0
    times: of.Times = (1.0, 2.0, 4.0, 8.0)
    n: Points = 1500


def rate(times: np.ndarray, distance: np.ndarray) -> float:
    """Between the last two times."""
    return float(np.log(distance[-2] / distance[-1]) / (times[-1] - times[-2]))


def simulate_approach(s: Approach) -> Evidence:
    """Distances at the times."""
    if len(s.times) < 2 or list(s.times) != sorted(set(s.times)) or not s.beta > 0:
        raise ArgumentError(f"Settings `times` must be two or more that increase, and `beta` > 0, but are {s.times}.")
    found = concentrate(start_of(s.kappa, s.mean), s.beta, matrix_of(s.value), s.times, s.n)
    values = {"distance": found.distance, "rate": rate(found.times, found.distance)}
    return Evidence(values, curves=(Curve(f"β = {s.beta:g}", found.times, found.distance),), runs=(found.run,))


def predict_approach(s: Approach) -> Evidence:
    """The zero-temperature flow, and its rate."""
    rho, v = theory.von_mises(s.kappa, np.deg2rad(s.mean)), matrix_of(s.value)
    cold, known = theory.distances(rho, np.inf, v, s.times), theory.misassignment(rho, max(s.beta, 1e-9), v)
    # with the plateau in it, σ = plateau²/distance²: the distance is (1+σ²)^{1/4} too large, its rate falls by 1+σ²
    warm, times = theory.distances(rho, max(s.beta, 1e-9), v, s.times), np.array(s.times)
    advice = {}
    if abs(rate(times, warm) / (known.gap / 2) - 1) > 0.03:
        advice["rate"] = "a larger β, or other times: not exponential yet, or the plateau shows"
    if not known.reliable or np.abs(warm / cold - 1).max() > 0.02 or 2 * known.gap * times[-1] / s.beta > 0.04:
        advice = dict.fromkeys(("distance", "rate"), "a larger β or earlier times: the plateau shows")
    curves = (Curve("zero temperature", np.array(s.times), cold),)
    return Evidence({"distance": cold, "rate": known.gap / 2}, curves=curves, undecided=advice)


claim(
    "followups/T2",
    LOW_TEMPERATURE,
    "the approach to the plateau",
    "Before the plateau the law follows the zero-temperature flow, x_t = e^{tV}x/|e^{tV}x|, and its distance to the "
    "projected start falls like e^{−(λ₁−λ₂)t/2} on the circle: mass that is still at the equator decays like "
    "e^{−(λ₁−λ₂)t}.",
    where="abstract (e^{−ct}); the rate derived",
    models=("sa",),
    quick=Approach(),
    full=Approach(beta=2048.0, n=4000),
    within={
        "distance": relative(0.025, "terms of order gap·t/β: 1 % was measured at 5.6/512"),
        "rate": relative(0.04, "the same over the last interval, and the start of the exponential"),
    },
    simulate=simulate_approach,
    predict=predict_approach,
    axes=Axes("depth-time", "distance to the projected start", y_scale="log"),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)


# --- T3: symmetric starts


class Symmetric(Setting):
    """A start whose density has no slope at the separatrix."""

    beta: of.Beta = 64.0
    value: Values = (1.0, 0.3)
    kappa: Concentrated = 0.0
    mean: MeanAngle = 90.0
    until: of.Until = 16.0
    n: Points = 1200


def simulate_symmetric(s: Symmetric) -> Evidence:
    """The mass at the wrong pole."""
    times = np.linspace(0, s.until, 33)
    found = concentrate(start_of(s.kappa, s.mean), max(s.beta, 1e-9), matrix_of(s.value), times, s.n)
    values = {"misassigned": found.misassigned, "distance": found.distance[-1]}
    return Evidence(values, curves=(Curve(f"β = {s.beta:g}", found.times, found.distance),), runs=(found.run,))


def slowest(s: Symmetric) -> float:
    """Growth of an angle from a separatrix at the start, over λ₁ - λ₂, and at most 1; it is 1 at β = ∞, β/2 at small β.

    A von Mises law is heard in the direction βx + κm, R = |βx + κm|, as I₁(R)/I₀(R): at ±m the angle grows at
    (I₁/I₀)(R)(λ₁β - λ₂(β ± κ))/R. Later the law leaves the equator and angles grow faster.
    """
    low, high = sorted(s.value)
    heard = s.beta + s.kappa * np.array([1.0, -1.0])
    radius = np.maximum(np.abs(heard), 1e-9)
    growth = ive(1, radius) / ive(0, radius) / radius * (high * s.beta - low * heard)
    return float(np.clip(growth.min() / (high - low), 0.0, 1.0))


def predict_symmetric(s: Symmetric) -> Evidence:
    """None, and what the zero-temperature flow leaves between the poles."""
    rho, v = theory.von_mises(s.kappa, np.deg2rad(s.mean)), matrix_of(s.value)
    known, left = theory.misassignment(rho, max(s.beta, 1e-9), v), theory.distances(rho, np.inf, v, [s.until])[0]
    advice = {}
    if known.first > 1e-9:
        advice = dict.fromkeys(("misassigned", "distance"), "κ = 0 or a mean of ±90°: this start is not symmetric")
    elif theory.distances(rho, np.inf, v, [s.until * slowest(s)])[0] > left + 0.004:
        advice = dict.fromkeys(("misassigned", "distance"), "a larger β or a longer run: tokens part slowly at this β")
    curve = Curve("no plateau", np.array([0.0, s.until]), np.array([np.nan, left]))
    return Evidence({"misassigned": 0.0, "distance": left}, curves=(curve,), undecided=advice)


claim(
    "followups/T3",
    LOW_TEMPERATURE,
    "symmetric starts have no plateau",
    "A start that is symmetric about the diameter orthogonal to e₁ (uniform, for one) keeps its separatrix: no mass "
    "goes to the wrong pole, and the distance falls through any plateau.",
    where="derived",
    models=("sa",),
    quick=Symmetric(),
    full=Symmetric(kappa=2.0, n=4000),
    within={
        "misassigned": absolute(1e-7, "the tolerance of the integrator at the separatrix"),
        "distance": at_most("what is left between the poles, with room for a finite β", 0.005),
    },
    simulate=simulate_symmetric,
    predict=predict_symmetric,
    axes=Axes("depth-time", "distance to the projected start", y_scale="log"),
    mistakes=(
        Mistake(
            "simulate",
            "a start turned by {:.0%} of a radian",
            lambda right, size: lambda s: right(_turned(s, size)),
            (0.01, 0.1, 0.2, 0.5, 1.0),
        ),
    ),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)


def _turned(s: Symmetric, size: float) -> Symmetric:
    return Symmetric(s.beta, s.value, max(s.kappa, 1.0), s.mean + np.rad2deg(size), s.until, s.n)


# --- T4: V = I


class Isotropic(Setting):
    """Q = K = V = I."""

    betas: of.Betas = (16.0, 64.0, 256.0)
    kappa: Concentrated = 1.0
    mode: Annotated[of.Count, means("Fourier mode whose growth is measured", "k")] = 3
    n: Annotated[int, at_least(16), means("weighted particles, evenly spaced", "n")] = 400


AMPLITUDE = 1e-4
ANGLES = np.linspace(0.2, 6.0, 24)


def simulate_isotropic(s: Isotropic) -> Evidence:
    """β times the velocity of listeners without mass among von Mises particles, and the growth of a small mode."""
    if not min(s.betas, default=0.0) > 0:
        raise ArgumentError(f"Setting `betas` must hold numbers > 0, but is {s.betas}.")
    even = 2 * np.pi * np.arange(s.n) / s.n
    heard = np.concatenate([start_of(s.kappa, 0.0)(even), np.zeros(len(ANGLES))])
    uneven = 1 + AMPLITUDE * np.cos(s.mode * even)
    velocity, growth = [], []
    for beta in s.betas:
        velocity.append(beta * _turning(beta, np.concatenate([even, ANGLES]), heard)[s.n :])
        turning = _turning(beta, even, uneven)
        # d/dt Σ m e^{ikθ} = ik Σ m e^{ikθ} dθ/dt
        waves = uneven * np.exp(1j * s.mode * even)
        growth.append(beta * float(np.real(1j * s.mode * (waves @ turning) / waves.sum())))
    shown = tuple(Curve(f"β = {b:g}", ANGLES, v) for b, v in zip(s.betas, velocity, strict=True))
    return Evidence({"velocity": np.array(velocity), "growth": np.array(growth)}, curves=shown)


def _turning(beta: float, angles: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """dθ/dt of particles with V = I."""
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    model = SelfAttention(beta, weights=FixedWeights(np.eye(2)), multiplicities=masses, summation="dense")
    move = np.asarray(model.drift(jnp.asarray(x), jnp.zeros(())))
    return move[:, 1] * x[:, 0] - move[:, 0] * x[:, 1]


def predict_isotropic(s: Isotropic) -> Evidence:
    """von Mises: exact for every β; modes grow at k² I_k(β)/(β I_0(β)); at β = ∞ β times the velocity is ∂ log ρ."""
    velocity, growth = [], []
    for beta in s.betas:
        length = np.sqrt(beta**2 + s.kappa**2 + 2 * beta * s.kappa * np.cos(ANGLES))
        velocity.append(-beta * s.kappa * np.sin(ANGLES) / length * ive(1, length) / ive(0, length))
        growth.append(s.mode**2 * ive(s.mode, beta) / ive(0, beta))
    slope = Curve("∂ log ρ", ANGLES, -s.kappa * np.sin(ANGLES))
    coarse = s.n < 8 * s.mode or s.n < 15 * np.sqrt(max(s.betas) + s.kappa)
    advice = dict.fromkeys(("velocity", "growth"), "more particles") if coarse else {}
    return Evidence({"velocity": np.array(velocity), "growth": np.array(growth)}, curves=(slope,), undecided=advice)


claim(
    "followups/T4",
    LOW_TEMPERATURE,
    "V = I: the zero-temperature velocity vanishes",
    "With V = Q = K = I the velocity is (1/β)∂ log ρ + O(β⁻²), backwards heat: tokens climb the density. For a von "
    "Mises law it is −(I₁/I₀)(R) κ sin θ/R, R² = β² + κ² + 2βκ cos θ, exactly, and a small mode k of the "
    "uniform law grows "
    "at rate k² I_k(β)/(β I₀(β)), near k²/β.",
    where="derived",
    models=("sa",),
    quick=Isotropic(),
    full=Isotropic(betas=(16.0, 64.0, 256.0, 1024.0), n=1000),
    within={
        "velocity": of_largest(1e-8, "sums over even angles, exact beside kernels of width β^{-1/2}; rounding times β"),
        "growth": relative(1e-5, "the amplitude of the mode is 10⁻⁴: its square, and rounding over it"),
    },
    simulate=simulate_isotropic,
    predict=predict_isotropic,
    axes=Axes("angle θ", "β × velocity"),
    mistakes=(too_large("drift", "a velocity {:.0%} too large"),),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)
