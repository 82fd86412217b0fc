"""Observables of pairs of tokens: overlaps, histograms, diameters."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import MANY_TOKENS, Snapshot


def overlap_matrix(snapshot: Snapshot) -> Float[Array, "n n"]:
    """<x_i, x_j> = 1 - u_ij, for unit tokens only."""
    if not snapshot.model.on_sphere:
        raise FormError(f"{type(snapshot.model).__name__} lives in R^d: overlaps and energy are for unit tokens.")
    return 1 - snapshot.deficits


def _pairs(u: Float[Array, "n n"]) -> tuple[Array, Array]:
    """Indices of the pairs i < j: the diagonal is never counted."""
    return jnp.triu_indices(u.shape[0], 1)


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
    n, model = snapshot.masses.shape[0], snapshot.model
    if n < 2:
        raise FormError("The mean overlap needs at least two tokens, but there is one.")
    if n > MANY_TOKENS and model.has_tokens and model.on_sphere:
        return 1 - snapshot.mean_deficit(jnp.full_like(snapshot.masses, 1 / n)) * (n / (n - 1))
    g = overlap_matrix(snapshot)
    return 1 - jnp.sum(1 - g) / (n * (n - 1))


@observable("u_max", "largest pair deficit", "max uᵢⱼ")
def u_max(snapshot: Snapshot) -> Array:
    """max_ij ½|x_i - x_j|²."""
    return jnp.max(snapshot.deficits)


@observable("u_mean", "mean pair deficit", "mean uᵢⱼ")
def u_mean(snapshot: Snapshot) -> Array:
    """Mean of u_ij over pairs i ≠ j."""
    u = snapshot.deficits
    return jnp.sum(u) / max(u.shape[0] * (u.shape[0] - 1), 1)


@observable("diameter", "diameter", "max |xᵢ−xⱼ|")
def diameter(snapshot: Snapshot) -> Array:
    """max_ij |x_i - x_j|, accurate down to 1e-16 and below because it comes from differences."""
    return jnp.sqrt(2 * jnp.max(snapshot.deficits))


@observable("variance", "directional variance", "1−|mean x|²")
def variance(snapshot: Snapshot) -> Array:
    """1 - |Σ m_i x_i|² = Σ m_i m_j u_ij for unit tokens, without cancellation."""
    return snapshot.mean_deficit(snapshot.masses)


@observable("p_clustered", "clustered pairs", "P(uᵢⱼ ≤ δ)", delta=1e-3)
def p_clustered(snapshot: Snapshot, delta: float) -> Array:
    """Fraction of the pairs i < j with u_ij ≤ δ."""
    u = snapshot.deficits
    near = jnp.sum(u <= delta) - u.shape[0]
    return near.astype(u.dtype) / max(u.shape[0] * (u.shape[0] - 1), 1)


@observable("pair_histogram", "histogram of overlaps", "#{⟨xᵢ,xⱼ⟩}", dims=("overlap_bin",), bins=50)
def pair_histogram(snapshot: Snapshot, bins: int) -> Array:
    """Fractions of the pairs i < j with g_ij in ``bins`` equal cells of [-1, 1]."""
    g = overlap_matrix(snapshot)
    values = g[_pairs(g)]
    cells = jnp.clip(((values + 1) / 2 * bins).astype(int), 0, bins - 1)
    return jnp.zeros(bins, g.dtype).at[cells].add(1.0 / max(values.size, 1))


@observable(
    "deficit_histogram", "histogram of ln uᵢⱼ", "#{log₁₀ uᵢⱼ}", dims=("decade_bin",), bins=60, lowest=-30.0, highest=0.5
)
def deficit_histogram(snapshot: Snapshot, bins: int, lowest: float, highest: float) -> Array:
    """Fractions of the pairs i < j with log10 u_ij in equal cells of [lowest, highest]; the ends collect the rest."""
    u = snapshot.deficits
    values = jnp.log10(jnp.maximum(u[_pairs(u)], 1e-300))
    cells = jnp.clip(((values - lowest) / (highest - lowest) * bins).astype(int), 0, bins - 1)
    return jnp.zeros(bins, u.dtype).at[cells].add(1.0 / max(values.size, 1))


@observable("cross_ratios", "cross-ratios", "uᵢⱼuₖₗ/(uᵢₖuⱼₗ)", dims=("quadruple",))
def cross_ratios(snapshot: Snapshot) -> Array:
    """u_ij u_kl/(u_ik u_jl) for consecutive quadruples (i, i+1, i+2, i+3): constant when β = 0."""
    u = snapshot.deficits
    i = jnp.arange(u.shape[0] - 3)
    return u[i, i + 1] * u[i + 2, i + 3] / (u[i, i + 2] * u[i + 1, i + 3])
