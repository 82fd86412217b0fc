"""Observables of the Gram matrix K_ij = <x_i, x_j>: means, spread, rank, pairs of two tokens.

Spread is read off the deficits u_ij = 1 - K_ij, which keep their digits near collapse (Homogenized Transformers,
arXiv:2604.01978, uses these quantities for its collapse laws).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.domain.lapack import symmetric_eigenvalues
from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import MANY_TOKENS, Snapshot
from pathlines.observable.pairs import overlap_matrix


@observable("mean_square", "squared length of the mean token", "|mean x|²")
def mean_square(snapshot: Snapshot) -> Array:
    """m = |Σ m_i x_i|² = Σ m_i m_j <x_i, x_j>: 1/n for orthogonal tokens, one at collapse."""
    masses = snapshot.masses
    if masses.shape[0] > MANY_TOKENS and snapshot.model.has_tokens:
        return jnp.sum((masses @ snapshot.tokens) ** 2)
    return masses @ overlap_matrix(snapshot) @ masses


@observable("overlap_deviation", "largest deviation from the mean overlap", "max |⟨xᵢ,xⱼ⟩−mean|")
def overlap_deviation(snapshot: Snapshot) -> Array:
    """max_{i≠j} |K_ij - γ̄|, γ̄ the mean overlap: zero on a simplex."""
    u = snapshot.deficits
    apart = ~jnp.eye(u.shape[0], dtype=bool)
    mean = jnp.sum(u) / max(u.shape[0] * (u.shape[0] - 1), 1)
    return jnp.max(jnp.where(apart, jnp.abs(u - mean), 0.0))


@observable("smallest_overlap", "smallest overlap", "min ⟨xᵢ,xⱼ⟩")
def smallest_overlap(snapshot: Snapshot) -> Array:
    """min_ij K_ij = 1 - max u_ij."""
    return jnp.min(overlap_matrix(snapshot))


@observable("effective_rank", "effective rank", "exp H(λ/n)")
def effective_rank(snapshot: Snapshot) -> Array:
    """exp(-Σ p_k ln p_k), p_k = λ_k/n for the eigenvalues of K: n for orthogonal tokens, one at collapse. O(n³)."""
    values = jnp.maximum(symmetric_eigenvalues(overlap_matrix(snapshot)), 0.0)
    p = values / jnp.sum(values)
    return jnp.exp(-jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0)))


@observable("antipodal_pairs", "antipodal pairs", "#{⟨xᵢ,xⱼ⟩<−1+δ}", delta=0.1)
def antipodal_pairs(snapshot: Snapshot, delta: float) -> Array:
    """Number of pairs i < j with K_ij < -1 + δ."""
    return jnp.sum(snapshot.deficits > 2 - delta) // 2


@observable("pair_overlap", "overlap of two tokens", "R")
def pair_overlap(snapshot: Snapshot) -> Array:
    """R = <x_1, x_2>, for two tokens."""
    return 1 - _pair_deficit(snapshot)


@observable("pair_artanh", "artanh of the overlap of two tokens", "artanh R")
def pair_artanh(snapshot: Snapshot) -> Array:
    """y = artanh R = ½ ln((2 - u)/u) with u = 1 - R, for two tokens: no digits are lost near R = 1."""
    u = _pair_deficit(snapshot)
    return 0.5 * jnp.log((2 - u) / u)


def _pair_deficit(snapshot: Snapshot) -> Float[Array, ""]:
    u = snapshot.deficits
    if u.shape[0] != 2:
        raise FormError(f"Overlaps of a pair need two tokens, but there are {u.shape[0]}; record mean_overlap.")
    return u[0, 1]
