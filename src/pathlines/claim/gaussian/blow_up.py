"""Blow-up of Gaussian clouds at a finite depth: when, along which direction, and for which attention.

Softmax attention on Gaussians explodes at a depth that is known for V = I and computable in general (A Unified
Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322, for the equations; times and profiles derived).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian.reference_set import COVARIANCE, A, factor_of
from pathlines.claim.tolerance import relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.gaussian_fate import Fate, fates
from pathlines.integrate.run import Run
from pathlines.limit.gaussian.l2 import singular_key_blow_up, singular_key_covariance
from pathlines.limit.gaussian.moments import head, scaled_blow_up
from pathlines.limit.gaussian.softmax import (
    identity_value_blow_up,
    identity_value_covariance,
    profile_error,
    rank_one_profiles,
)
from pathlines.model.gaussian.closure import GaussianClosure, SoftmaxGaussian, sigma_points
from pathlines.model.gaussian.normalised import L2Gaussian


def _speed(time: float | None) -> float:
    """1/T*, zero when there is no blow-up."""
    return 0.0 if time is None or np.isinf(time) else 1 / time


def _towards(model: GaussianClosure, covariance: Any, fate: Fate, share: float) -> tuple[Run, np.ndarray]:
    """A run to a share of the blow-up time (or to t = 1)."""
    last = share * (fate.blow_up_time or 1 / share)
    start = sigma_points(np.zeros(len(covariance)), covariance)
    times = np.linspace(0.0, last, 41)
    return flow(model, start, times=times, record="covariance", method="dop853", rtol=1e-11, atol=1e-13), times


def _trace(run: Run) -> np.ndarray:
    return np.trace(run["covariance"].values, axis1=1, axis2=2)


# --- C06: V = I


class IdentityValue(Setting):
    """A centred cloud under V = I."""

    A: of.QueryKey = A
    covariance: of.Covariance = COVARIANCE
    share: of.BlowUpShare = 0.9
    rtol: of.Rtol = 1e-10


def simulate_identity(s: IdentityValue) -> Evidence:
    """T* by the scale-free integrator, Σ half-way by the flow."""
    model = SoftmaxGaussian(np.eye(len(s.A)), s.A)
    (fate,) = fates(model, factor_of(s.covariance), rtol=s.rtol)
    run, times = _towards(model, s.covariance, fate, s.share)
    values = {"inverse_time": _speed(fate.blow_up_time), "covariance": run["covariance"].values[-1].ravel()}
    return Evidence(values, curves=(Curve("tr Σ", times, _trace(run)),), runs=(run,))


def predict_identity(s: IdentityValue) -> Evidence:
    """1/λ_max(Σ_0^{1/2}(A + Aᵀ)Σ_0^{1/2}), and (Σ_0^{-1} - t(A + Aᵀ))^{-1}."""
    time, _ = identity_value_blow_up(s.A, s.covariance)
    last = s.share * time if np.isfinite(time) else 1.0
    grid = np.linspace(0, last, 200)
    exact = [identity_value_covariance(t, s.A, s.covariance) for t in grid]
    curves = (Curve("tr (Σ₀⁻¹ − tS)⁻¹", grid, [np.trace(x) for x in exact]),)
    error = 1e-9 / (1 - s.share) * np.abs(exact[-1]).max()
    values = {"inverse_time": _speed(time), "covariance": exact[-1].ravel()}
    return Evidence(values, {"covariance": error}, curves=curves)


claim(
    "gaussian/C06",
    UNIFIED,
    "blow-up time for V = I (derived)",
    "For V = I and any A a centred Gaussian cloud under softmax attention has Σ(t) = (Σ₀⁻¹ − t(A+Aᵀ))⁻¹: it blows up "
    "iff λ_max(A+Aᵀ) > 0, at T* = 1/λ_max(Σ₀^½(A+Aᵀ)Σ₀^½).",
    where="derived; on the covariance equation of softmax",
    models=("gaussian-softmax",),
    quick=IdentityValue(),
    within={
        "inverse_time": relative(1e-7, "e^-25 of the time is left where the run stops; 1e3 times rtol accumulated"),
        "covariance": standard_errors(
            1.0, "a hundred times the rtol 1e-11 of the flow, magnified by 1/(1 - share) on the way to the blow-up"
        ),
    },
    simulate=simulate_identity,
    predict=predict_identity,
    axes=Axes("depth-time t", "tr Σ", y_scale="log"),
)


# --- C07: general V


class GeneralValue(Setting):
    """A centred cloud under any V."""

    V: of.ValueMatrix = ((1.0, 0.3), (0.2, -0.5))
    A: of.QueryKey = ((0.8, -0.2), (0.1, 0.4))
    covariance: of.Covariance = COVARIANCE
    share: of.BlowUpShare = 0.95
    rtol: of.Rtol = 1e-10


def simulate_general(s: GeneralValue) -> Evidence:
    """T* and the leading axis at the end."""
    model = SoftmaxGaussian(s.V, s.A)
    (fate,) = fates(model, factor_of(s.covariance), rtol=s.rtol)
    run, times = _towards(model, s.covariance, fate, s.share)
    values = {"inverse_time": _speed(fate.blow_up_time), "direction": fate.direction}
    return Evidence(values, curves=(Curve("tr Σ", times, _trace(run)),), runs=(run,))


def predict_general(s: GeneralValue) -> Evidence:
    """T* by SciPy in scale-free covariances, the direction by the rule of the extremal eigenvalue of V.

    An extremal eigenvalue that is repeated leaves it to Σ_0 which of its vectors it is: known for V = vI, where Σ
    follows A' = vA with V = I, and open otherwise.
    """
    time, seen = scaled_blow_up([head(s.V, s.A)], s.covariance)
    profiles = _profiles(s) if np.isfinite(time) else []
    if not profiles:
        return Evidence({"inverse_time": _speed(time) if np.isfinite(time) else None, "direction": None})
    v, nearest = max(profiles, key=lambda pair: abs(pair[1] @ seen))
    nearest = nearest * np.sign(nearest[np.argmax(np.abs(nearest))])
    left = time * (1 - 0.9 * np.arange(51) / 50)
    rank_one = 1 / (2 * v * _form(s.A, nearest))
    left_over = 0.0 if _is_multiple(s.V) else profile_error(s.V, v)
    return Evidence(
        {"inverse_time": _speed(time), "direction": nearest},
        {"direction": max(2e-4, left_over)},
        curves=(Curve("profile c/(T* − t)", time - left, rank_one / left),),
        source="SciPy; rule of the extremal eigenvalue",
    )


def _profiles(s: GeneralValue) -> list[tuple[float, np.ndarray]]:
    """(v, u) of the possible profiles; none where Σ_0 decides between the vectors of a repeated eigenvalue."""
    value = np.asarray(s.V, float)
    if _is_multiple(value):
        _, u = identity_value_blow_up(value[0, 0] * np.asarray(s.A, float), s.covariance)
        return [] if u is None else [(float(value[0, 0]), u)]
    values = np.linalg.eigvals(value)
    close = 1e-6 * np.abs(values).max()  # two equal ones of a Jordan block come out √rounding apart
    last, first = values[np.argmax(values.real)], values[np.argmin(values.real)]
    ends = [v for v, grows in ((last, last.real > 0), (first, first.real < 0)) if grows]
    repeated = any(np.sum(np.abs(values - v) <= close) > 1 for v in ends)
    return [] if repeated else rank_one_profiles(value, s.A)


def _is_multiple(value: Any) -> bool:
    """Whether V = vI."""
    V = np.asarray(value, float)
    return np.array_equal(V, V[0, 0] * np.eye(len(V)))


def _form(score: Any, u: np.ndarray) -> float:
    return float(u @ np.asarray(score, float) @ u)


claim(
    "gaussian/C07",
    UNIFIED,
    "blow-up for a general V (derived)",
    "Where softmax attention blows up with a rank-one profile, Σ ~ c uuᵀ/(T*−t) with Vu = vu, v the rightmost "
    "eigenvalue (v > 0, uᵀAu > 0) or the leftmost (v < 0, uᵀAu < 0), c = 1/(2v uᵀAu).",
    where="derived; on the covariance equation of softmax",
    models=("gaussian-softmax",),
    quick=GeneralValue(),
    within={
        "inverse_time": relative(1e-6, "two solvers at 1e-10 and 1e-11, magnified by the blow-up"),
        "direction": standard_errors(5.0, "1e-3, or five times the share e^(-25|v-v'|/2|v|) of the next eigenvector"),
    },
    simulate=simulate_general,
    predict=predict_general,
    axes=Axes("depth-time t", "tr Σ", y_scale="log"),
    note="Inconclusive where no rank-one profile is stable (complex extremal pairs), an extremal eigenvalue is "
    "repeated (V = vI is known), or no blow-up is seen.",
)


# --- C11: l2 with a key matrix that is not injective


class SingularKey(Setting):
    """Key, query and value that see one coordinate each."""

    kappa: Annotated[float, means("the entry of K", "κ")] = 1.0
    q: Annotated[float, means("the entry of Q", "q")] = 1.0
    v: Annotated[float, means("the entry of V", "v")] = 1.0
    covariance: of.Covariance = ((1.0, 0.5), (0.5, 1.0))
    share: of.BlowUpShare = 0.99
    rtol: of.Rtol = 1e-10


def _singular(s: SingularKey) -> L2Gaussian:
    return L2Gaussian(np.diag([0.0, s.v]), [[0.0, s.q]], [[s.kappa, 0.0]])


def simulate_l2(s: SingularKey) -> Evidence:
    """T* by the scale-free integrator; Σ at a share of it by the flow."""
    (fate,) = fates(_singular(s), factor_of(s.covariance), rtol=s.rtol)
    run, times = _towards(_singular(s), s.covariance, fate, s.share)
    values = {"inverse_time": _speed(fate.blow_up_time), "covariance": run["covariance"].values[-1].ravel()}
    return Evidence(values, curves=(Curve("tr Σ", times, _trace(run)),), runs=(run,))


def predict_l2(s: SingularKey) -> Evidence:
    """(1 + 2κ²Σ_11)/(2vκqΣ_12), and Σ in closed form."""
    time = singular_key_blow_up(s.kappa, s.q, s.v, s.covariance)
    last = s.share * time if np.isfinite(time) else 1.0
    grid = np.linspace(0, last, 200)
    exact = [singular_key_covariance(t, s.kappa, s.q, s.v, s.covariance) for t in grid]
    curves = (Curve("closed form", grid, [np.trace(x) for x in exact]),)
    return Evidence({"inverse_time": _speed(time), "covariance": exact[-1].ravel()}, curves=curves)


claim(
    "gaussian/C11",
    UNIFIED,
    "l2 attention blows up when K is not injective (derived)",
    "For K = (κ, 0), Q = (0, q), V = diag(0, v) the l2 closure has Σ₁₂ = Σ₁₂(0)/(1−t/T*), Σ₂₂ = Σ₂₂(0)/(1−t/T*)², "
    "T* = (1+2κ²Σ₁₁)/(2vκqΣ₁₂(0)); with an injective K there is no blow-up.",
    where="derived; on the covariance equation of L2 attention",
    models=("gaussian-l2",),
    quick=SingularKey(),
    within={
        "inverse_time": relative(1e-6, "rtol accumulated over the run, and e^-20 of the time that is left"),
        "covariance": relative(1e-6, "rtol of the flow magnified by (1 - t/T*)^-2 = 10⁴"),
    },
    simulate=simulate_l2,
    predict=predict_l2,
    axes=Axes("depth-time t", "tr Σ", y_scale="log"),
    note="Not, to our knowledge, discussed in the paper.",
)
