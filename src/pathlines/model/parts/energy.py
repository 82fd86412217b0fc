"""The interaction energy in a form that neither overflows nor cancels."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float


def over_value(work: Float[Array, ""], value: Float[Array, ""]) -> Float[Array, ""]:
    """work/v for V = v I; nothing moves and nothing is dissipated when v = 0."""
    return jnp.where(value == 0, 0.0, work / jnp.where(value == 0, 1.0, value))


def pair_energy(deficits: Float[Array, "n n"], beta: Float[Array, ""]) -> Float[Array, "n n"]:
    """(e^{-βu_ij} - 1)/β, with its limit -u_ij at β = 0.

    E_β - E_max = (e^β/2) Σ_ij m_i m_j of this, for E_β = Σ m_i m_j e^{β<x_i,x_j>}/(2β) (arXiv:2312.10794).
    """
    resolved = beta > 1e-30  # below, βu may be flushed to zero, and the limit is exact to rounding
    safe = jnp.where(resolved, beta, 1.0)
    return jnp.where(resolved, jnp.expm1(-safe * deficits) / safe, -deficits)
