"""The energy of many heads whose weights change with depth, and the two parts of its change.

E_t(μ) = (2β)⁻¹ Σ_h ∬ e^{β⟨Q_h(t)x, K_h(t)y⟩} dμ dμ. Where Q_hᵀK_h = V_h = V_hᵀ, unnormalised attention on the sphere
climbs it: E_T - E_0 = ∫∫|v|² dμ dt + ∫ ∂_tE_t dt. Multi-Headed Transformer Architectures as Time-dependent Wasserstein
Gradient Flows, arXiv:2605.18870 (derived for this convention).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot


def _energy(model: Any, x: Array, masses: Array, t: Array) -> Array:
    heads = model.weights.at(t)
    if heads is None:
        scores = (x @ x.T)[None]
    else:
        queries = x[None] if heads.query is None else jnp.einsum("ni,hpi->hnp", x, heads.query)
        keys = x[None] if heads.key is None else jnp.einsum("ni,hpi->hnp", x, heads.key)
        scores = jnp.einsum("hnp,hmp->hnm", *jnp.broadcast_arrays(queries, keys))
    return jnp.einsum("n,hnm,m->", masses, jnp.exp(model.beta * scores), masses) / (2 * model.beta)


@observable("head_energy", "energy of the heads at their depth", "E_t", needs_tokens=True, ambient=True)
def head_energy(snapshot: Snapshot) -> Array:
    """(2β)⁻¹ Σ_h Σ_ij m_i m_j e^{β⟨Q_h(t)x_i, K_h(t)x_j⟩}, with the weights of time t."""
    return _energy(snapshot.model, snapshot.tokens, snapshot.masses, snapshot.time)


@observable("head_power", "mean square velocity", "∫|v|²dμ", needs_tokens=True, ambient=True)
def head_power(snapshot: Snapshot) -> Array:
    """Σ_i m_i |dx_i/dt|²: what the motion adds to the energy."""
    move = snapshot.model.drift(snapshot.tokens, snapshot.time)
    return snapshot.masses @ jnp.sum(move * move, axis=-1)


def head_work(model: Any, tokens: Array, t: Any) -> Array:
    """∂_tE_t at fixed tokens, what the change of the weights adds. (In a run, a snapshot holds the weights of its time
    alone: their change is asked of the model itself, at recorded tokens.)
    """
    x = jnp.asarray(tokens)
    masses, now = model.normalised_masses(x.shape[0], x.dtype), jnp.asarray(t, x.dtype)
    return jax.jvp(lambda at: _energy(model, x, masses, at), (now,), (jnp.ones_like(now),))[1]
