"""Observables of a cloud's mean and covariance, of tokens or of a Gaussian closure (arXiv:2501.18322)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.model.gaussian.closure import Cloud, GaussianClosure
from pathlines.model.gaussian.masked import Clouds
from pathlines.model.gaussian.moments import MomentClosure
from pathlines.model.self_attention import SelfAttention
from pathlines.numerics.single_factorisations import singular_values


def _cloud(snapshot: Snapshot) -> Cloud:
    """Mean and factor: the state of a closure, or √m_i (x_i - x̄) of tokens."""
    if isinstance(snapshot.state, Cloud):
        return snapshot.state
    x, masses = snapshot.tokens, snapshot.masses
    mean = masses @ x
    return Cloud(mean, ((x - mean[None]) * jnp.sqrt(masses)[:, None]).T)


def _eigenvalues(snapshot: Snapshot) -> Float[Array, " r"]:
    """λ_1 ≥ λ_2 ≥ …, min(d, r) of them, as squares of singular values: small ones keep their digits."""
    return singular_values(_cloud(snapshot).factor) ** 2


def _shares(snapshot: Snapshot) -> Float[Array, " r"]:
    values = _eigenvalues(snapshot)
    return values / jnp.sum(values)


@observable("cloud_mean", "mean of the cloud", "α", dims=("component",), needs_tokens=True, ambient=True)
def cloud_mean(snapshot: Snapshot) -> Array:
    """α."""
    return _cloud(snapshot).mean


@observable("covariance", "covariance", "Σ", dims=("component", "component_"), needs_tokens=True, ambient=True)
def covariance(snapshot: Snapshot) -> Array:
    """Σ = LLᵀ."""
    factor = _cloud(snapshot).factor
    return factor @ factor.T


def _blocks(snapshot: Snapshot) -> Clouds:
    if not isinstance(snapshot.state, Clouds):
        raise FormError("Only the closure of masked attention has blocks; record tokens, or cloud_mean and covariance.")
    return snapshot.state


@observable("block_means", "means of the blocks", "αₛ", dims=("block", "component"), needs_tokens=True, ambient=True)
def block_means(snapshot: Snapshot) -> Array:
    """α_s of every block of positions."""
    return _blocks(snapshot).means


@observable(
    "block_covariances",
    "covariances of the blocks",
    "Σₛ",
    dims=("block", "component", "component_"),
    needs_tokens=True,
    ambient=True,
)
def block_covariances(snapshot: Snapshot) -> Array:
    """Σ_s = L_sL_sᵀ of every block of positions."""
    factors = _blocks(snapshot).factors
    return factors @ jnp.swapaxes(factors, 1, 2)


@observable("covariance_eigenvalues", "eigenvalues of the covariance", "λₖ", dims=("component",), needs_tokens=True)
def covariance_eigenvalues(snapshot: Snapshot) -> Array:
    """λ_1 ≥ λ_2 ≥ …."""
    return _eigenvalues(snapshot)


@observable("covariance_trace", "trace of the covariance", "tr Σ", needs_tokens=True)
def covariance_trace(snapshot: Snapshot) -> Array:
    """Tr Σ."""
    return jnp.sum(_cloud(snapshot).factor ** 2)


@observable("anisotropy", "share of the leading axis", "λ₁/tr Σ", needs_tokens=True)
def anisotropy(snapshot: Snapshot) -> Array:
    """λ_1/tr Σ: 1/d for a round cloud, one on a line."""
    return _shares(snapshot)[0]


@observable("covariance_participation", "participation ratio of the axes", "(tr Σ)²/tr Σ²", needs_tokens=True)
def covariance_participation(snapshot: Snapshot) -> Array:
    """(tr Σ)²/tr Σ²: how many axes the cloud fills."""
    return 1 / jnp.sum(_shares(snapshot) ** 2)


@observable("covariance_entropy_rank", "effective rank of the covariance", "exp H(λ/tr Σ)", needs_tokens=True)
def covariance_entropy_rank(snapshot: Snapshot) -> Array:
    """exp(-Σ p_i ln p_i), p_i = λ_i/tr Σ."""
    p = _shares(snapshot)
    return jnp.exp(-jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0)))


@observable("covariance_rank", "numerical rank of the covariance", "#{λᵢ > τλ₁}", needs_tokens=True, tolerance=1e-6)
def covariance_rank(snapshot: Snapshot, tolerance: float) -> Array:
    """Eigenvalues above a share of the largest: a relative threshold, which no rescaling of tokens changes."""
    values = _eigenvalues(snapshot)
    return jnp.sum(values > tolerance * values[0])


@observable("covariance_above", "eigenvalues above a level", "#{λᵢ > c}", needs_tokens=True, level=0.1)
def covariance_above(snapshot: Snapshot, level: float) -> Array:
    """The absolute count of the published rank histograms; it is not a rank (claim gaussian/C19)."""
    return jnp.sum(_eigenvalues(snapshot) > level)


@observable("covariance_growth", "growth rate of the covariance", "d ln tr Σ/dt", needs_tokens=True)
def covariance_growth(snapshot: Snapshot) -> Array:
    """r = 2⟨L', L⟩/|L|² for a closure."""
    if not isinstance(snapshot.model, GaussianClosure):
        raise FormError("The growth rate is that of a Gaussian closure; differentiate covariance_trace for tokens.")
    moving = snapshot.model.drift(snapshot.state, snapshot.time).factor
    return 2 * jnp.sum(moving * snapshot.state.factor) / jnp.sum(snapshot.state.factor**2)


@observable("theta", "strength of attention on the cloud", "θ = |Σ^{1/2}AΣ^{1/2}|", needs_tokens=True)
def theta(snapshot: Snapshot) -> Array:
    """The largest θ of all heads: above 1/√2 a finite context follows the mean field more slowly than n^{-1/2}."""
    model: Any = snapshot.model
    factor = _cloud(snapshot).factor
    if isinstance(model, GaussianClosure):
        query, key = model.query, model.key
        return jnp.max(jax.vmap(lambda q, k: singular_values((k @ factor).T @ (q @ factor))[0])(query, key))
    if not isinstance(model, SelfAttention):
        raise FormError(f"{type(model).__name__} has no score matrix A.")
    heads = model.weights.at(snapshot.time)
    d = factor.shape[0]
    plain = jnp.eye(d, dtype=factor.dtype)[None]
    query = plain if heads is None or heads.query is None else heads.query
    key = plain if heads is None or heads.key is None else heads.key
    query, key = jnp.broadcast_arrays(query, key)
    root = _square_root_rows(factor)
    return model.beta * jnp.max(jax.vmap(lambda q, k: singular_values((k @ root).T @ (q @ root))[0])(query, key))


def _square_root_rows(factor: Float[Array, "d n"]) -> Float[Array, "d d"]:
    """A d × d factor of the same covariance."""
    values, vectors = jnp.linalg.eigh(factor @ factor.T)
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None]


@observable("closure_defect", "share of the field a closure leaves out", "1 − |affine|²/|Γ|²", needs_tokens=True)
def closure_defect(snapshot: Snapshot) -> Array:
    """Zero for kinds that keep Gaussians; for sigmoid and unnormalised the share of E|Γ|² that is not affine."""
    if not isinstance(snapshot.model, GaussianClosure):
        raise FormError("The defect is that of a Gaussian closure; record mardia_kurtosis for tokens.")
    if isinstance(snapshot.model, MomentClosure):
        return snapshot.model.defect(snapshot.state)
    return jnp.zeros((), snapshot.state.factor.dtype)


def _whitened(snapshot: Snapshot) -> tuple[Array, Array]:
    """(masses, rows Σ^{-1/2}(x_i - x̄))."""
    x, masses = snapshot.tokens, snapshot.masses
    centred = x - (masses @ x)[None]
    values, vectors = jnp.linalg.eigh((centred.T * masses[None]) @ centred)
    return masses, centred @ vectors / jnp.sqrt(values)[None]


@observable("mardia_skewness", "Mardia's skewness", "b₁", needs_tokens=True)
def mardia_skewness(snapshot: Snapshot) -> Array:
    """Σ_ij m_i m_j ⟨z_i, z_j⟩³ over whitened tokens: zero for a Gaussian law. O(n²d)."""
    masses, z = _whitened(snapshot)
    return masses @ (z @ z.T) ** 3 @ masses


@observable("mardia_kurtosis", "Mardia's excess kurtosis", "b₂ − d(d+2)", needs_tokens=True)
def mardia_kurtosis(snapshot: Snapshot) -> Array:
    """Σ_i m_i |z_i|⁴ - d(d+2) over whitened tokens: zero for a Gaussian law, negative for flat-topped ones."""
    masses, z = _whitened(snapshot)
    d = z.shape[1]
    return masses @ jnp.sum(z * z, axis=1) ** 2 - d * (d + 2)
