"""Fast summation on the circle: e^{β cos θ} = Σ_k I_k(β)e^{ikθ} turns n² pairs into nK modes (derived; exact)."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.kernels import circle_potential
from pathlines.model import CircleAttention


def _angles(s: Any) -> Array:
    return jax.random.uniform(jax.random.key(s.seed), (s.n,), minval=-np.pi, maxval=np.pi)


@eqx.filter_jit
def _truncated(angles: Array, beta: Array, modes: int) -> tuple[Array, Array]:
    """Velocities U'/(βU) (SA) and U'/β (USA, kernel e^{β(cos-1)}) with a given number of modes."""
    potential, slope = circle_potential(angles, jnp.full_like(angles, 1 / angles.size), beta, modes)
    return slope / (beta * potential), slope / beta


def simulate(s: Any) -> Evidence:
    """Velocities of all tokens by Fourier series: with the stated number of modes, and with the engine's own choice."""
    angles = _angles(s)
    values: dict[str, Any] = {"softmax": [], "unnormalised": [], "automatic": []}
    curves = []
    for beta, modes in zip(s.betas, s.modes, strict=True):
        softmax, unnormalised = _truncated(angles, jnp.asarray(beta), modes)
        values["softmax"].append(np.asarray(softmax))
        values["unnormalised"].append(np.asarray(unnormalised))
        values["automatic"].append(np.asarray(CircleAttention(beta).drift(angles, jnp.zeros(()))))
        curves.append(_error_curve(angles, beta, modes, s.points))
    return Evidence(values, curves=tuple(curves))


def _error_curve(angles: Array, beta: float, modes: int, points: int) -> Curve:
    """Largest difference from the series with twice the modes, against the number of modes."""
    full, _ = _truncated(angles, jnp.asarray(beta), 2 * modes)
    counts = np.unique(np.linspace(2, modes, points).astype(int))
    errors = [float(jnp.abs(_truncated(angles, jnp.asarray(beta), int(k))[0] - full).max()) for k in counts]
    return Curve(f"β = {beta:g}", counts, np.maximum(errors, 1e-17))


def _direct(angles: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """(SA, USA with kernel e^{β(cos-1)}) velocities, -Σ_j e^{β(cos Δ - 1)} sin Δ over Z_i or n, pair by pair."""
    difference = angles[:, None] - angles[None, :]
    kernel = np.exp(-2 * beta * np.sin(difference / 2) ** 2)
    pull = -(kernel * np.sin(difference)).sum(axis=1)
    return pull / kernel.sum(axis=1), pull / len(angles)


def predict(s: Any) -> Evidence:
    """All n² pairs in NumPy."""
    both = [_direct(np.asarray(_angles(s)), beta) for beta in s.betas]
    softmax, unnormalised = [v for v, _ in both], [v for _, v in both]
    values = {"softmax": softmax, "unnormalised": unnormalised, "automatic": softmax}
    return Evidence(values, source="direct sum over pairs")


claim(
    "clustering/CL-48",
    PERSPECTIVE,
    "Fourier summation on the circle (derived)",
    "On the circle the velocity is ∂_θ ln Z/β (SA) or ∂_θZ/β (USA) with Z(θ) = Σₖ Iₖ(β)cₖe^{ikθ}: "
    "14, 30, 86 modes give the direct sum to 1e-14 at β = 1, 9, 100.",
    models=("circle",),
    quick={"n": 2000, "betas": [1.0, 9.0, 100.0], "modes": [14, 30, 86], "points": 5, "seed": 0},
    full={"n": 8000, "points": 14},
    within={
        "softmax": absolute(1e-14, "rounding of velocities of order one"),
        "unnormalised": absolute(1e-14, "rounding of velocities of order one"),
        "automatic": absolute(1e-14, "rounding of velocities of order one"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("modes K", "largest error of a velocity", y_scale="log"),
    note="Give one number of modes a β; the number needed grows like √β.",
)
