"""Points up to rotation: a square factor of their Gram matrix, accurate when they nearly coincide."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.numerics.single_factorisations import cholesky_factor

UNROLLED = 6


def reduced(rows: Float[Array, "n q"]) -> Float[Array, "n r"]:
    """F of size n × min(n, q) with F Fᵀ = rows rowsᵀ (rows themselves when q ≤ n).

    The mean x̄ is split off first: with c_i = x_i - x̄, k_i = ⟨c_i, x̄⟩, m = |x̄|², the first column is (m + k)/√m and the
    others are a Cholesky factor of c cᵀ - k kᵀ/m. That matrix annihilates the vector of ones, so its last row is minus
    the sum of the others. Errors are then relative to the spread of the points, not to their length: a Cholesky
    factor of the Gram matrix itself breaks down once the points are within 1e-8 of each other. O(n²q + n³).
    """
    n, q = rows.shape
    if q <= n:
        return rows
    tiny = jnp.finfo(rows.dtype).tiny
    mean = jnp.mean(rows, axis=0)
    square = jnp.sum(mean * mean)
    safe = jnp.maximum(square, tiny**0.5)
    apart = rows - mean[None]
    tilt = apart @ mean / jnp.sqrt(safe)
    first = square / jnp.sqrt(safe) + tilt
    if n == 1:
        return jnp.sqrt(jnp.sum(rows * rows, axis=1, keepdims=True))
    products = apart @ apart.T
    lower = cholesky((products - tilt[:, None] * tilt[None])[:-1, :-1], jnp.max(jnp.diagonal(products)))
    rest = jnp.concatenate([lower, -jnp.sum(lower, axis=0, keepdims=True)])
    return jnp.concatenate([first[:, None], rest], axis=1)


def cholesky(gram: Float[Array, "n n"], size: Float[Array, ""] | None = None) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = gram, up to δ, for a matrix that is positive semidefinite up to rounding.

    δ = 8√n ε ``size`` covers the rounding of the entries: it is added to the diagonal, so that rank-deficient matrices
    have a factor, and columns whose pivot it dominates are dropped, so that equal rows of the matrix stay equal rows of
    the factor (coincident points are not torn apart by noise of size √δ; points that close are merged).
    ``size`` is the magnitude of the terms the entries were computed from, max gram_ii unless they cancel.
    Small matrices are unrolled: lanes of an ensemble then share vector instructions instead of a LAPACK call each.
    """
    n = gram.shape[0]
    info = jnp.finfo(gram.dtype)
    size = jnp.max(jnp.diagonal(gram)) if size is None else size
    slack = 8 * n**0.5 * info.eps * size + info.tiny
    if n > UNROLLED:
        return _without_noise(cholesky_factor(gram + slack * jnp.eye(n, dtype=gram.dtype)), slack)
    zero = jnp.zeros((), gram.dtype)
    entries = [[zero] * n for _ in range(n)]
    for j in range(n):
        pivot = gram[j, j] + slack - sum((entries[j][k] ** 2 for k in range(j)), zero)
        entries[j][j] = jnp.sqrt(jnp.maximum(pivot, slack))
        for i in range(j + 1, n):
            dot = sum((entries[i][k] * entries[j][k] for k in range(j)), zero)
            entries[i][j] = (gram[i, j] - dot) / entries[j][j]
    return _without_noise(jnp.stack([jnp.stack(row) for row in entries]), slack)


def _without_noise(lower: Float[Array, "n n"], slack: Float[Array, ""]) -> Float[Array, "n n"]:
    return jnp.where(jnp.diagonal(lower) ** 2 > 4 * slack, lower, 0.0)
