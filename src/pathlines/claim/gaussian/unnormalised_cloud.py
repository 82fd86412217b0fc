"""The moment closure of unnormalised attention on the line, against double sums over both tokens."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.model.gaussian.closure import sigma_points
from pathlines.model.gaussian.moments import UnnormalisedGaussian
from pathlines.numerics.runge_kutta import rk4_step

EXISTS = 0.6
"""θ = σ²|a| beyond which the double sums would need more nodes; moments end at one."""


class UnnormalisedCloud(Setting):
    """A cloud on the line."""

    v: of.LineValue = 0.4
    a: of.LineScore = 0.3
    mean: of.LineMean = 0.4
    variance: Annotated[of.Positive, means("variance of the cloud at the start", "Σ₀")] = 0.5
    until: of.Until = 1.0
    steps: Annotated[of.Count, means("steps of the second opinion")] = 8
    rtol: of.Rtol = 1e-11


def simulate(s: UnnormalisedCloud) -> Evidence:
    """Mean and variance of the closed equations."""
    model, start = UnnormalisedGaussian([[s.v]], [[s.a]]), sigma_points([s.mean], [[s.variance]])
    times = np.linspace(0, s.until, 9)
    run = flow(model, start, times=times, method="dop853", rtol=s.rtol, record=("cloud_mean", "covariance_trace"))
    missing = np.full(len(times) - len(run.time), np.nan)
    mean = np.concatenate([run["cloud_mean"].values[:, 0], missing])
    variance = np.concatenate([run["covariance_trace"].values, missing])
    curves = (Curve("mean", times, mean), Curve("variance", times, variance))
    return Evidence({"mean": mean, "variance": variance}, curves=curves, runs=(run,))


def predict(s: UnnormalisedCloud) -> Evidence:
    """α' = v E[y], σ' = v E[y z] with y(x) = E[Y e^{axY}], both expectations by trapezoid sums; fourth-order steps."""
    z = np.linspace(-9, 9, 361)
    w = np.exp(-(z**2) / 2)
    w /= w.sum()

    def rates(moments: np.ndarray) -> tuple[np.ndarray]:
        x = moments[0] + moments[1] * z
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.exp(s.a * np.outer(x, x)) @ (w * x)
        return (s.v * np.array([w @ y, w @ (y * z)]),)

    times = np.linspace(0, s.until, 9)
    path = [np.array([s.mean, np.sqrt(s.variance)])]
    for _ in times[1:]:
        state: tuple[np.ndarray, ...] = (path[-1],)
        for _ in range(s.steps):
            state = rk4_step(rates, state, times[1] / s.steps)
        path.append(state[0])
    mean, deviation = np.array(path).T
    curves = (Curve("mean, double sums", times, mean), Curve("variance, double sums", times, deviation**2))
    reach = abs(s.a) * float(np.max(deviation)) ** 2
    advice = f"moments cease to exist near here (θ = {reach:.2g}): take a smaller `until`, `a` or `variance`"
    return Evidence(
        {"mean": mean, "variance": deviation**2},
        curves=curves,
        source="double sums",
        undecided=dict.fromkeys(("mean", "variance"), advice) if not reach < EXISTS else {},
    )


claim(
    "gaussian/C29",
    UNIFIED,
    "moment closure of unnormalised attention (derived)",
    "Under the kernel e^{⟨Qx,Ky⟩} a Gaussian closed at two moments moves by α' = C E[y], L' = C E[y zᵀ], y(x) = "
    "E[Y e^{xᵀAᵀY}] (up to the transpose of A), here on the line and along a path.",
    where="derived; no statement in the paper",
    models=("gaussian-unnormalised",),
    quick=UnnormalisedCloud(),
    full=UnnormalisedCloud(steps=16),
    within={name: relative(1e-6, "a step of 1/64 has an error of 1e-8") for name in ("mean", "variance")},
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "moments"),
)  # fmt: skip
