"""Mean and covariance of a Gaussian cloud by SciPy, in covariance form: a second opinion on the factor form.

    α' = c + Bα,   Σ' = BΣ + ΣBᵀ,   Γ(x) = c + Bx the field of the Gaussian itself.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322 (softmax, l2, Sinkhorn; linear and affine
attention hold for any law). Sigmoid attention does not keep Gaussians: its field is given, not a closure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import LSODA, solve_ivp

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance, factor, root, square

SOURCES = (UNIFIED,)
KINDS = ("softmax", "l2", "sinkhorn", "linear", "affine")


class Head(NamedTuple):
    """C = V of one head with its queries and keys (p × d); A = KᵀQ."""

    value: np.ndarray
    query: np.ndarray
    key: np.ndarray

    @property
    def score(self) -> np.ndarray:
        """A = KᵀQ."""
        return self.key.T @ self.query


def head(value: Any, A: Any = None, query: Any = None, key: Any = None) -> Head:
    """A head from (V, A) or from (V, Q, K); l2 needs Q and K."""
    V = square("value", value)
    if A is not None:
        return Head(V, square("A", A, len(V)), np.eye(len(V)))
    Q, K = (np.atleast_2d(finite_array(n, m)).astype(float) for n, m in (("query", query), ("key", key)))
    if Q.shape != K.shape or Q.shape[1] != len(V):
        raise ArgumentError(f"Queries and keys must be p × {len(V)} both, but are {Q.shape} and {K.shape}.")
    return Head(V, Q, K)


class Moments(NamedTuple):
    """Means (times, d) and covariances (times, d, d)."""

    mean: np.ndarray
    covariance: np.ndarray


def affine_field(
    kind: str, heads: Sequence[Head], mean: np.ndarray, cov: np.ndarray, eps: float = 1.0, prefactor: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """(c, B) of Γ(x) = c + Bx for N(α, Σ); ``eps`` and ``prefactor`` are those of Sinkhorn."""
    c, B = np.zeros(len(mean)), np.zeros((len(mean), len(mean)))
    for h in heads:
        more = _FIELDS[one_of("kind", kind, KINDS)](h, mean, cov, eps, prefactor)
        c, B = c + h.value @ more[0], B + h.value @ more[1]
    return c, B


def _softmax(h: Head, mean: np.ndarray, cov: np.ndarray, *_: float) -> tuple[np.ndarray, np.ndarray]:
    return mean, cov @ h.score


def _l2(h: Head, mean: np.ndarray, cov: np.ndarray, *_: float) -> tuple[np.ndarray, np.ndarray]:
    T = np.linalg.inv(np.eye(len(mean)) + 2 * cov @ h.key.T @ h.key)
    return T @ mean, 2 * T @ cov @ h.score


def _sinkhorn(
    h: Head, mean: np.ndarray, cov: np.ndarray, eps: float, prefactor: float
) -> tuple[np.ndarray, np.ndarray]:
    half = root(cov)
    N = half @ h.score @ cov @ h.score.T @ half / eps**2
    middle = np.linalg.inv(np.eye(len(mean)) + root(np.eye(len(mean)) + 4 * (N + N.T) / 2))
    b = 2 * half @ middle @ half @ h.score / eps
    return prefactor * (mean - b @ mean), prefactor * b


def _linear(h: Head, mean: np.ndarray, cov: np.ndarray, *_: float) -> tuple[np.ndarray, np.ndarray]:
    return 0 * mean, (cov + np.outer(mean, mean)) @ h.score


def _affine(h: Head, mean: np.ndarray, cov: np.ndarray, *_: float) -> tuple[np.ndarray, np.ndarray]:
    return mean, (cov + np.outer(mean, mean)) @ h.score


_FIELDS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "softmax": _softmax,
    "l2": _l2,
    "sinkhorn": _sinkhorn,
    "linear": _linear,
    "affine": _affine,
}


def moments(
    kind: str,
    heads: Sequence[Head],
    mean: Any,
    start: Any,
    times: Any,
    eps: float = 1.0,
    prefactor: float = 1.0,
    method: str = "DOP853",
    rtol: float = 1e-12,
) -> Moments:
    """α and Σ at increasing ``times``, from N(mean, start) at t = 0."""
    alpha = finite_array("mean", mean, ("d",)).astype(float)
    d = len(alpha)
    sigma, grid = checked_covariance("start", start, d), np.atleast_1d(finite_array("times", times)).astype(float)
    if any(len(h.value) != d for h in heads):
        raise ArgumentError(f"Argument `heads` must be of width {d} as `mean` is, but {[len(h.value) for h in heads]}.")
    eps = finite_number("eps", eps, 0.0, open_low=True)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        m, s = y[:d], y[d:].reshape(d, d)
        c, B = affine_field(kind, heads, m, (s + s.T) / 2, eps, prefactor)
        moving = B @ s
        return np.concatenate([c + B @ m, (moving + moving.T).ravel()])

    begin = np.concatenate([alpha, sigma.ravel()])
    found = solve_ivp(rate, (0.0, float(grid[-1])), begin, method, t_eval=grid, rtol=rtol, atol=1e-3 * rtol)
    if found.status != 0:
        raise ArgumentError(f"Argument `times` must end before the solution does ({found.message}).")
    return Moments(found.y[:d].T, found.y[d:].T.reshape(-1, d, d))


def _pushed(heads: Sequence[Head], L: np.ndarray) -> np.ndarray:
    """Σ_h C_h L(LᵀA_hL), the velocity of a factor under softmax attention."""
    return sum((h.value @ L @ (L.T @ h.score @ L) for h in heads), np.zeros_like(L))


def softmax_covariances(heads: Sequence[Head], start: Any, times: Any, rtol: float = 1e-12) -> np.ndarray:
    """Σ = LLᵀ at increasing ``times`` of a centred cloud under softmax attention: L' = Σ_h C_h L(LᵀA_hL) by LSODA.

    For clouds that grow by many decades: in ``moments`` the rounding of large eigenvalues feeds the small ones.
    """
    begin, grid = factor("start", start), np.atleast_1d(finite_array("times", times)).astype(float)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        L = y.reshape(begin.shape)
        return _pushed(heads, L).ravel()

    found = solve_ivp(rate, (0.0, float(grid[-1])), begin.ravel(), "LSODA", t_eval=grid, rtol=rtol, atol=1e-2 * rtol)
    if found.status != 0:
        raise ArgumentError(f"Argument `times` must end before the solution does ({found.message}).")
    L = found.y.T.reshape(-1, *begin.shape)
    return L @ np.swapaxes(L, 1, 2)


def scaled_end(heads: Sequence[Head], start: Any, until: float = 1e5) -> tuple[float, np.ndarray]:
    """(ln(tr Σ/tr Σ_0), direction) of softmax attention at scale-free time ``until``, or where |ln| > 25; by LSODA."""
    Y, growth, _ = _scaled(heads, start, until)
    return growth, np.linalg.svd(Y)[0][:, 0]


GROUPS = ("blow-up", "exponential", "bounded", "to-zero")
_FAR = 25.0
_TIRED = 8000
"""Evaluations after which a cloud that keeps turning is left: a fifth of a second."""


def scaled_group(heads: Sequence[Head], start: Any, until: float = 1e6) -> tuple[str, bool]:
    """(one of ``GROUPS``, whether that is clear) by growth and the slope k = d ln ρ/d ln s over the last decade.

    ρ ∝ s is ρ ~ e^{ct}; ``bounded`` is what neither grew by e^25, nor shrank by e^12, nor grows like s^0.85:
    convergence, slow or not. Not clear are clouds that keep turning and those close to a border.
    """
    _, growth, slope = _scaled(heads, start, until)
    if growth >= _FAR:
        return "blow-up", True
    steady = np.isfinite(slope) and not (0.5 < slope < 0.95 or slope > 1.5) and not (-20 < growth < -8)
    clear = steady or growth <= -_FAR
    return "to-zero" if growth < -12 else "exponential" if slope > 0.85 else "bounded", bool(clear)


def _scaled(heads: Sequence[Head], start: Any, until: float) -> tuple[np.ndarray, float, float]:
    """(Y, ln(ρ/ρ_0), slope over the last decade or NaN): Σ = ρYYᵀ, |Y| = 1, ds = ρ dt in units of Σ_h |C_h||A_h|.

    Y' = BY - ½φY, (ln ρ)' = φ = 2<BY, Y>, B = Σ_h C_h YYᵀ A_h, up to ``until`` or where |ln ρ/ρ_0| > 25.
    """
    begin = factor("start", start)
    begin = begin / np.linalg.norm(begin)
    pace = max(1e-300, sum(float(np.linalg.norm(h.value) * np.linalg.norm(h.score)) for h in heads))

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        Y = y[:-1].reshape(begin.shape)
        moved = _pushed(heads, Y) / pace
        share = np.sum(moved * Y) / np.sum(Y * Y)
        return np.append(moved - share * Y, 2 * share)

    y, early = np.append(begin, 0.0), 0.0
    for low, high in ((0.0, until / 10), (until / 10, until)):
        solver, early = LSODA(rate, low, y, high, rtol=1e-9, atol=1e-12), float(y[-1])
        while solver.status == "running" and abs(solver.y[-1]) < _FAR and solver.nfev < _TIRED:
            solver.step()
        y = solver.y
        if solver.status != "finished":
            return y[:-1].reshape(begin.shape), float(y[-1]), np.nan
    slope = (float(y[-1]) - early) / np.log(10)
    return y[:-1].reshape(begin.shape), float(y[-1]), slope


def scaled_blow_up(
    heads: Sequence[Head], start: Any, growth: float = 25.0, rtol: float = 1e-11
) -> tuple[float, np.ndarray]:
    """(T*, direction) of softmax attention by SciPy in scale-free covariances: NaN when none is seen by s = 10⁴.

    Σ = ρS with tr S = 1 and ds = ρ dt: S' = BS + SBᵀ - φS, (ln ρ)' = φ, t' = 1/ρ, B = Σ_h C_h S A_h.
    T* = t + 1/(ρφ) once ln(ρ/ρ_0) > ``growth``; the direction is the leading eigenvector of S.
    """
    sigma = checked_covariance("start", start)
    d, size = len(sigma), float(np.trace(sigma))

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        S = y[: d * d].reshape(d, d)
        moving = sum((h.value @ S @ h.score @ S for h in heads), np.zeros((d, d)))
        moving = moving + moving.T
        phi = np.trace(moving) / np.trace(S)
        return np.concatenate([(moving - phi * S).ravel(), [phi, np.exp(-y[-2])]])

    def grown(_: float, y: np.ndarray) -> float:
        return float(abs(y[-2] - np.log(size)) - growth)

    grown.terminal = True  # type: ignore[attr-defined]
    begin = np.concatenate([(sigma / size).ravel(), [np.log(size), 0.0]])
    found = solve_ivp(rate, (0.0, 1e4), begin, "LSODA", rtol=rtol, atol=1e-13, events=grown)
    if found.status != 1 or found.y[-2, -1] < np.log(size):
        return float("nan"), np.full(d, np.nan)
    last = found.y_events[0][0]
    phi = rate(0.0, last)[-2]
    direction = np.linalg.eigh(last[: d * d].reshape(d, d))[1][:, -1]
    return float(last[-1] + np.exp(-last[-2]) / phi), direction * np.sign(direction[np.argmax(np.abs(direction))])
