"""What the best predictor of a hidden state says: Kalman's filter, its dual control problem, Bayes on a hidden chain.

Linear Gaussian tokens (``StateSpace``). S = mᵀy_0 - Σ_t u_tᵀZ_{t+1} with y_t = A y_{t+1} + H u_t, y_T = f estimates
fᵀX_T with mean square error

    J(u) = y_0ᵀΣ_0y_0 + Σ_t ( y_{t+1}ᵀQy_{t+1} + u_tᵀRu_t ),

least for u_t = -(R + HᵀΣ_tH)⁻¹HᵀΣ_tA y_{t+1}, Σ_t the error covariance of Kalman's one-step predictor: then J = fᵀΣ_Tf
and S is that predictor. Setting: Transformer-like Inference from Optimal Control, arXiv:2605.15608; the duality is
classical.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, of_kind, positive_integer
from pathlines.foundation.papers.followups import DUAL_FILTER
from pathlines.numerics.sources import HiddenMarkov, StateSpace

SOURCES = (DUAL_FILTER,)


class DualControl(NamedTuple):
    """The best weights on tokens: ``weights`` u (T, p), ``dual`` y (T+1, d), ``error`` J."""

    weights: np.ndarray
    dual: np.ndarray
    error: float


class Kalman(NamedTuple):
    """Predictors of X_0..X_T from the tokens before: ``means`` (T+1, d), ``covariances`` (T+1, d, d)."""

    means: np.ndarray
    covariances: np.ndarray


def error_covariances(source: StateSpace, length: int) -> np.ndarray:
    """Σ_{t+1} = AᵀΣ_tA + Q - AᵀΣ_tH(R + HᵀΣ_tH)⁻¹HᵀΣ_tA for t = 0..T-1, (T+1, d, d)."""
    of_kind("source", source, StateSpace, "a StateSpace")
    a, h, found = source.transition, source.readout, [source.spread]
    for _ in range(positive_integer("length", length, least=0)):
        seen = h.T @ found[-1] @ a
        learnt = seen.T @ np.linalg.solve(_innovation(source, found[-1]), seen)
        found.append(a.T @ found[-1] @ a + source.moves - learnt)
    return np.array(found)


def dual_control(source: StateSpace, target: Any, length: int) -> DualControl:
    """u, y and J of the best estimate of fᵀX_T, f the ``target``, by Riccati's recursion and one sweep backwards."""
    spreads = error_covariances(source, length)
    y = [finite_array("target", target, (len(source.transition),)).astype(float)]
    u: list[np.ndarray] = []
    for spread in spreads[-2::-1]:
        moved = source.transition @ y[-1]
        u.append(-np.linalg.solve(_innovation(source, spread), source.readout.T @ spread @ moved))
        y.append(moved + source.readout @ u[-1])
    shape = (length, source.readout.shape[1])
    return DualControl(np.array(u[::-1]).reshape(shape), np.array(y[::-1]), float(y[0] @ spreads[-1] @ y[0]))


def curvatures(source: StateSpace, length: int) -> np.ndarray:
    """Eigenvalues of ½∇²J for ``length`` tokens, ascending: a layer of step η leaves |1 - ηλ| of each mode."""
    noise, seen = np.eye(length), _of_the_state(source, length)
    return np.linalg.eigvalsh(np.kron(noise, source.noise) + seen)


def _of_the_state(source: StateSpace, length: int) -> np.ndarray:
    """The part of ½∇²J that comes from y, (Tp, Tp)."""
    (d, p), size = source.readout.shape, length * source.readout.shape[1]
    y, found = np.zeros((d, size)), np.zeros((size, size))
    for t in range(length - 1, -1, -1):
        found += y.T @ source.moves @ y
        y = source.transition @ y
        y[:, t * p : (t + 1) * p] += source.readout
    return found + y.T @ source.spread @ y


def kalman(source: StateSpace, tokens: Any) -> Kalman:
    """E[X_t | Z_1..Z_t] for t = 0..T, by Kalman's recursion forwards."""
    z = of_kind("source", source, StateSpace, "a StateSpace").checked(tokens)
    spreads, means = error_covariances(source, len(z)), [source.mean]
    for token, spread in zip(z, spreads[:-1], strict=True):
        surprise = np.linalg.solve(_innovation(source, spread), token - source.readout.T @ means[-1])
        means.append(source.transition.T @ (means[-1] + spread @ source.readout @ surprise))
    return Kalman(np.array(means), spreads)


def bayes(source: HiddenMarkov, tokens: Any) -> np.ndarray:
    """P(X_t = x | Z_1..Z_t) for t = 0..T, (T+1, D): π_{t+1} ∝ Aᵀ(C(·, Z_{t+1}) π_t)."""
    found = [of_kind("source", source, HiddenMarkov, "a HiddenMarkov").start]
    for place, token in enumerate(source.checked(tokens)):
        seen = found[-1] * source.emission[:, token]
        if not seen.sum() > 0:
            raise ArgumentError(
                f"Argument `tokens` has probability 0: token {token} at place {place + 1} cannot follow."
            )
        found.append(seen @ source.kernel / seen.sum())
    return np.array(found)


def _innovation(source: StateSpace, spread: np.ndarray) -> np.ndarray:
    """Covariance of the next token given those before."""
    return source.noise + source.readout.T @ spread @ source.readout
