"""The interaction energy of A mathematical perspective on Transformers (arXiv:2312.10794): identity, range, limits.

E_β = (1/2βn²) Σ_ij e^{β<x_i,x_j>} grows along SA and USA: dE/dt = (1/n) Σ_i Z_i |x_i'|², with
Z_i = (1/n) Σ_j e^{β<x_i,x_j>} for SA and Z_i = 1 for USA.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.fitting import REVERSED, too_large
from pathlines.claim.tolerance import absolute, at_least, at_most, relative
from pathlines.domain import Sphere
from pathlines.domain.space import sines
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import Observable
from pathlines.limit.clustering.energy_range import energy_maximum, energy_minimum
from pathlines.model import MODELS, SelfAttention, Snapshot
from pathlines.observable.energy import energy, energy_fraction
from pathlines.weights import FixedWeights


class Energy(Setting):
    """One run for each attention."""

    n: of.Tokens = 20
    d: of.Dimension = 4
    beta: of.Beta = 3.0
    seed: of.Seed = 1
    until: of.Until = 20.0
    records: of.Records = 81
    kinds: of.Kinds = ("sa", "usa")
    rtol: of.Rtol = 1e-12


class EnergyRange(Setting):
    """Runs at several β."""

    n: of.Tokens = 20
    d: of.Dimension = 4
    betas: of.Betas = (0.5, 2.0, 6.0)
    seed: of.Seed = 2
    until: of.Until = 20.0
    records: of.Records = 81
    kinds: of.Kinds = ("sa", "usa")
    rtol: of.Rtol = 1e-12


def _uniform(s: Energy | EnergyRange) -> jax.Array:
    return Sphere(s.d).uniform(jax.random.key(s.seed), s.n)


# --- CL-01: the energy identity


def _identity_times(s: Energy) -> np.ndarray:
    return np.linspace(0.0, s.until, s.records)


def simulate_identity(s: Energy) -> Evidence:
    """One run a kind; the work ∫D is carried by the solver as one more component."""
    runs = tuple(
        flow(
            MODELS[kind].build(s.beta),
            _uniform(s),
            times=_identity_times(s),
            record=energy_fraction,
            method="dop853",
            rtol=s.rtol,
            form="tokens",
        )
        for kind in s.kinds
    )
    worst = [float(np.abs(run["dissipation_residual"].values).max()) for run in runs]
    heights = [run["energy_fraction"].values for run in runs]
    curves = tuple(Curve(k.upper(), r.time, h) for k, r, h in zip(s.kinds, runs, heights, strict=True))
    return Evidence({"residual": worst, "energy": np.concatenate(heights)}, curves=curves, runs=runs)


def _dissipation(x: np.ndarray, beta: float, kind: str) -> float:
    """D/E_max = (2β/n) Σ_i Z_i e^{-β} |x_i'|²."""
    speed = np.sum(direct.velocity(x, beta, kind) ** 2, axis=-1)
    weight = np.mean(np.exp(beta * (x @ x.T - 1)), axis=1) if kind == "sa" else np.exp(-beta)
    return float(2 * beta * np.mean(weight * speed))


def predict_identity(s: Energy) -> Evidence:
    """E(0) + ∫D with the particles solved by SciPy."""
    start, times = np.asarray(_uniform(s)), _identity_times(s)
    first = direct.energy_fraction(start, s.beta)
    heights = [
        first
        + direct.accumulated(
            partial(direct.velocity, beta=s.beta, kind=kind),
            partial(_dissipation, beta=s.beta, kind=kind),
            start,
            times,
            s.rtol,
        )
        for kind in s.kinds
    ]
    curves = tuple(Curve(f"E(0) + ∫D, {k.upper()}", times, h) for k, h in zip(s.kinds, heights, strict=True))
    return Evidence({"residual": np.zeros(len(s.kinds)), "energy": np.concatenate(heights)}, curves=curves)


claim(
    "clustering/CL-01",
    PERSPECTIVE,
    "gradient-flow structure of SA and USA: energy identity",
    "Along USA, dE_β/dt = n⁻¹Σᵢ|ẋᵢ|²; along SA, dE_β/dt = n⁻¹ΣᵢZ̄ᵢ|ẋᵢ|² with Z̄ᵢ = n⁻¹Σⱼe^{β⟨xᵢ,xⱼ⟩}.",
    where="§3.3 (USA, lemma on dissipation) and §3.4 (SA, modified metric), in particle form",
    models=("sa", "usa"),
    quick=Energy(),
    within={
        "residual": absolute(1e-11, "ten times the solver tolerance 1e-12, in units of E_max"),
        "energy": absolute(2e-10, "two solvers at tolerance 1e-12, errors magnified by the unstable early flow"),
    },
    simulate=simulate_identity,
    predict=predict_identity,
    axes=Axes("depth-time t", "E_β/E_max"),
)


# --- CL-02: monotone, and between the uniform measure and one point


def simulate_range(s: EnergyRange) -> Evidence:
    """E_β/E_max along one run for each kind and β."""
    runs, curves, fractions = [], [], []
    for kind in s.kinds:
        for beta in s.betas:
            until = s.until if kind == "sa" else s.until * np.exp(-beta)
            run = flow(
                MODELS[kind].build(beta),
                _uniform(s),
                times=np.linspace(0.0, until, s.records),
                record=energy_fraction,
                method="dop853",
                rtol=s.rtol,
                form="tokens",
            )
            runs.append(run)
            fractions.append(run["energy_fraction"].values)
            curves.append(Curve(f"{kind.upper()} β={beta:g}", run.time / until, fractions[-1]))
    drops = [float(np.max(-np.diff(f))) for f in fractions]
    values = {
        "largest_decrease": drops,
        "lowest": [float(f.min()) for f in fractions],
        "highest": [float(f.max()) for f in fractions],
    }
    return Evidence(values, curves=tuple(curves), runs=tuple(runs))


def predict_range(s: EnergyRange) -> Evidence:
    """No decrease; between the uniform measure and a point mass."""
    betas = np.tile(np.asarray(s.betas, float), len(s.kinds))
    floor = energy_minimum(s.d, betas) / energy_maximum(betas)
    values = {"largest_decrease": np.zeros(len(betas)), "lowest": floor, "highest": np.ones(len(betas))}
    lines = [Curve(f"E_min, β={b:g}", [0.0, 1.0], [f, f]) for b, f in zip(s.betas, floor)]
    return Evidence(values, curves=(*lines, Curve("E_max", [0.0, 1.0], [1.0, 1.0])))


claim(
    "clustering/CL-02",
    PERSPECTIVE,
    "monotonicity and range of the interaction energy",
    "For Q=K=V=I, E_β never decreases along SA or USA and stays between E_min = M_d(β)/(2β), the energy of the uniform "
    "measure, and E_max = e^β/(2β), that of one cluster.",
    where="§3, interaction energy and its maximisers",
    models=("sa", "usa"),
    quick=EnergyRange(),
    full=EnergyRange(betas=(0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0), until=60.0, records=241),
    within={
        "largest_decrease": at_most("solver tolerance 1e-12, in units of E_max", slack=1e-12),
        "lowest": at_least("rounding", slack=1e-12),
        "highest": at_most("rounding", slack=1e-12),
    },
    simulate=simulate_range,
    predict=predict_range,
    axes=Axes("t / t_end", "E_β/E_max"),
    note="USA is run to until·e^{-β}: its late rate is e^β.",
    mistakes=(too_large("simulate", "energies {:.0%} too large"), REVERSED),
)


# --- CL-04: no identity for generic weights


class Generic(Setting):
    """Q, K and V without symmetry."""

    n: of.Tokens = 8
    d: of.Dimension = 3
    beta: of.Beta = 1.5
    until: of.Until = 3.0
    records: of.Records = 61
    rtol: of.Rtol = 1e-12
    query: Annotated[of.Vector, means("numbers that make Q")] = (0.4, 1.1, 0.9)
    key: Annotated[of.Vector, means("numbers that make K")] = (0.8, 0.3, 1.7)
    value: Annotated[of.Vector, means("numbers that make V")] = (1.9, 0.6, 0.2)


def _matrices(s: Generic) -> dict[str, Any]:
    """The deterministic Q, K and V = I + perturbation of the reference trajectories."""
    query, key, value = (sines(s.d, s.d, *numbers) for numbers in (s.query, s.key, s.value))
    return {"query": query, "key": key, "value": value + np.eye(s.d)}


def _plain_dissipation(snapshot: Snapshot) -> jax.Array:
    """n⁻¹ Σ_i Z_i |x_i'|² with Z_i of Q = K = I, along whatever flow the model has."""
    x, model = snapshot.tokens, snapshot.model
    weight = jnp.mean(jnp.exp(model.beta * x @ x.T), axis=1)  # type: ignore[attr-defined]
    return jnp.mean(weight * jnp.sum(model.drift(snapshot.state, snapshot.time) ** 2, axis=-1))


PLAIN_DISSIPATION = Observable(
    "plain_dissipation", "dissipation of the V = I formula", "D", _plain_dissipation, needs_tokens=True
)


def simulate_generic(s: Generic) -> Evidence:
    """E(t) - E(0) - ∫D along SA with generic Q, K, V, all three by the formulas of Q = K = V = I."""
    weights = FixedWeights(**_matrices(s))
    times = np.linspace(0.0, s.until, s.records)
    run = flow(
        SelfAttention(s.beta, weights=weights),
        Sphere(s.d).sines(s.n),
        times=times,
        record=energy,
        accumulate=PLAIN_DISSIPATION,
        method="dop853",
        rtol=s.rtol,
    )
    heights = run["energy"].values
    residual = heights - heights[0] - run["integral_plain_dissipation"].values
    return Evidence({"residual": residual[-1]}, curves=(Curve("E(t) − E(0) − ∫D", times, residual),), runs=(run,))


def _mismatch(x: np.ndarray, beta: float, weights: dict[str, Any]) -> float:
    """dE/dt - D = n⁻¹ Σ_i Z_i <x_i', y_i - x_i'>, y_i the velocity that Q = K = V = I would give."""
    moved, plain = direct.velocity(x, beta, **weights), direct.velocity(x, beta)
    weight = np.mean(np.exp(beta * x @ x.T), axis=1)
    return float(np.mean(weight * np.sum(moved * (plain - moved), axis=-1)))


def predict_generic(s: Generic) -> Evidence:
    """The mismatch of the two velocity fields, integrated along SciPy's solution."""
    weights = _matrices(s)
    start = sines(s.n, s.d)
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    times = np.linspace(0.0, s.until, s.records)
    field = partial(direct.velocity, beta=s.beta, **weights)
    residual = direct.accumulated(field, partial(_mismatch, beta=s.beta, weights=weights), start, times, s.rtol)
    return Evidence({"residual": residual[-1]}, curves=(Curve("∫ mismatch of the fields", times, residual),))


claim(
    "clustering/CL-04",
    PERSPECTIVE,
    "no energy identity for generic Q, K, V (derived)",
    "For generic Q, K, V the energy identity fails: E_β(t) − E_β(0) − ∫D, with E_β and D of Q=K=V=I, equals "
    "∫ n⁻¹ΣᵢZ̄ᵢ⟨ẋᵢ, yᵢ−ẋᵢ⟩ dt, y the velocity of Q=K=V=I, and is far from zero.",
    where="derived; the paper's §3.4 covers Q = K = V = I",
    models=("sa",),
    quick=Generic(),
    within={"residual": relative(1e-10, "two solvers at tolerance 1e-12")},
    simulate=simulate_generic,
    predict=predict_generic,
    axes=Axes("depth-time t", "E(t) − E(0) − ∫D"),
    note="query, key, value are (a,b,c) of sin(ai+bj+cij); the identity is added to V. The residual is absolute, not "
    "in units of E_max.",
)
