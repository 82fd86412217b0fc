"""Sigmoid attention as it is used, a sum over n tokens with the bias b - ln n, in a long context: by SciPy.

    x_i' = V Σ_j m_j e^{u_ij}/(1 + e^{u_ij}/n) x_j,   u_ij = (Ax_i)·x_j + b,   x = x⁽⁰⁾ + x⁽¹⁾/n + O(1/n²)

x⁽⁰⁾ follows unnormalised attention. A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322,
names the kinds; the limit and its first correction are derived.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import square

SOURCES = (UNIFIED,)


def summed_sigmoid(value: Any, score: Any, tokens: Any, n: int, until: float, bias: float = 0.0) -> np.ndarray:
    """(k, d): where the distinct ``tokens``, each there n/k times, are at ``until``."""
    V, A = square("value", value), square("score", score)

    def rate(x: np.ndarray) -> np.ndarray:
        weights = n * expit(x @ A.T @ x.T + bias - np.log(n)) / len(x)
        return weights @ x @ V.T

    return _solved(rate, finite_array("tokens", tokens, ("k", "d")).astype(float), until)


def long_context(value: Any, score: Any, tokens: Any, until: float, bias: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """(x⁽⁰⁾, x⁽¹⁾) at ``until``: the flow F of unnormalised attention, and y' = DF(x)y - V Σ_j m_j e^{2u_ij} x_j."""
    V, A = square("value", value), square("score", score)

    def rate(both: np.ndarray) -> np.ndarray:
        x, y = both
        weights = np.exp(x @ A.T @ x.T + bias) / len(x)
        moved = y @ A.T @ x.T + x @ A.T @ y.T
        felt = (weights * moved - len(x) * weights**2) @ x + weights @ y
        return np.stack([weights @ x, felt]) @ V.T

    start = finite_array("tokens", tokens, ("k", "d")).astype(float)
    first, second = _solved(rate, np.stack([start, 0 * start]), until)
    return first, second


def _solved(rate: Any, start: np.ndarray, until: float) -> np.ndarray:
    end = finite_number("until", until, 0.0)
    flat = lambda _, y: rate(y.reshape(start.shape)).ravel()  # noqa: E731
    found = solve_ivp(flat, (0.0, end), start.ravel(), "DOP853", rtol=1e-12, atol=1e-13)
    if found.status != 0:
        raise ArgumentError(f"Argument `until` must be before the tokens reach infinity ({found.message}).")
    return found.y[:, -1].reshape(start.shape)
