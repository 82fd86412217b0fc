"""E[ΠXΠᵀ] where attention is too sharp to expand: the average over heads that are drawn, exact in law.

With X = LLᵀ the queries and keys of one head at n tokens are LG and LG', G and G' standard normal (n, p); rotations,
norms of queries and keys, caps, biases and masks act on them as they do in the model. Every draw is used with both
signs of the logits, which removes what is odd in them. The draws are fixed by a seed, so the answer is a function of X.
Cost O(samples n²(n+p)). Errors average over heads and over tokens, so few tokens are given more draws
(``enough_samples``); the standard error of a mean of s_ij is then about 2% of its random part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from pathlines.architecture.record import Architecture

SAMPLES = 64
MANY = 64


class SampledHeads(NamedTuple):
    """Mean products of attended vectors, and the mean entropy of each token's attention."""

    gram: np.ndarray
    entropy: np.ndarray


def enough_samples(n: int, samples: int = SAMPLES) -> int:
    """``samples`` heads for 64 tokens or more, in proportion more for fewer; an even number."""
    return max(samples, 2 * (samples * MANY // (2 * n)))


class DrawnHead(NamedTuple):
    """Attention weights of one head, its queries and keys per unit of σ_Q√d and σ_K√d, rotated.

    ``query`` carries the sign of the logits; ``slope`` is the derivative of capped logits (1 without a cap).
    """

    weights: np.ndarray
    query: np.ndarray
    key: np.ndarray
    slope: np.ndarray | float = 1.0


def drawn_heads(
    architecture: Architecture, x: np.ndarray, bias: np.ndarray, seed: int, samples: int = SAMPLES, context: int = 0
) -> Iterator[DrawnHead]:
    """``samples`` heads in antithetic pairs; ``bias`` (heads or 1, n, n) is added to logits, -∞ where masked.

    Positions are counted anew after each ``context`` tokens (0: never).
    """
    a, sigma, n = architecture, architecture.deviations, len(x)
    angles = (np.arange(n) % (context or n))[:, None] * frequencies(a)
    cos, sin = np.cos(angles), np.sin(angles)
    values, vectors = np.linalg.eigh(x)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scale = a.logit_multiplier * (1.0 if a.qk_norm else a.width * sigma.query * sigma.key)
    rng = np.random.default_rng(seed)
    for draw in range(samples // 2):
        query, key = (root @ rng.standard_normal((n, a.head_dim)) for _ in range(2))
        if a.qk_norm:
            e = score_epsilon(a)
            query, key = (y / np.sqrt(np.mean(y * y, axis=1, keepdims=True) + e) for y in (query, key))
        if angles.size:
            query, key = (rotated_heads(y, cos, sin) for y in (query, key))
        logits = scale * (query @ key.T)
        slope: np.ndarray | float = 1.0
        if a.logit_cap:
            bent = np.tanh(logits / a.logit_cap)
            logits, slope = a.logit_cap * bent, 1 - bent * bent
        for sign in (1.0, -1.0):
            yield DrawnHead(listened(sign * logits + bias[draw % len(bias)], a.sinks), sign * query, key, slope)


def sampled_heads(
    architecture: Architecture, x: np.ndarray, bias: np.ndarray, seed: int, samples: int = SAMPLES, context: int = 0
) -> SampledHeads:
    """The averages over heads that are drawn so."""
    n = len(x)
    gram, entropy = np.zeros((n, n)), np.zeros(n)
    for pi, *_ in drawn_heads(architecture, x, bias, seed, samples, context):
        gram += pi @ x @ pi.T
        entropy -= np.sum(pi * np.log(np.where(pi > 0, pi, 1.0)), axis=1)
    return SampledHeads(gram / samples, entropy / samples)


def listened(logits: np.ndarray, sinks: bool) -> np.ndarray:
    """The softmax of rows of logits; with ``sinks`` a key of logit 0 takes its part and has no value."""
    if not sinks:
        return softmax(logits, axis=-1)
    return softmax(np.concatenate([logits, np.zeros_like(logits[..., :1])], axis=-1), axis=-1)[..., :-1]


def score_epsilon(architecture: Architecture) -> float:
    """ε of the norms of queries and keys, on the scale of what they are made of: √(σ_Qσ_K) stands for both."""
    a = architecture
    return a.norm_epsilon / max(a.width * a.deviations.query * a.deviations.key, 1e-30)


def frequencies(architecture: Architecture) -> np.ndarray:
    """The angles by which rotary positions turn each pair of coordinates from one token to the next."""
    half = int(architecture.head_dim * architecture.rope_fraction) // 2
    if architecture.positions != "rope" or half == 0:
        return np.zeros(0)
    return architecture.rope_base ** (-np.arange(half) / half)


def rotated_heads(y: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotary positions on the first part of each head, halves paired."""
    half = cos.shape[1]
    first, second, rest = y[:, :half], y[:, half : 2 * half], y[:, 2 * half :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos, rest], axis=1)
