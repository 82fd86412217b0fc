"""E[ΠXΠᵀ], the mean products of attended vectors, for any Gram matrix X, mask and bias of the logits.

Without random logits token i attends with weights w_i (rows of W: uniform over what the mask shows, or the softmax of
ALiBi's bias). Logits are random with Cov(l_ik, l_jl) = b² X_ij X_kl. With means x̄_i = Σ_k w_ik x_k and covariances
C_i = Σ_k w_ik (x_k-x̄_i)(x_k-x̄_i)ᵀ, to second order in b (derived; W uniform and unmasked: ``small_b_attention``)

    s_ij = x̄_i·x̄_j + b² [X_ij tr(C_iC_j) + X_ii D_i·x̄_j + X_jj x̄_i·D_j],   D_i = ½ Σ_k w_ik |x_k-x̄_i|² (x_k-x̄_i).

The next term is about ½(b² X_ii tr C_i)² of the first's own part, because participations grow like e^{b² tr C}. Where
that exceeds ``TRUSTED`` heads of the true width are drawn instead (``sampled_heads``, exact in law, seeded); near
collapse tr C is small and the expansion serves again. Few tokens are drawn earlier: draws cost little there, and what
attention leaves different between two of them is itself of order b². Rotary positions multiply the covariance by
c(i-j-k+l), c(m) the mean of cos θm over frequencies θ. The expansion leaves it out; within a row it counts: equal keys
then have different logits.

A layer that is applied again meets its own past: E[ΠYΠ'ᵀ], where the same head attends at two depths whose tokens have
Gram matrices X and X' and products Y. The formula is the same, with x̄_i·x̄'_j, Y_ij, the products of the two sets of
differences in place of tr(C_iC_j), and D_i, D'_j each of its own depth.

Cost: 8 products of n × n matrices; O(n²) where every token attends alike (no mask, no bias).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import xlogy

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.sampled import (
    MANY,
    SAMPLES,
    enough_samples,
    frequencies,
    listened,
    sampled_heads,
    score_epsilon,
)

TRUSTED = 0.02


def logit_bias(architecture: Architecture, n: int) -> np.ndarray:
    """What is added to logits whatever the weights, (heads or 1, n, n): -∞ where masked, slopes of ALiBi."""
    a = architecture
    distance = np.arange(n)[:, None] - np.arange(n)
    hidden = np.zeros((n, n), dtype=bool) if a.mask == "full" else distance < 0
    if a.window:
        hidden |= np.abs(distance) >= a.window
    slopes = 2.0 ** (-8.0 * np.arange(1, a.heads + 1) / a.heads) if a.positions == "alibi" else np.zeros(1)
    return np.where(hidden, -np.inf, -slopes[:, None, None] * np.abs(distance))


def rotation(architecture: Architecture, n: int) -> np.ndarray | None:
    """c(k-l), the factor of rotary positions on the covariance of two logits of one row; None without them."""
    angles = frequencies(architecture)
    if not len(angles):
        return None
    distance = np.arange(n)
    still = architecture.head_dim - 2 * len(angles)
    c = (2 * np.sum(np.cos(distance[:, None] * angles), axis=1) + still) / architecture.head_dim
    return toeplitz(c)


class Attended(ABC):
    """X ↦ E[ΠXΠᵀ], the one step of a layer in which tokens meet."""

    @abstractmethod
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The mean products of attended vectors."""


class DrawnGram(Attended):
    """The same by drawn heads, at X and, with the same draws, anywhere else."""

    def __init__(self, architecture: Architecture, x: np.ndarray, bias: np.ndarray, seed: int, samples: int) -> None:
        self._heads = partial(sampled_heads, architecture, bias=bias, seed=seed, samples=samples)
        self.x, self.found = x, self._heads(x)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The draws at X are kept."""
        return self.found.gram if np.array_equal(x, self.x) else self._heads(x, entropy=False).gram


class AttendedGram(Attended):
    """The expansion for one architecture and number of tokens, and what sampling adds to it.

    ``samples`` heads are drawn where needed, with another seed in every layer, so that their errors are independent.
    """

    def __init__(self, architecture: Architecture, n: int, samples: int = SAMPLES) -> None:
        self.architecture, self.samples, self.seed = architecture, enough_samples(n, samples), 0
        self.trusted = TRUSTED * min(1.0, n / MANY)
        self.turned = rotation(architecture, n)
        self.b = Numbers.of(architecture).b
        self.bias = logit_bias(architecture, n)
        self.weights = listened(self.bias, architecture.sinks)
        if np.all(self.weights == self.weights[:, :1]):
            self.weights = self.weights[:, :1]  # one row serves all tokens
        self.keys = np.exp(np.mean(-np.sum(xlogy(self.weights, self.weights), axis=2), axis=0))

    def _score(self, x: np.ndarray) -> np.ndarray:
        return _cosines(x, score_epsilon(self.architecture)) if self.architecture.qk_norm else x

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """To second order in b."""
        return self.between(x, x, x)

    def between(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """E[ΠYΠ'ᵀ] of the same heads at two depths: Y, and the Gram matrices X and X' of either depth."""
        first, cross = self._score(left), products
        second = first if right is left else self._score(right)
        if self.architecture.qk_norm:
            e = score_epsilon(self.architecture)
            cross = products / np.sqrt((np.diag(left)[:, None] + e) * (np.diag(right) + e))
        return np.mean([_expanded(products, cross, first, second, w, self.b) for w in self.weights], axis=0)

    def logit_variance(self, x: np.ndarray) -> np.ndarray:
        """B_i² = b² X_ii tr C_i, the variance of the logits within the row of each token."""
        score = self._score(x)
        own = np.diag(score)
        pairs = score if self.turned is None else self.turned * score
        traces = np.mean([w @ own - np.sum((w @ pairs) * w, axis=1) for w in self.weights], axis=0)
        return self.b**2 * own * np.maximum(traces, 0.0)

    def sharp(self, x: np.ndarray) -> DrawnGram | None:
        """Drawn heads where the expansion cannot be trusted at X, else None."""
        variance = self.logit_variance(x)
        if np.max(0.5 * variance * variance) <= self.trusted:
            return None
        self.seed += 1
        return DrawnGram(self.architecture, x, self.bias, self.seed, self.samples)

    def sharp_between(self, products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """``between`` by drawn heads, which see two sets of tokens that do not see each other."""
        self.seed += 1
        joint, apart = np.block([[left, products], [products.T, right]]), np.full_like(self.bias, -np.inf)
        bias = np.block([[self.bias, apart], [apart, self.bias]])
        n = len(left)
        return sampled_heads(self.architecture, joint, bias, self.seed, self.samples, context=n).gram[:n, n:]

    def entropy(self, x: np.ndarray) -> np.ndarray:
        """log n_i - B_i²/2 of each token, n_i its number of keys (the exponential of the entropy of w_i): small b."""
        return np.maximum(np.log(self.keys) - 0.5 * self.logit_variance(x), 0.0)


def _cosines(x: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    inverse = 1 / np.sqrt(np.diag(x) + epsilon)
    return np.clip(inverse[:, None] * x * inverse, -1.0, 1.0)


def _expanded(
    y: np.ndarray, cross: np.ndarray, left: np.ndarray, right: np.ndarray, w: np.ndarray, b: float
) -> np.ndarray:
    """The formula of the header for products Y; ``cross``, ``left`` and ``right`` are what logits are made of.

    With M = WY, M' = YWᵀ, N = WYWᵀ, and the same of scores S: W(Y∘S)Wᵀ - (M∘M_S)Wᵀ - W(M'∘M'_S) + N∘N_S is the second
    term.
    """
    m, m_right = w @ y, y @ w.T
    n = m @ w.T
    if b == 0:
        return np.broadcast_to(n, y.shape)
    s, s_right = (m, m_right) if cross is y else (w @ cross, cross @ w.T)
    square = w @ (y * cross) @ w.T - (m * s) @ w.T - w @ (m_right * s_right) + n * (s @ w.T)
    turn = np.diag(left)[:, None] * _turned(left, w, m_right, n)
    turn_right = turn if right is left and cross is left else np.diag(right)[:, None] * _turned(right, w, m.T, n.T)
    return n + b * b * (cross * square + turn + turn_right.T)


def _turned(score: np.ndarray, w: np.ndarray, means: np.ndarray, n: np.ndarray) -> np.ndarray:
    """D_i·x̄'_j; ``means`` are x_k·x̄'_j."""
    pulled = w * (np.diag(score) - 2 * w @ score)
    return 0.5 * (pulled @ means - n * np.sum(pulled, axis=1)[:, None])
