"""Observables of the rescaled system in R^d (The emergence of clusters, arXiv:2305.05465)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.numerics.single_factorisations import symmetric_eigenvalues


def _to_leaders(snapshot: Snapshot) -> Array:
    """Distances |z_i - z_v| with non-leaders v at infinity."""
    distance = jnp.sqrt(2 * snapshot.deficits)
    return jnp.where(jnp.diagonal(snapshot.attention) > 0.5, distance, jnp.inf)


@observable("dist_vertices", "distance to the nearest leader", "min_v |zᵢ−z_v|", dims=("token",))
def dist_vertices(snapshot: Snapshot) -> Array:
    """min over leaders v of |z_i - z_v| (infinite while there is no leader)."""
    return jnp.min(_to_leaders(snapshot), axis=1)


@observable("s_residual", "distance from the limit set S", "||Az|²−max⟨Az,Av⟩|", dims=("token",), needs_tokens=True)
def s_residual(snapshot: Snapshot) -> Array:
    """| <Qz_i, Kz_i> - max_v <Qz_i, Kz_v> | over leaders v: zero on the finite set S of the polytope theorem."""
    scores = snapshot.model.pair_scores(snapshot.tokens)  # type: ignore[attr-defined]
    led = jnp.where(jnp.diagonal(snapshot.attention) > 0.5, scores, -jnp.inf)
    return jnp.abs(jnp.diagonal(scores) - jnp.max(led, axis=1))


@observable(
    "leading_coordinate",
    "leading coordinate",
    "φ₁*(z)",
    dims=("token",),
    needs_tokens=True,
    ambient=True,
    dual=(1.0,),
)
def leading_coordinate(snapshot: Snapshot, dual: tuple[float, ...]) -> Array:
    """φ₁*(z_i) for the left eigenvector φ₁* of V, given as ``dual``."""
    return snapshot.tokens @ jnp.asarray(dual, snapshot.tokens.dtype)


@observable(
    "dist_hyperplanes",
    "distance to the hyperplanes",
    "min_c |φ₁*(z)−c|",
    dims=("token",),
    needs_tokens=True,
    ambient=True,
    dual=(1.0,),
)
def dist_hyperplanes(snapshot: Snapshot, dual: tuple[float, ...]) -> Array:
    """min over c ∈ {a, 0, b} of |φ₁*(z_i) - c|, a and b the extreme values at this time."""
    value = snapshot.tokens @ jnp.asarray(dual, snapshot.tokens.dtype)
    targets = jnp.stack([jnp.min(value), jnp.zeros((), value.dtype), jnp.max(value)])
    return jnp.min(jnp.abs(value[:, None] - targets[None]), axis=1)


@observable("cov_law", "eigenvalues of 2tC", "eig(2tC)", dims=("component",), needs_tokens=True)
def cov_law(snapshot: Snapshot) -> Array:
    """Eigenvalues of 2t C(t), C the covariance of the tokens: all tend to one for V = -I."""
    x = snapshot.tokens
    masses = snapshot.model.normalised_masses(x.shape[0], x.dtype)
    centred = x - (masses @ x)[None]
    return symmetric_eigenvalues(2 * snapshot.time * (centred.T * masses[None]) @ centred)


@observable("attention_flatness", "distance of attention from uniform", "max|nP−1|")
def attention_flatness(snapshot: Snapshot) -> Array:
    """max_ij |n P_ij - 1|."""
    weights = snapshot.attention
    return jnp.max(jnp.abs(weights.shape[0] * weights - 1))
