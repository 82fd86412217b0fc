"""The overlap of a pair at zero temperature on its slow clock t = τ/d: dR = -κR(1-R²) dt + √2 (1-R²) dB.

In y = artanh R it reads dy = (2-κ) tanh y dt + √2 dB. For A = W W'ᵀ with W, W' of shape (d, p), κ = 3/2 + d/(2p):

    p = d   κ = 2     y = y0 + √2 B: R = tanh(y0 + √2 B_t), |R| -> 1 only in probability and R keeps changing sign;
    p = ∞   κ = 3/2   R -> ±1;
    p < d   κ > 2     y is recurrent: pairs stay apart.

κ = 1 is the equation in print (Homogenized Transformers, arXiv:2604.01978), whose lemma counts one Gaussian factor and
drops a term; there arcsin R is a martingale. For every κ < 2 the limit is +1 with probability
I_{(1+R0)/2}(1-κ/2, 1-κ/2), an incomplete beta function, which is ½ + arcsin(R0)/π at κ = 1 (derived).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.overlap_diffusion import OverlapDiffusion

SOURCES = (HOMOGENIZED,)
PRINTED_KAPPA = 1.0


def kappa_of(d: int, qk_dim: float | None = None) -> float:
    """κ = 3/2 + d/(2p), from K = R - ½(1/d+1/p)R(1-R²): 2 for p = d (the default), 3/2 for p = ∞."""
    d = positive_integer("d", d)
    p = d if qk_dim is None else qk_dim
    require(p == np.inf or float(p) >= 1, "qk_dim", "be ≥ 1 or inf", qk_dim)
    return 1.5 + 0.5 * d / p


def slow_diffusion(kappa: float = 2.0) -> OverlapDiffusion:
    """The SDE of this file as a diffusion in y; its clock is t."""
    kappa = finite_number("kappa", kappa)
    return OverlapDiffusion(lambda y: (2 - kappa) * np.tanh(y), lambda y: np.full_like(y, 2.0))


def expected_overlap_power(time: ArrayLike, kappa: float = 2.0, start: float = 0.0, power: int = 2) -> np.ndarray:
    """E[R_t^k] from R_0 = ``start``, to about 1e-11."""
    power = positive_integer("power", power)
    times, law = real_array("time", time, 0.0), slow_diffusion(kappa)
    found = [law.expectation(lambda r: r**power, float(t), start) for t in times.ravel()]
    return np.array(found).reshape(times.shape)[()]


def brownian_expectation(values: Callable[[np.ndarray], np.ndarray], time: float, start: float = 0.0) -> float:
    """E[φ(tanh(y0 + √(2t) Z))], the case κ = 2 in closed form.

    Trapezoid rule with a step well below the distance π/(2√(2t)) of the poles: exponentially accurate, where
    Gauss-Hermite rules of any practical size are not.
    """
    t, r = finite_number("time", time, 0.0), finite_number("start", start, -1.0, 1.0)
    if abs(r) == 1:
        return float(values(np.array([r]))[0])
    width = np.sqrt(2 * t)
    step = min(0.25, 0.25 / max(width, 1e-12))
    z = step * np.arange(-np.ceil(9 / step), np.ceil(9 / step) + 1)
    weight = np.exp(-z * z / 2)
    return float(weight @ values(np.tanh(np.arctanh(r) + width * z)) / weight.sum())


def consensus_probability(start: ArrayLike, kappa: float = 1.0) -> np.ndarray:
    """P(R -> 1) for κ < 2: I_{(1+R0)/2}(1-κ/2, 1-κ/2); ½ + arcsin(R0)/π at κ = 1."""
    r = real_array("start", start, -1.0, 1.0)
    require(finite_number("kappa", kappa) < 2, "kappa", "be < 2 (otherwise R does not converge)", kappa)
    return special.betainc(1 - kappa / 2, 1 - kappa / 2, (1 + r) / 2)[()]
