"""Observables of a residual stream: how long its hidden states are."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.architecture.residual_stream import Hidden, ResidualStream
from pathlines.model.base import Snapshot


def _hidden(snapshot: Snapshot) -> Hidden:
    if not isinstance(snapshot.model, ResidualStream):
        raise FormError(f"{type(snapshot.model).__name__} has unit tokens: there is no residual stream to measure.")
    return snapshot.model.hidden(snapshot.state)


@observable("residual_rms", "RMS of the residual stream", "√mean h²", needs_tokens=True)
def residual_rms(snapshot: Snapshot) -> Array:
    """(1/nd Σ_i |h_i|²)^{1/2}: one after a norm of gain one, growing with depth where nothing is normalised."""
    return jnp.sqrt(jnp.mean(_hidden(snapshot) ** 2))


@observable("residual_norms", "length of a hidden state", "|hᵢ|", dims=("token",), needs_tokens=True)
def residual_norms(snapshot: Snapshot) -> Array:
    """|h_i|, token by token: massive activations stand out."""
    return jnp.linalg.norm(_hidden(snapshot), axis=-1)
