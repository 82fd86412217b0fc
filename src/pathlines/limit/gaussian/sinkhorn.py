"""Sinkhorn attention on Gaussians: entropic optimal transport of the cloud with itself.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; Sinkformers, arXiv:2110.11773. The plan
has canonical correlations ρ_i = tanh(½ asinh 2s_i), s_i the singular values of m = Σ^{1/2}AΣ^{1/2}/ε; the closed forms
are derived here. The prefactor c is 1/ε in the paper (a gradient flow), or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from pathlines.foundation.errors import ArgumentError, finite_number
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, root, square, symmetric_function

SOURCES = (UNIFIED,)


def canonical_correlations(A: Any, eps: float, cov: Any) -> np.ndarray:
    """ρ_1 ≥ … ≥ ρ_d of the plan of N(0, Σ) with itself."""
    score = square("A", A)
    half = root(checked_covariance("cov", cov, len(score)))
    s = np.linalg.svd(half @ score @ half / finite_number("eps", eps, 0.0, open_low=True), compute_uv=False)
    return np.tanh(np.arcsinh(2 * s) / 2)


def iteration_rate(A: Any, eps: float, cov: Any) -> float:
    """ρ_max²: the factor by which one full Sinkhorn iteration (rows, then columns) reduces the error."""
    return float(canonical_correlations(A, eps, cov)[0] ** 2)


def _depth(theta: ArrayLike) -> np.ndarray:
    """θ - coth(θ/2), increasing from -∞ to ∞ on θ > 0."""
    return np.asarray(theta, float) - 1 / np.tanh(np.asarray(theta, float) / 2)


def _theta(depth: float) -> float:
    """The inverse of θ - coth(θ/2)."""
    high = max(depth, 0.0) + 4.0
    low = min(1.0, 1 / (1 + abs(depth)))
    return float(brentq(lambda x: float(_depth(x)) - depth, low, high, xtol=1e-15, rtol=8.9e-16))


def scalar_sinkhorn(
    t: ArrayLike, v: float, a: float, eps: float, variance: float, prefactor: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """(σ, ρ)(t), d = 1: θ = asinh(2|a|σ/ε), θ - coth(θ/2) moves at speed 2cv sgn(a); ρ = sgn(a) tanh(θ/2)."""
    scale = finite_number("eps", eps, 0.0, open_low=True) / 2
    sigma = finite_number("variance", variance, 0.0, open_low=True)
    time = np.atleast_1d(np.asarray(t, float))
    if a == 0:
        return np.full_like(time, sigma), np.zeros_like(time)
    begin = _depth(np.arcsinh(sigma * abs(a) / scale))
    theta = np.array([_theta(float(begin + 2 * prefactor * v * np.sign(a) * x)) for x in time])
    return scale / abs(a) * np.sinh(theta), np.sign(a) * np.tanh(theta / 2)


def matrix_sinkhorn(t: float, v: float, A: Any, eps: float, start: Any, prefactor: float = 1.0) -> np.ndarray:
    """Σ(t) for V = vI and A = ±G, G positive definite: G^{1/2}ΣG^{1/2}/ε keeps its eigenvectors, and its eigenvalues
    follow the scalar equation with a = ±1, ε = 1.
    """
    score = square("A", A)
    values = np.linalg.eigvalsh((score + score.T) / 2)
    if np.abs(score - score.T).max() > 1e-12 * np.abs(score).max() or values[0] * values[-1] <= 0:
        raise ArgumentError("Argument `A` must be symmetric and definite.")
    sign = float(np.sign(values[0]))
    half, inverse = (symmetric_function(sign * score, lambda x, e=e: x**e) for e in (0.5, -0.5))
    inner = half @ checked_covariance("start", start, len(score)) @ half / finite_number("eps", eps, 0.0, open_low=True)
    sizes, vectors = np.linalg.eigh(inner)
    moved = [scalar_sinkhorn(t, v, sign, 1.0, float(x), prefactor)[0][0] for x in sizes]
    return eps * inverse @ (vectors * moved) @ vectors.T @ inverse


def sinkhorn_energy(A: Any, eps: float, mean: Any, cov: Any) -> float:
    """F = tr(AᵀbΣ)/ε + αᵀAα/ε + ½ Σ ln(1 - ρ_i²), the value of sup_π (1/ε)∫ xᵀAᵀy dπ - KL(π | μ⊗μ).

    For V = A symmetric and prefactor 1/ε the closure is its gradient flow: Γ = ½∇δF/δμ, F' = 2 E|Γ|².
    """
    score, sigma = square("A", A), checked_covariance("cov", cov)
    alpha = np.asarray(mean, float)
    half = root(sigma)
    U, s, W = np.linalg.svd(half @ score @ half / eps)
    rho = np.tanh(np.arcsinh(2 * s) / 2)
    coupled = half @ (U * rho) @ W @ half
    return float(np.trace(score.T @ coupled) / eps + alpha @ score @ alpha / eps + 0.5 * np.sum(np.log1p(-(rho**2))))


def field_power(A: Any, V: Any, eps: float, mean: Any, cov: Any, prefactor: float) -> float:
    """E|Γ|² = c²(|Vα|² + tr(V b Σ bᵀ Vᵀ)): the Gaussian's mean squared speed."""
    score, value, sigma = square("A", A), square("V", V), checked_covariance("cov", cov)
    half = root(sigma)
    U, s, W = np.linalg.svd(half @ score @ half / eps)
    moving = value @ half @ (U * np.tanh(np.arcsinh(2 * s) / 2)) @ W
    return float(prefactor**2 * (np.sum((value @ np.asarray(mean, float)) ** 2) + np.sum(moving**2)))


def sinkhorn_trace_bound(t: ArrayLike, V: Any, start: Any, prefactor: float = 1.0) -> np.ndarray:
    """tr Σ(t) ≤ tr Σ_0 e^{2c|V|t}: Sinkhorn attention never blows up."""
    size = np.linalg.norm(square("V", V), 2)
    return float(np.trace(checked_covariance("start", start))) * np.exp(2 * prefactor * size * np.asarray(t, float))
