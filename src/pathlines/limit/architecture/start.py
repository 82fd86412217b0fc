"""The Gram matrix of the residual stream before the first layer, from token ids or from tokens that are all different.

Word, position and type embeddings are independent: G_ij = c²σ_E² [id_i = id_j] + σ_P² [i = j] + σ_T², c the scale of
embeddings. Equal ids correlate, and the type embedding is common to all: with three equal deviations (BERT) different
tokens start at cosine 1/3. Patches (ViT) are linear images of independent inputs of mean square one; the class token
is not. Normalised embeddings have unit diagonal; factorised ones (ALBERT) are normalised in their own width, then
projected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require

Tokens = int | Sequence[int] | np.ndarray
"""Token ids, or how many different ones."""

USUAL_TOKENS = 64


def usual_tokens(architecture: Architecture) -> int:
    """64 different tokens, or the whole context where it is shorter or an image."""
    positive_integer("context", architecture.context, least=2)
    return architecture.context if architecture.patch_inputs else min(USUAL_TOKENS, architecture.context)


def start_gram(architecture: Architecture, tokens: Tokens) -> np.ndarray:
    """G for the given token ids, or for that many different tokens (patches)."""
    ids = token_ids(architecture, tokens)
    a, sigma, n = architecture, architecture.deviations, len(ids)
    word = (ids[:, None] == ids).astype(np.float64) * (a.embedding_scale * sigma.embedding) ** 2
    if a.patch_inputs:
        patches = np.full(n, a.patch_inputs * sigma.embedding**2)
        if a.class_token:
            patches[0] = sigma.embedding**2
        word = np.diag(patches)
    position = sigma.position**2 if a.positions == "learned" else 0.0
    common = sigma.type**2 if a.types else 0.0
    return prepared(architecture, word + position * np.eye(n) + common)


def embedded_gram(architecture: Architecture, embeddings: ArrayLike) -> np.ndarray:
    """G of given rows, one for each token: sums of word, position and type embeddings before any norm."""
    rows = finite_array("embeddings", embeddings, ("n", "d")).astype(np.float64)
    require(rows.size > 0, "embeddings", "hold at least one row", embeddings)
    return prepared(architecture, rows @ rows.T / rows.shape[1])


def prepared(architecture: Architecture, gram: np.ndarray) -> np.ndarray:
    """The norm and the projection between the embeddings and the first layer."""
    a = architecture
    if a.embedding_norm:
        gram = normalised(gram, a.norm_gain, a.norm_epsilon)
    if a.embedding_width:
        gram = a.embedding_width * a.deviations.projection**2 * gram
    require(bool(np.all(np.diag(gram) > 0)), "deviations.embedding", "be positive (tokens start at zero)", 0.0)
    return gram


def normalised(gram: np.ndarray, gain: float = 1.0, epsilon: float = 0.0) -> np.ndarray:
    """The Gram matrix after a norm: g² G_ij / √((G_ii+ε)(G_jj+ε))."""
    inverse = gain / np.sqrt(np.diag(gram) + epsilon)
    return inverse[:, None] * gram * inverse


def token_ids(architecture: Architecture, tokens: Tokens) -> np.ndarray:
    """Which of n tokens are equal: given ids, checked, or as many different ones as asked for."""
    ids = _checked(architecture, tokens)
    if architecture.positions == "learned" and len(ids) > architecture.context:
        raise ArgumentError(f"There are {len(ids)} tokens, but positions for {architecture.context} (`context`).")
    return ids


def _checked(architecture: Architecture, tokens: Tokens) -> np.ndarray:
    if isinstance(tokens, (int, np.integer)):
        return np.arange(positive_integer("tokens", tokens, least=2))
    ids = finite_array("tokens", tokens, ("n",))
    require(ids.dtype.kind in "iu" and len(ids) > 1, "tokens", "hold two token ids or more", tokens)
    most = architecture.vocabulary
    if np.min(ids) < 0 or (most and np.max(ids) >= most):
        raise ArgumentError(f"Token ids must lie between 0 and {most - 1}, but go from {ids.min()} to {ids.max()}.")
    return ids
