"""The potential of tokens on the circle, in angles."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import finite_number
from pathlines.kernels.spectral.attend import sums_by_harmonics


def circle_modes(beta: float, tolerance: float = 1e-17) -> int:
    """The number K of Fourier modes k = 0..K-1 such that Σ_{k≥K} k e^{-β} I_k(β) < tolerance · e^{-β} I_0(β).

    K grows like sqrt(β ln(1/tolerance)). The weight k serves the slope U', whose modes are k times those of U.
    """
    from scipy.special import ive  # a tenth of the time of a small run, which looks at no circle

    beta = finite_number("beta", beta, low=0.0)
    count = 32
    while True:
        orders = np.arange(count)
        tails = np.cumsum((orders * ive(orders, beta))[::-1])[::-1]
        below = np.nonzero(tails < tolerance * ive(0, beta))[0]
        if len(below) and below[0] < count // 2:
            return max(2, int(below[0]))
        count *= 2


def circle_potential(
    angles: Float[Array, " n"], masses: Float[Array, " n"], beta: Float[Array, ""], modes: int
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """U(θ_i) = Σ_j m_j e^{β(cos(θ_i-θ_j)-1)} and its derivative in θ_i, β<A_i, x_i^⊥> with A_i = Σ_j m_j e^{...} x_j.

    Modes k < ``modes``. O(nK) time, O(n) memory. The softmax velocity is U'/(βU), the unnormalised one U'/β.
    """
    beta = jnp.asarray(beta, angles.dtype)
    cosines, sines = jnp.cos(angles), jnp.sin(angles)
    tokens = jnp.stack([cosines, sines], axis=-1)
    vectors, potential = sums_by_harmonics(None, tokens, tokens, masses, beta, modes - 1, modes + 24)
    return potential, beta * (vectors[:, 1] * cosines - vectors[:, 0] * sines)
