"""Observables of the Gram matrix K_ij = <x_i, x_j>: means, spread, rank, pairs of two tokens.

Spread is read off the deficits u_ij = 1 - K_ij, which keep their digits near collapse (Homogenized Transformers,
arXiv:2604.01978, uses these quantities for its collapse laws).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.numerics.single_factorisations import symmetric_eigenvalues
from pathlines.observable.pairs import largest_deficit, overlap_matrix, require_sphere, u_mean


@observable("mean_square", "squared length of the mean token", "|mean x|²")
def mean_square(snapshot: Snapshot) -> Array:
    """m = |Σ m_i x_i|² = Σ m_i m_j <x_i, x_j>: 1/n for orthogonal tokens, one at collapse."""
    masses = snapshot.masses
    if snapshot.many:
        return jnp.sum((masses @ snapshot.tokens) ** 2)
    return masses @ overlap_matrix(snapshot) @ masses


@observable("overlap_deviation", "largest deviation from the mean overlap", "max |⟨xᵢ,xⱼ⟩−mean|")
def overlap_deviation(snapshot: Snapshot) -> Array:
    """max_{i≠j} |K_ij - γ̄|, γ̄ the mean overlap: zero on a simplex."""
    mean = u_mean(snapshot)
    numbers = jnp.arange(snapshot.masses.shape[0])
    return jnp.max(snapshot.of_rows(lambda u, i: jnp.max(jnp.where(numbers != i, jnp.abs(u - mean), 0.0))))


@observable("smallest_overlap", "smallest overlap", "min ⟨xᵢ,xⱼ⟩")
def smallest_overlap(snapshot: Snapshot) -> Array:
    """min_ij K_ij = 1 - max u_ij."""
    require_sphere(snapshot)
    return 1 - largest_deficit(snapshot)


@observable("effective_rank", "effective rank", "exp H(λ/n)")
def effective_rank(snapshot: Snapshot) -> Array:
    """exp(-Σ p_k ln p_k), p_k = λ_k/n for the eigenvalues of K: n for orthogonal tokens, one at collapse.

    O(n³); O(nd²) for many tokens of dimension d < n, since XᵀX has the eigenvalues of K = XXᵀ that are not zero.
    """
    require_sphere(snapshot)
    few = snapshot.many and snapshot.tokens.shape[1] < snapshot.tokens.shape[0]
    gram = snapshot.tokens.T @ snapshot.tokens if few else overlap_matrix(snapshot)
    values = jnp.maximum(symmetric_eigenvalues(gram), 0.0)
    p = values / jnp.sum(values)
    return jnp.exp(-jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0)))


@observable("antipodal_pairs", "antipodal pairs", "#{⟨xᵢ,xⱼ⟩<−1+δ}", delta=0.1)
def antipodal_pairs(snapshot: Snapshot, delta: float) -> Array:
    """Number of pairs i < j with K_ij < -1 + δ."""
    return jnp.sum(snapshot.of_rows(lambda u, i: jnp.sum(u > 2 - delta))) // 2


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
    n = snapshot.masses.shape[0]
    if n != 2:
        raise FormError(f"Overlaps of a pair need two tokens, but there are {n}; record mean_overlap.")
    return snapshot.deficits[0, 1]
