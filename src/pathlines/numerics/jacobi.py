"""One-sided Jacobi rotations: functions of M Mᵀ of small matrices, batched, with the digits of small singular values.

LAPACK in lanes is a loop over single calls (``lapack.py``); here a batch is one vector program. Row pairs are rotated
until all rows are orthogonal (Demmel & Veselić 1992: small singular values keep their relative digits), h/2 disjoint
pairs at once in the order of a round-robin tournament.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SWEEPS = 30


def orthogonal_rows(M: Float[Array, "r k"]) -> tuple[Float[Array, "r r"], Float[Array, "r k"]]:
    """(U, N) with U orthogonal, N = UᵀM of orthogonal rows: M Mᵀ = U diag(|N_i|²) Uᵀ. O(r²k) per sweep, ~6 sweeps."""
    r, k = M.shape
    if r == 1:
        return jnp.ones((1, 1), M.dtype), M
    even = r + r % 2
    rows = jnp.concatenate([M, jnp.eye(r, dtype=M.dtype)], axis=1)
    rows = jnp.concatenate([rows, jnp.zeros((even - r, k + r), M.dtype)])
    order = _tournament(even)

    def one(_: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
        rows, worst = item
        pairs, size = _rotated(rows.reshape(even // 2, 2, k + r), k)
        return pairs.reshape(even, k + r)[order], jnp.maximum(worst, size)

    def sweep(item: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rows, _, count = item
        rows, worst = jax.lax.fori_loop(0, even - 1, one, (rows, jnp.zeros((), M.dtype)))
        return rows, worst, count + 1

    start = (rows, jnp.ones((), M.dtype), jnp.zeros((), int))
    tight = 4 * jnp.finfo(M.dtype).eps
    rows, _, _ = jax.lax.while_loop(lambda x: (x[1] > tight) & (x[2] < SWEEPS), sweep, start)
    kept = rows[:r]  # the padded row is zero and never rotated: after whole tournaments it is last again
    return kept[:, k:].T, kept[:, :k]


def _rotated(pairs: Float[Array, "h 2 w"], k: int) -> tuple[Float[Array, "h 2 w"], Float[Array, ""]]:
    """Each pair of rows made orthogonal in its first k columns, and the largest cosine found."""
    p, q = pairs[:, 0], pairs[:, 1]
    pp, qq, pq = (jnp.sum(a[:, :k] * b[:, :k], axis=1) for a, b in ((p, p), (q, q), (p, q)))
    scale = jnp.sqrt(pp * qq)
    cosine = jnp.where(scale > 0, jnp.abs(pq) / jnp.where(scale > 0, scale, 1.0), 0.0)
    active = cosine > jnp.finfo(pairs.dtype).eps
    zeta = (qq - pp) / (2 * jnp.where(active, pq, 1.0))
    t = jnp.where(zeta >= 0, 1.0, -1.0) / (jnp.abs(zeta) + jnp.sqrt(1 + zeta * zeta))
    t = jnp.where(active, t, 0.0)
    c = 1 / jnp.sqrt(1 + t * t)
    s = (c * t)[:, None]
    c = c[:, None]
    return jnp.stack([c * p - s * q, s * p + c * q], axis=1), jnp.max(cosine)


def _tournament(n: int) -> np.ndarray:
    """The seating of the next round: row 0 stays, the others move on by one; n - 1 rounds bring everyone back."""
    top, bottom = list(range(0, n, 2)), list(range(1, n, 2))
    ring = [*top[1:], *bottom[::-1]]
    ring = [ring[-1], *ring[:-1]]
    half = n // 2
    new_top, new_bottom = [0, *ring[: half - 1]], ring[half - 1 :][::-1]
    return np.array([x for pair in zip(new_top, new_bottom, strict=True) for x in pair])


class Damping(NamedTuple):
    """A decreasing function f on [0, ∞) with its divided difference (f(x) - f(y))/(x - y), given x, y, f(x), f(y)."""

    value: Callable[[Array], Array]
    difference: Callable[[Array, Array, Array, Array], Array]


RESOLVENT = Damping(lambda x: 1 / (1 + 2 * x), lambda x, y, f, g: -2 * f * g)
"""1/(1 + 2λ): the conditional covariance of l2 attention."""

COUPLING = Damping(lambda x: 2 / (1 + jnp.sqrt(1 + 4 * x)), lambda x, y, f, g: -g * g / (1 + x * (f + g)))
"""2/(1 + √(1 + 4λ)), the root of f + λf² = 1: the conditional covariance of a Sinkhorn plan."""


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def damped(f: Damping, M: Float[Array, "r k"]) -> tuple[Float[Array, "r r"], Float[Array, "r k"]]:
    """(f(MMᵀ), f(MMᵀ)M): the product is formed in the rotated rows, where nothing large cancels."""
    U, N = orthogonal_rows(M)
    size = f.value(jnp.sum(N * N, axis=1))
    return (U * size[None]) @ U.T, (U * size[None]) @ N


@damped.defjvp
def _damped_jvp(f: Damping, primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """df = U[f[λ_i, λ_j] (Uᵀ d(MMᵀ) U)_ij]Uᵀ (Daleckii-Krein), d(fM) = df M + f dM."""
    (M,), (dM,) = primals, tangents
    U, N = orthogonal_rows(M)
    square = jnp.sum(N * N, axis=1)
    size = f.value(square)
    turned = U.T @ dM
    inner = turned @ N.T
    slopes = f.difference(square[:, None], square[None, :], size[:, None], size[None, :])
    change = slopes * (inner + inner.T)
    whole, product = (U * size[None]) @ U.T, (U * size[None]) @ N
    return (whole, product), (U @ change @ U.T, U @ (change @ N + size[:, None] * turned))
