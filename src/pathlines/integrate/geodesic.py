"""Lie-group methods on the sphere: no more accurate than projected Runge-Kutta, kept as independent checks."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.integrate.methods import METHODS, Field, Method, Retract
from pathlines.model.base import State


def _geodesic(x: Float[Array, "n d"], v: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """exp_x(v) = cos|v| x + sin|v| v/|v|."""
    speed = jnp.sqrt(jnp.sum(v * v, axis=-1, keepdims=True))
    return jnp.cos(speed) * x + jnp.sinc(speed / jnp.pi) * v


class GeodesicEuler(Method):
    """x ← exp_x(h f(x)): one great-circle arc a step."""

    spherical: ClassVar[bool] = True

    def step(
        self, field: Field, retract: Retract, x: State, slope: State, t: Array, h: Array
    ) -> tuple[State, State, tuple[State, ...]]:
        """The state is (tokens on the sphere, time integrals); the integrals take a plain Euler step."""
        (tokens, sums), (velocity, rates) = x, slope
        y = (_geodesic(tokens, h * velocity), jax.tree.map(lambda s, r: s + h * r, sums, rates))
        return y, field(y, t + h), ()


class RKMK4(Method):
    """Runge-Kutta-Munthe-Kaas of order four on so(d), ω_i = f_i x_i^T - x_i f_i^T, so that dx_i/dt = ω_i x_i.

    dexp^{-1} is truncated after the second commutator, enough for order four. Cost: n matrix exponentials per stage.
    """

    spherical: ClassVar[bool] = True

    def step(
        self, field: Field, retract: Retract, x: State, slope: State, t: Array, h: Array
    ) -> tuple[State, State, tuple[State, ...]]:
        """The four stages of the classical method in the Lie algebra, from the identity; time integrals beside."""
        tokens, sums = x
        rates: list[State] = []

        def generator(y: Array, s: Array) -> Array:
            f, rate = field((y, sums), s)
            rates.append(rate)
            return jnp.einsum("ni,nj->nij", f, y) - jnp.einsum("ni,nj->nij", y, f)

        def moved(omega: Array) -> Array:
            return jnp.einsum("nij,nj->ni", jax.scipy.linalg.expm(omega), tokens)

        def inverse_dexp(u: Array, k: Array) -> Array:
            once = u @ k - k @ u
            return k - once / 2 + (u @ once - once @ u) / 12

        k1 = generator(tokens, t)
        u2 = h / 2 * k1
        k2 = inverse_dexp(u2, generator(moved(u2), t + h / 2))
        u3 = h / 2 * k2
        k3 = inverse_dexp(u3, generator(moved(u3), t + h / 2))
        u4 = h * k3
        k4 = inverse_dexp(u4, generator(moved(u4), t + h))
        total = jax.tree.map(lambda s, a, b, c, d: s + h / 6 * (a + 2 * b + 2 * c + d), sums, *rates)
        y = (moved(h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)), total)
        return y, field(y, t + h), ()


METHODS.register("geodesic-euler", GeodesicEuler(1, 0))
METHODS.register("rkmk4", RKMK4(4, 0))
