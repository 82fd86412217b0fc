"""The stochastic Fokker-Planck equation of the mean field on the circle, in Fourier modes.

Under Gaussian weights d⟨μ,φ⟩ = ⟨μ, s_μ Δφ/(2d)⟩ dτ + ∫⟨μ, ∇φ·G_μ(·,θ)⟩ W(dθ, dτ) (Homogenized Transformers,
arXiv:2604.01978, with the noise of Gaussian weights derived). For d = 2, p = ∞ and M_k = ⟨μ, e^{ikθ}⟩ it says

    E dM_k = -(k²/4) s_μ(1) M_k dτ,
    E[dM_k conj(dM_l)] = (kl/2) ∬ s_μ(cos Δ) cos Δ e^{ikθ - ilθ'} μ(dθ) μ(dθ') dτ,      Δ = θ - θ',
    E[dM_k dM_l] = -(kl/2) ∬ s_μ(cos Δ) cos Δ e^{ikθ + ilθ'} μ(dθ) μ(dθ') dτ,

because the velocity of the angle is u(θ) = ⟨t(θ), V m(θ)⟩ with E u(θ)u(θ') = ½ s_μ(cos Δ)⟨t(θ), t(θ')⟩ (σ_V² = ½). The
first line is the generator, the others are the noise of the equation itself, not only its transport.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_array, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.mean_field import covariance_series, generator_on_mode, own_covariance

SOURCES = (HOMOGENIZED,)
DEGREE = 100
"""Terms of s_μ = Σ a_k R^k: nine digits at b = 2; what they leave out is added at the next power."""


def modes(angles: ArrayLike, orders: ArrayLike) -> np.ndarray:
    """M_k of equal masses at ``angles``."""
    theta = finite_array("angles", angles, ("n",))
    return np.mean(np.exp(1j * np.multiply.outer(np.asarray(orders), theta)), axis=-1)


def mode_rates(angles: ArrayLike, logit_scale: float, largest: int) -> np.ndarray:
    """E dM_k/dτ for k = 1..largest, of equal masses at ``angles``."""
    own, orders = own_covariance(angles, logit_scale), np.arange(1, positive_integer("largest", largest) + 1)
    return np.array([generator_on_mode(int(k), own) for k in orders]) * modes(angles, orders)


def mode_covariances(angles: ArrayLike, logit_scale: float, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """E[dM_k conj(dM_l)]/dτ and E[dM_k dM_l]/dτ for k, l = 1..largest, of equal masses at ``angles``. O(n² degree)."""
    theta = finite_array("angles", angles, ("n",)).astype(float)
    orders = np.arange(1, positive_integer("largest", largest) + 1)
    series = covariance_series(theta, logit_scale, degree=DEGREE)
    rest = own_covariance(theta, logit_scale) - series.sum()
    overlap = np.cos(theta[:, None] - theta)
    kernel = 0.5 * overlap * np.polynomial.polynomial.polyval(overlap, np.append(series, rest)) / theta.size**2
    waves = orders[:, None] * np.exp(1j * np.multiply.outer(orders, theta))
    return waves @ kernel @ waves.conj().T, -(waves @ kernel @ waves.T)
