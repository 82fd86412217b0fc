"""Proximal sampling of quadratic targets in closed form: the bias of T, one step, stable steps, rings of particles.

V = ½(x-c)ᵀP(x-c), preconditioner M, regularisation T, inverse temperature β. The proximal kernel takes y to
N(c + K(y-c), q), K = (I + TMP)⁻¹, q = (2T/β)KM, so that ρ = N(μ, S) has prox ρ = N(c + K(μ-c), KSKᵀ + q) and stays
Gaussian. At rest the *proximal* is the target, KS_∞Kᵀ + q = P⁻¹/β: then

    S_∞ = (P⁻¹ - T²MPM)/β,

independent of the step; where T times an eigenvalue of MP exceeds one there is no such law and particles gather in
that direction. Preconditioned Regularized Wasserstein Proximal Sampling, arXiv:2509.01685 [derived].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.papers.followups import PROXIMAL
from pathlines.numerics.sources import semidefinite

SOURCES = (PROXIMAL,)
DEGREES = 4000
"""Degrees of Hermite modes that are looked at for the stable step: the worst is about 1/(T times an eigenvalue)."""


class Quadratic(NamedTuple):
    """P, M, T and β, checked."""

    precision: np.ndarray
    preconditioner: np.ndarray
    regularisation: float
    beta: float


def quadratic(precision: Any, preconditioner: Any = 1.0, regularisation: float = 0.2, beta: float = 1.0) -> Quadratic:
    """Numbers stand for multiples of the identity."""
    p = np.atleast_2d(finite_array("precision", precision)).astype(float)
    m = finite_array("preconditioner", preconditioner).astype(float)
    m = m * np.eye(len(p)) if m.ndim == 0 else m
    pull = finite_number("regularisation", regularisation, 0.0, open_low=True)
    p, m = semidefinite("precision", p, len(p), positive=True), semidefinite("preconditioner", m, len(p), positive=True)
    return Quadratic(p, m, pull, finite_number("beta", beta, 0.0, open_low=True))


def shrinkages(q: Quadratic) -> np.ndarray:
    """τ: T times the eigenvalues of MP, increasing; particles fill a direction only if its τ is below one."""
    factor = np.linalg.cholesky(q.preconditioner)
    return q.regularisation * np.linalg.eigvalsh(factor.T @ q.precision @ factor)


def proximal_law(q: Quadratic, spread: np.ndarray) -> np.ndarray:
    """Covariance of prox N(c, S)."""
    grown = np.eye(len(q.precision)) + q.regularisation * q.preconditioner @ q.precision
    inverse = np.linalg.inv(grown)
    return inverse @ (spread @ inverse.T + 2 * q.regularisation / q.beta * q.preconditioner)


def limit_covariance(q: Quadratic) -> np.ndarray:
    """S_∞ = (P⁻¹ - T²MPM)/β, with nothing left in directions with τ ≥ 1."""
    root = np.linalg.cholesky(q.preconditioner)
    values, axes = np.linalg.eigh(root.T @ q.precision @ root)
    left = np.maximum(1 / values - q.regularisation**2 * values, 0.0) / q.beta
    frame = root @ axes
    return (frame * left) @ frame.T


def covariances(q: Quadratic, spread: Any, step: float, count: int) -> np.ndarray:
    """S_1..S_count from S_0 by S ← GSGᵀ, G = I - ηM(P - (KSKᵀ + q)⁻¹/β)."""
    found = [np.atleast_2d(finite_array("spread", spread)).astype(float)]
    for _ in range(positive_integer("count", count)):
        pull = q.precision - np.linalg.inv(proximal_law(q, found[-1])) / q.beta
        move = np.eye(len(q.precision)) - finite_number("step", step, 0.0) * q.preconditioner @ pull
        found.append(move @ found[-1] @ move.T)
    return np.array(found[1:])


def stable_step(q: Quadratic) -> float:
    """The step beyond which some deviation from the limit law grows.

    A deviation in Hermite degree k along an eigenvector of MP is multiplied by 1 - (η/T) k τ(1-τ)^k/(1-τ²) in a step
    (the mean by 1 - ηMP/(1+τ), the variance by 1 - 2ηMP(1-τ)/(1+τ)): smaller than one in size for all k iff
    η < 2T / max_k kτ(1-τ)^k/(1-τ²), about 2eT for small τ. Mixed degrees change nothing but rounding of k.
    """
    tau, degree = shrinkages(q)[:, None], np.arange(1, DEGREES)
    alive = tau[tau[:, 0] < 1]
    if not len(alive):
        return np.inf
    rates = degree * alive * (1 - alive) ** degree / (1 - alive**2)
    return float(2 * q.regularisation / rates.max())


def slowest(q: Quadratic) -> float:
    """Rate at which the variance of the slowest direction comes to rest, per unit of steps times η."""
    tau = shrinkages(q)
    return float(2 / q.regularisation * (tau * (1 - tau) / (1 + tau)).min())


# --- few particles in the plane


def pull_on_ring(radius: float, count: int, centre: bool, regularisation: float) -> float:
    """Radial velocity (times 2T) of a regular polygon of particles for V = |x|²/2, M = β = 1, d = 2."""
    angle = 2 * np.pi * np.arange(count) / count
    t = regularisation
    scores = -(radius**2) * (1 - np.cos(angle)) / (2 * t) + radius**2 / (4 * (1 + t))
    along = radius * np.cos(angle)
    if centre:
        scores, along = np.append(scores, -(radius**2) / (4 * t)), np.append(along, 0.0)
    weights = np.exp(scores - scores.max())
    return float((1 - t) * radius - weights @ along / weights.sum())


def ring_radius(count: int, centre: bool = False, regularisation: float = 0.2) -> float:
    """Radius at which a regular polygon of ``count`` particles (and one in its centre, if asked for) is at rest."""
    count = positive_integer("count", count, 3)
    t = finite_number("regularisation", regularisation, 0.0, 1.0, open_low=True)
    return float(brentq(pull_on_ring, 0.05, 4.0, args=(count, centre, t), xtol=1e-14))


def ring(count: int, centre: bool = False, regularisation: float = 0.2) -> np.ndarray:
    """Its particles, (n, 2)."""
    angle = 2 * np.pi * np.arange(count) / count
    points = ring_radius(count, centre, regularisation) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.vstack([points, np.zeros((1, 2))]) if centre else points


def divergence_from_normal(particles: np.ndarray, regularisation: float, reach: float = 7.0, side: int = 281) -> float:
    """KL(prox ρ ‖ N(0, I)) of particles in the plane (V = |x|²/2, M = β = 1), by the trapezoid rule on a square."""
    t, axis = regularisation, np.linspace(-reach, reach, side)
    # prox ρ is a mixture of N(y/(1+T), 2T/(1+T)) over the particles
    spread = 2 * t / (1 + t)
    bumps = [np.exp(-((axis[:, None] - particles[:, k] / (1 + t)) ** 2) / (2 * spread)) for k in (0, 1)]
    density = np.einsum("xj,yj->xy", *bumps) / (2 * np.pi * spread * len(particles))
    normal = -(axis[:, None] ** 2 + axis**2) / 2 - np.log(2 * np.pi)
    logs = np.log(np.maximum(density, 1e-300))
    return float(np.sum(density * (logs - normal)) * (axis[1] - axis[0]) ** 2)
