"""A general layer on the sphere, integrated: ẋ = P_x(V A_B[μ](x) + W(Ux + b)₊).

A_B[μ](x) = ∫e^{⟨Bx, y⟩} y μ(dy)/∫e^{⟨Bx, y⟩} μ(dy), μ the measure of the prompt that the particle belongs to
(arXiv:2411.04551, eq. (1.2); β sits inside B, no 1/√d). Tokens of one prompt are integrated together, with probe
points that feel them and the logarithm of the Jacobian there. Dormand and Prince's order 8 of SciPy: layers here have
a few dozen tokens and one duration each, for which compiling a program would take longer than all its steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.integrate import solve_ivp

from pathlines.transport.sphere.layer import Layer

RTOL, ATOL = 1e-12, 1e-13


def attended(x: np.ndarray, tokens: np.ndarray, weights: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A_B at the rows of x, and the shares of the tokens there."""
    scores = (x @ B.T) @ tokens.T
    shares = weights * np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares @ tokens, shares


def velocity(layer: Layer, x: np.ndarray, tokens: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """P_x(V A_B(x) + W(Ux + b)₊) at the rows of x."""
    push = np.maximum(x @ layer.U.T + layer.b, 0.0) @ layer.W.T
    if layer.V.any():
        push = push + attended(x, tokens, weights, layer.B)[0] @ layer.V.T
    return push - np.sum(push * x, axis=1, keepdims=True) * x


def divergence(layer: Layer, x: np.ndarray, tokens: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Divergence of the velocity on the sphere, at points that feel the tokens but are none:

    tr(P_x V C(x) B) - (d-1)⟨x, V A_B(x)⟩ of attention, C the covariance of the tokens under their shares, and
    tr(P_x W D U) - (d-1)⟨x, W(Ux+b)₊⟩ of the perceptron, D the diagonal of its open neurons.
    """
    hidden = x @ layer.U.T + layer.b
    push = np.maximum(hidden, 0.0) @ layer.W.T
    cross = layer.U @ layer.W  # tr(W D U) = Σ_k D_k (UW)_kk
    open_ = (hidden > 0).astype(float)
    trace = open_ @ np.diag(cross) - np.sum((x @ layer.W) * open_ * (x @ layer.U.T), axis=1)
    if layer.V.any():
        mean, shares = attended(x, tokens, weights, layer.B)
        push = push + mean @ layer.V.T
        values, keys = tokens @ layer.V.T, tokens @ layer.B  # rows Vy and Bᵀy
        trace = trace + shares @ np.sum(values * keys, axis=1)
        trace -= np.sum((mean @ layer.V.T) * (mean @ layer.B), axis=1)
        along_v, along_b = values @ x.T, (x @ layer.B.T) @ tokens.T
        trace -= np.sum(shares * along_v.T * along_b, axis=1)
        trace += np.sum(shares * along_v.T, axis=1) * np.sum(shares * along_b, axis=1)
    return trace - (x.shape[1] - 1) * np.sum(push * x, axis=1)


def integrated_layer(
    layer: Layer, tokens: np.ndarray, weights: np.ndarray, probes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens and probes after the layer, and log|det DΦ| at the probes."""
    n, d = tokens.shape
    m = len(probes)

    def rate(_: float, flat: np.ndarray) -> np.ndarray:
        x, logdet = flat[: (n + m) * d].reshape(n + m, d), np.zeros(m)
        v = velocity(layer, x, x[:n], weights)
        if m:
            logdet = divergence(layer, x[n:], x[:n], weights)
        return np.concatenate([v.ravel(), logdet])

    start = np.concatenate([tokens.ravel(), probes.ravel(), np.zeros(m)])
    end = solve_ivp(rate, (0.0, layer.duration), start, "DOP853", rtol=RTOL, atol=ATOL).y[:, -1]
    x = end[: (n + m) * d].reshape(n + m, d)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x[:n], x[n:], end[(n + m) * d :]


def sketched_path(layer: Layer, tokens: np.ndarray, weights: np.ndarray, times: Sequence[float]) -> np.ndarray:
    """Tokens (times, n, d) on the way through a layer, to six digits: enough to choose its duration."""
    n, d = tokens.shape

    def rate(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(n, d)
        return velocity(layer, x, x, weights).ravel()

    found = solve_ivp(rate, (0.0, times[-1]), tokens.ravel(), "DOP853", t_eval=times, rtol=1e-7, atol=1e-8)
    return found.y.T.reshape(len(times), n, d)
