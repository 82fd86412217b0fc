"""V = −I in R^d: tokens die algebraically, isotropically, and attention becomes uniform (arXiv:2305.05465).

With Λ(y) = ln n⁻¹Σ_j e^{<y, x_j>} the equation is x_i' = −∇Λ(x_i): the mean dies first, then x_i' ≈ −C x_i, hence
C' ≈ −2C² and C⁻¹ = C(0)⁻¹ + 2t to leading order, while the shape C^{−1/2}(x − x̄) freezes (derived).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import Cube, cube_start, direct_tokens
from pathlines.claim.tolerance import absolute, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.euclidean import negative_identity_covariance
from pathlines.model import SelfAttention
from pathlines.observable.euclidean import attention_flatness, cov_law
from pathlines.weights import FixedWeights

CURVE_POINTS = 25


class Decay(Cube):
    """Tokens that die under V = −I."""

    low: Annotated[float, means("lower end of the cube's sides")] = -2.0
    high: Annotated[float, means("upper end of the cube's sides")] = 2.0
    times: of.Times = (100.0, 1000.0, 10000.0)
    rtol: of.Rtol = 1e-10


def decay_run(s: Decay) -> Run:
    """x itself (the law is about x), at log-spaced times."""
    model = SelfAttention(1.0, space="euclidean", weights=FixedWeights(-np.eye(s.d)))
    times = np.union1d(np.geomspace(1.0, max(s.times), CURVE_POINTS), s.times)
    record = (positions, cov_law, attention_flatness)
    return flow(model, cube_start(s), times=times, record=record, method="dop853", rtol=s.rtol, atol=s.rtol * 1e-4)


def spanned(s: Decay) -> int:
    """n tokens span min(d, n − 1) directions around their mean; the law is about these."""
    return min(s.d, s.n - 1)


class LateLaw:
    """C⁻¹(t) = C⁻¹(t₁) + 2(t − t₁) + ½Γ ln(t/t₁), anchored at a direct solution at the first of the times.

    Third cumulants κ of the tokens give C' = −2C² − Σ_cd κ_acd κ_bcd + …; with the shape y = C^{−1/2}(x − x̄) frozen and
    C ≈ I/2t this adds Γ/2t, Γ_ab = Σ_cd γ_acd γ_bcd, γ = mean of y⊗y⊗y, to the growth of C⁻¹.
    """

    def __init__(self, s: Decay) -> None:
        self.since = float(min(s.times))
        x = direct_tokens(cube_start(s), [0.0, self.since], -np.eye(s.d))[-1]
        centred = x - x.mean(axis=0)
        flat = centred @ np.linalg.svd(centred)[2][: spanned(s)].T
        values, vectors = np.linalg.eigh(flat.T @ flat / len(x))
        self.shape = flat @ (vectors / np.sqrt(values)) @ vectors.T
        self.inverse = (vectors / values) @ vectors.T
        third = np.einsum("ia,ib,ic->abc", *[self.shape] * 3) / len(x)
        self.log_growth = np.einsum("acd,bcd->ab", third, third)

    def covariance(self, t: float) -> np.ndarray:
        """C(t) in the directions that the tokens span."""
        growth = 1 / negative_identity_covariance(t) - 1 / negative_identity_covariance(self.since)
        inverse = self.inverse + growth * np.eye(len(self.inverse)) + 0.5 * self.log_growth * np.log(t / self.since)
        return np.linalg.inv(inverse)


def simulate_covariance(s: Decay) -> Evidence:
    """Eigenvalues of 2tC."""
    run = decay_run(s)
    scaled = run["cov_law"].values[:, -spanned(s) :]
    return Evidence(
        {"eigenvalues": scaled[np.searchsorted(run.time, s.times)].ravel(), "last_eigenvalues": scaled[-1]},
        curves=(
            Curve("smallest eigenvalue", run.time, scaled[:, 0]),
            Curve("largest eigenvalue", run.time, scaled[:, -1]),
        ),
        runs=(run,),
    )


def predict_covariance(s: Decay) -> Evidence:
    """The late law; all eigenvalues tend to one."""
    law = LateLaw(s)
    scaled = lambda times: np.array([2 * t * np.linalg.eigvalsh(law.covariance(float(t))) for t in times])  # noqa: E731
    times = np.geomspace(law.since, max(s.times), 50)
    left = float(np.abs(scaled([max(s.times)]) - 1).max())
    longer = 2 * max(s.times) * left / LIMIT
    return Evidence(
        {"eigenvalues": scaled(s.times).ravel(), "last_eigenvalues": np.ones(spanned(s))},
        curves=(
            Curve("late law, smallest", times, scaled(times)[:, 0]),
            Curve("late law, largest", times, scaled(times)[:, -1]),
        ),
        source="late law anchored at a direct x-form solution",
        undecided={"last_eigenvalues": f"times up to {longer:.2g}"} if left > LIMIT else {},
    )


LIMIT = 1e-3
"""How close to 1 the late law must have come."""


claim(
    "clustering/CL-34",
    EMERGENCE,
    "V = −I: algebraic decay, C(t) ~ I/2t (derived)",
    "For V = −I, Q = K = I every eigenvalue of 2tC(t), C the covariance of the tokens, tends to 1: "
    "C⁻¹ = 2t + ½Γ ln t + K with Γ from the third moments of the frozen shape. Universal and isotropic.",
    where="the case V = −I; the law is derived",
    models=("sa",),
    quick=Decay(),
    within={
        "eigenvalues": absolute(1e-4, "the digits specified (.9999); the next term of the law is O(1/t²) at t ≥ 100"),
        "last_eigenvalues": absolute(2 * LIMIT, "(½Γ ln t + K)/2t, below half of this where it is decided"),
    },
    simulate=simulate_covariance,
    predict=predict_covariance,
    axes=Axes("depth-time t", "eigenvalues of 2tC(t)", x_scale="log"),
)


def simulate_flatness(s: Decay) -> Evidence:
    """t max|nP − 1|."""
    run = decay_run(s)
    flatness = run.time * run["attention_flatness"].values
    return Evidence(
        {"flatness_times_t": flatness[np.searchsorted(run.time, s.times)]},
        curves=(Curve("tokens", run.time, flatness),),
        runs=(run,),
    )


def predict_flatness(s: Decay) -> Evidence:
    """nP_ij ∝ e^{<x_i, x_j>}, <x_i, x_j> = <y_i, C(t) y_j>, for the frozen shape y and the late law of C."""
    law = LateLaw(s)

    def largest(t: float) -> float:
        weights = np.exp(law.shape @ law.covariance(t) @ law.shape.T)
        return float(np.abs(weights / weights.mean(axis=1, keepdims=True) - 1).max())

    limit = 0.5 * float(np.abs(law.shape @ law.shape.T).max())
    return Evidence(
        {"flatness_times_t": np.array([t * largest(float(t)) for t in s.times])},
        curves=(Curve("½max|⟨yᵢ, yⱼ⟩|", np.array([1.0, max(s.times)]), np.full(2, limit)),),
        source="frozen shape of a direct x-form solution",
    )


claim(
    "clustering/CL-35",
    EMERGENCE,
    "V = −I: attention becomes uniform like 1/t (derived)",
    "For V = −I attention tends to 1/n like 1/t: t max|nPᵢⱼ − 1| converges to ½ max|⟨yᵢ, yⱼ⟩|, y the frozen shape "
    "C^{−1/2}(x − x̄) of the configuration (never more than (n−1)/2).",
    where="the case V = −I: attention becomes uniform; the rate is derived",
    models=("sa",),
    quick=Decay(),
    within={"flatness_times_t": relative(1e-2, "changes of the shape after the first time, O(1/t) at t ≥ 100")},
    simulate=simulate_flatness,
    predict=predict_flatness,
    axes=Axes("depth-time t", "t max|nP − 1|", x_scale="log"),
)
