"""The early phase on spheres: how the overlap and the energy of tokens that are nearly uniform begin to move.

Until the density differs from the uniform one by something of order one, each harmonic of degree k moves on its own,
like e^{λ_k t} (Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228). Its power
p_k = n^{-2} Σ_ij P_k(⟨x_i, x_j⟩), P_k the ultraspherical polynomial with P_k(1) = 1, then moves like e^{2λ_k t}, and

    n^{-2} Σ_ij e^{β(⟨x_i,x_j⟩ - 1)} = g_0 (1 + Σ_k N_k r_k p_k),      |mean of the tokens|² = p_1        (derived)

with N_k harmonics of degree k and r_k = I_{k+a}(β)/I_a(β), a = d/2 - 1. Values v·I move everything v times as fast: at
v < 0 the modes fade.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_array, finite_number, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.limit.metastability.growth import KINDS, bessel_ratios, growth_rates, harmonics, mean_kernel

SOURCES = (METASTABLE_EMERGENCE,)
LARGEST = 0.5
"""Length √p_k of a mode beyond which modes do not move on their own any more."""
NEGLIGIBLE = 1e-12
LEAST_BETA = 1e-9
"""Stands for β = 0, where only the first mode moves."""


class EarlyPhase(NamedTuple):
    """At each time: mean overlap of different tokens, energy over its maximum; NaN once the phase is over."""

    overlap: np.ndarray
    energy_fraction: np.ndarray


def early_phase(tokens: ArrayLike, times: ArrayLike, beta: float, value: float = 1.0, kind: str = "sa") -> EarlyPhase:
    """The early phase of unit tokens (n, d) at the times t ≥ 0, under weights Q = K = I, V = ``value`` I.

    What you will see: the overlap of tokens drawn uniformly starts at about zero and grows like e^{2λ_1 t}; the larger
    β, the more other modes (k about √β) grow before the first one, and the sooner the phase is over. Cost O(n²√β).
    """
    x = finite_array("tokens", tokens, ("n", "d")).astype(float)
    t, v = real_array("times", times, 0.0), finite_number("value", value)
    n, d = x.shape
    b = max(finite_number("beta", beta, 0.0), LEAST_BETA)
    require(d >= 2 and n >= 2, "tokens", "be two or more, in two or more dimensions", x.shape)
    count = _degrees(b, d)
    scale = np.exp(b) if one_of("kind", kind, KINDS) == "usa" else 1.0
    rates = v * scale * growth_rates(b, d, count, kind)
    first = mode_powers(x, count)
    with np.errstate(over="ignore"):
        powers = first * np.exp(np.minimum(2 * rates * t[..., None], 700.0))
    over = np.maximum.accumulate((powers > LARGEST**2).any(axis=-1)) if t.ndim else (powers > LARGEST**2).any(axis=-1)
    ratios = bessel_ratios(d / 2 - 1, b, count + 1)[1:]
    energy = mean_kernel(b, d) * (1 + powers @ (harmonics(d, count) * ratios))
    overlap = (n * powers[..., 0] - 1) / (n - 1)
    return EarlyPhase(np.where(over, np.nan, overlap), np.where(over, np.nan, energy))


def _degrees(beta: float, d: int) -> int:
    """Degrees that the energy has a part in."""
    ratios = bessel_ratios(d / 2 - 1, beta, 20 + int(12 * np.sqrt(beta) + beta / 4))
    return max(2, int(np.argmax(ratios < NEGLIGIBLE)) or len(ratios) - 1)


def mode_powers(tokens: np.ndarray, count: int) -> np.ndarray:
    """p_1..p_count of unit tokens; the recurrence (k + d - 2) P_{k+1} = (2k + d - 2) s P_k - k P_{k-1}."""
    n, d = tokens.shape
    if d == 2:
        angles = np.arctan2(tokens[:, 1], tokens[:, 0])
        moments = np.exp(1j * np.outer(np.arange(1, count + 1), angles)).mean(axis=1)
        return np.abs(moments) ** 2
    upper = np.triu_indices(n, 1)
    s = (tokens @ tokens.T)[upper]
    before, now, found = np.ones_like(s), s, []
    for k in range(1, count + 1):
        found.append(max((n + 2 * now.sum()) / n**2, 0.0))
        before, now = now, ((2 * k + d - 2) * s * now - k * before) / (k + d - 2)
    return np.array(found)
