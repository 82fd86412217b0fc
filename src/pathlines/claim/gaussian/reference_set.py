"""The small matrices that most claims of this family start from, as settings that may be changed."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pathlines.integrate.gaussian_fate import CLASSES
from pathlines.limit.gaussian import matrices
from pathlines.model.gaussian.closure import SoftmaxGaussian

A = ((0.5, 0.2), (-0.3, 0.4))
V = ((0.3, -0.5), (0.4, 0.2))
A2 = ((-0.4, 0.1), (0.2, 0.3))
V2 = ((0.2, 0.1), (0.0, -0.3))
Q = ((0.4, 0.3), (0.1, -0.6))
K = ((0.6, 0.1), (-0.2, 0.5))
MEAN = (0.3, -0.2)
COVARIANCE = ((1.0, 0.3), (0.3, 0.7))


def class_number(kind: str) -> float:
    """Its place in ``CLASSES``: 0 converged, 1 to zero, 2 blow-up, 3 exponential, 4 algebraic, 5 undecided."""
    return float(CLASSES.index(kind))


def softmax_clouds(values: Any, queries: Any, keys: Any = None) -> list[SoftmaxGaussian]:
    """One model of one head for each V, Q and K (the identity if none): 5 µs each, a hundredth of checking them one by
    one.
    """
    count, d = len(values), np.shape(values)[-1]
    rows = keys if keys is not None else np.broadcast_to(np.eye(d), (count, d, d))
    structure = jax.tree.structure(SoftmaxGaussian(values[0], queries[0], rows[0]))
    stacked = zip(*(np.asarray(m, float)[:, None] for m in (values, queries, rows)), strict=True)
    return [jax.tree.unflatten(structure, one) for one in stacked]


def factor_of(covariance: Any) -> np.ndarray:
    """L with LLᵀ = Σ, d × r for a covariance of rank r."""
    return matrices.factor("covariance", covariance)


def root_of(covariance: Any) -> np.ndarray:
    """Σ^{1/2}."""
    return matrices.root(matrices.checked_covariance("covariance", covariance))


def angle(direction: Any) -> float:
    """Of a line in the plane, in [0°, 180°)."""
    return float(np.degrees(np.arctan2(direction[1], direction[0])) % 180)
