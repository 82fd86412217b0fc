"""E[ΠXΠᵀ] where attention is too sharp to expand: the average over heads that are drawn, exact in law.

With X = LLᵀ the queries and keys of one head at n tokens are LG and LG', G and G' standard normal (n, p); rotations,
norms of queries and keys, caps, biases and masks act on them as they do in the model. Every draw is used with both
signs of the logits, which removes what is odd in them. The draws are fixed by a seed, so the answer is a function of X.
Cost O(samples n²(n+p)). Errors average over heads and over tokens, so few tokens are given more draws
(``enough_samples``); the standard error of a mean of s_ij is then about 2% of its random part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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


class _Draws:
    """Standard normal queries and keys by seed: what-ifs and both ends of a mode meet the same. Oldest go first."""

    def __init__(self, most: int) -> None:
        self._kept: dict[tuple[Any, ...], np.ndarray] = {}
        self._most = most

    def __call__(self, seed: int, pairs: int, n: int, p: int, kind: type[Any]) -> np.ndarray:
        """(pairs, 2, n, p)."""
        name = (seed, pairs, n, p, kind)
        found = self._kept.pop(name, None)
        if found is None:
            found = np.random.default_rng(seed).standard_normal((pairs, 2, n, p)).astype(kind)
            found.setflags(write=False)
        self._kept[name] = found
        while len(self._kept) > 1 and sum(draws.nbytes for draws in self._kept.values()) > self._most:
            self._kept.pop(next(iter(self._kept)))
        return found


_NORMALS = _Draws(2**27)
_BLOCK = 2**21
"""Entries of a stack of n × n matrices that is worked on at once."""
SINGLE = 32
"""Tokens from which single precision pays."""
_SAFE = 80.0
"""Logits up to which exponentials neither overflow nor vanish."""


class _Pairs(NamedTuple):
    """A stack of heads at both signs of their logits: queries, keys, logits, slopes of the cap, first head's number."""

    query: np.ndarray
    key: np.ndarray
    logits: np.ndarray
    slope: np.ndarray | float
    first: int


def _pairs(a: Architecture, root: np.ndarray, seed: int, samples: int, context: int = 0) -> Iterator[_Pairs]:
    """Pairs of heads at X = LLᵀ, in stacks that fit the cache of a processor; ``context`` tokens in one text."""
    n, sigma, kind = len(root), a.deviations, root.dtype.type
    angles = (np.arange(n) % (context or n))[:, None] * frequencies(a)
    cos, sin = np.cos(angles).astype(kind), np.sin(angles).astype(kind)
    scale = kind(a.logit_multiplier * (1.0 if a.qk_norm else a.width * sigma.query * sigma.key))
    normals = _NORMALS(seed, samples // 2, n, a.head_dim, kind)
    several = max(1, _BLOCK // n**2)
    for first in range(0, len(normals), several):
        drawn = root @ normals[first : first + several]
        if a.qk_norm:
            drawn /= np.sqrt(np.mean(drawn * drawn, axis=-1, keepdims=True) + kind(score_epsilon(a)))
        if angles.size:
            drawn = rotated_heads(drawn, cos, sin)
        query, key = drawn[:, 0], drawn[:, 1]
        logits = query @ key.swapaxes(-1, -2)
        logits *= scale
        slope: np.ndarray | float = 1.0
        if a.logit_cap:
            bent = np.tanh(logits / kind(a.logit_cap))
            logits, slope = kind(a.logit_cap) * bent, 1 - bent * bent
        yield _Pairs(query, key, logits, slope, first)


def _weights(a: Architecture, pairs: _Pairs, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attention at logits and at minus the logits; one exponential serves both where none can overflow."""
    chosen = bias[(pairs.first + np.arange(len(pairs.logits))) % len(bias)] if len(bias) > 1 else bias
    if np.max(np.abs(pairs.logits)) > _SAFE:
        return listened(pairs.logits + chosen, a.sinks), listened(chosen - pairs.logits, a.sinks)
    up, shown = np.exp(pairs.logits), np.exp(chosen).astype(pairs.logits.dtype)
    down = shown / up
    up *= shown
    ones = np.ones((up.shape[-1], 1), up.dtype)
    for weights in (up, down):
        weights /= weights @ ones + up.dtype.type(a.sinks)
    return up, down


def _root(x: np.ndarray) -> np.ndarray:
    """L with X = LLᵀ."""
    values, vectors = np.linalg.eigh(x)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def drawn_heads(
    architecture: Architecture, x: np.ndarray, bias: np.ndarray, seed: int, samples: int = SAMPLES, context: int = 0
) -> Iterator[DrawnHead]:
    """``samples`` heads in antithetic pairs; ``bias`` (heads or 1, n, n) is added to logits, -∞ where masked.

    Positions are counted anew after each ``context`` tokens (0: never).
    """
    for pairs in _pairs(architecture, _root(x), seed, samples, context):
        both = _weights(architecture, pairs, bias)
        for k in range(len(pairs.logits)):
            slope = pairs.slope if isinstance(pairs.slope, float) else pairs.slope[k]
            for sign, weights in zip((1.0, -1.0), both, strict=True):
                yield DrawnHead(weights[k], sign * pairs.query[k], pairs.key[k], slope)


def sampled_heads(
    architecture: Architecture, x: np.ndarray, bias: np.ndarray, seed: int, samples: int = SAMPLES, context: int = 0,
    *, entropy: bool = True,
) -> SampledHeads:  # fmt: skip
    """The averages over heads that are drawn so; the entropy is left at zero where it is not asked for.

    Of many tokens in single precision, whose 10⁻⁶ is nothing beside what is left of the draws' own scatter.
    """
    n = len(x)
    kind = np.float32 if n >= SINGLE else np.float64
    gram, nats = np.zeros((n, n)), np.zeros(n)
    root = _root(x).astype(kind)
    for pairs in _pairs(architecture, root, seed, samples, context):
        for weights in _weights(architecture, pairs, bias):
            heard = (weights @ root).swapaxes(0, 1).reshape(n, -1)
            gram += heard @ heard.T
            if entropy:
                nats -= np.sum(weights * np.log(np.where(weights > 0, weights, 1.0)), axis=(0, 2))
    return SampledHeads(gram / samples, nats / samples)


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
    half = cos.shape[-1]
    first, second = y[..., :half], y[..., half : 2 * half]
    turned = y.copy()
    turned[..., :half] = first * cos - second * sin
    turned[..., half : 2 * half] = first * sin + second * cos
    return turned
