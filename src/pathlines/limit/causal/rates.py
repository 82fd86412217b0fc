"""Rates a_n at which the modes of uniform causal tokens respond.

For the decoder θ_j' = Σ_{k<j} p_jk w_β'(θ_j - θ_k), w_β = e^{β cos θ}, with independent uniform tokens, mode n of the
response to an earlier token grows with (Kinetic theory for Transformers and the lost-in-the-middle phenomenon,
arXiv:2605.09213)

    a_n = n² I_n(β).

Softmax attention (without the factor β in front) has a_n/(β I_0(β)), because the partition function does not fluctuate
to first order; on S^{d-1}, x_j' = P_{x_j} Σ p_jk e^{β<x_j,x_k>} x_k has harmonics of degree ℓ with (both derived)

    a_ℓ = ℓ(ℓ+d-2)/β · Γ(d/2)(2/β)^{d/2-1} I_{ℓ+d/2-1}(β);       d = 2: ℓ² I_ℓ(β)/β, the circle slowed down by β.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require

NEGLIGIBLE = 1e-17
"""Share of the largest rate below which a mode cannot change a digit."""
LARGEST_BETA = 600.0
"""I_n(β) stays below float64's largest number."""


def retrieval_rates(beta: float, count: int, *, softmax: bool = False, d: int | None = None) -> np.ndarray:
    """a_1 … a_count, on the circle in the clock of w' (β inside), with ``d`` on S^{d-1} in that of the sphere."""
    beta, count = finite_number("beta", beta, 0.0, open_low=True), positive_integer("count", count)
    require(beta <= LARGEST_BETA, "beta", f"be at most {LARGEST_BETA:g}", beta)
    n = np.arange(1, count + 1)
    if d is None:
        return n**2 * special.iv(n, beta) / (beta * special.iv(0, beta) if softmax else 1.0)
    a = positive_integer("d", d, 2) / 2 - 1
    bessel = special.ive(n + a, beta) / special.ive(a, beta)
    if not softmax:
        bessel *= np.exp(special.gammaln(a + 1) + a * np.log(2 / beta) + beta) * special.ive(a, beta)
    return n * (n + d - 2) / beta * bessel


def modes_needed(beta: float) -> int:
    """Number of modes after which a_n is below 1e-17 of the largest."""
    n = np.arange(1, 30 + int(2 * beta + 12 * np.sqrt(beta)))
    logs = 2 * np.log(n) + np.log(np.maximum(special.ive(n, beta), 1e-300))
    return int(n[logs > logs.max() + np.log(NEGLIGIBLE)][-1])


def word_weights(vocabulary: int, count: int) -> np.ndarray:
    """w_n = e^{-π²n²/(2M²)}, the Fourier weights of the soft decoder over M codewords."""
    m = positive_integer("vocabulary", vocabulary, 2)
    return np.exp(-((np.pi * np.arange(1, count + 1) / m) ** 2) / 2)


def hard_weights(vocabulary: int, count: int) -> np.ndarray:
    """sin(πn/M)/(πn), those of the test |θ_N - θ_i| ≤ π/M (derived)."""
    m, n = positive_integer("vocabulary", vocabulary, 2), np.arange(1, count + 1)
    return np.sin(np.pi * n / m) / (np.pi * n)
