"""Weighted tokens that stand for a Gaussian cloud exactly: tensor Gauss-Hermite nodes."""

from __future__ import annotations

from typing import Any

import numpy as np


def hermite_cloud(mean: Any, covariance: Any, order: int, drop: float) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, masses) with ``order`` nodes a dimension; masses below ``drop`` of the largest are left out."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    d = len(mean)
    z = np.stack([g.ravel() for g in np.meshgrid(*[nodes] * d, indexing="ij")], axis=1)
    mass = np.prod(np.stack([g.ravel() for g in np.meshgrid(*[weights] * d, indexing="ij")], axis=1), axis=1)
    mass = mass / mass.sum()
    kept = mass > drop
    factor = np.linalg.cholesky(np.asarray(covariance, float))
    return np.asarray(mean, float) + z[kept] @ factor.T, mass[kept] / mass[kept].sum()
