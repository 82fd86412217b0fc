"""Token dynamics written afresh in plain NumPy, only to judge the closed forms; shares no code with the package.

Every field is an analytic function of the entries of x (no abs, no conjugation), so that Jacobians by complex step are
exact to rounding.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.real.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def attention(x: np.ndarray, beta: float, Q=None, K=None, V=None) -> np.ndarray:
    d = x.shape[1]
    Q, K, V = (np.eye(d) if m is None else m for m in (Q, K, V))
    return softmax(beta * (x @ Q.T) @ (x @ K.T).T) @ (x @ V.T)


def tangent(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    return a - (x * a).sum(axis=1, keepdims=True) * x


def sa_field(x: np.ndarray, beta: float, Q=None, K=None, V=None) -> np.ndarray:
    return tangent(x, attention(x, beta, Q, K, V))


def usa_field(x: np.ndarray, beta: float) -> np.ndarray:
    return tangent(x, np.exp(beta * x @ x.T) @ x / len(x))


def scheme_field(scheme, t, theta, r, beta, alpha, switch):
    """(dθ/dt, dr/dt) of the table of the six schemes; r has one entry per token."""
    a = attention(theta, beta)
    h, m = (theta * a).sum(axis=1), np.sqrt((a * a).sum(axis=1))
    zero, one = np.zeros_like(r), np.ones_like(r)
    if scheme == "mix":
        scheme = "post" if t <= switch else "pre"
    s, growth = {
        "post": (one, zero),
        "pre": (r, h),
        "peri": (r * m, h / m),
        "ngpt": (m / alpha, zero),
        "sqrt": (one * np.sqrt(t + 1), zero),
    }[scheme]
    return tangent(theta, a) / s[:, None], growth


def scheme_layer(scheme, t, theta, r, beta, eta, alpha, switch):
    """One discrete layer; returns (θ, r)."""
    a = attention(theta, beta)
    unit = a / np.linalg.norm(a, axis=1, keepdims=True)
    if scheme == "mix":
        scheme = "post" if t <= switch else "pre"
    x = {
        "post": theta + eta * a,
        "pre": r[:, None] * theta + eta * a,
        "peri": r[:, None] * theta + eta * unit,
        "ngpt": (1 - alpha * eta) * theta + alpha * eta * unit,
        "sqrt": theta + eta / np.sqrt(1 + t) * a,
    }[scheme]
    size = np.linalg.norm(x, axis=1)
    return x / size[:, None], size if scheme in ("pre", "peri") else r


def integrate_field(field, x0, times, rtol=1e-12):
    """States at the times (first axis), from x0 at 0."""
    shape = x0.shape
    times = np.atleast_1d(times)
    out, state, at = [], x0.ravel(), 0.0
    for t in times:
        if t > at:
            run = solve_ivp(
                lambda s, y: field(s, y.reshape(shape)).ravel(), (at, t), state, method="DOP853", rtol=rtol, atol=rtol
            )
            state, at = run.y[:, -1], t
        out.append(state.reshape(shape))
    return np.array(out)


def equiangular_tokens(n: int, overlap: float) -> np.ndarray:
    """n unit vectors in R^n with common inner product (in R^n they exist for every ρ ≥ -1/(n-1))."""
    gram = np.full((n, n), overlap) + (1 - overlap) * np.eye(n)
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def tangent_basis(x: np.ndarray) -> np.ndarray:
    """Orthonormal basis (columns) of the product of the tangent spaces of the sphere at the rows of x."""
    n, d = x.shape
    columns = []
    for i in range(n):
        frame = np.linalg.svd(x[i : i + 1])[2][1:]
        for direction in frame:
            column = np.zeros((n, d))
            column[i] = direction
            columns.append(column.ravel())
    return np.array(columns).T


def jacobian_eigenvalues(field, x: np.ndarray) -> np.ndarray:
    """Eigenvalues of the linearised flow on the product of spheres at a stationary x, by complex step."""
    basis = tangent_basis(x)
    h = 1e-30
    columns = [field(x + 1j * h * b.reshape(x.shape)).imag.ravel() / h for b in basis.T]
    return np.linalg.eigvals(basis.T @ np.array(columns).T)
