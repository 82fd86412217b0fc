"""Random attention to the uniform measure of the sphere: how far it is from its limit of zero temperature.

Softmax with logits β⟨Ax, y⟩ over the uniform measure has mean m_A(x) = r(β|Ax|) Ax/|Ax|, r = I_{d/2}/I_{d/2-1}. For
A = WW'ᵀ with d × d factors of entries σ_A N, |Ax| = σ_A² χχ' with two independent χ_d, whose product has the density
z^{d-1} K_0(z)/(2^{d-2} Γ(d/2)²).
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln, kve

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.clustering.energy_range import initial_alignment

SOURCES = (HOMOGENIZED,)


def effective_temperature(d: int, beta: float, sigma_a: float) -> float:
    """β_eff = β d σ_A², the size of β|Ax|: the β of the low-temperature theorems of arXiv:2604.01978 (derived)."""
    return beta * d * sigma_a**2


def uniform_attention(d: int, beta: float, sigma_a: float) -> float:
    """s_11 = E|m_A(x)|² = ∫ r(βσ_A² z)² z^{d-1} K_0(z) dz/(2^{d-2} Γ(d/2)²), uniform measure of S^{d-1} (derived).

    1 - s_11 ≈ c_d (d-1)/β_eff at low temperature, c_d → 1 as d grows: the limit m = Ax/|Ax| is reached at the rate
    1/β_eff. Adaptive quadrature, about 1e-10.
    """
    d = positive_integer("d", d, least=2)
    scale = finite_number("beta", beta, low=0.0) * finite_number("sigma_a", sigma_a, low=0.0) ** 2
    log_norm = (d - 2) * np.log(2) + 2 * gammaln(d / 2)
    top = 40.0 + 4 * d

    def density(z: float) -> float:
        return float(np.exp((d - 1) * np.log(z) - z - log_norm) * kve(0, z)) if z > 0 else 0.0

    found = quad(lambda z: density(z) * float(initial_alignment(d, scale * z)) ** 2, 0.0, top, limit=400, epsabs=1e-12)
    return float(found[0])
