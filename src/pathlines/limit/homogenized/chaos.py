"""How far n tokens stray from copies that the mean field moves by the same heads: the linear response on the circle.

n tokens drawn from μ₀ are the law and a fluctuation, ε = μ₀ⁿ - μ₀ of size n^{-1/2}. It changes what every token hears,
and the changed tokens change it further: to first order the angles of token and copy differ by δ, zero at first and in
every layer (copies and nodes x_i of the law at angles θ_i, t = dx/dθ, one head V, A)

    δ'_i = ⟨y_i^⊥, t_i δ_i + η V δm_i⟩/|y_i|²,      y_i = x_i + η V m_i,      m_i = ∫ g_i x dμ,
    δm_i = ∫ g_i (x - m_i) dε + ∫ g_i { (x - m_i) b(⟨x, A t_i⟩ δ_i + ⟨t, A x_i⟩ δ) + t δ } dμ,

where g_i(x) = e^{b⟨x, A x_i⟩}/∫ e^{b⟨z, A x_i⟩} μ(dz). Derived from the chain of Homogenized Transformers,
arXiv:2604.01978. δ is a sum over the tokens of μ₀ⁿ, so n E δ² does not depend on n: the rate 1/n of propagation of
chaos, and its constant, 3.1 for the supremum over 40 layers at v = 0.05, b = 2, κ = 0.8 (measured elsewhere: 3.03(15)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_array, finite_number
from pathlines.foundation.papers import HOMOGENIZED

SOURCES = (HOMOGENIZED,)
CACHED = 1 << 17
"""Weights of as many noises at a time as stay in a core's cache."""


def response(
    nodes: ArrayLike, starts: ArrayLike, values: ArrayLike, scores: ArrayLike, step: float, logit_scale: float
) -> np.ndarray:
    """δ of n tokens (noises, layers, n) that start at the angles ``starts`` (noises, n), where μ₀ has equal masses at
    the angles ``nodes`` (m).

    ``values`` and ``scores`` (noises, layers, 2, 2) are V and A of one head per layer; the logits are b⟨x_j, A x_i⟩.
    O(noises · layers · (m + n)²).
    """
    v = finite_array("values", values, ("noises", "layers", 2, 2)).astype(float)
    a = finite_array("scores", scores, v.shape).astype(float)
    tokens = finite_array("starts", starts, (len(v), "n")).astype(float)
    law = finite_array("nodes", nodes, ("m",)).astype(float)
    b, eta = finite_number("logit_scale", logit_scale, 0.0), finite_number("step", step, 0.0)
    at_once = max(1, CACHED // (law.size + tokens.shape[1]) ** 2)
    cuts = [slice(k, k + at_once) for k in range(0, len(v), at_once)]
    return np.concatenate([_path(law, tokens[c], v[c], a[c], eta, b) for c in cuts])


def _path(law: np.ndarray, tokens: np.ndarray, v: np.ndarray, a: np.ndarray, eta: float, b: float) -> np.ndarray:
    m, n = law.size, tokens.shape[1]
    theta = np.concatenate([np.broadcast_to(law, (len(v), m)), tokens], axis=1)
    fluctuation = np.concatenate([np.full(m, -1 / m), np.full(n, 1 / n)])
    delta, path = np.zeros_like(theta), []
    for layer in range(v.shape[1]):
        theta, delta = _layer(theta, delta, m, fluctuation, v[:, layer], a[:, layer], eta, b)
        path.append(delta[:, m:])
    return np.stack(path, axis=1)


def _layer(
    theta: np.ndarray,
    delta: np.ndarray,
    m: int,
    fluctuation: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    eta: float,
    b: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(θ', δ') of all nodes and tokens; the first m carry the law."""
    x, t = (np.stack(parts, -1) for parts in ((np.cos(theta), np.sin(theta)), (-np.sin(theta), np.cos(theta))))
    query, turned = b * x @ a.swapaxes(1, 2), b * t @ a.swapaxes(1, 2)
    logits = query @ x.swapaxes(1, 2)
    weight = np.exp(logits - logits[..., :m].max(axis=2, keepdims=True))
    weight /= weight[..., :m].mean(axis=2, keepdims=True)
    own, pushed = x[:, :m], t[:, :m] * delta[:, :m, None]
    outer = lambda f, g: (f[..., :, None] * g[..., None, :]).reshape(*f.shape[:2], 4)  # noqa: E731
    sums = weight[..., :m] @ np.concatenate([own, pushed, outer(own, own), outer(own, pushed)], axis=2) / m
    mean, along = sums[..., :2], sums[..., 2:4]
    second, keyed = (sums[..., k : k + 4].reshape(*theta.shape, 2, 2) for k in (4, 8))
    told = (weight * fluctuation) @ x - mean * (weight @ fluctuation)[..., None]
    by_query = _applied(second - mean[..., :, None] * mean[..., None, :], turned) * delta[..., None]
    by_keys = _applied(keyed - mean[..., :, None] * along[..., None, :], query)
    y = x + eta * mean @ v.swapaxes(1, 2)
    shift = t * delta[..., None] + eta * (told + by_query + by_keys + along) @ v.swapaxes(1, 2)
    crossed = y[..., 0] * shift[..., 1] - y[..., 1] * shift[..., 0]
    return np.arctan2(y[..., 1], y[..., 0]), crossed / np.sum(y * y, axis=-1)


def _applied(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[..., None])[..., 0]
