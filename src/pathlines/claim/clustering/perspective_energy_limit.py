"""The interaction energy at β = 0.

E_β = (1/2β) mean e^{β<x,y>} (A mathematical perspective on Transformers, arXiv:2312.10794) is not defined there; its
limit without the constant 1/(2β) is.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, at_most
from pathlines.domain import Sphere
from pathlines.domain.space import sines
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.model import SelfAttention, Snapshot
from pathlines.observable.energy import energy


class SmallBeta(Setting):
    """One cloud at β near zero."""

    n: of.Tokens = 8
    d: of.Dimension = 3
    betas: of.Betas = (0.1, 0.01, 0.001, 0.0001)


def _small_betas(s: SmallBeta) -> np.ndarray:
    return np.asarray(sorted(s.betas, reverse=True), float)


def _energy_at(beta: float, x: jax.Array) -> float:
    """The engine's E_β of given tokens."""
    return float(energy(Snapshot(SelfAttention(beta), x, jnp.zeros(()), x)))


def simulate_printed_limit(s: SmallBeta) -> Evidence:
    """E_β as printed, for β going to zero."""
    x, betas = Sphere(s.d).sines(s.n), _small_betas(s)
    heights = np.array([_energy_at(b, x) for b in betas])
    return Evidence({"energy": heights[-1]}, curves=(Curve("E_β", betas, heights),))


def _half_mean_square(s: SmallBeta) -> float:
    x = sines(s.n, s.d)
    mean = np.mean(x / np.linalg.norm(x, axis=1, keepdims=True), axis=0)
    return float(mean @ mean / 2)


def predict_printed_limit(s: SmallBeta) -> Evidence:
    """The energy whose gradient flow is the β = 0 dynamics."""
    height = _half_mean_square(s)
    return Evidence({"energy": height}, curves=(Curve("½|x̄|²", _small_betas(s), np.full(len(s.betas), height)),))


_SMALL_AXES = Axes("β", "energy", x_scale="log", y_scale="log")


def simulate_limit(s: SmallBeta) -> Evidence:
    """How far E_β - 1/(2β) is from the engine's energy at β = 0."""
    x, betas = Sphere(s.d).sines(s.n), _small_betas(s)
    at_zero = _energy_at(0.0, x)
    excess = np.array([_energy_at(b, x) - 1 / (2 * b) - at_zero for b in betas])
    values = {"energy_at_zero": at_zero, "excess": excess}
    return Evidence(values, curves=(Curve("E_β − 1/(2β) − ½|x̄|²", betas, excess),))


def predict_limit(s: SmallBeta) -> Evidence:
    """½|x̄|², and Taylor's remainder (e^{βg} - 1 - βg)/(2β) ≤ (β/4) g² e^β."""
    x = sines(s.n, s.d)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    betas = _small_betas(s)
    bound = betas / 4 * np.exp(betas) * np.mean((x @ x.T) ** 2)
    curves = (Curve("(β/4) e^β mean g²", betas, bound),)
    return Evidence({"energy_at_zero": _half_mean_square(s), "excess": bound}, curves=curves)


ER_11B = claim(
    "clustering/ER-11b",
    PERSPECTIVE,
    "interaction energy at β = 0 (derived)",
    "E_β = 1/(2β) + ½|x̄|² + r with 0 ≤ r ≤ (β/4)e^β·mean g²: what is left at β = 0 once the constant 1/(2β) is "
    "taken away is ½|x̄|², the energy of the β = 0 flow.",
    where="derived; on the energies E_β (§3) and E₀ (Appendix A)",
    models=("sa", "usa"),
    quick=SmallBeta(),
    within={
        "energy_at_zero": absolute(1e-14, "rounding"),
        "excess": at_most("rounding of 1/(2β) at the smallest β", slack=1e-11),
    },
    simulate=simulate_limit,
    predict=predict_limit,
    axes=_SMALL_AXES,
)

ER_11B.printed_as(
    "clustering/ER-11",
    "interaction energy read at β = 0",
    "The energy E_β = (2β)⁻¹∬e^{β⟨x,y⟩} tends, as β → 0, to the energy ½|x̄|² of the β = 0 flow.",
    where="energies E_β (§3) and E₀ (Appendix A) beside each other",
    within={
        "energy": absolute(0.1, "the remainder is below βe^β/4 if the limit exists, and every overlap is at most 1")
    },
    simulate=simulate_printed_limit,
    predict=predict_printed_limit,
    note="E_β diverges like 1/(2β).",
)
