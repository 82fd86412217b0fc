"""What the weights of a self-attention model say about its energy."""

from __future__ import annotations

import numpy as np

from pathlines.foundation.module import exactly
from pathlines.foundation.traceable import is_traced
from pathlines.weights import FixedWeights, IdentityWeights, Weights


def symmetric_value(weights: Weights) -> bool:
    """Whether V is one symmetric matrix at every depth (a matrix that is being traced is not known to be)."""
    if not exactly(weights, FixedWeights):
        return exactly(weights, IdentityWeights)
    value = weights.value
    if value.shape[0] != 1 or is_traced(weights):
        return False
    matrix = np.asarray(value[0])
    return bool(np.abs(matrix - matrix.T).max() <= 1e-12 * max(1.0, float(np.abs(matrix).max())))


def energy_identity(weights: Weights) -> tuple[str, float]:
    """Whether E_β is monotone along the flow on the sphere, and the norm |Q^T K| of its exponent.

    "identity" (Q = K = I, V = v I), "matched" (V = Q^T K = V^T), "opposed" (V = -Q^T K = V^T), else the reason why not.
    """
    if exactly(weights, IdentityWeights):
        return "identity", 1.0
    if exactly(weights, FixedWeights) and weights.value.shape[0] == 1 and not is_traced(weights):
        d = weights.value.shape[-1]
        query, key = (np.eye(d) if m is None else np.asarray(m[0]) for m in (weights.query, weights.key))
        score, value = query.T @ key, np.asarray(weights.value[0])
        slack = 1e-12 * max(1.0, float(np.abs(value).max()))
        if np.abs(value - value.T).max() < slack:
            for name, sign in (("matched", 1), ("opposed", -1)):
                if np.abs(score - sign * value).max() < slack:
                    return name, float(np.linalg.norm(score, 2))
    return "V and ±Q^T K are not one symmetric matrix, so E_β need not be monotone", 1.0
