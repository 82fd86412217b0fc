"""Sinkhorn attention on Gaussians: never a blow-up, how fast the iteration converges, and a gradient structure.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; Sinkformers, arXiv:2110.11773. The rate of
the iteration and the value of the energy are derived.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from scipy.special import logsumexp

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian.reference_set import COVARIANCE
from pathlines.claim.tolerance import absolute, at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.gaussian.moments import head, moments
from pathlines.limit.gaussian.sinkhorn import field_power, iteration_rate, sinkhorn_energy, sinkhorn_trace_bound
from pathlines.model.gaussian.closure import sigma_points
from pathlines.model.gaussian.normalised import SinkhornGaussian
from pathlines.numerics.quadrature import gauss_hermite


def _iterate(
    scores: np.ndarray, log_mass: np.ndarray, count: int, g: Any = 0.0
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """(f, g, all g's) after ``count`` full iterations in the log domain: rows, then columns."""
    g = g + np.zeros(len(log_mass))
    trail = []
    for _ in range(count):
        f = -logsumexp(scores + g + log_mass, axis=1)
        g = -logsumexp(scores.T + f + log_mass, axis=1)
        trail.append(g)
    return -logsumexp(scores + g + log_mass, axis=1), g, trail


# --- C12


class Contraction(Setting):
    """Iterations on a line at several strengths of the scores."""

    strengths: Annotated[of.Vector, means("strengths of the scores", "s")] = (0.5, 1.5, 4.0)
    reach: Annotated[of.Positive, means("end of the grid")] = 9.0
    nodes: Annotated[of.Count, means("nodes of the grid")] = 241
    iterations: Annotated[of.Count, means("full iterations")] = 60
    tilt: Annotated[float, means("slope of the first potential")] = 0.3
    until: of.Until = 5.0


def simulate_iteration(s: Contraction) -> Evidence:
    """Ratio of successive changes of g on a fine grid; the growth of a cloud that wants to explode."""
    x = np.linspace(-s.reach, s.reach, s.nodes)
    mass = np.exp(-(x**2) / 2)
    ratios, curves = [], []
    for strength in s.strengths:
        trail = _iterate(strength * np.outer(x, x), np.log(mass / mass.sum()), s.iterations, s.tilt * x)[2]
        steps = [float(np.ptp((b - a)[np.abs(x) < 2])) for a, b in pairwise(trail)]
        last = max(k for k in range(1, len(steps)) if steps[k] > 1e-9)
        ratios.append(steps[last] / steps[last - 1])
        curves.append(Curve(f"aσ/ε = {strength:g}", np.arange(1, last + 1), steps[:last]))
    model = SinkhornGaussian([[1.0]], [[s.strengths[-1]]], eps=1.0, prefactor="1")
    times = np.linspace(0, s.until, 11)
    run = flow(model, sigma_points([0.0], [[1.0]]), times=times, record="covariance_trace", rtol=1e-10)
    growth = np.log(run["covariance_trace"].values[-1])
    return Evidence({"ratio": ratios, "growth": growth}, curves=tuple(curves), runs=(run,))


def predict_iteration(s: Contraction) -> Evidence:
    """ρ_max² = tanh²(½ asinh 2aσ/ε), and tr Σ ≤ tr Σ_0 e^{2c|V|t}."""
    rates = [iteration_rate([[x]], 1.0, [[1.0]]) for x in s.strengths]
    bound = float(np.log(sinkhorn_trace_bound(s.until, [[1.0]], [[1.0]])))
    k = np.arange(1, 16)
    curves = tuple(Curve(f"ρ² = {r:.4f}", k, r**k) for r in rates)
    return Evidence({"ratio": rates, "growth": bound}, curves=curves)


claim(
    "gaussian/C12",
    UNIFIED,
    "Sinkhorn: contraction by ρ_max², never a blow-up (derived)",
    "On a Gaussian one full Sinkhorn iteration reduces the error by ρ_max², ρ = tanh(½ asinh 2s), s the singular "
    "values of Σ^½AΣ^½/ε (by ρ_max⁴ from a centred potential, which misses that mode); tr Σ(t) ≤ tr Σ₀ e^{2c|V|t}.",
    where="derived; on the covariance equation of Sinkhorn attention",
    models=("gaussian-sinkhorn",),
    quick=Contraction(),
    full=Contraction(nodes=481),
    within={
        "ratio": absolute(1e-4, "the next mode decays like ρ⁴ and is gone; digits left of the changes"),
        "growth": at_most("an upper bound"),
    },
    simulate=simulate_iteration,
    predict=predict_iteration,
    axes=Axes("full iterations", "change of the potential", y_scale="log"),
)


# --- C16

ENERGY = 1e-6


class Transport(Setting):
    """A cloud under V = A symmetric."""

    A: of.QueryKey = ((0.5, -0.05), (-0.05, 0.4))
    eps: Annotated[of.Positive, means("regularisation", "ε")] = 0.7
    mean: of.CloudMean = (0.0, 0.0)
    covariance: of.Covariance = COVARIANCE
    step: Annotated[of.Positive, means("times between records, over ε²", unit="depth-time")] = 0.02
    nodes: of.HermiteNodes = 20


def _value(mean: np.ndarray, covariance: np.ndarray, nodes: int, s: Transport) -> float:
    """F = -∫(f + g)dμ by Sinkhorn on Gauss-Hermite nodes; the error shrinks by ρ_max² an iteration."""
    x, mass = gauss_hermite(mean, covariance, nodes, 1e-20)
    count = 2 + int(np.log(1e-10) / np.log(iteration_rate(s.A, s.eps, covariance)))
    f, g, _ = _iterate(x @ np.asarray(s.A).T @ x.T / s.eps, np.log(mass), count)
    return float(-mass @ (f + g))


def simulate_energy(s: Transport) -> Evidence:
    """F by Sinkhorn iteration along the flow of the closure; its rate by a fourth-order difference."""
    if not np.allclose(s.A, np.transpose(s.A), rtol=1e-12, atol=0):
        raise ArgumentError(f"Setting `A` must be symmetric, but is {s.A}.")
    times = s.step * s.eps**2 * np.arange(5)
    model = SinkhornGaussian(s.A, s.A, eps=s.eps)
    start = sigma_points(s.mean, s.covariance)
    run = flow(model, start, times=times, record=("cloud_mean", "covariance"), method="dop853", rtol=1e-12)
    path = list(zip(run["cloud_mean"].values, run["covariance"].values, strict=True))
    F = [_value(m, c, s.nodes, s) for m, c in path]
    changed = abs(F[0] - _value(*path[0], s.nodes - 2, s))
    few = (
        {}
        if 5 * changed < ENERGY
        else dict.fromkeys(("energy", "rate"), f"more nodes: the last two change {changed:.1g}")
    )
    rate = (F[0] - 8 * F[1] + 8 * F[3] - F[4]) / (12 * times[1])
    return Evidence(
        {"energy": F[0], "rate": rate}, curves=(Curve("F by Sinkhorn", times, F),), runs=(run,), undecided=few
    )


def predict_energy(s: Transport) -> Evidence:
    """The closed form of F, and 2E|Γ|² at t = 2h on the exact path."""
    grid = s.step * s.eps**2 * np.arange(5)
    found = moments("sinkhorn", [head(s.A, s.A)], s.mean, s.covariance, grid, eps=s.eps, prefactor=1 / s.eps)
    path = [sinkhorn_energy(s.A, s.eps, m, c) for m, c in zip(*found, strict=True)]
    rate = 2 * field_power(s.A, s.A, s.eps, found.mean[2], found.covariance[2], 1 / s.eps)
    return Evidence({"energy": path[0], "rate": rate}, curves=(Curve("closed form", grid, path),))


claim(
    "gaussian/C16",
    UNIFIED,
    "Sinkhorn attention climbs an entropic transport cost",
    "For V = A symmetric and prefactor 1/ε, F(μ) = sup_π (1/ε)∫xᵀAᵀy dπ − KL(π|μ⊗μ) grows like dF/dt = 2∫|Γ|²dμ; on a "
    "Gaussian F = tr(AᵀbΣ)/ε + αᵀAα/ε + ½Σ ln(1−ρᵢ²).",
    where="gradient structure of Sinkhorn attention",
    models=("gaussian-sinkhorn",),
    quick=Transport(),
    full=Transport(nodes=28),
    within={
        "energy": absolute(ENERGY, "quadrature of the potentials, which are quadratic: 20 nodes give 1e-9"),
        "rate": relative(1e-4, "fourth-order difference at h = 0.02 ε², the time scale, and quadrature over it"),
    },
    simulate=simulate_energy,
    predict=predict_energy,
    axes=Axes("depth-time t", "F"),
)
