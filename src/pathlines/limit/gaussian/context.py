"""Can the infinite-context theory be trusted at n tokens? (softmax attention on Gaussian clouds)

θ = |Σ^{1/2}AΣ^{1/2}| decides: below 1/√2 the field of n tokens is within n^{-1/2} of its limit, with the prefactor
below; above, a few far tokens take all attention and the error decays like a smaller power of n. All derived here;
A Unified Perspective, arXiv:2501.18322, for the closure, Token Sample Complexity of Attention, arXiv:2512.10656, for
sub-parametric rates. A finite system never blows up: blow-up is an infinite-context phenomenon.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, factor, root, square

SOURCES = (UNIFIED,)
CRITICAL = 1 / np.sqrt(2)
"""Beyond this θ the mean-square error of the field decays more slowly than 1/n."""


def score_strength(A: Any, cov: Any) -> float:
    """θ = |Σ^{1/2}AΣ^{1/2}| (operator norm)."""
    score = square("A", A)
    half = root(checked_covariance("cov", cov, len(score)))
    return float(np.linalg.norm(half @ score @ half, 2))


def field_covariance(x: Any, A: Any, V: Any, cov: Any) -> np.ndarray:
    """√n(Γ_n(x) - Γ(x)) → N(0, e^{hᵀΣh} V(Σ + Σhhᵀ Σ)Vᵀ), h = Ax: the error at one query."""
    sigma, value = checked_covariance("cov", cov), square("V", V)
    h = square("A", A) @ np.asarray(x, float)
    along = sigma @ h
    return np.exp(h @ along) * value @ (sigma + np.outer(along, along)) @ value.T


def error_prefactor(A: Any, V: Any, cov: Any) -> float:
    """lim n E|Γ_n - Γ|² over centred Gaussian queries; infinite from θ = 1/√2 on.

    det(I - 2ΣW)^{-1/2} [tr(VΣVᵀ) + tr(VΣA(Σ^{-1} - 2W)^{-1}AᵀΣVᵀ)], W = AᵀΣA.
    """
    score, value, sigma = square("A", A), square("V", V), checked_covariance("cov", cov)
    if score_strength(score, sigma) >= CRITICAL:
        return float("inf")
    half = root(sigma)
    inner = np.eye(len(sigma)) - 2 * half @ score.T @ sigma @ score @ half
    tilted = half @ np.linalg.solve(inner, half)  # (Σ^{-1} - 2W)^{-1}, without Σ^{-1}
    pushed = value @ sigma @ score
    whole = np.trace(value @ sigma @ value.T) + np.trace(pushed @ tilted @ pushed.T)
    return float(whole / np.sqrt(np.linalg.det(inner)))


def rate_exponent(strength: ArrayLike) -> np.ndarray:
    """p in MSE ~ n^{-p}: 1 for θ ≤ 1/√2, √(1/θ² + 1/4) - 1/2 above (d = 1, leading order, up to logarithms)."""
    size = np.asarray(strength, float)
    slow = np.sqrt(1 / np.maximum(size, CRITICAL) ** 2 + 0.25) - 0.5
    return np.minimum(1.0, slow)


def entropy_deficit(A: Any, mean: Any, cov: Any) -> float:
    """lim E(ln n - H) = ½[tr(AᵀΣAΣ) + αᵀAᵀΣAα]: how far attention is from uniform, in nats."""
    score, sigma = square("A", A), checked_covariance("cov", cov)
    alpha = finite_array("mean", mean, (len(sigma),)).astype(float)
    W = score.T @ sigma @ score
    return float((np.trace(W @ sigma) + alpha @ W @ alpha) / 2)


def scalar_critical_time(v: float, a: float, variance: float) -> float:
    """t_c = T*(1 - √2 θ_0), θ_0 = aσ_0: when the rate n^{-1/2} is lost, d = 1, v, a > 0 (0 if lost already)."""
    blow_up = 1 / (2 * v * a * finite_number("variance", variance, 0.0, open_low=True))
    return float(max(0.0, blow_up * (1 - np.sqrt(2) * a * variance)))


def critical_time(A: Any, V: Any, cov: Any, until: float) -> float:
    """When θ(t) first reaches 1/√2 and the rate n^{-1/2} is lost, for a centred cloud; ∞ if not by ``until``.

    L' = VL(LᵀAL) by LSODA, θ = |LᵀAL|. A blow-up comes later than this, always.
    """
    score, begin = square("A", A), factor("cov", cov)
    value = square("V", V, len(score))

    def pull(y: np.ndarray) -> np.ndarray:
        L = y.reshape(begin.shape)
        return L.T @ score @ L

    def margin(_: float, y: np.ndarray) -> float:
        return float(np.linalg.norm(pull(y), 2)) - CRITICAL

    margin.terminal = True  # type: ignore[attr-defined]
    if score_strength(score, cov) >= CRITICAL:
        return 0.0

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        return np.ravel(value @ y.reshape(begin.shape) @ pull(y))

    last = finite_number("until", until, 0.0, open_low=True)
    found = solve_ivp(rate, (0.0, last), begin.ravel(), "LSODA", rtol=1e-10, atol=1e-12, events=margin)
    return float(found.t_events[0][0]) if len(found.t_events[0]) else float("inf")


class ClosureHorizon(msgspec.Struct, frozen=True):
    """Whether n tokens follow the infinite-context theory: ``verdict`` is "yes", "roughly" or "no".

    ``error`` is the root mean square error of the field relative to that of its size (∞ where only a rate is known),
    ``tokens_needed`` the n at which it would be ``tolerance``.
    """

    verdict: str
    theta: float
    exponent: float
    error: float
    tokens_needed: float
    reason: str


def closure_horizon(A: Any, V: Any, cov: Any, n: int, tolerance: float = 0.1) -> ClosureHorizon:
    """Compare √(prefactor/n) with √E|Γ|² = √tr(VΣAΣAᵀΣVᵀ) at one covariance."""
    n, tolerance = positive_integer("n", n), finite_number("tolerance", tolerance, 0.0, open_low=True)
    strength, score, value = score_strength(A, cov), square("A", A), square("V", V)
    sigma = checked_covariance("cov", cov)
    exponent = float(rate_exponent(strength))
    if strength >= CRITICAL:
        text = (
            f"θ = {strength:.3g} ≥ 1/√2: the error decays like n^-{exponent / 2:.2g} only, few tokens take all weight"
        )
        return ClosureHorizon("no", strength, exponent, float("inf"), float("inf"), text)
    pushed = value @ sigma @ score
    size = float(np.trace(pushed @ sigma @ pushed.T))
    share = error_prefactor(score, value, sigma) / max(size, 1e-300)
    error, needed = float(np.sqrt(share / n)), float(share / tolerance**2)
    verdict = "yes" if error <= tolerance else "roughly" if error <= 5 * tolerance else "no"
    text = (
        f"θ = {strength:.3g} < 1/√2: the field of n = {n} tokens is off by {100 * error:.2g} %; n ≥ {needed:.3g} for "
    )
    return ClosureHorizon(verdict, strength, exponent, error, needed, text + f"{100 * tolerance:g} %")
