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

    A deviation in the Hermite mode of degrees k along the eigenvectors of MP is multiplied in a step by 1 - ηr_k/T,

        r_k = Σ_i k_iτ_i/(1-τ_i²) Π_j (1-τ_j)^{k_j}

    (the mean by 1 - ηMP/(1+τ), the variance by 1 - 2ηMP(1-τ)/(1+τ), a covariance is the mode (1, 1)): smaller than one
    in size for all k iff η < 2T/max r_k, about 2eT for small τ. Where particles have gathered, τ ≥ 1, they move
    together by 1 - ητ/2T.
    """
    tau = shrinkages(q)
    gathered = tau[tau >= 1].max(initial=0.0) / 2
    return float(2 * q.regularisation / max(largest_rate(tau[tau < 1]), gathered))


def largest_rate(tau: np.ndarray) -> float:
    """Max over k of Σ k_ic_i Π(1-τ_j)^{k_j}, c = τ/(1-τ²): an upper bound, right to 1e-6.

    A search by branches over directions of decreasing τ, in (C, w) = (Σ k_ic_i, Π(1-τ_j)^{k_j}). One more unit pays
    while c_i(1-τ_i) > Cτ_i, so that k_iτ_i ≤ 1, and the last direction is known in closed form. With real k, what is
    left to do brings at most ρ w e^{C/ρ-1} (or Cw for C > ρ), ρ the largest of c_i/-ln(1-τ_i).
    """
    if not len(tau):
        return 0.0
    tau = np.unique(np.clip(np.round(tau, 12), tau.min(), 1 - 1e-12))[::-1]
    tau = np.append(tau[tau > CONTINUOUS], tau[tau <= CONTINUOUS][-1:])
    gain, ratio = tau / (1 - tau**2), tau / (1 - tau**2) / -np.log1p(-tau)
    total, weight = np.zeros(1), np.ones(1)
    best = max(_finished(total, weight, t) for t in tau)
    for i, t in enumerate(tau[:-1]):
        best = max(best, _finished(total, weight, tau[-1]))
        more = np.arange(int(1 / t) + 1)[:, None]
        total, weight = (total + more * gain[i]).ravel(), (weight * (1 - t) ** more).ravel()
        rho = ratio[i + 1 :].max()
        reach = weight * np.where(total < rho, rho * np.exp(np.minimum(total / rho, 1) - 1), total)
        keep = reach > best * (1 + EXACT)
        total, weight = _undominated(total[keep], weight[keep])
    return max(best, _finished(total, weight, tau[-1])) * (1 + EXACT)


EXACT = 1e-6
CONTINUOUS = 1e-3
"""Of shrinkages below, the least serves for all: it has the largest c/-ln(1-τ), and its k is real up to τ²/8."""


def _finished(total: np.ndarray, weight: np.ndarray, tau: float) -> float:
    """The best that units of one direction add: the first k from which one more would not pay."""
    gain = tau / (1 - tau**2)
    k = np.maximum(np.ceil(1 / tau - 1 - total / gain), 0.0)
    return float(np.max((total + k * gain) * weight * np.exp(k * np.log1p(-tau)), initial=0.0))


def _undominated(total: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Only what no other surpasses in w and in Cw: (C + Δ)w is linear in Δ."""
    order = np.lexsort((-total, -weight))
    total, weight = total[order], weight[order]
    reached = np.maximum.accumulate(np.append(0.0, total * weight)[:-1])
    keep = total * weight > reached
    keep[:1] = True
    return total[keep], weight[keep]


def unrest(q: Quadratic, spread: np.ndarray) -> float:
    """How far N(c, S) is from rest, as a share of S: from its proximal, which is the target at rest.

    A share ε of S changes the proximal by ε(1-τ)/(1+τ) of the target.
    """
    root, tau = np.linalg.cholesky(q.precision), shrinkages(q)[-1]
    away = q.beta * root.T @ proximal_law(q, spread) @ root - np.eye(len(root))
    return float(np.abs(away).max() * (1 + tau) / (1 - tau))


def growth(q: Quadratic, start: float, path: np.ndarray, step: float, degrees: int) -> float:
    """By how much errors of particles on the line can have grown beside their law N(0, S), S from ``start`` along
    ``path`` (a bound).

    A step takes N(0, S) to N(0, g²S) and a deviation in degree k to g - (ηM/β)(k/S)λ^k of itself, λ = KS/(K²S + q).
    """
    grown, k = 1.0, np.arange(1, degrees)
    m, shrunk = q.preconditioner[0, 0], 1 / (1 + shrinkages(q)[0])
    for s in (start, *path[:-1]):
        wide = proximal_law(q, np.array([[s]]))[0, 0]
        g = 1 - step * m * (q.precision[0, 0] - 1 / (q.beta * wide))
        moves = g - step * m / q.beta * k / s * (shrunk * s / wide) ** k
        grown *= max(1.0, float(np.abs(moves).max() / abs(g))) if g else np.inf
    return grown


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


FAR, STILL = 1e6, 1e-12


def followed(particles: np.ndarray, regularisation: float, step: float, count: int) -> np.ndarray:
    """Particles of the plane after ``count`` steps or at rest (V = |x|²/2, M = β = 1); infinity beyond 1e6."""
    x, t = particles.copy(), regularisation
    for _ in range(count):
        square = np.sum(x**2, axis=1)
        scores = (2 * x @ x.T - square[:, None] - square) / (4 * t) + square / (4 * (1 + t))
        a = np.exp(scores - scores.max(axis=1, keepdims=True))
        move = step / (2 * t) * ((1 - t) * x - a @ x / a.sum(axis=1, keepdims=True))
        x = x + move
        if np.abs(move).max() < STILL:
            return x
        if not np.abs(x).max() < FAR:
            return np.full_like(x, np.inf)
    return x


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
