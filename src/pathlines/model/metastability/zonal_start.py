"""Measures on the sphere of R^d that are symmetric about an axis: s = <x, axis> with the law (1-s²)^{(d-3)/2}.

A zonal density 1 + Σ_k N(d, k) m_k P_k(s) relative to the uniform law has the moments m_k = ∫ P_k dμ; P_k is the
Gegenbauer polynomial with P_k(1) = 1, N(d, k) the number of harmonics of degree k, E P_k² = 1/N(d, k).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.linalg import eigh_tridiagonal

from pathlines.foundation.errors import ArgumentError, finite_number, of_kind, positive_integer, require
from pathlines.foundation.module import Module
from pathlines.foundation.programs import make_room_for_programs
from pathlines.kernels.spectral.bessel import harmonics

QUIET_DEGREES = 12
"""Degrees of a quiet zonal start when nothing else is asked for."""


def harmonic_numbers(d: int, degree: int) -> np.ndarray:
    """N(d, 0)..N(d, degree) as floats: 1, d, ...; 1, 2, 2, ... on the circle."""
    return np.array([float(harmonics(d, k)) for k in range(degree + 1)])


@cache
def zonal_rule(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in (-1, 1) and weights with sum one of the Gauss rule for the law of s: exact for degrees below 2n."""
    n, d = positive_integer("n", n, 2), positive_integer("d", d, 2)
    nodes = eigh_tridiagonal(np.zeros(n), coupling(n, d)[1:-1], eigvals_only=True)
    nodes = (nodes - nodes[::-1]) / 2
    weights = 1 / np.sum(orthonormal_polynomials(nodes, d) ** 2, axis=0)
    return nodes, weights / weights.sum()


def coupling(n: int, d: int) -> np.ndarray:
    """a_0..a_n of s p_k = a_{k+1}p_{k+1} + a_k p_{k-1}: a_k² = k(k+d-3)/((2k+d-2)(2k+d-4)), a_1² = 1/d, a_0 = 0."""
    k = np.arange(2, n + 1)
    return np.sqrt(np.concatenate([[0.0, 1 / d], k * (k + d - 3.0) / ((2 * k + d - 2.0) * (2 * k + d - 4.0))]))


def orthonormal_polynomials(s: np.ndarray, d: int) -> np.ndarray:
    """p_0..p_{n-1} at n points, E p_j p_k = δ_jk: √N(d, k) P_k without the large numbers."""
    a = coupling(len(s), d)
    rows = [np.ones(len(s)), s / a[1]]
    for k in range(1, len(s) - 1):
        rows.append((s * rows[k] - a[k] * rows[k - 1]) / a[k + 1])
    return np.stack(rows)


def zonal_polynomials(s: Float[Array, " n"], degree: int, d: int) -> Float[Array, "k n"]:
    """P_0..P_degree by (k+d-2) P_{k+1} = (2k+d-2) s P_k - k P_{k-1}. O(n · degree)."""
    k = jnp.arange(1, max(degree, 1), dtype=s.dtype)

    def rise(pair: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], Array]:
        before, now = pair
        above = ((2 * k + d - 2) * s * now - k * before) / (k + d - 2)
        return (now, above), above

    _, higher = jax.lax.scan(rise, (jnp.ones_like(s), s), k)
    return jnp.concatenate([jnp.ones_like(s)[None], s[None], higher])[: degree + 1]


def zonal_start(moments: Mapping[int, float], n: int, d: int) -> Float[Array, "n 2"]:
    """Rows (s_j, mass_j): Gauss nodes with their weights times the density 1 + Σ_k N(d, k) m_k P_k."""
    make_room_for_programs()
    n, d = positive_integer("n", n), positive_integer("d", d, 2)
    for k in of_kind("moments", moments, Mapping, "a dictionary of moments by degree"):
        positive_integer("moments", k)
    top = max(moments, default=0)
    require(top < n, "n", f"exceed the highest degree {top}", n)
    nodes, weights = zonal_rule(n, d)
    amplitudes = np.zeros(top + 1)
    for k, m in moments.items():
        amplitudes[k] = finite_number("moments", m)
    density = 1 + (amplitudes * harmonic_numbers(d, top)) @ np.asarray(zonal_polynomials(jnp.asarray(nodes), top, d))
    if density.min() < -1e-12:
        worst = float(nodes[density.argmin()])
        raise ArgumentError(
            f"Argument `moments` must be those of a density ≥ 0, but it is {density.min():.3g} at s = {worst:.3g}."
        )
    return jnp.asarray(np.stack([nodes, weights * density], axis=-1))


class QuietZonal(Module):
    """The zonal part of N i.i.d. uniform tokens: m_k = Z_k/√(N · N(d, k)), Z_k real normals, k = 1..``noisy``.

    A law for ``ensemble`` on n Gauss nodes; rows (s_j, mass_j).
    """

    tokens: Float[Array, ""]
    n: int = eqx.field(static=True)
    d: int = eqx.field(static=True)
    noisy: int = eqx.field(static=True)

    def __init__(self, tokens: float, n: int, d: int, noisy: int = QUIET_DEGREES) -> None:
        self.noisy = positive_integer("noisy", noisy)
        self.n, self.d = positive_integer("n", n, self.noisy + 1), positive_integer("d", d, 2)
        number = finite_number("tokens", tokens, 1.0)
        least = 25 * float(harmonic_numbers(d, self.noisy).sum())
        must = f"be at least {least:.3g}, 25 per harmonic (the density would be negative at the poles)"
        require(number >= least, "tokens", must, number)
        self.tokens = jnp.asarray(number)

    def __call__(self, key: PRNGKeyArray) -> Float[Array, "n 2"]:
        """One draw."""
        nodes, weights = (jnp.asarray(x, self.tokens.dtype) for x in zonal_rule(self.n, self.d))
        numbers = jnp.asarray(harmonic_numbers(self.d, self.noisy)[1:], self.tokens.dtype)
        moments = jax.random.normal(key, (self.noisy,), self.tokens.dtype) / jnp.sqrt(self.tokens * numbers)
        density = 1 + (moments * numbers) @ zonal_polynomials(nodes, self.noisy, self.d)[1:]
        return jnp.stack([nodes, weights * density], axis=-1)


def zonal_quiet_start(
    tokens: float, n: int, d: int, key: PRNGKeyArray, degrees: int = QUIET_DEGREES
) -> Float[Array, "n 2"]:
    """One draw of ``QuietZonal``: the axial fluctuations of N = ``tokens`` uniform tokens, on n Gauss nodes."""
    return QuietZonal(tokens, n, d, degrees)(key)
