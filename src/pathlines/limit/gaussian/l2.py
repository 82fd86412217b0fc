"""L2 attention on Gaussians: closed forms with Wright's omega, and blow-up when K is not injective.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322: κ(x, y) ∝ e^{-|Qx-Ky|²}. Solutions and
blow-up derived here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import wrightomega

from pathlines.foundation.errors import ArgumentError, finite_number
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, square, symmetric_function

SOURCES = (UNIFIED,)


def scalar_l2(
    t: ArrayLike, v: float, Q: float, K: float, variance: float, mean: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(σ, α)(t), d = 1: y = 1/(2K²σ) solves ln y + y = ln y_0 + y_0 - 2vQt/K, so y = ω(…), Wright's omega.

    α = α_0 e^{-(y-y_0)K/(2Q)} √(y_0/y). For Q = 0 the variance stands still and α = α_0 e^{v t/(1+2K²σ)}.
    """
    sigma = finite_number("variance", variance, 0.0, open_low=True)
    if K == 0:
        raise ArgumentError("Argument `K` must not be 0: the kernel would not depend on y.")
    time, y0 = np.asarray(t, float), 1 / (2 * K * K * sigma)
    if Q == 0:
        return np.full_like(time, sigma), mean * np.exp(v * time / (1 + 2 * K * K * sigma))
    y = wrightomega(np.log(y0) + y0 - 2 * v * Q / K * time).real
    return 1 / (2 * K * K * y), mean * np.exp(-(y - y0) * K / (2 * Q)) * np.sqrt(y0 / y)


def matrix_l2(t: float, v: float, c: float, K: Any, start: Any) -> np.ndarray:
    """Σ(t) for V = vI, Q = cK, K invertible: (2P)^{-1/2}Σ^{-1}(2P)^{-1/2}, P = KᵀK, keeps its eigenvectors, and its
    eigenvalues follow the scalar equation with Q/K = c.
    """
    key = square("K", K)
    cov = checked_covariance("start", start, len(key))
    P = 2 * key.T @ key
    if np.linalg.cond(P) > 1e14:
        raise ArgumentError("Argument `K` must be invertible.")
    half, inverse = (symmetric_function(P, lambda x, e=e: x**e) for e in (0.5, -0.5))
    values, vectors = np.linalg.eigh(half @ cov @ half)  # the inverses of the y's
    y0 = 1 / values
    y = wrightomega(np.log(y0) + y0 - 2 * v * c * finite_number("t", t, 0.0)).real
    return inverse @ (vectors / y) @ vectors.T @ inverse


def singular_key_blow_up(kappa: float, q: float, v: float, start: Any) -> float:
    """T* = (1 + 2κ²Σ_11)/(2vκqΣ_12(0)) for K = (κ, 0), Q = (0, q), V = diag(0, v); ∞ when that is not positive."""
    cov = checked_covariance("start", start, 2)
    speed = 2 * v * kappa * q * cov[0, 1]
    return float((1 + 2 * kappa**2 * cov[0, 0]) / speed) if speed > 0 else np.inf


def singular_key_covariance(t: float, kappa: float, q: float, v: float, start: Any) -> np.ndarray:
    """Σ_12 = Σ_12(0)/(1 - t/T*), Σ_22 = Σ_22(0)/(1 - t/T*)², while Σ_11 stands still.

    With g = Σ_12/(1 + 2κ²Σ_11): Σ_12' = 2vκq g Σ_12 and Σ_22' = 4vκq g Σ_22.
    """
    cov = checked_covariance("start", start, 2)
    rate = 2 * v * kappa * q * cov[0, 1] / (1 + 2 * kappa**2 * cov[0, 0])
    left = 1 - finite_number("t", t, 0.0) * rate
    if left <= 0:
        raise ArgumentError(f"Argument `t` must be below the blow-up time {1 / rate:.6g}, but is {t:g}.")
    growth = 1 / left
    return np.array([[cov[0, 0], cov[0, 1] * growth], [cov[0, 1] * growth, cov[1, 1] * growth**2]])


def l2_trace_bound(t: ArrayLike, V: Any, Q: Any, K: Any, start: Any) -> np.ndarray:
    """tr Σ(t) ≤ tr Σ_0 exp(2|V||A|t/λ_min(KᵀK)), A = KᵀQ: no blow-up when K is injective (∞ otherwise)."""
    key, query = np.atleast_2d(np.asarray(K, float)), np.atleast_2d(np.asarray(Q, float))
    lowest = float(np.linalg.eigvalsh(key.T @ key)[0])
    size = np.linalg.norm(square("V", V), 2) * np.linalg.norm(key.T @ query, 2)
    rate = 2 * size / lowest if lowest > 0 else np.inf
    return float(np.trace(checked_covariance("start", start))) * np.exp(rate * np.asarray(t, float))
