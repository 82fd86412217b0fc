"""How strongly the token at σ remembers the one at σ0 < σ after depth t, in the limit of long prompts.

For uniform tokens with ALiBi slope λ each mode solves the Volterra–Hardy equation (Kinetic theory for Transformers and
the lost-in-the-middle phenomenon, arXiv:2605.09213)

    ∂_t g = a( k_λ(σ,σ0) + ∫_{σ0}^σ k_λ(σ,σ') g(t,σ';σ0) dσ' ),   k_λ(σ,σ') = λ e^{-λ(σ-σ')}/(1-e^{-λσ})  (1/σ: λ = 0),

with g(0) = 0, and the solution is g = k_λ(σ,σ0) x ₀F₁(;2;xY), x = at, Y = ln((e^{λσ}-1)/(e^{λσ0}-1)). All broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pathlines.foundation.errors import finite_number, require
from pathlines.foundation.numbers import real_array


def positional_kernel(sigma: ArrayLike, source: ArrayLike, slope: float) -> np.ndarray:
    """k_λ(σ,σ') for σ' ≤ σ."""
    sigma, source = np.asarray(sigma, float), np.asarray(source, float)
    if slope == 0:
        return np.broadcast_to(1 / sigma, np.broadcast_shapes(sigma.shape, source.shape)).copy()
    return slope * np.exp(-slope * (sigma - source)) / -np.expm1(-slope * sigma)


def log_odds(sigma: ArrayLike, source: ArrayLike, slope: float) -> np.ndarray:
    """Y = ln((e^{λσ}-1)/(e^{λσ0}-1)) ≥ 0, ln(σ/σ0) at λ = 0."""
    sigma, source = np.asarray(sigma, float), np.asarray(source, float)
    if slope == 0:
        return np.log(sigma / source)
    # e^{λσ}-1 = e^{λσ}(1-e^{-λσ}): large slopes do not overflow
    return slope * (sigma - source) + np.log(np.expm1(-slope * sigma) / np.expm1(-slope * source))


def bessel_quotient(order: int, z: ArrayLike) -> np.ndarray:
    """₀F₁(;order;z), entire; for z > 0 it is Γ(order) z^{(1-order)/2} I_{order-1}(2√z)."""
    return np.asarray(special.hyp0f1(order, np.asarray(z, float)))


def scaled_bessel_quotient(order: int, z: ArrayLike) -> np.ndarray:
    """e^{-2√z} ₀F₁(;order;z) for z ≥ 0."""
    z = np.asarray(z, float)
    root = np.sqrt(np.maximum(z, 1e-300))
    large = special.gamma(order) * special.ive(order - 1, 2 * root) * root ** (1.0 - order)
    return np.where(z < 1.0, special.hyp0f1(order, np.minimum(z, 1.0)) * np.exp(-2 * np.sqrt(z)), large)


def response(t: ArrayLike, sigma: ArrayLike, source: ArrayLike, *, rate: ArrayLike, slope: float = 0.0) -> np.ndarray:
    """g_a(t,σ;σ0): N E cos n(θ_j(t) - θ_{j0}(0)) for j = ⌈Nσ⌉ > j0 = ⌈Nσ0⌉ tends to it, with a = a_n.

    ``rate`` is a (``retrieval_rates``), ``slope`` λ. It diverges, slower than any power, as σ0 → 0.
    """
    slope = finite_number("slope", slope)
    t, rate = real_array("t", t, 0.0), real_array("rate", rate)
    sigma, source = (
        real_array("sigma", sigma, 0.0, 1.0, open_low=True),
        real_array("source", source, 0.0, 1.0, open_low=True),
    )
    require(bool(np.all(source <= sigma)), "source", "be at most sigma: a token is not heard by earlier ones", source)
    x = rate * t
    return positional_kernel(sigma, source, slope) * x * bessel_quotient(2, x * log_odds(sigma, source, slope))
