"""Fast summation on the circle: e^{β cos θ} = Σ_k I_k(β)e^{ikθ} turns n² pairs into nK modes (derived; exact)."""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import ive

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.kernels.spectral.potential import circle_potential
from pathlines.model.metastability.circle import CircleAttention

EXACT = 1e-14
MOST_MODES = 4096


class Fourier(Setting):
    """Random tokens on the circle."""

    n: of.Tokens = 2000
    betas: of.Betas = (1.0, 9.0, 100.0)
    modes: Annotated[tuple[of.Count, ...], means("Fourier modes at each β", "K")] = (14, 30, 86)
    seed: of.Seed = 0


def _angles(s: Fourier) -> Array:
    return jax.random.uniform(jax.random.key(s.seed), (s.n,), minval=-np.pi, maxval=np.pi)


@eqx.filter_jit
def _truncated(angles: Array, beta: Array, modes: int) -> tuple[Array, Array]:
    """Velocities U'/(βU) (SA) and U'/β (USA, kernel e^{β(cos-1)}) with a given number of modes."""
    potential, slope = circle_potential(angles, jnp.full_like(angles, 1 / angles.size), beta, modes)
    return slope / (beta * potential), slope / beta


def simulate(s: Fourier) -> Evidence:
    """Velocities of all tokens by Fourier series: with the stated number of modes, and with the engine's own choice."""
    angles = _angles(s)
    values: dict[str, Any] = {"softmax": [], "unnormalised": [], "automatic": []}
    curves = []
    for beta, modes in zip(s.betas, s.modes, strict=True):
        softmax, unnormalised = _truncated(angles, jnp.asarray(beta), modes)
        values["softmax"].append(np.asarray(softmax))
        values["unnormalised"].append(np.asarray(unnormalised))
        drift = eqx.filter_jit(CircleAttention(beta).drift)
        values["automatic"].append(np.asarray(drift(angles, jnp.zeros(()))))
        curves.append(_velocity_curve(f"{modes} modes, β = {beta:g}", np.asarray(angles), values["softmax"][-1]))
    return Evidence(values, curves=tuple(curves))


def _velocity_curve(label: str, angles: np.ndarray, velocity: np.ndarray) -> Curve:
    """The velocity field at every tenth angle."""
    order = np.argsort(angles)[::10]
    return Curve(label, angles[order], velocity[order])


def _direct(angles: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """(SA, USA with kernel e^{β(cos-1)}) velocities, -Σ_j e^{β(cos Δ - 1)} sin Δ over Z_i or n, pair by pair."""
    difference = angles[:, None] - angles[None, :]
    kernel = np.exp(-2 * beta * np.sin(difference / 2) ** 2)
    pull = -(kernel * np.sin(difference)).sum(axis=1)
    return pull / kernel.sum(axis=1), pull / len(angles)


def predict(s: Fourier) -> Evidence:
    """All n² pairs in NumPy."""
    angles = np.asarray(_angles(s))
    both = [_direct(angles, beta) for beta in s.betas]
    softmax, unnormalised = [v for v, _ in both], [v for _, v in both]
    values = {"softmax": softmax, "unnormalised": unnormalised, "automatic": softmax}
    curves = tuple(_velocity_curve(f"all pairs, β = {b:g}", angles, v) for b, v in zip(s.betas, softmax, strict=True))
    return Evidence(values, curves=curves, source="direct sum over pairs", undecided=_cut_too_early(s))


def _cut_too_early(s: Fourier) -> dict[str, str]:
    """Modes beyond the last one would add 2 Σ_k k I_k(β)/(β I_0(β)) or less at a uniform density."""
    needed = []
    for beta in s.betas:
        k = np.arange(1, MOST_MODES)
        left = np.cumsum((2 * k * ive(k, beta) / (beta * ive(0, beta)))[::-1])[::-1]
        needed.append(int(np.argmax(left < EXACT / 4)))
    if all(given >= least for given, least in zip(s.modes, needed, strict=True)):
        return {}
    return dict.fromkeys(("softmax", "unnormalised"), f"modes={needed} or more would give all digits")


claim(
    "clustering/CL-48",
    PERSPECTIVE,
    "Fourier summation on the circle (derived)",
    "On the circle the velocity is ∂_θ ln Z/β (SA) or ∂_θZ/β (USA) with Z(θ) = Σₖ Iₖ(β)cₖe^{ikθ}: "
    "14, 30, 86 modes give the direct sum to 1e-14 at β = 1, 9, 100.",
    where="derived; the circle of §7 in Fourier modes",
    models=("circle",),
    quick=Fourier(),
    full=Fourier(n=6000),
    within={
        "softmax": absolute(EXACT, "rounding; velocities are at most one"),
        "unnormalised": absolute(EXACT, "rounding; velocities are at most one"),
        "automatic": absolute(EXACT, "rounding; velocities are at most one"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("angle θ", "velocity θ̇"),
    note="Give one number of modes per β; the number needed grows like √β.",
)
