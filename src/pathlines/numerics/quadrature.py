"""Weighted points that stand for a law: markers whose own attention is its mean field to quadrature accuracy.

A law that the flow carries along, μ_t = (X_t)_# μ_0, keeps the masses of its markers: integrate them as tokens with
multiplicities. Converges spectrally for kernels that are entire in the token (softmax, l2, Sinkhorn, linear); sigmoid
attention has poles at ±iπ, which spoil Gauss-Hermite rules (40 nodes: 2e-3) and not the trapezoid rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer, require

ROUNDING = 1e-12
"""Eigenvalues of a covariance may be negative by this share of the largest: rounding of whoever formed it."""


class WeightedNodes(NamedTuple):
    """Tokens (n, d) and their masses, which sum to one."""

    tokens: Float[np.ndarray, "n d"]
    masses: Float[np.ndarray, " n"]


def gauss_hermite(mean: Any, covariance: Any, order: int, drop: float = 0.0) -> WeightedNodes:
    """Tensor Gauss-Hermite nodes of N(mean, covariance), ``order`` each way; masses ≤ ``drop`` are left out.

    A covariance of rank r takes order^r nodes.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(positive_integer("order", order))
    return _gaussian(mean, covariance, nodes, weights, drop)


def trapezoid(mean: Any, covariance: Any, step: float = 0.1, reach: float = 8.0, drop: float = 0.0) -> WeightedNodes:
    """Equally spaced nodes of N(mean, covariance), ``step`` standard deviations apart up to ±``reach``."""
    step, reach = finite_number("step", step, 0.0, open_low=True), finite_number("reach", reach, 0.0, open_low=True)
    half = int(np.ceil(reach / step - 1e-9))
    nodes = step * np.arange(-half, half + 1)
    return _gaussian(mean, covariance, nodes, np.exp(-(nodes**2) / 2), drop)


def gauss_legendre(low: Any, high: Any, order: int) -> WeightedNodes:
    """Tensor Gauss-Legendre nodes of the uniform law on the box [low, high]."""
    below, above = _row("low", low), _row("high", high)
    require(below.shape == above.shape and bool(np.all(below < above)), "high", "be above `low`, entry by entry", above)
    nodes, weights = np.polynomial.legendre.leggauss(positive_integer("order", order))
    points, masses = _tensor(nodes, weights, len(below))
    return WeightedNodes(below + (points + 1) / 2 * (above - below), masses)


def _row(name: str, value: Any) -> np.ndarray:
    """A number, or a row of at least one."""
    row = np.atleast_1d(finite_array(name, value)).astype(float)
    require(row.ndim == 1 and len(row) > 0, name, "be a number or a row of numbers", row)
    return row


def covariance_factor(name: str, covariance: Any, d: int) -> Float[np.ndarray, "d r"]:
    """L with LLᵀ = Σ, one column for each positive eigenvalue; a negative one is an error that says which."""
    sigma = np.atleast_2d(finite_array(name, covariance)).astype(float)
    if sigma.shape != (d, d):
        raise ArgumentError(f"Argument `{name}` must be {d} × {d}, but has shape {np.shape(covariance)}.")
    scale = float(np.abs(sigma).max())
    require(bool(np.abs(sigma - sigma.T).max() <= ROUNDING * scale), name, "be symmetric", sigma)
    values, vectors = np.linalg.eigh((sigma + sigma.T) / 2)
    if values[0] < -ROUNDING * scale:
        raise ArgumentError(f"Argument `{name}` must be positive semidefinite, but has the eigenvalue {values[0]:.6g}.")
    kept = values > ROUNDING * scale
    return vectors[:, kept] * np.sqrt(values[kept])


def _gaussian(mean: Any, covariance: Any, nodes: np.ndarray, weights: np.ndarray, drop: float) -> WeightedNodes:
    centre = _row("mean", mean)
    drop = finite_number("drop", drop, 0.0, 1.0)
    factor = covariance_factor("covariance", covariance, len(centre))
    points, masses = _tensor(nodes, weights, factor.shape[1])
    kept = masses > drop
    require(bool(kept.any()), "drop", "leave at least one node", drop)
    return WeightedNodes(centre + points[kept] @ factor.T, masses[kept] / masses[kept].sum())


def _tensor(nodes: np.ndarray, weights: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """All r-tuples of nodes, and the products of their weights, summing to one."""
    points = np.stack([g.ravel() for g in np.meshgrid(*[nodes] * r, indexing="ij")], axis=1) if r else np.zeros((1, 0))
    masses = np.ones(1)
    for _ in range(r):
        masses = np.outer(masses, weights).ravel()
    return points, masses / masses.sum()
