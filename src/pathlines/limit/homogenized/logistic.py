"""High temperature: m = (1/n²) Σ_ij K_ij = |x̄|² grows logistically, u' = u(1-u) in diffusive time τ.

Homogenized Transformers, arXiv:2604.01978. What the law neglects (derived):

    β = 0, any d:      drift of m = m[(1-m) - (2-m-q)/d],  q = (1/n²) Σ K_ij²,
    d = ∞, order b²:   drift of m = (1-m)[m - 2b² x̄ᵀC x̄],  x̄ᵀC x̄ = Var_k ⟨x_k,x̄⟩,

so temperature enters through b² = dσ_A⁴β² (the printed bound has d²σ_A⁴β²) and only as far as tokens differ in their
overlap with the mean: not at all on the simplex, where the law survives to b ≈ 1-2. While m ≪ 1 a run fluctuates by
std log m ≈ 2√(τ/d). On the simplex with b = 0 the law is exact, and exactly half as fast as identity weights at β = 0
(A mathematical perspective on Transformers, arXiv:2312.10794, ``equiangular``): γ_random(2t) = γ_identity(t).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import HOMOGENIZED, PERSPECTIVE
from pathlines.limit.homogenized.attended import small_b_attention, uniform_attended
from pathlines.limit.homogenized.gram import check_gram, overlap_drift
from pathlines.limit.homogenized.parameters import logit_scale_of
from pathlines.limit.homogenized.participation import check_dimension, check_overlap

SOURCES = (HOMOGENIZED, PERSPECTIVE)


def logistic_mass(times: ArrayLike, mass0: ArrayLike) -> np.ndarray:
    """u(τ) = u0/(u0 + (1-u0)e^{-τ})."""
    tau = real_array("times", times, 0.0)
    u0 = real_array("mass0", mass0, 0.0, 1.0)
    fading = np.exp(-tau)
    return (u0 / (fading - u0 * np.expm1(-tau)))[()]


def mass(gram: np.ndarray) -> float:
    """m = (1/n²) Σ_ij K_ij."""
    return float(np.mean(gram))


def mass_spread(gram: np.ndarray) -> float:
    """x̄ᵀC x̄ = Var_k ⟨x_k,x̄⟩, what the order b² acts on."""
    return float(np.var(np.mean(gram, axis=1)))


def mass_drift(gram: ArrayLike, b: float = 0.0, d: float = math.inf) -> float:
    """Drift of m: exact at b = 0, with the small-b attention otherwise (error O(b⁴)); O(n²)."""
    k = check_gram(gram)
    scale = finite_number("b", b, 0.0)
    attended = small_b_attention(k, scale) if scale > 0 else uniform_attended(k)
    return float(np.mean(overlap_drift(k, attended, check_dimension(d))))


def log_mass_std(times: ArrayLike, d: int) -> np.ndarray:
    """2√(τ/d): standard deviation of log m over runs while m ≪ 1."""
    return (2 * np.sqrt(real_array("times", times, 0.0) / positive_integer("d", d, 2)))[()]


def printed_parameter(beta: float, sigma_A: float, d: int) -> float:
    """d²σ_A⁴β², as printed in the bound of the logistic law."""
    return positive_integer("d", d) * corrected_parameter(beta, sigma_A, d)


def corrected_parameter(beta: float, sigma_A: float, d: int) -> float:
    """b² = dσ_A⁴β², the variance of one logit, which is what counts."""
    return logit_scale_of(beta, sigma_A, positive_integer("d", d)) ** 2


def uniform_attention_overlap(times: ArrayLike, n: int, gamma0: float = 0.0) -> np.ndarray:
    """γ(τ) on the simplex with b = 0 and d = ∞, where m = γ + (1-γ)/n is logistic: 1-γ = (1-γ0)/(1 + m0(e^τ - 1))."""
    tau = real_array("times", times, 0.0)
    keys = positive_integer("n", n, 2)
    start = check_overlap("gamma0", gamma0, keys)
    m0 = start + (1 - start) / keys
    fading = np.exp(-tau)
    return (1 - (1 - start) * fading / (fading - m0 * np.expm1(-tau)))[()]
