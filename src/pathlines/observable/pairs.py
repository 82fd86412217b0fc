"""Observables of pairs of tokens: overlaps, histograms, diameters."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot


def overlap_matrix(snapshot: Snapshot) -> Float[Array, "n n"]:
    """<x_i, x_j> = 1 - u_ij, for unit tokens only."""
    require_sphere(snapshot)
    return 1 - snapshot.deficits


def require_sphere(snapshot: Snapshot) -> None:
    """Overlaps are those of unit tokens."""
    if not snapshot.model.on_sphere:
        raise FormError(f"{type(snapshot.model).__name__} lives in R^d: overlaps and energy are for unit tokens.")


def largest_deficit(snapshot: Snapshot) -> Array:
    """max_ij u_ij."""
    return jnp.max(snapshot.of_rows(lambda u, i: jnp.max(u)))


def _pair_count(n: int) -> int:
    """Ordered pairs i ≠ j; one where there are none, so that sums over them may be divided."""
    return max(n * (n - 1), 1)


def _histogram(snapshot: Snapshot, cell: Callable[[Array], Array], bins: int) -> Array:
    """Fractions of the pairs i < j in each cell, ``cell`` of their deficits; the ends collect the rest."""
    n, dtype = snapshot.masses.shape[0], snapshot.masses.dtype

    def row(u: Array, i: Array) -> Array:
        after = (jnp.arange(n) > i).astype(dtype)
        return jnp.zeros(bins, dtype).at[jnp.clip(cell(u).astype(int), 0, bins - 1)].add(after)

    return jnp.sum(snapshot.of_rows(row), axis=0) * 2 / _pair_count(n)


@observable("overlaps", "overlaps", "⟨xᵢ,xⱼ⟩", dims=("token", "other"))
def overlaps(snapshot: Snapshot) -> Array:
    """g_ij = <x_i, x_j> on the sphere, as 1 - u_ij."""
    return overlap_matrix(snapshot)


@observable("deficits", "pair deficits", "uᵢⱼ", dims=("token", "other"))
def deficits(snapshot: Snapshot) -> Array:
    """u_ij = ½|x_i - x_j|², from differences."""
    return snapshot.deficits


@observable("mean_overlap", "mean overlap", "mean ⟨xᵢ,xⱼ⟩")
def mean_overlap(snapshot: Snapshot) -> Array:
    """Mean of <x_i, x_j> over i ≠ j (one minus the mean deficit)."""
    n = snapshot.masses.shape[0]
    if n < 2:
        raise FormError("The mean overlap needs at least two tokens, but there is one.")
    require_sphere(snapshot)
    if snapshot.many:
        return 1 - _mean_of_pairs(snapshot)
    g = overlap_matrix(snapshot)
    return 1 - jnp.sum(1 - g) / (n * (n - 1))


def _mean_of_pairs(snapshot: Snapshot) -> Array:
    """Mean of u_ij over i ≠ j from one over all pairs, in O(nd)."""
    n = snapshot.masses.shape[0]
    return snapshot.mean_deficit(jnp.full_like(snapshot.masses, 1 / n)) * (n / (n - 1))


@observable("u_max", "largest pair deficit", "max uᵢⱼ")
def u_max(snapshot: Snapshot) -> Array:
    """max_ij ½|x_i - x_j|²."""
    return largest_deficit(snapshot)


@observable("u_mean", "mean pair deficit", "mean uᵢⱼ")
def u_mean(snapshot: Snapshot) -> Array:
    """Mean of u_ij over pairs i ≠ j."""
    if snapshot.many:
        return _mean_of_pairs(snapshot)
    u = snapshot.deficits
    return jnp.sum(u) / _pair_count(u.shape[0])


@observable("diameter", "diameter", "max |xᵢ−xⱼ|")
def diameter(snapshot: Snapshot) -> Array:
    """max_ij |x_i - x_j|, accurate down to 1e-16 and below because it comes from differences."""
    return jnp.sqrt(2 * largest_deficit(snapshot))


@observable("variance", "directional variance", "1−|mean x|²")
def variance(snapshot: Snapshot) -> Array:
    """1 - |Σ m_i x_i|² = Σ m_i m_j u_ij for unit tokens, without cancellation."""
    return snapshot.mean_deficit(snapshot.masses)


@observable("p_clustered", "clustered pairs", "P(uᵢⱼ ≤ δ)", delta=1e-3)
def p_clustered(snapshot: Snapshot, delta: float) -> Array:
    """Fraction of the pairs i < j with u_ij ≤ δ."""
    n, dtype = snapshot.masses.shape[0], snapshot.masses.dtype
    return jnp.sum(snapshot.of_rows(lambda u, i: (jnp.sum(u <= delta) - 1).astype(dtype))) / _pair_count(n)


@observable("pair_histogram", "histogram of overlaps", "#{⟨xᵢ,xⱼ⟩}", dims=("overlap_bin",), bins=50)
def pair_histogram(snapshot: Snapshot, bins: int) -> Array:
    """Fractions of the pairs i < j with g_ij in ``bins`` equal cells of [-1, 1]."""
    require_sphere(snapshot)
    return _histogram(snapshot, lambda u: ((1 - u) + 1) / 2 * bins, bins)


@observable(
    "deficit_histogram", "histogram of ln uᵢⱼ", "#{log₁₀ uᵢⱼ}", dims=("decade_bin",), bins=60, lowest=-30.0, highest=0.5
)
def deficit_histogram(snapshot: Snapshot, bins: int, lowest: float, highest: float) -> Array:
    """Fractions of the pairs i < j with log10 u_ij in equal cells of [lowest, highest]; the ends collect the rest."""

    def cell(u: Array) -> Array:
        return (jnp.log10(jnp.maximum(u, 1e-300)) - lowest) / (highest - lowest) * bins

    return _histogram(snapshot, cell, bins)


@observable("cross_ratios", "cross-ratios", "uᵢⱼuₖₗ/(uᵢₖuⱼₗ)", dims=("quadruple",))
def cross_ratios(snapshot: Snapshot) -> Array:
    """u_ij u_kl/(u_ik u_jl) for consecutive quadruples (i, i+1, i+2, i+3): constant when β = 0."""
    first = jnp.arange(snapshot.masses.shape[0] - 3)
    if snapshot.many:
        x = snapshot.tokens
        u = lambda i, j: jnp.sum(0.5 * (x[i] - x[j]) ** 2, axis=-1)  # noqa: E731
    else:
        table = snapshot.deficits
        u = lambda i, j: table[i, j]  # noqa: E731
    return u(first, first + 1) * u(first + 2, first + 3) / (u(first, first + 2) * u(first + 1, first + 3))
