"""Softmax attention on centred Gaussians: Σ' = VΣAΣ + (VΣAΣ)ᵀ in closed form, and what decides its fate.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322, for the equation; the solutions, the
blow-up profile and the exponential regime are derived here. Conventions: score ⟨Qx, Ky⟩ = (Ax)·y with A = KᵀQ (any
temperature inside A); values V.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, null_space, root, square

SOURCES = (UNIFIED,)


def identity_value_covariance(t: float, A: Any, start: Any) -> np.ndarray:
    """Σ(t) = (Σ_0^{-1} - tS)^{-1}, S = A + Aᵀ, for V = I and any A, before the blow-up time.

    Written as R(I - tRSR)^{-1}R with R = Σ_0^{1/2}, which holds for singular Σ_0 as well.
    """
    R, M = _whitened(A, start)
    time = finite_number("t", t, 0.0)
    if time * np.linalg.eigvalsh(M)[-1] >= 1:
        raise ArgumentError(f"Argument `t` must be below the blow-up time {1 / np.linalg.eigvalsh(M)[-1]:.6g}.")
    return R @ np.linalg.solve(np.eye(len(M)) - time * M, R)


def identity_value_blow_up(A: Any, start: Any) -> tuple[float, np.ndarray | None]:
    """(T*, direction) for V = I: T* = 1/λ_max(RSR), along R m_1 with m_1 its eigenvector; (∞, None) if λ_max ≤ 0."""
    R, M = _whitened(A, start)
    values, vectors = np.linalg.eigh(M)
    if values[-1] <= 1e-14 * np.abs(values).max():
        return np.inf, None
    direction = R @ vectors[:, -1]
    return float(1 / values[-1]), direction / np.linalg.norm(direction)


def identity_value_limit(A: Any, start: Any) -> np.ndarray:
    """Σ_∞ = U(UᵀΣ_0^{-1}U)^{-1}Uᵀ for V = I and S = A + Aᵀ ≤ 0, with U a basis of ker S.

    Written as R P R with R = Σ_0^{1/2} and P the projection on {x: Rx ∈ ker S}, which holds for singular Σ_0 as well.
    Reached like O(1/t), with rank dim ker S for Σ_0 > 0. For A = -QᵀQ (l2: K = -Q) the limits of l2 and Sinkhorn are
    the same.
    """
    S = _symmetric_part(A)
    R = root(checked_covariance("start", start, len(S)))
    if np.linalg.eigvalsh(S)[-1] > 1e-12 * max(float(np.abs(S).max()), 1e-300):
        raise ArgumentError(f"Argument `A` must have A + Aᵀ ≤ 0, but its eigenvalue is {np.linalg.eigvalsh(S)[-1]:g}.")
    U = null_space(S)
    _, sizes, rows = np.linalg.svd(R - U @ (U.T @ R))
    kept = R @ rows[sizes <= 1e-10 * np.linalg.norm(R, 2)].T
    return kept @ kept.T


def scaled_eigenvalues(s: float, queries: Any, factors: Any) -> np.ndarray:
    """Eigenvalues (count, d) of Σ, largest first, for V = I, K = -Q and Σ_0 = GGᵀ at s = |V||A|∫tr Σ dt.

    With the singular vectors w_k and values q_k of QG, Σ(t) = Σ_k (Gw_k)(Gw_k)ᵀ/(1 + 2q_k²t), and
    ∫tr Σ dt = Σ_k |Gw_k|² ln(1 + 2q_k²t)/(2q_k²) (|Gw_k|²t where q_k = 0) grows with t, so bisection finds t. Late,
    what vanishes is of relative size |V||A|/(2sq²), q that singular value of Q. Norms are Frobenius norms.
    """
    Q, G = (finite_array(n, m).astype(float) for n, m in (("queries", queries), ("factors", factors)))
    rows = min(Q.shape[-2:])
    _, sizes, axes = np.linalg.svd(Q @ G)
    sent = G @ np.swapaxes(axes, -1, -2)
    weight, pull = np.sum(sent**2, axis=-2), np.zeros(sent.shape[::2])
    pull[:, :rows] = 2 * sizes**2
    pace = np.sqrt(G.shape[-1]) * np.linalg.norm(np.swapaxes(Q, -1, -2) @ Q, axis=(-2, -1))
    goal = finite_number("s", s, 0.0, open_low=True) / pace
    low, high = np.full(len(G), -50.0), np.log(goal / np.maximum(weight[:, rows:].sum(axis=1), 1e-300))
    for _ in range(100):
        middle = (low + high) / 2
        t = np.exp(middle)[:, None]
        passed = np.sum(weight * np.where(pull > 0, np.log1p(pull * t) / np.where(pull > 0, pull, 1.0), t), axis=1)
        low, high = np.where(passed < goal, middle, low), np.where(passed < goal, high, middle)
    late = sent / np.sqrt(1 + pull * t)[:, None, :]
    return np.linalg.svd(late, compute_uv=False) ** 2


def commuting_eigenvalues(t: ArrayLike, v: ArrayLike, a: ArrayLike, start: ArrayLike) -> np.ndarray:
    """λ_i(t) = λ_i/(1 - 2v_i a_i λ_i t) for commuting symmetric V, A, Σ_0 (NaN from the blow-up of that eigenvalue)."""
    left = 1 - 2 * np.asarray(v, float) * np.asarray(a, float) * np.asarray(start, float) * np.asarray(t, float)
    return np.where(left > 0, np.asarray(start, float) / np.where(left > 0, left, 1.0), np.nan)


def scalar_mean(t: ArrayLike, v: float, a: float, variance: float, mean: float) -> np.ndarray:
    """α(t) = α_0 e^{vt}(1 - 2vaσ_0 t)^{-1/2}, d = 1."""
    time = np.asarray(t, float)
    return mean * np.exp(v * time) / np.sqrt(1 - 2 * v * a * variance * time)


class RankOne(NamedTuple):
    """w(t) = e^{τV}w_0 with τ(t) the clock of the equation."""

    tau: float
    vector: np.ndarray


def rank_one(t: float, V: Any, A: Any, start: Any) -> RankOne:
    """Σ_0 = w_0 w_0ᵀ: w = e^{τV}w_0, τ' = q(τ) = wᵀAw; t = ∞ gives the first zero of q in the direction of motion."""
    value, score = square("V", V), square("A", A)
    w = finite_array("start", start, (len(value),)).astype(float)
    speed: Callable[[float], float] = lambda tau: _form(score, expm(tau * value) @ w)  # noqa: E731
    if np.isinf(t):
        tau = _first_zero(speed, 0.0)
    else:
        found = solve_ivp(lambda _, y: [speed(y[0])], (0.0, finite_number("t", t, 0.0)), [0.0], "DOP853",
                          rtol=1e-13, atol=1e-14)  # fmt: skip
        if found.status != 0:
            raise ArgumentError(f"Argument `t` must be below the blow-up time {found.t[-1]:.6g}, but is {t:g}.")
        tau = float(found.y[0, -1])
    return RankOne(tau, expm(tau * value) @ w)


def _first_zero(speed: Callable[[float], float], start: float) -> float:
    """The zero of τ' ahead of ``start``, by the flow itself until it is bracketed, then by bisection of its sign."""
    from scipy.optimize import brentq

    sign = np.sign(speed(start))
    if sign == 0:
        return start
    at, step = start, 1e-2 * sign
    for _ in range(100_000):
        if np.sign(speed(at + step)) != sign:
            return float(brentq(speed, at, at + step, xtol=1e-15, rtol=1e-14))
        at += step
    return float(sign * np.inf)


def blow_up_bound(V: Any, A: Any, start: Any) -> float:
    """T* ≤ d/(λ_min(S) λ_min(V)² tr(V^{-1}Σ_0)) for V and S = A + Aᵀ positive definite; ∞ where it says nothing."""
    value, S, cov = square("V", V), _symmetric_part(A), checked_covariance("start", start)
    lowest = min(float(np.linalg.eigvalsh((value + value.T) / 2)[0]), float(np.linalg.eigvalsh(S)[0]))
    if lowest <= 0 or np.abs(value - value.T).max() > 1e-12 * np.abs(value).max():
        return np.inf
    trace = float(np.trace(np.linalg.solve(value, cov)))
    return len(cov) / (float(np.linalg.eigvalsh(S)[0]) * float(np.linalg.eigvalsh(value)[0]) ** 2 * trace)


def rank_one_profiles(V: Any, A: Any) -> list[tuple[float, np.ndarray]]:
    """Stable rank-one blow-up profiles Σ ~ c uuᵀ/(T* - t), c = 1/(2v uᵀAu): (v, u) with Vu = vu.

    v is the rightmost eigenvalue of V with v > 0 and uᵀAu > 0, or the leftmost with v < 0 and uᵀAu < 0. Empty when the
    extremal eigenvalues are complex pairs (the profile then lives in their real planes) or the signs do not fit.
    """
    value, score = square("V", V), square("A", A)
    values, vectors = np.linalg.eig(value)
    found = []
    for at, sign in ((int(np.argmax(values.real)), 1), (int(np.argmin(values.real)), -1)):
        if abs(values[at].imag) > 1e-12 * np.abs(values).max():
            continue
        u = vectors[:, at].real / np.linalg.norm(vectors[:, at].real)
        if sign * values[at].real > 0 and sign * _form(score, u) > 0:
            found.append((float(values[at].real), u))
    return found


def profile_error(V: Any, v: float, growth: float = 25.0) -> float:
    """How much of the other eigenvectors of V is left in a rank-one profile of eigenvalue v once tr Σ grew by e^growth.

    w = e^{τV}w_0 in the clock τ of ``rank_one``: |w|² grows like e^{2vτ} and the next one's share decays like
    e^{-|v - v'|τ}, so that e^{-growth·|v - v'|/2|v|} is left, up to a constant.
    """
    others = np.sort(np.abs(np.linalg.eigvals(square("V", V)).real - v))[1:]
    return float(np.exp(-growth * others.min(initial=np.inf) / (2 * abs(v))))


def isotropic_angles(A: Any) -> np.ndarray:
    """d = 2: angles in [0°, 180°) of the directions with uᵀAu = 0, where rank-one covariances are stationary."""
    S = _symmetric_part(A)
    # uᵀSu = (a+b)/2 + (a-b)/2 cos 2θ + c sin 2θ
    half, cosine, sine = (S[0, 0] + S[1, 1]) / 2, (S[0, 0] - S[1, 1]) / 2, S[0, 1]
    size = float(np.hypot(cosine, sine))
    if size == 0 or abs(half) > size:
        return np.zeros(0)
    middle, spread = np.arctan2(sine, cosine), np.arccos(-half / size)
    return np.sort(np.degrees(np.array([middle + spread, middle - spread]) / 2) % 180.0)


def exponential_example(t: ArrayLike, start: ArrayLike) -> np.ndarray:
    """(s_1 e^{2 s_2 t}, s_2): Σ stays diagonal for A = e_2e_1ᵀ and V the swap; neither blow-up nor convergence."""
    s1, s2 = np.asarray(start, float)
    return np.stack([s1 * np.exp(2 * s2 * np.asarray(t, float)), s2 + 0 * np.asarray(t, float)], axis=-1)


def lyapunov_rate(A: Any, cov: Any) -> float:
    """d/dt tr(V^{-1}Σ) = tr(ΣSΣ) for V symmetric positive definite and any A, S = A + Aᵀ."""
    sigma = checked_covariance("cov", cov)
    return float(np.trace(sigma @ _symmetric_part(A) @ sigma))


def _symmetric_part(A: Any) -> np.ndarray:
    score = square("A", A)
    return score + score.T


def _whitened(A: Any, start: Any) -> tuple[np.ndarray, np.ndarray]:
    """(R, RSR), R = Σ_0^{1/2}."""
    S = _symmetric_part(A)
    R = root(checked_covariance("start", start, len(S)))
    return R, R @ S @ R


def _form(score: np.ndarray, w: np.ndarray) -> float:
    return float(w @ score @ w)
