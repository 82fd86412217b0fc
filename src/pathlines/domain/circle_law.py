"""Densities on the circle by their moments, their quantiles, and starts as quiet as those of any number of tokens.

A density is the array ``(K+1, 2)`` of rows (Re m_k, Im m_k), m_k = ∫ e^{-ikθ} dμ, k = 0..K:
ρ(θ) = (1 + 2 Re Σ_{k≥1} m_k e^{ikθ})/2π.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Number
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, of_kind, positive_integer, require
from pathlines.foundation.keys import random_key
from pathlines.foundation.module import Module
from pathlines.foundation.programs import make_room_for_programs

QUIET_MODES = 24
"""Modes of a quiet start when nothing else is asked for: enough for β up to about 25."""
TOKENS_A_MODE = 50
"""Tokens a mode of a quiet start: five standard deviations of its density then stay positive."""
ROUNDS = 60
"""Newton steps of a quantile are kept inside a bracket that at least halves, so this many always suffice."""


def density_moments(amplitudes: Mapping[int, complex], modes: int) -> Float[Array, "K 2"]:
    """Moments m_k = ``amplitudes[k]``, k = 1..modes, zero elsewhere: (1 + 2 Σ a_k cos kθ)/2π for real ones."""
    table = np.zeros((positive_integer("modes", modes) + 1, 2))
    table[0, 0] = 1.0
    for k, a in of_kind("amplitudes", amplitudes, Mapping, "a dictionary of amplitudes by mode").items():
        require(k in range(1, modes + 1), "amplitudes", f"be of modes 1 to {modes}", k)
        require(isinstance(a, Number), "amplitudes", "hold numbers", a)
        table[k] = complex(a).real, complex(a).imag
    check_density_moments(table)
    return jnp.asarray(table)


def check_density_moments(moments: Any) -> None:
    """``ArgumentError`` unless these are moments of a density: total mass one, and nowhere negative."""
    table = finite_array("moments", moments, ("K", 2))
    require(len(table) >= 2, "moments", "have a row for k = 0 and for at least one more mode", table)
    mass = complex(*table[0])
    require(abs(mass - 1) < 1e-9, "moments", "be those of a density that integrates to one (first row 1, 0)", mass)
    modes = len(table) - 1
    values = np.fft.irfft((table[:, 0] + 1j * table[:, 1]) * 8 * modes, 8 * modes)
    low = float(values.min())
    if low < -1e-9:
        where = 2 * math.pi * int(values.argmin()) / (8 * modes)
        raise ArgumentError(
            f"Argument `moments` must be those of a density ≥ 0, but 2πρ is {low:.3g} at θ = {where:.3g}."
        )


def circle_quantiles(moments: Float[Array, "K 2"], n: int) -> Float[Array, " n"]:
    """Angles θ_j with F(θ_j) = (j + ½)/n, F(θ) = θ/2π + Σ_k Im(m_k (e^{ikθ} - 1))/(πk), increasing in [0, 2π).

    With equal masses they are a trapezoid rule in the quantile: spectrally accurate for smooth densities. Newton's
    method inside a bracket, to rounding. O(nK) per step.
    """
    n = positive_integer("n", n)
    order = jnp.arange(1, moments.shape[0], dtype=moments.dtype)
    real, imag = moments[1:, 0], moments[1:, 1]
    levels = (jnp.arange(n, dtype=moments.dtype) + 0.5) / n

    def distribution(theta: Array) -> tuple[Array, Array]:
        cosine, sine = jnp.cos(theta[:, None] * order[None]), jnp.sin(theta[:, None] * order[None])
        rise = (cosine - 1) @ (imag / order) + sine @ (real / order)
        return theta / (2 * math.pi) + rise / math.pi, (1 + 2 * (cosine @ real - sine @ imag)) / (2 * math.pi)

    def closer(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        theta, low, high, round_ = state
        value, slope = distribution(theta)
        excess = value - levels
        low, high = jnp.where(excess <= 0, theta, low), jnp.where(excess >= 0, theta, high)
        newton = theta - excess / jnp.where(slope > 0, slope, 1.0)
        inside = (slope > 0) & (newton >= low) & (newton <= high)
        return jnp.where(inside, newton, (low + high) / 2), low, high, round_ + 1

    def far(state: tuple[Array, Array, Array, Array]) -> Array:
        error = jnp.max(jnp.abs(distribution(state[0])[0] - levels))
        return (error > 4 * jnp.finfo(levels.dtype).eps) & (state[3] < ROUNDS)

    start = (2 * math.pi * levels, jnp.zeros_like(levels), jnp.full_like(levels, 2 * math.pi), jnp.asarray(0))
    return jax.lax.while_loop(far, closer, start)[0]


def on_circle(angles: Float[Array, " n"]) -> Float[Array, "n 2"]:
    """(cos θ, sin θ)."""
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)


class QuietMoments(Module):
    """The law of the moments of N i.i.d. uniform tokens, m_k = Z_k/√N with E|Z_k|² = 1, for modes 1..``noisy``; then
    zeros up to ``modes``. A law for ``ensemble``; N may be any number, since no token is drawn.
    """

    tokens: Float[Array, ""]
    noisy: int = eqx.field(static=True)
    modes: int = eqx.field(static=True)

    def __init__(self, tokens: float, noisy: int = QUIET_MODES, modes: int | None = None) -> None:
        self.noisy = positive_integer("noisy", noisy)
        self.modes = positive_integer("modes", self.noisy if modes is None else modes, least=self.noisy)
        number = finite_number("tokens", tokens, 1.0)
        must = f"be at least {TOKENS_A_MODE} for each of {self.noisy} modes (the density would be negative somewhere)"
        require(number >= TOKENS_A_MODE * self.noisy, "tokens", must, number)
        self.tokens = jnp.asarray(number)

    def __call__(self, key: PRNGKeyArray) -> Float[Array, "K 2"]:
        """One draw."""
        normals = jax.random.normal(key, (self.noisy, 2), self.tokens.dtype) / jnp.sqrt(2 * self.tokens)
        total = jnp.asarray([[1.0, 0.0]], normals.dtype)
        return jnp.concatenate([total, normals, jnp.zeros((self.modes - self.noisy, 2), normals.dtype)])


class QuietTokens(Module):
    """n quantile points of a density drawn from ``law``: a law of tokens for ``ensemble``."""

    law: QuietMoments
    n: int = eqx.field(static=True)

    def __call__(self, key: PRNGKeyArray) -> Float[Array, "n 2"]:
        """One draw, as unit vectors."""
        return on_circle(circle_quantiles(self.law(key), self.n))


def quiet_start(tokens: float, n: int, key: PRNGKeyArray, modes: int = QUIET_MODES) -> Float[Array, "n 2"]:
    """n points that stand for N = ``tokens`` i.i.d. uniform ones: quantiles of (1 + 2 Re Σ Z_k e^{ikθ}/√N)/2π.

    Its low modes fluctuate as those of N tokens (arXiv:2410.23228 has N = 2·10⁴) and there is no other noise, so that
    N = 10¹² costs as much as n = 500. White noise of size s on G grid points is N = G/(2πs)², see ``effective_tokens``.
    """
    make_room_for_programs()
    return QuietTokens(QuietMoments(tokens, modes), positive_integer("n", n, 2))(random_key("key", key))


def effective_tokens(noise: float, points: int) -> float:
    """N = G/(2πs)²: a density 1/2π with independent noise of standard deviation s at G points has the moments of N
    tokens, E|m_k|² = (2π)² s²/G = 1/N.
    """
    s = finite_number("noise", noise, 0.0, open_low=True)
    return positive_integer("points", points) / (2 * math.pi * s) ** 2
