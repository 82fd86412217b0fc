"""How well Sinkhorn's iteration does along a run (Sinkformers, arXiv:2110.11773)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.attention import SinkhornAttention
from pathlines.attention.sinkhorn import balance
from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.kernels.dense import softmax_sums
from pathlines.model.base import Snapshot
from pathlines.model.clustering.carried import CarriedSinkhorn
from pathlines.model.self_attention import SelfAttention


@observable("sinkhorn_iterations", "iterations of Sinkhorn attention", "L", needs_tokens=True)
def sinkhorn_iterations(snapshot: Snapshot) -> Array:
    """Iterations (rows and columns) of the first head from g = 0 to its tolerance; 10 000 means that it gave up."""
    model = snapshot.model.inner if isinstance(snapshot.model, CarriedSinkhorn) else snapshot.model
    if not isinstance(model, SelfAttention) or not isinstance(model.attention, SinkhornAttention):
        raise FormError(f"{type(model).__name__} has no Sinkhorn attention; record it for SelfAttention(sinkhorn).")
    kind = model.attention
    query, key = model.paired(snapshot.tokens, snapshot.time)
    rows = model.beta * query / kind.eps
    return balance(softmax_sums, kind.tolerance, rows, key, snapshot.masses).iterations


@observable("column_error", "how far attention is from doubly stochastic", "maxⱼ|Σᵢmᵢaᵢⱼ/mⱼ − 1|", needs_tokens=True)
def column_error(snapshot: Snapshot) -> Array:
    """Zero for converged Sinkhorn attention, where it is what the mean moves by beside V; large for softmax."""
    masses = snapshot.masses
    heard = masses @ snapshot.attention / jnp.where(masses > 0, masses, 1.0)
    return jnp.max(jnp.where(masses > 0, jnp.abs(heard - 1), 0.0))
