"""The particle equations once more, in NumPy and solved by SciPy: a second opinion that shares no code with the engine.

    SA   x_i' = P_{x_i} Σ_j e^{β<Qx_i,Kx_j>} V x_j / Z_i          USA   x_i' = P_{x_i} Σ_j e^{β<x_i,x_j>} x_j / n

(A mathematical perspective on Transformers, arXiv:2312.10794.) Rows are tokens, leading axes are samples. β and the
tokens may be complex: products are bilinear, so an imaginary part of 1e-30 carries an exact derivative along the flow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

Field = Callable[[np.ndarray], np.ndarray]


def attention_vectors(
    x: np.ndarray, beta: complex, kind: str = "sa", query: Any = None, key: Any = None, value: Any = None
) -> np.ndarray:
    """A_i = Σ_j a_ij V x_j; Q, K, V default to the identity."""
    queries, keys, values = (x if m is None else x @ np.asarray(m).T for m in (query, key, value))
    scores = beta * queries @ np.swapaxes(keys, -1, -2)
    if kind == "usa":
        return np.exp(scores) @ values / x.shape[-2]
    weights = np.exp(scores - scores.real.max(axis=-1, keepdims=True))
    return weights @ values / weights.sum(axis=-1, keepdims=True)


def velocity(x: np.ndarray, beta: complex, kind: str = "sa", **weights: Any) -> np.ndarray:
    """P_{x_i} A_i."""
    out = attention_vectors(x, beta, kind, **weights)
    return out - np.sum(out * x, axis=-1, keepdims=True) * x


def energy_fraction(x: np.ndarray, beta: float) -> float:
    """E_β/E_max = n^{-2} Σ_ij e^{β(<x_i,x_j>-1)}."""
    return float(np.mean(np.exp(beta * (x @ x.T - 1))))


def trajectory(field: Field, start: np.ndarray, times: Any, rtol: float = 1e-12) -> np.ndarray:
    """States of y' = field(y) at increasing ``times`` ≥ 0, by SciPy's DOP853 without projection: (times, *shape)."""
    times, start = np.asarray(times, float), np.asarray(start)
    rhs = lambda t, y: field(y.reshape(start.shape)).ravel()  # noqa: E731
    span = (0.0, max(float(times[-1]), 1e-300))
    solution = solve_ivp(rhs, span, start.ravel(), "DOP853", t_eval=times, rtol=rtol, atol=rtol * 1e-2)
    return np.moveaxis(solution.y.reshape(*start.shape, -1), -1, 0)


def with_integral(field: Field, integrand: Callable[[np.ndarray], float]) -> Field:
    """The field with one more row whose first entry accumulates ``integrand``: time integrals with the same solver."""

    def extended(y: np.ndarray) -> np.ndarray:
        x = y[:-1]
        row = np.zeros((1, x.shape[1]))
        row[0, 0] = integrand(x)
        return np.concatenate([field(x), row])

    return extended


def accumulated(
    field: Field, integrand: Callable[[np.ndarray], float], start: np.ndarray, times: Any, rtol: float = 1e-12
) -> np.ndarray:
    """∫_0^t integrand(x(s)) ds at the given times."""
    extended = np.concatenate([start, np.zeros((1, start.shape[1]))])
    return trajectory(with_integral(field, integrand), extended, times, rtol)[:, -1, 0]


def clustered_fraction(x: np.ndarray, beta: float, times: Any, delta: float, step: float) -> np.ndarray:
    """Fraction of pairs i < j with ½|x_i-x_j|² ≤ δ for a batch of samples: (samples, times), by RK4 and projection."""
    times = np.asarray(times, float)
    columns, now = [], 0.0
    for target in times:
        count = max(1, int(np.ceil((target - now) / step - 1e-9)))
        h = (target - now) / count
        for _ in range(count if target > now else 0):
            x = _projected_step(x, beta, h)
        now = target
        columns.append(_pairs_within(x, delta))
    return np.stack(columns, axis=1)


def _projected_step(x: np.ndarray, beta: float, h: float) -> np.ndarray:
    first = velocity(x, beta)
    second = velocity(x + h / 2 * first, beta)
    third = velocity(x + h / 2 * second, beta)
    fourth = velocity(x + h * third, beta)
    new = x + h / 6 * (first + 2 * second + 2 * third + fourth)
    return new / np.linalg.norm(new, axis=-1, keepdims=True)


def _pairs_within(x: np.ndarray, delta: float) -> np.ndarray:
    n = x.shape[-2]
    near = (x @ np.swapaxes(x, -1, -2) >= 1 - delta).sum(axis=(-1, -2)) - n
    return near / (n * (n - 1))
