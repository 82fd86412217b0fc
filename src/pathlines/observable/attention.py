"""What the attention matrix looks like."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.numerics.single_factorisations import singular_values


@observable("attention_matrix", "attention matrix", "Pᵢⱼ", dims=("token", "other"))
def attention_matrix(snapshot: Snapshot) -> Array:
    """The matrix itself."""
    return snapshot.attention


@observable("attention_rank", "rank of attention", "rank P", tolerance=1e-6)
def attention_rank(snapshot: Snapshot, tolerance: float) -> Array:
    """Number of singular values of P above the tolerance."""
    return jnp.sum(singular_values(snapshot.attention) > tolerance)


@observable("booleanness", "distance of attention from 0/1", "max min(P, 1−P)")
def booleanness(snapshot: Snapshot) -> Array:
    """max_ij min(P_ij, 1 - P_ij): zero for a 0/1 matrix."""
    weights = snapshot.attention
    return jnp.max(jnp.minimum(weights, 1 - weights))


@observable("leaders", "leaders", "Pⱼⱼ > ½", dims=("token",))
def leaders(snapshot: Snapshot) -> Array:
    """Whether token j attends mostly to itself."""
    return jnp.diagonal(snapshot.attention) > 0.5


@observable("in_degree", "attention received", "ΣᵢPᵢⱼ", dims=("token",))
def in_degree(snapshot: Snapshot) -> Array:
    """Column sums of P."""
    return jnp.sum(snapshot.attention, axis=0)
