"""Points that stand for q = (A - Ā)z, z a unit vector and A Gaussian scores: σ_A² χ_p N(0, I), and N(0, I) at p = ∞."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaincinv, ndtri

from pathlines.weights.gaussian import GaussianHeads

BLOCKS = 8
"""Independent scramblings of the quasi-random points: their spread is the error of the average."""


class Points(NamedTuple):
    """Nodes (a, d) and weights that sum to one; how they were made (``blocks`` of a sample, ``order`` of a rule)."""

    nodes: Float[np.ndarray, "a d"]
    weights: Float[np.ndarray, " a"]
    blocks: int
    order: int


def _lengths(law: GaussianHeads, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes of σ_A² χ_p (in χ², by Golub and Welsch: no overflow for large p); one at p = ∞."""
    if math.isinf(law.qk_dim):
        return np.ones(1), np.ones(1)
    alpha, k = law.qk_dim / 2 - 1, np.arange(order)
    halves, vectors = eigh_tridiagonal(2 * k + alpha + 1, np.sqrt(k[1:] * (k[1:] + alpha)))
    return float(law.sigma_a) ** 2 * np.sqrt(2 * halves), vectors[0] ** 2


def tensor_size(law: GaussianHeads, order: int) -> int:
    """Nodes of the tensor rule before small weights are left out."""
    return order**law.d * (1 if math.isinf(law.qk_dim) else order)


def tensor_points(law: GaussianHeads, order: int, drop: float = 0.0) -> Points:
    """``order`` Gauss-Hermite nodes along each axis (and as many lengths), without those of total weight ≤ ``drop``."""
    axis, share = np.polynomial.hermite_e.hermegauss(order)
    grid = np.stack(np.meshgrid(*[axis] * law.d, indexing="ij"), axis=-1).reshape(-1, law.d)
    weights = np.stack(np.meshgrid(*[share / share.sum()] * law.d, indexing="ij")).prod(axis=0).ravel()
    lengths, chances = _lengths(law, order)
    nodes = (lengths[:, None, None] * grid).reshape(-1, law.d)
    weights = np.outer(chances, weights).ravel()
    rising = np.argsort(weights, kind="stable")
    keep = np.sort(rising[np.cumsum(weights[rising]) > drop])
    return Points(nodes[keep], weights[keep] / weights[keep].sum(), 0, order)


def drawn_points(law: GaussianHeads, draws: int, seed: int) -> Points:
    """``draws`` scrambled Sobol points (rounded up to 16·2^k), block after block, each block with its mirror image."""
    from scipy.stats import qmc  # a second to import

    power = max(0, math.ceil(math.log2(draws / (2 * BLOCKS))))
    endless = math.isinf(law.qk_dim)
    blocks: list[Any] = []
    for block in range(BLOCKS):
        engine = qmc.Sobol(law.d + (0 if endless else 1), seed=np.random.default_rng([seed, block]))
        u = np.clip(engine.random_base2(power), 1e-12, 1 - 1e-12)
        normals = ndtri(u[:, : law.d])
        if not endless:
            normals = float(law.sigma_a) ** 2 * np.sqrt(2 * gammaincinv(law.qk_dim / 2, u[:, -1:])) * normals
        blocks += [normals, -normals]
    nodes = np.concatenate(blocks)
    return Points(nodes, np.full(len(nodes), 1 / len(nodes)), BLOCKS, 0)
