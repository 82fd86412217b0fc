"""Data for supervised learning: what a small teacher answers to Gaussian inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Data = tuple[NDArray[np.float64], NDArray[np.float64]]


def tanh_teacher(
    samples: int, d: int = 2, outputs: int = 2, neurons: int = 3, steepness: float = 1.5, seed: int = 1
) -> Data:
    """(x, y): inputs N(0, I_d), y = Σ_k a_k tanh(c w_k·(x, 1)), a and w standard Gaussian, c the steepness."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, d))
    w, a = steepness * rng.standard_normal((neurons, d + 1)), rng.standard_normal((neurons, outputs))
    return x, np.tanh(np.concatenate([x, np.ones((samples, 1))], axis=1) @ w.T) @ a


def head_teacher(samples: int, length: int = 8, d: int = 3, heads: int = 2, seed: int = 1) -> Data:
    """(x, y): contexts of tokens N(0, I_d), y = Σ_h V_h Σ_j softmax_j(x_lastᵀ B_h x_j) x_j, standard Gaussian B, V."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, length, d))
    b, v = rng.standard_normal((2, heads, d, d))
    scores = np.einsum("np,hpq,njq->hnj", x[:, -1], b, x)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return x, np.einsum("hop,hnj,njp->no", v, weights, x)
