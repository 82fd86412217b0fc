"""Laws of tokens next to and inside clusters, checked on particles: conservation, contraction, the energy identity.

Derived for the equations of Dynamic metastability in the self-attention model (arXiv:2410.06833).
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from scipy.integrate import solve_ivp

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.metastability.slow_phase import angles_from, attention_model, circle_tokens
from pathlines.claim.tolerance import absolute, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.metastability.slow_laws import mean_contraction_rate
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.energy import energy_fraction

# --- M5: what USA conserves on the circle


class AngleSum(Setting):
    """One run on the circle."""

    n: of.Tokens = 128
    beta: of.Beta = 9.0
    until: of.Until = 20.0
    seed: of.Seed = 5


def simulate_sum(s: AngleSum) -> Evidence:
    """Unwrapped angles of particles; the mean of their displacements over time."""
    tokens = Sphere(2).uniform(jax.random.key(s.seed), s.n)
    begin = np.arctan2(*np.asarray(tokens).T[::-1])
    times = np.linspace(0, s.until, 13)
    moved, curves, runs = {}, [], []
    for kind in ("usa", "sa"):
        model = CircleAttention(s.beta, unnormalised=kind == "usa", shift=s.beta)
        run = flow(model, tokens, times=times, record="tokens", rtol=1e-9)
        assert run.final is not None
        moved[kind] = float(np.sum(np.asarray(run.final.state) - begin))
        turns = np.cumsum(angles_from(run["tokens"].values[1:], _angles(run["tokens"].values[:-1])).sum(axis=1))
        curves.append(Curve(kind.upper(), times[1:], np.abs(turns) + 1e-16))
        runs.append(run)
    return Evidence({"usa": moved["usa"], "sa": moved["sa"]}, curves=tuple(curves), runs=tuple(runs))


def _angles(tokens: np.ndarray) -> np.ndarray:
    return np.arctan2(tokens[..., 1], tokens[..., 0])


def predict_sum(s: AngleSum) -> Evidence:
    """Pulls of USA come in opposite pairs; those of SA, summed pair by pair and followed by SciPy, do not."""
    tokens = np.asarray(Sphere(2).uniform(jax.random.key(s.seed), s.n))
    begin = np.arctan2(tokens[:, 1], tokens[:, 0])
    solved = solve_ivp(
        lambda _, angles: _field(angles, s.beta, "sa")[0], (0, s.until), begin, "DOP853", rtol=1e-9, atol=1e-11
    )
    return Evidence({"usa": 0.0, "sa": float(np.sum(solved.y[:, -1] - begin))}, source="SciPy's solution")


claim(
    "metastability/M5",
    METASTABILITY,
    "USA on the circle conserves the sum of angles (derived)",
    "Under USA the sum of unwrapped angles Σ θᵢ is constant, because pulls of a pair are opposite; under SA it is not.",
    where="derived; no statement in the paper",
    models=("circle",),
    quick=AngleSum(),
    full=AngleSum(n=400, until=60.0),
    within={
        "usa": absolute(1e-11, "n roundings of angles per step, some hundred steps"),
        "sa": absolute(1e-6, "two solvers at 1e-9, n angles, grown by e^{βt} at most while tokens pass a separatrix"),
    },
    simulate=simulate_sum,
    predict=predict_sum,
    axes=Axes("depth-time t", "|Σ θᵢ(t) − Σ θᵢ(0)|", y_scale="log"),
)


# --- M6: contraction inside a cluster


class Contraction(Setting):
    """A tight cluster beside another."""

    tokens_here: Annotated[of.Count, means("tokens of the cluster")] = 6
    tokens_there: Annotated[of.Count, means("tokens of the other cluster")] = 4
    spread: Annotated[of.Positive, means("half the width of the cluster", unit="radians")] = 0.0003
    gap: of.ClusterAngle = 2.5
    beta: of.Beta = 9.0
    until: of.Until = 4.0
    kinds: of.Kinds = ("usa", "sa")


def simulate_contraction(s: Contraction) -> Evidence:
    """Tokens of one cluster with a small spread, the other cluster far away."""
    here, there = s.tokens_here, s.tokens_there
    offsets = s.spread * np.linspace(-1, 1, here)
    angles = np.concatenate([offsets, np.full(there, s.gap)])
    times = np.linspace(0, s.until, 26)
    rates, curves, runs = [], [], []
    for kind in s.kinds:
        run = flow(attention_model(kind, s.beta), circle_tokens(angles), times=times, record="tokens", rtol=1e-11,
                   method="dop853", form="tokens")  # fmt: skip
        width = np.ptp(angles_from(run["tokens"].values[:, :here], 0.0), axis=1)
        rates.append(np.log(width[0] / width[-1]) / s.until)
        curves.append(Curve(kind.upper(), times, width))
        runs.append(run)
    return Evidence({"rate": rates}, curves=tuple(curves), runs=tuple(runs))


def predict_contraction(s: Contraction) -> Evidence:
    """The derivative of the velocity field at the cluster, averaged while the two clusters approach."""
    masses = (s.tokens_here / (s.tokens_here + s.tokens_there), s.tokens_there / (s.tokens_here + s.tokens_there))
    rates = [mean_contraction_rate(s.gap, masses, s.beta, s.until, kind) for kind in s.kinds]
    times = np.linspace(0, s.until, 40)
    lines = tuple(Curve(f"rate {r:.4g}", times, 2 * s.spread * np.exp(-r * times)) for r in rates)
    return Evidence({"rate": rates}, curves=lines)


claim(
    "metastability/M6",
    METASTABILITY,
    "contraction inside a cluster (derived)",
    "Inside a cluster of mass m distances shrink at rate m under USA and at rate 1 under SA, whatever its mass, up to "
    "terms of the size of e^{−β(1−cos φ)} from other clusters.",
    where="derived; contraction inside the caps of §2",
    models=("sa", "usa"),
    quick=Contraction(),
    full=Contraction(tokens_here=60, tokens_there=40),
    within={"rate": relative(1e-5, "β·spread² = 8e-7 of nonlinearity, some times")},
    simulate=simulate_contraction,
    predict=predict_contraction,
    axes=Axes("depth-time t", "width of the cluster", y_scale="log"),
)  # fmt: skip


# --- M8: the energy identity


def _field(angles: np.ndarray, beta: float, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """θ' and Z_i, pair by pair in NumPy."""
    turn = angles[None, :] - angles[:, None]
    w = np.exp(beta * (np.cos(turn) - 1))
    z = w.mean(axis=1)
    pull = (w * np.sin(turn)).mean(axis=1)
    return (pull / z, z) if kind == "sa" else (pull, np.ones_like(z))


class EnergySlope(Setting):
    """The slope of the energy at the start."""

    n: of.Tokens = 60
    beta: of.Beta = 9.0
    h: Annotated[of.Positive, means("times between records", unit="depth-time")] = 1e-5
    seed: of.Seed = 8
    kinds: of.Kinds = ("usa", "sa")


def _start_angles(s: EnergySlope) -> np.ndarray:
    return np.random.default_rng(s.seed).uniform(0, 2 * np.pi, s.n)


def simulate_identity(s: EnergySlope) -> Evidence:
    """Central difference of the energy along the particle solution, at t = h."""
    slopes, runs = [], []
    for kind in s.kinds:
        run = flow(attention_model(kind, s.beta), circle_tokens(_start_angles(s)), times=[0.0, s.h, 2 * s.h],
                   record=energy_fraction, method="dop853", rtol=1e-12, form="tokens")  # fmt: skip
        heights = run["energy_fraction"].values
        slopes.append((heights[2] - heights[0]) / (2 * s.h))
        runs.append(run)
    return Evidence({"slope": slopes}, runs=tuple(runs))


def predict_identity(s: EnergySlope) -> Evidence:
    """(2β/n) Σ Z_i |θ_i'|² at t = h, reached by one midpoint step (error h³)."""
    slopes = []
    for kind in s.kinds:
        angles = _start_angles(s)
        middle = angles + s.h / 2 * _field(angles, s.beta, kind)[0]
        velocity, weight = _field(angles + s.h * _field(middle, s.beta, kind)[0], s.beta, kind)
        slopes.append(2 * s.beta * np.mean(weight * velocity**2))
    # β bounds rates on separatrices, where the second derivative of the slope is largest
    return Evidence({"slope": slopes}, {"slope": np.finfo(float).eps / s.h + (s.beta * s.h) ** 2 * np.array(slopes)})


claim(
    "metastability/M8",
    METASTABILITY,
    "energy identity on its own scale",
    "For E = n⁻² Σ e^{β(⟨xᵢ,xⱼ⟩−1)}, dE/dt = (2β/n) Σ|ẋᵢ|² along USA and (2β/n) Σ Zᵢ|ẋᵢ|² along SA, "
    "Zᵢ = n⁻¹ Σⱼ e^{β(⟨xᵢ,xⱼ⟩−1)}.",
    where="§1, gradient flow of the interaction energy",
    models=("sa", "usa"),
    quick=EnergySlope(),
    within={"slope": relative(1e-9, "solver tolerance; (βh)² of the difference, and rounding of E over h", errors=1.0)},
    simulate=simulate_identity,
    predict=predict_identity,
)
