"""The random transformer once more, in NumPy: a second opinion that shares no code with the engine.

    x_i ← N(x_i + (η/H) Σ_h V_h Σ_k π_ik x_k),  π_ik ∝ e^{β⟨A_h x_i, x_k⟩}

of Homogenized Transformers (arXiv:2604.01978), and the drifts of its ordinary differential equations. Rows are tokens,
leading axes are samples. Tokens may be complex: products are bilinear, so that an imaginary part of 1e-30 carries an
exact derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp


def attended(x: np.ndarray, value: np.ndarray, score: np.ndarray, beta: float) -> np.ndarray:
    """B(x_i) = V Σ_k π_ik x_k."""
    logits = beta * (x @ np.swapaxes(score, -1, -2)) @ np.swapaxes(x, -1, -2)
    weights = np.exp(logits - logits.real.max(axis=-1, keepdims=True))
    return weights @ x @ np.swapaxes(value, -1, -2) / weights.sum(axis=-1, keepdims=True)


def _along(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.sum(x * v, axis=-1, keepdims=True)


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def fixed_layers(start: np.ndarray, head: Any, eta: float, depth: int, update: str = "ambient") -> np.ndarray:
    """Tokens after 0 … ``depth`` layers of the same head (V, A, β)."""
    states = [start]
    for _ in range(depth):
        x = states[-1]
        field = attended(x, *head)
        states.append(_unit(x + eta * (field - _along(x, field) * x if update == "tangent" else field)))
    return np.array(states)


def fixed_drift(x: np.ndarray, head: Any, eta: float, corrector: str, update: str = "ambient") -> np.ndarray:
    """b, b - (η/2)∇_b b ("paper"), and with -η⟨x,B⟩b for the ambient update ("full"), for one fixed head."""

    def drift(y: np.ndarray) -> np.ndarray:
        field = attended(y, *head)
        return field - _along(y, field) * y

    b = drift(x)
    if corrector == "none":
        return b
    change = drift(x + 1e-30j * b).imag / 1e-30
    corrected = b - eta / 2 * (change - _along(x, change) * x)
    if corrector == "paper" or update == "tangent":
        return corrected
    return corrected - eta * _along(x, attended(x, *head)) * b


def fixed_flow(
    start: np.ndarray, head: Any, eta: float, corrector: str, update: str, times: Any, rtol: float
) -> np.ndarray:
    """The ordinary differential equation at ``times``, by SciPy's DOP853 without projection."""
    rhs = lambda t, y: fixed_drift(y.reshape(start.shape), head, eta, corrector, update).ravel()  # noqa: E731
    solution = solve_ivp(
        rhs, (0.0, float(times[-1])), start.ravel(), "DOP853", t_eval=times, rtol=rtol, atol=rtol * 1e-2
    )
    return np.moveaxis(solution.y.reshape(*start.shape, -1), -1, 0)


def random_layers(
    start: np.ndarray,
    b: float,
    eta: float,
    heads: int,
    depth: int,
    runs: int,
    seed: int,
    width: float | None = None,
) -> np.ndarray:
    """Gram matrices after 0 … ``depth`` layers, (runs, depth+1, n, n): every V (d × d), W and W' (d × p) is drawn.

    σ_V² = 1/d, and W, W' of variance p^{-1/2}, so that b = β; ``width`` is p (d by default), and infinitely wide
    heads have a score matrix bA with standard normal entries. Cost O(runs · depth · H d² n).
    """
    rng, d = np.random.default_rng(seed), start.shape[1]
    p = d if width is None or np.isinf(width) else int(width)
    wide = width is not None and np.isinf(width)
    x = np.repeat(start[None], runs, axis=0)
    grams = [x @ np.swapaxes(x, 1, 2)]
    for _ in range(depth):
        step = np.zeros_like(x)
        for _ in range(heads):
            value, (first, second) = rng.standard_normal((runs, d, d)), rng.standard_normal((2, runs, d, p))
            score = np.swapaxes(first, 1, 2) if wide else second @ np.swapaxes(first, 1, 2) / np.sqrt(p)
            step += attended(x, value, np.swapaxes(score, 1, 2), b)
        x = _unit(x + eta / heads / np.sqrt(d) * step)
        grams.append(x @ np.swapaxes(x, 1, 2))
    return np.stack(grams, axis=1)


def wide_layers(start: np.ndarray, b: float, eta: float, heads: int, depth: int, runs: int, seed: int) -> np.ndarray:
    """Gram matrices of infinitely wide layers with random scores, (runs, depth+1, n, n): K ← K + v mean_h Π_h K Π_hᵀ.

    Values average out at d = ∞; the scores bLGLᵀ, K = LLᵀ, G a normal matrix for each head, do not.
    """
    rng, n = np.random.default_rng(seed), len(start)
    grams = [np.repeat(start[None], runs, axis=0)]
    for _ in range(depth):
        gram = grams[-1]
        values, vectors = np.linalg.eigh(gram)
        root = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        new = gram.copy()
        for _ in range(heads):
            scores = b * root @ rng.standard_normal((runs, n, n)) @ np.swapaxes(root, 1, 2)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            new += (eta / heads) ** 2 * weights @ gram @ np.swapaxes(weights, 1, 2)
        size = np.sqrt(np.diagonal(new, axis1=1, axis2=2))
        grams.append(new / size[:, :, None] / size[:, None, :])
    return np.stack(grams, axis=1)


def mean_overlap(gram: np.ndarray) -> np.ndarray:
    """Mean of K_ij over i ≠ j."""
    n = gram.shape[-1]
    return (np.sum(gram, axis=(-1, -2)) - n) / (n * (n - 1))
