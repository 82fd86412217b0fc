"""Causal sums on the circle in O(NK): prefix sums of Fourier modes, for masks with exponential weights.

With p_jk = e^{-λ(j-k)/N}/Z_j (k < j) and w(x) = e^{β cos x} = Σ_m I_m(β) e^{imx} (Kinetic theory for Transformers and
the lost-in-the-middle phenomenon, arXiv:2605.09213; the recursion is derived)

    E_j = Σ_k p_jk w(θ_j - θ_k) = I_0 + 2 Σ_{m≥1} I_m Re(e^{imθ_j} Π_j^m),   Π_j^m = Σ_{k<j} p_jk e^{-imθ_k}.

The sums are cumulative sums of e^{λk/N} e^{-imθ_k}, times e^{-λj/N}/Z_j: each is as large as what it is divided by, so
nothing is lost for λ of either sign up to a few hundred.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special


def decoder_modes(beta: float) -> int:
    """K with K² I_K(β) below 1e-14 of the largest n² I_n(β)."""
    n = np.arange(1, 40 + int(2 * beta + 12 * np.sqrt(beta)))
    sizes = n**2 * special.ive(n, beta)
    return int(n[sizes > 1e-14 * sizes.max()][-1])


def positional_norms(n: int, slope: Float[Array, ""] | float) -> Float[Array, " n"]:
    """Z_j = Σ_{k<j} e^{-λ(j-k)/n} = (e^{λ(j-1)/n} - 1)/((e^{λ/n} - 1) e^{λ(j-1)/n}), j-1 at λ = 0; j = 1 … n."""
    rate = jnp.asarray(slope, float) / n
    j = jnp.arange(n, dtype=rate.dtype)
    safe = jnp.where(rate == 0, 1.0, rate)
    return jnp.where(rate == 0, j, jnp.expm1(-safe * j) / jnp.expm1(-safe) * jnp.exp(-safe))


def _before(x: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Sums over the rows before each: shifted, not the whole less the row, which would cancel where rows grow fast."""
    return jnp.concatenate([jnp.zeros_like(x[:1]), jnp.cumsum(x[:-1], axis=0)])


def causal_potential(
    angles: Float[Array, " n"], slope: Float[Array, ""], bessel: Float[Array, " k"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """(E_j, E_j'), the potential of the tokens before each and its slope in θ_j; the first hears nobody: (I_0, 0)."""
    n = angles.shape[0]
    m = jnp.arange(1, bessel.shape[0], dtype=angles.dtype)
    rate = jnp.asarray(slope, angles.dtype) / n
    growth = jnp.exp(rate * jnp.arange(n, dtype=angles.dtype))
    phases = angles[:, None] * m[None, :]
    cosines, sines = jnp.cos(phases), jnp.sin(phases)
    norms = positional_norms(n, slope).astype(angles.dtype)
    scale = jnp.where(norms > 0, 1 / jnp.where(norms > 0, norms, 1.0), 0.0) / growth
    even, odd = (_before(growth[:, None] * x) * scale[:, None] for x in (cosines, sines))
    along, across = cosines * even + sines * odd, sines * even - cosines * odd
    strength = 2 * bessel[1:].astype(angles.dtype)
    return bessel[0].astype(angles.dtype) + along @ strength, -across @ (strength * m)
