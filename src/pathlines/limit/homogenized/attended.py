"""S(K) = E_A[Π_A K Π_Aᵀ], the mean products of attended vectors, for the attention laws that matter.

Π_A is the softmax of the logits β⟨Ax_i,x_k⟩ (row i the query), A = WW'ᵀ Gaussian with W, W' ∈ R^{d×p}, b = βσ_A²√p
(Homogenized Transformers, arXiv:2604.01978). S depends on the tokens through K alone. With x̄ the mean token, m = |x̄|²
and C the covariance of the tokens:

    β = 0      s_ij = m
    small b    s_ij = m + b² [tr(C²) K_ij - 2 x̄ᵀC x̄] + O(b⁴)                                    (derived)
    simplex    s_ii = γ + (1-γ)f,  s_ij = γ + (1-γ)g
    fixed A    Π K Πᵀ with Π = softmax(βK), as in Clustering in Deep Stochastic Transformers (arXiv:2601.21942)
    any b, p   the average over draws of the logits, exact in law: b L G Lᵀ for p = ∞, (b/√p) (LG₁)(LG₂)ᵀ otherwise,
               with K = LLᵀ and standard normal G (n×n) or G₁, G₂ (n×p).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, softmax

from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING
from pathlines.limit.homogenized.gram import check_gram
from pathlines.limit.homogenized.participation import check_logit_scale, check_width
from pathlines.limit.homogenized.simplex import SimplexTable

SOURCES = (HOMOGENIZED, STOCHASTIC_CLUSTERING)
_BATCHES = 16
_MOST_SOBOL = 1024  # beyond, low-discrepancy points of affordable number are no better than random ones


def uniform_attended(gram: ArrayLike) -> np.ndarray:
    """β = 0: every token receives the mean, S = m 11ᵀ."""
    k = check_gram(gram)
    return np.full_like(k, np.mean(k))


def small_b_attention(gram: ArrayLike, b: float) -> np.ndarray:
    """m + b²[tr(C²)K - 2x̄ᵀCx̄], error O(b⁴) whatever p; O(n²)."""
    k = check_gram(gram)
    means = np.mean(k, axis=1)
    m = float(np.mean(means))
    covariance = k - means[:, None] - means + m
    square = float(np.mean(covariance**2))
    return m + finite_number("b", b, 0.0) ** 2 * (square * k - 2 * float(np.var(means)))


def simplex_attention(gamma: float, table: SimplexTable) -> np.ndarray:
    """S on the simplex of overlap γ, from a table of f and g."""
    own, pair = table.attended(gamma)
    return np.full((round(table.n),) * 2, float(pair)) + (float(own) - float(pair)) * np.eye(round(table.n))


def attended_gram(gram: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """ΠKΠᵀ for given attention weights Π, one row for each query."""
    k = check_gram(gram)
    pi = finite_array("weights", weights, k.shape)
    return pi @ k @ pi.T


def fixed_attention(gram: ArrayLike, beta: float) -> np.ndarray:
    """ΠKΠᵀ with Π = softmax(βK): query-key product βI, only the values random."""
    k = check_gram(gram)
    return attended_gram(k, softmax(finite_number("beta", beta) * k, axis=1))


class Sampled(NamedTuple):
    """An average and the standard error of each of its entries."""

    mean: np.ndarray
    error: np.ndarray


def sampled_attention(
    gram: ArrayLike, b: float, *, p: float = math.inf, samples: int = 4096, seed: int = 0, causal: bool = False
) -> Sampled:
    """E_A[ΠKΠᵀ] from ``samples`` draws of the logits (b = ∞: argmax), rounded up to 16 equal batches of a power of two.

    Each batch is a scrambled Sobol sequence of its own (antithetic normals in more than 1024 dimensions), so that the
    error comes from the spread of the batches. ``causal`` lets token i attend to tokens ≤ i. O(samples·n³), or n²p.
    """
    k = check_gram(gram)
    scale, width = check_logit_scale(b), check_width(p)
    count = 1 << max(1, math.ceil(math.log2(positive_integer("samples", samples, 2) / _BATCHES)))
    streams = np.random.SeedSequence(seed).spawn(_BATCHES)
    root = _square_root(k)
    means = np.array([_batch(k, root, scale, width, count, np.random.default_rng(s), causal) for s in streams])
    return Sampled(np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / math.sqrt(_BATCHES))


def _square_root(k: np.ndarray) -> np.ndarray:
    """L with LLᵀ = K, also for singular K."""
    values, vectors = np.linalg.eigh(k)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _normals(count: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    if dimension > _MOST_SOBOL:
        half = rng.standard_normal((count // 2, dimension))
        return np.concatenate([half, -half])
    from scipy.stats import qmc  # here, because it takes half a second and only this function needs it

    points = qmc.Sobol(dimension, seed=rng).random(count)
    return ndtri(np.clip(points, 1e-15, 1 - 1e-15))


def _batch(
    k: np.ndarray, root: np.ndarray, b: float, p: float, count: int, rng: np.random.Generator, causal: bool
) -> np.ndarray:
    n = len(k)
    if math.isinf(p):
        logits = root @ _normals(count, n * n, rng).reshape(count, n, n) @ root.T
    else:
        drawn = _normals(count, 2 * n * int(p), rng).reshape(count, 2, n, int(p))
        sides = root @ drawn / p**0.25
        logits = sides[:, 0] @ np.swapaxes(sides[:, 1], 1, 2)
    logits = logits if math.isinf(b) else b * logits
    if causal:
        logits = np.where(np.tri(n, dtype=bool), logits, -np.inf)
    pi = np.eye(n)[np.argmax(logits, axis=-1)] if math.isinf(b) else softmax(logits, axis=-1)
    return np.mean(pi @ k @ np.swapaxes(pi, 1, 2), axis=0)
