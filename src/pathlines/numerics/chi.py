"""Chi variates and Bartlett factors: what a Gaussian matrix looks like up to rotations."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.numerics.draws import Draws


def chi_rounds(least: float) -> int:
    """Proposals a χ_k variate gets, k ≥ ``least``: each is rejected with probability below 0.1/max(k, 2), and all of
    them with probability below 1e-15.
    """
    return math.ceil(15 / math.log10(10 * max(least, 2.0)))


def chi_from(draws: Draws, freedom: Float[Array, "*k"], least: float = 1.0) -> Float[Array, "*k"]:
    """χ_k variates, one for each entry k of ``freedom`` (any reals ≥ ``least`` > 0).

    ½χ²_k is Gamma(k/2): Marsaglia and Tsang's a(1 + cN)³ with a = k/2 - 1/3, c = 1/√(9a), the first accepted of a fixed
    number of proposals; for k < 2 a Gamma(k/2 + 1) variate times U^{2/k}. Exact up to rounding, and without the loop of
    unknown length that makes ``jax.random.gamma`` slow to compile. Draws ``chi_counts`` numbers a variate.
    """
    shape, rounds = freedom.shape, chi_rounds(least)
    boosted = freedom < 2
    a = freedom / 2 + jnp.where(boosted, 1.0, 0.0) - 1 / 3
    x = draws.normal(rounds, *shape)
    cube = (1 + x / jnp.sqrt(9 * a)[None]) ** 3
    safe = jnp.where(cube > 0, cube, 1.0)
    level = jnp.log(draws.uniform(rounds, *shape))
    accepted = (cube > 0) & (level < 0.5 * x * x + a[None] * (1 - safe + jnp.log(safe)))
    half_square = a * jnp.take_along_axis(safe, jnp.argmax(accepted, axis=0)[None], axis=0)[0]
    if least < 2:
        half_square = half_square * jnp.where(boosted, draws.uniform(*shape) ** (2 / freedom), 1.0)
    return jnp.sqrt(2 * half_square)


def chi_counts(least: float = 1.0) -> tuple[int, int]:
    """(normals, uniforms) that one χ variate takes."""
    return chi_rounds(least), chi_rounds(least) + (1 if least < 2 else 0)


def bartlett_from(
    draws: Draws, n: int, freedom: Any, batch: tuple[int, ...] = (), least: float = 1.0
) -> Float[Array, "*batch n n"]:
    """Lower triangular T with T Tᵀ ~ Wishart_n(k), k = ``freedom`` ≥ n: the n × k Gaussian matrix is T Q with
    orthonormal rows Q independent of T. Normals below the diagonal, T_ii = χ_{k-i}, i = 0..n-1; no cost in k.

    ``least`` is a lower bound of k - n + 1 that is known when the program is built.
    """
    strict = draws.normal(*batch, n * (n - 1) // 2)
    degrees = jnp.asarray(freedom, strict.dtype) - jnp.arange(n, dtype=strict.dtype)
    lengths = chi_from(draws, jnp.broadcast_to(degrees, (*batch, n)), least)
    entries = jnp.concatenate([strict, lengths, jnp.zeros((*batch, 1), strict.dtype)], axis=-1)
    return entries[..., _places(n)]


def bartlett_counts(n: int, least: float = 1.0) -> tuple[int, int]:
    """(normals, uniforms) that one Bartlett factor takes."""
    normals, uniforms = chi_counts(least)
    return n * (n - 1) // 2 + n * normals, n * uniforms


def chi(key: PRNGKeyArray, freedom: Any, dtype: DTypeLike = float) -> Float[Array, "*k"]:
    """χ_k variates, one for each entry k > 0 of ``freedom``."""
    degrees = jnp.asarray(freedom, dtype)
    normals, uniforms = chi_counts()
    return chi_from(Draws(key, degrees.size * normals, degrees.size * uniforms, dtype), degrees)


def bartlett(key: PRNGKeyArray, n: int, freedom: Any, dtype: DTypeLike = float) -> Float[Array, "n n"]:
    """One Bartlett factor of Wishart_n(``freedom``)."""
    return bartlett_from(Draws(key, *bartlett_counts(n), dtype), n, freedom)


def _places(n: int) -> np.ndarray:
    """Where each entry of a lower triangular matrix is in the list (strict part, diagonal, zero)."""
    count = n * (n - 1) // 2
    places = np.full((n, n), count + n)
    places[np.tril_indices(n, -1)] = np.arange(count)
    places[np.diag_indices(n)] = count + np.arange(n)
    return places
