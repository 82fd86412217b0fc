"""Exact O(nK) summation on the circle: e^{β cos θ} = Σ_k I_k(β) e^{ikθ} (Jacobi-Anger)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import ive

from pathlines.foundation.errors import finite_number


def circle_modes(beta: float, tolerance: float = 1e-17) -> int:
    """The number K of Fourier modes k = 0..K-1 such that Σ_{k≥K} k e^{-β} I_k(β) < tolerance · e^{-β} I_0(β).

    K grows like sqrt(β ln(1/tolerance)).
    """
    beta = finite_number("beta", beta, low=0.0)
    count = 32
    while True:
        orders = np.arange(count)
        tails = np.cumsum((orders * ive(orders, beta))[::-1])[::-1]
        below = np.nonzero(tails < tolerance * ive(0, beta))[0]
        if len(below) and below[0] < count // 2:
            return max(2, int(below[0]))
        count *= 2


def _scaled_bessel(beta: Float[Array, ""], count: int) -> Float[Array, " K"]:
    """e^{-β} I_k(β), k = 0..count-1, by the backward recurrence of the ratios I_k/I_{k-1} (stable for every β ≥ 0)."""
    start = count + 24
    orders = jnp.arange(start, 0, -1, dtype=beta.dtype)

    def backward(ratio: Array, k: Array) -> tuple[Array, Array]:
        ratio = beta / (2 * k + beta * ratio)
        return ratio, ratio

    _, ratios = jax.lax.scan(backward, jnp.zeros((), beta.dtype), orders)
    products = jnp.concatenate([jnp.ones(1, beta.dtype), jnp.cumprod(ratios[::-1])])
    return products[:count] / (2 * jnp.sum(products) - 1)


def circle_potential(
    angles: Float[Array, " n"], masses: Float[Array, " n"], beta: Float[Array, ""], modes: int
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """U(θ_i) = Σ_j m_j e^{β(cos(θ_i-θ_j)-1)} and its derivative in θ_i.

    Moments c_k = Σ_j m_j e^{-ikθ_j} by powers of e^{-iθ_j}, then one evaluation by the same powers; no trigonometric
    function per mode. Cost O(nK) time, O(n) memory. The softmax velocity is U'/(βU), the unnormalised one U'/β.
    """
    bessel = _scaled_bessel(jnp.asarray(beta, angles.dtype), modes)
    cos1, sin1 = jnp.cos(angles), jnp.sin(angles)

    def add(carry: tuple[Array, Array, Array, Array], item: tuple[Array, Array]) -> tuple[tuple, None]:
        cos_k, sin_k, potential, slope = carry
        coefficient, k = item
        even, odd = jnp.sum(masses * cos_k), jnp.sum(masses * sin_k)
        potential = potential + 2 * coefficient * (even * cos_k + odd * sin_k)
        slope = slope + 2 * k * coefficient * (odd * cos_k - even * sin_k)
        return (cos_k * cos1 - sin_k * sin1, sin_k * cos1 + cos_k * sin1, potential, slope), None

    orders = jnp.arange(1, modes, dtype=angles.dtype)
    flat = jnp.full_like(angles, bessel[0] * jnp.sum(masses))
    carry = (cos1, sin1, flat, jnp.zeros_like(angles))
    (_, _, potential, slope), _ = jax.lax.scan(add, carry, (bessel[1:], orders))
    return potential, slope
