"""The interaction energy."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.attention import SoftmaxAttention
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.foundation.module import exactly
from pathlines.foundation.schedule import unknown
from pathlines.integrate.looking import Seen, at_once
from pathlines.integrate.observe import observable
from pathlines.kernels import attend
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.model.metastability.circle import CircleAttention
from pathlines.model.parts.energy import pair_energy


def _beta(snapshot: Snapshot) -> Array:
    beta = getattr(snapshot.model, "beta", None)
    if beta is None or not snapshot.model.on_sphere:
        raise FormError(f"{type(snapshot.model).__name__} has no interaction energy: it needs β and unit tokens.")
    return beta


def _deficit_of_many(snapshot: Snapshot) -> Array:
    """e^{-β}(E_β - E_max) without n × n numbers: by the sums of the model where E_β is its own energy."""
    model, beta, masses, x = snapshot.model, _beta(snapshot), snapshot.masses, snapshot.tokens
    if exactly(model, CircleAttention) or (isinstance(model, SelfAttention) and model.energy_kind == "identity"):
        found: Any = model.energy_deficit(snapshot.state, snapshot.time)
        return found
    mean, safe = masses @ x, jnp.where(beta > 0, beta, 1.0)
    fraction = masses @ jnp.exp(attend(SoftmaxAttention(), beta * x, x, x, masses)[1] - beta)
    return jnp.where(beta > 0, (fraction - 1) / (2 * safe), (mean @ mean - 1) / 2)


def _finite(model: Any, dtype: Any) -> None:
    """``ArgumentError`` where E_max overflows."""
    if unknown(getattr(model, "beta", 0.0)):
        return
    beta, largest = float(getattr(model, "beta", 0.0)), float(jnp.log(jnp.finfo(dtype).max))
    if beta > 0 and beta - math.log(2 * beta) > largest:
        raise ArgumentError(
            f"Observable `energy` needs a β with e^β/(2β) in {jnp.dtype(dtype).name}, but β = {beta:g}; "
            "record `energy_fraction`, the energy over its maximum."
        )


@observable("energy", "energy", "E_β", check=_finite)
def energy(snapshot: Snapshot) -> Array:
    """E_β = Σ m_i m_j e^{β<x_i,x_j>}/(2β) (arXiv:2312.10794); at β = 0, ½|Σ m_i x_i|².

    Non-decreasing along SA and USA with Q = K = V = I, between E_min (uniform) and E_max = e^β/(2β) (one point).
    """
    beta, masses = _beta(snapshot), snapshot.masses
    if snapshot.many:
        deficit = _deficit_of_many(snapshot)
    else:
        deficit = masses @ pair_energy(snapshot.deficits, beta) @ masses / 2
    safe = jnp.where(beta > 0, beta, 1.0)
    return jnp.where(beta > 0, jnp.exp(beta - jnp.log(2 * safe)) * (2 * safe * deficit + 1), deficit + 0.5)


@observable("energy_fraction", "energy over its maximum", "E_β/E_max")
def energy_fraction(snapshot: Snapshot) -> Array:
    """Σ m_i m_j e^{β(<x_i,x_j>-1)} ∈ (0, 1]: one at consensus, finite for every β."""
    masses, beta = snapshot.masses, _beta(snapshot)
    if snapshot.many:
        return 1 + 2 * beta * _deficit_of_many(snapshot)
    return masses @ jnp.exp(-beta * snapshot.deficits) @ masses


def _fractions(seen: Seen) -> np.ndarray | None:
    """E_β/E_max by the energies of the drift, where E_β is the model's own."""
    model = seen.model
    if seen.energies is None or not isinstance(model, SelfAttention) or model.energy_kind != "identity":
        return None
    beta = float(model.beta)
    return None if beta <= 0 else 1 + 2 * beta * seen.energies


@at_once(energy)
def _energies(seen: Seen) -> np.ndarray | None:
    fractions = _fractions(seen)
    if fractions is None:
        return None
    beta = float(seen.model.beta)  # type: ignore[attr-defined]
    return (np.exp(beta - np.log(2 * beta)) * fractions).astype(fractions.dtype)


@at_once(energy_fraction)
def _energy_fractions(seen: Seen) -> np.ndarray | None:
    return _fractions(seen)
