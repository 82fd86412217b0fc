"""Causal attention on the circle descends one energy per token, not one for all.

Clustering in causal attention masking, arXiv:2411.04990, Lemma 5.3, with its factor 1/β made explicit.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import at_most, of_largest
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import CAUSAL_CLUSTERING
from pathlines.foundation.setting import Setting
from pathlines.integrate import flow
from pathlines.model import SelfAttention


class OwnEnergies(Setting):
    """Uniform tokens on the circle."""

    n: of.Tokens = 16
    beta: of.Beta = 4.0
    until: of.Until = 6.0
    draws: of.Draws = 3
    seed: of.Seed = 11


def _angles(s: OwnEnergies, draw: int) -> np.ndarray:
    return np.random.default_rng([s.seed, draw]).uniform(0, 2 * np.pi, s.n)


def _points(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _energy(beta: float, last: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """E_k = -Σ_{j<k} e^{β(cos(φ_k-φ_j)-1)}."""
    return -np.exp(beta * (np.cos(last[..., None] - earlier) - 1)).sum(axis=-1)


def simulate_own(s: OwnEnergies) -> Evidence:
    """Angular speeds of all tokens by the engine; how far the last token's energy rises while the others rest."""
    model, alone = SelfAttention(s.beta, mask="causal"), SelfAttention(s.beta, mask="causal", frozen=s.n - 1)
    speeds, rise, curves = [], 0.0, []
    drift, times = jax.jit(model.drift), np.linspace(0, s.until, 61)
    for k in range(s.draws):
        angles = _angles(s, k)
        x = _points(angles)
        turned = np.stack([-x[:, 1], x[:, 0]], axis=1)
        speeds.append((np.asarray(drift(jnp.asarray(x), 0.0)) * turned).sum(axis=1)[1:])
        path = flow(alone, x, times=times, record="tokens", rtol=1e-9)["tokens"].values[:, -1]
        energy = _energy(s.beta, np.arctan2(path[:, 1], path[:, 0]), angles[:-1])
        rise = max(rise, float(np.diff(energy).max()))
        curves.append(Curve(f"start {k + 1}", times, energy))
    return Evidence({"speed": np.ravel(speeds), "rise": rise}, curves=tuple(curves))


def predict_own(s: OwnEnergies) -> Evidence:
    """-E_k'(φ_k)/(βZ_k), Z_k = 1 - E_k, the derivative by a complex step."""
    speeds = []
    for draw in range(s.draws):
        angles = _angles(s, draw)
        for k in range(1, s.n):
            slope = _energy(s.beta, np.asarray(angles[k] + 1e-30j), angles[:k]).imag / 1e-30
            speeds.append(-slope / (s.beta * (1 - _energy(s.beta, angles[k], angles[:k]))))
    return Evidence({"speed": speeds, "rise": 1e-9})


claim(
    "causal/C11",
    CAUSAL_CLUSTERING,
    "every token descends an energy of its own",
    "On the circle with Q = K = V = I, token k moves with φ̇_k = −∂E_k/(βZ_k), E_k = −Σ_{j<k} e^{β(cos(φ_k−φ_j)−1)}: "
    "while earlier tokens rest, E_k never rises. There is no energy of all tokens together.",
    where="Lemma 5.3, with 1/β",
    models=("sa",),
    quick=OwnEnergies(),
    full=OwnEnergies(n=64, draws=10),
    within={
        "speed": of_largest(1e-9, "both are sums of n terms, accurate to rounding"),
        "rise": at_most("the error of the flow, at tolerance 1e-9, in an energy of order one"),
    },
    simulate=simulate_own,
    predict=predict_own,
    axes=Axes("depth-time t", "energy of the last token"),
)
