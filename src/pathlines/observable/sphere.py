"""Observables of tokens on the sphere: modes, cones, reductions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.limit.clustering.cone import cone_excess as _cone_residual
from pathlines.limit.clustering.cone import hemisphere
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.metastability.circle import CircleAttention


@observable("mode_mass", "mass on each eigenvector", "n⁻¹Σ⟨x,eₖ⟩²", dims=("mode",), needs_tokens=True, ambient=True)
def mode_mass(snapshot: Snapshot) -> Array:
    """(1/n) Σ_i <x_i, e_k>² for the eigenvectors e_k of the symmetric value matrix, in ascending eigenvalue order."""
    return jnp.mean(_modes(snapshot) ** 2, axis=0)


@observable("mode_signs", "tokens on the positive side", "#{⟨x,eₖ⟩>0}", dims=("mode",), needs_tokens=True, ambient=True)
def mode_signs(snapshot: Snapshot) -> Array:
    """How many tokens have <x_i, e_k> > 0."""
    return jnp.sum(_modes(snapshot) > 0, axis=0)


def _modes(snapshot: Snapshot) -> Array:
    model: Any = snapshot.model.inner if isinstance(snapshot.model, NormalisedAttention) else snapshot.model
    if not isinstance(model, SelfAttention) or not model.symmetric_value:
        raise FormError("Mode masses need one head with a symmetric value matrix V.")
    heads = model.weights.at(snapshot.time)
    if heads is None:
        return snapshot.tokens
    return snapshot.tokens @ jnp.linalg.eigh(heads.value[0])[1]


@observable("mean_norm", "length of the mean token", "|mean x|", needs_tokens=True)
def mean_norm(snapshot: Snapshot) -> Array:
    """|Σ m_i x_i|: the order parameter."""
    x = snapshot.tokens
    return jnp.linalg.norm(snapshot.model.normalised_masses(x.shape[0], x.dtype) @ x)


@observable("alignment", "alignment with the attention vector", "hᵢ=⟨xᵢ,Aᵢ⟩", dims=("token",), needs_tokens=True)
def alignment(snapshot: Snapshot) -> Array:
    """h_i = <x_i, A_i>."""
    return jnp.sum(snapshot.tokens * _attended(snapshot), axis=-1)


@observable("attention_length", "length of the attention vector", "mᵢ=|Aᵢ|", dims=("token",), needs_tokens=True)
def attention_length(snapshot: Snapshot) -> Array:
    """m_i = |A_i|."""
    return jnp.linalg.norm(_attended(snapshot), axis=-1)


@observable("magnitude", "magnitudes", "rᵢ", dims=("token",))
def magnitude(snapshot: Snapshot) -> Array:
    """r_i of a normalisation scheme."""
    if not isinstance(snapshot.model, NormalisedAttention):
        raise FormError("Only NormalisedAttention has magnitudes.")
    return snapshot.state.magnitude[:, 0]


def _attended(snapshot: Snapshot) -> Array:
    model: Any = snapshot.model.inner if isinstance(snapshot.model, NormalisedAttention) else snapshot.model
    if isinstance(model, CircleAttention):
        return snapshot.attention @ snapshot.tokens
    if not isinstance(model, SelfAttention):
        raise FormError(f"{type(model).__name__} does not expose its attention vectors.")
    return model.attend(snapshot.tokens, snapshot.time)[0]


def _on_host(function: Any, *arrays: Array) -> Array:
    """Evaluate a NumPy function of the tokens inside a compiled loop."""
    shape = jax.ShapeDtypeStruct((), arrays[0].dtype)
    call = lambda *a: np.asarray(function(*(np.asarray(x, float) for x in a)), arrays[0].dtype)  # noqa: E731
    return jax.pure_callback(call, shape, *arrays, vmap_method="sequential")


@observable("hemisphere_margin", "hemisphere margin", "max_w minᵢ⟨xᵢ,w⟩", needs_tokens=True)
def hemisphere_margin(snapshot: Snapshot) -> Array:
    """max over unit w of min_i <x_i, w> when positive (all tokens in an open hemisphere), else zero."""
    return _on_host(lambda x: hemisphere(x)[0], snapshot.tokens)


@observable("cone_residual", "distance from the initial cone", "maxᵢ min_α|xᵢ−X₀ᵀα|", needs_tokens=True)
def cone_residual(snapshot: Snapshot) -> Array:
    """max_i min_{α ≥ 0} |x_i(t) - X(0)^T α|: zero while the tokens stay in the cone they started in."""
    return _on_host(_cone_residual, snapshot.tokens, snapshot.start_tokens)
