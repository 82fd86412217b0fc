"""The interaction energy."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.attention import Softmax
from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.kernels import attend
from pathlines.model.base import MANY_TOKENS, Snapshot
from pathlines.model.energy import pair_energy


def _beta(snapshot: Snapshot) -> Array:
    beta = getattr(snapshot.model, "beta", None)
    if beta is None or not snapshot.model.on_sphere:
        raise FormError(f"{type(snapshot.model).__name__} has no interaction energy: it needs β and unit tokens.")
    return beta


@observable("energy", "energy", "E_β")
def energy(snapshot: Snapshot) -> Array:
    """E_β = Σ m_i m_j e^{β<x_i,x_j>}/(2β) (arXiv:2312.10794); at β = 0, ½|Σ m_i x_i|².

    Non-decreasing along SA and USA with Q = K = V = I, between E_min (uniform) and E_max = e^β/(2β) (one point).
    """
    beta, masses = _beta(snapshot), snapshot.masses
    deficit = masses @ pair_energy(snapshot.deficits, beta) @ masses / 2
    safe = jnp.where(beta > 0, beta, 1.0)
    return jnp.where(beta > 0, jnp.exp(beta) * (deficit + 1 / (2 * safe)), deficit + 0.5)


@observable("energy_fraction", "energy over its maximum", "E_β/E_max")
def energy_fraction(snapshot: Snapshot) -> Array:
    """Σ m_i m_j e^{β(<x_i,x_j>-1)} ∈ (0, 1]: one at consensus, finite for every β."""
    masses, beta = snapshot.masses, _beta(snapshot)
    if masses.shape[0] > MANY_TOKENS and snapshot.model.has_tokens:
        x = snapshot.tokens
        return masses @ jnp.exp(attend(Softmax(), beta * x, x, x, masses)[1] - beta)
    return masses @ jnp.exp(-beta * snapshot.deficits) @ masses
