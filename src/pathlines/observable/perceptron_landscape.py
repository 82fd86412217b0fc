"""Observables of the perceptron landscape (arXiv:2601.21366): energy, distance from the minimum, concentration."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.model.metastability.perceptron_landscape import PerceptronLandscape


def _model(snapshot: Snapshot) -> PerceptronLandscape:
    if not isinstance(snapshot.model, PerceptronLandscape):
        raise FormError(f"{type(snapshot.model).__name__} has no gradient perceptron; use PerceptronLandscape.")
    return snapshot.model


@observable("landscape_energy", "energy with the perceptron", "E", needs_tokens=True, ambient=True)
def landscape_energy(snapshot: Snapshot) -> Array:
    """E = (κ/2β) Σ m_i m_j e^{β(<x_i,x_j>-1)} + ½ Σ m_i v(x_i)."""
    return _model(snapshot).energy(snapshot.tokens)


@observable(
    "first_variation", "first variation at the tokens", "f(xᵢ)", dims=("token",), needs_tokens=True, ambient=True
)
def first_variation(snapshot: Snapshot) -> Array:
    """f(x_i) = (κ/β) Σ_j m_j e^{β(<x_i,x_j>-1)} + ½v(x_i): the same at every token of the minimiser."""
    return _model(snapshot).first_variation(snapshot.tokens, snapshot.tokens)


@observable("kkt_gap", "distance from optimality", "∫f dμ − min f", needs_tokens=True, ambient=True, points=2000)
def kkt_gap(snapshot: Snapshot, points: int) -> Array:
    """∫f dμ - min f ≥ E - min E for the first variation f, its minimum over the tokens, over the directions ±a_j of the
    neurons and over ``points`` points: equal angles on the circle, a Fibonacci lattice on S², normalised Gaussians
    (seed 0) beyond.

    Zero at the global minimiser only. It is a gap on these points: between them f may be lower by its curvature times
    their spacing squared, which is much for neurons narrower than the spacing (1/|a_j|).
    """
    model, x = _model(snapshot), snapshot.tokens
    f = first_variation(snapshot)
    poles = model.perceptron.inner / jnp.linalg.norm(model.perceptron.inner, axis=1, keepdims=True)
    probes = jnp.concatenate([jnp.asarray(probe_lattice(x.shape[1], points), x.dtype), poles, -poles])
    return snapshot.masses @ f - jnp.minimum(jnp.min(f), jnp.min(model.first_variation(probes, x)))


def probe_lattice(d: int, count: int) -> np.ndarray:
    """``count`` unit vectors of R^d, spread evenly."""
    k = np.arange(count) + 0.5
    if d == 2:
        return np.stack([np.cos(2 * np.pi * k / count), np.sin(2 * np.pi * k / count)], -1)
    if d == 3:
        z, turn = 1 - 2 * k / count, np.pi * (3 - np.sqrt(5)) * k
        return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], -1)
    normal = np.random.default_rng(0).standard_normal((count, d))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


@observable("heaviest_mass", "heaviest mass within 1/(2√β)", "max μ(arc)", needs_tokens=True)
def heaviest_mass(snapshot: Snapshot) -> Array:
    """The largest mass in an arc of length 1/(2√β) (d = 2) or in a cap of that diameter around a token (d > 2).

    O(n²); for any model with β on the sphere.
    """
    beta, x = getattr(snapshot.model, "beta", None), snapshot.tokens
    if beta is None or not snapshot.model.on_sphere:
        raise FormError(f"{type(snapshot.model).__name__} has no β on the sphere to measure arcs with.")
    reach = 0.5 / jnp.sqrt(beta)
    if x.shape[1] == 2:
        angles = jnp.arctan2(x[:, 1], x[:, 0])
        inside = jnp.mod(angles[None, :] - angles[:, None], 2 * jnp.pi) <= reach
    else:
        inside = jnp.arcsin(jnp.minimum(jnp.sqrt(snapshot.deficits / 2), 1.0)) <= reach / 4
    return jnp.max(inside.astype(snapshot.masses.dtype) @ snapshot.masses)
