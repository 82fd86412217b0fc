"""Checks and roots of the matrices of a Gaussian closure: heads (C, A), covariances, subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array

ROUNDING = 1e-12
"""Eigenvalues of a covariance may be negative by this share of the largest one: rounding of whoever formed it."""


def square(name: str, value: Any, d: int | None = None) -> np.ndarray:
    """A finite d × d float64 matrix."""
    matrix = np.atleast_2d(finite_array(name, value)).astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"Argument `{name}` must be a square matrix, but has shape {np.shape(value)}.")
    if d is not None and len(matrix) != d:
        raise ArgumentError(f"Argument `{name}` must be {d} × {d}, but is {len(matrix)} × {len(matrix)}.")
    return matrix


def checked_covariance(name: str, value: Any, d: int | None = None) -> np.ndarray:
    """A symmetric positive semidefinite matrix; the message says which eigenvalue is negative."""
    matrix = square(name, value, d)
    scale = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > ROUNDING * max(scale, 1e-300):
        raise ArgumentError(f"Argument `{name}` must be symmetric, but differs from its transpose.")
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest < -ROUNDING * scale:
        raise ArgumentError(f"Argument `{name}` must be positive semidefinite, but has the eigenvalue {lowest:.6g}.")
    return (matrix + matrix.T) / 2


def symmetric_function(matrix: np.ndarray, function: Any) -> np.ndarray:
    """f(M) of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * function(values)) @ vectors.T


def root(matrix: np.ndarray) -> np.ndarray:
    """M^{1/2} of a positive semidefinite matrix."""
    return symmetric_function(matrix, lambda x: np.sqrt(np.maximum(x, 0.0)))


def factor(name: str, value: Any, d: int | None = None) -> np.ndarray:
    """L (d × r) with L Lᵀ = Σ and r the numerical rank: eigenvectors scaled by roots of the eigenvalues."""
    matrix = checked_covariance(name, value, d)
    values, vectors = np.linalg.eigh(matrix)
    kept = values > ROUNDING * max(float(values[-1]), 0.0)
    if not kept.any():
        raise ArgumentError(f"Argument `{name}` must have a positive eigenvalue, but is zero.")
    return vectors[:, kept] * np.sqrt(values[kept])


def null_space(matrix: np.ndarray, share: float = 1e-10) -> np.ndarray:
    """Orthonormal columns that span the kernel (singular values below ``share`` of the largest)."""
    _, singular, rows = np.linalg.svd(matrix)
    size = np.zeros(matrix.shape[1])
    size[: len(singular)] = singular
    return rows[size <= share * max(float(size.max()), 1e-300)].T
