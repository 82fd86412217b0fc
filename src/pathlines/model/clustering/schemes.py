"""The six normalisation schemes as speed regulation (Normalization in Attention Dynamics, arXiv:2510.22026)."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import finite_number
from pathlines.foundation.module import Module
from pathlines.foundation.registry import Registry
from pathlines.foundation.traceable import traceable_number

Column = Float[Array, "n 1"]


class Scheme(Module):
    """Token x_j = r_j θ_j: dθ_j/dt = P_{θ_j} A_j / s_j, dr_j/dt = growth, with h_j = <θ_j, A_j> and m_j = |A_j|."""

    @abstractmethod
    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(s, dr/dt)."""

    @abstractmethod
    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """(a vector along the new direction, the new magnitude) after one layer of step η."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Times where the scheme changes."""
        return ()


SCHEMES: Registry[type[Scheme]] = Registry("normalisation scheme", "pathlines.model")


def _nonzero(m: Column) -> Column:
    """m, or one where A vanishes: N(0) = 0, nothing moves."""
    return jnp.where(m > 0, m, 1.0)


def _length(x: Float[Array, "n d"]) -> Column:
    return jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


@SCHEMES.add("post")
class PostLN(Scheme):
    """θ ← N(θ + ηA): s = 1, r constant."""

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(1, 0)."""
        return jnp.ones_like(r), jnp.zeros_like(r)

    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """θ + ηA."""
        return theta + step * a, r


@SCHEMES.add("pre")
class PreLN(Scheme):
    """x ← x + ηA(Nx): s = r, dr/dt = h."""

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(r, h)."""
        return r, h

    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """rθ + ηA, of length r."""
        x = r * theta + step * a
        return x, _length(x)


@SCHEMES.add("mix")
class MixLN(Scheme):
    """Post-LN for t < switch, Pre-LN after; magnitudes wait at their start until the switch."""

    switch: float = eqx.field(static=True)

    def __init__(self, switch: float = 2.0) -> None:
        self.switch = finite_number("switch", switch, low=0.0)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The switch."""
        return (self.switch,)

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(1, 0) before the switch, (r, h) after."""
        early = t < self.switch
        return jnp.where(early, 1.0, r), jnp.where(early, 0.0, h)

    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """θ + ηA for layers that start at t ≤ switch (forgiving the rounding of ℓη), rθ + ηA after."""
        early = t <= self.switch + 1e-6 * step
        x = jnp.where(early, 1.0, r) * theta + step * a
        return x, jnp.where(early, r, _length(x))


@SCHEMES.add("peri")
class PeriLN(Scheme):
    """x ← x + ηN(A(Nx)): s = r m, dr/dt = h/m."""

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(r m, h/m)."""
        return r * _nonzero(m), h / _nonzero(m)

    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """rθ + ηA/|A|."""
        x = r * theta + step * a / _nonzero(_length(a))
        return x, _length(x)


@SCHEMES.add("ngpt")
class NGPT(Scheme):
    """θ ← N((1-αη)θ + αηN(A)): s = m/α, r constant."""

    alpha: Float[Array, ""]

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = jnp.asarray(traceable_number("alpha", alpha, low=0.0, open_low=True))

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(m/α, 0)."""
        return _nonzero(m) / self.alpha, jnp.zeros_like(r)

    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """(1-αη)θ + αηA/|A|."""
        gain = self.alpha * step
        return (1 - gain) * theta + gain * a / _nonzero(_length(a)), r


@SCHEMES.add("sqrt")
class SqrtScaling(Scheme):
    """Post-LN with steps η/√(t+1), also called LN-scaling: s = √(t+1), r constant."""

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """(√(t+1), 0)."""
        return jnp.sqrt(t + 1) * jnp.ones_like(r), jnp.zeros_like(r)

    def layer(
        self, t: Array, step: Array, theta: Float[Array, "n d"], r: Column, a: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n d"], Column]:
        """θ + ηA/√(t+1)."""
        return theta + step / jnp.sqrt(t + 1) * a, r


class OneOf(Scheme):
    """One of several schemes, chosen by a number and not by type: all of them share one compiled program."""

    members: tuple[Scheme, ...]
    index: Array

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Those of every member; stopping where nothing jumps does no harm."""
        return tuple(t for member in self.members for t in member.breakpoints)

    def rates(self, t: Array, r: Column, h: Column, m: Column) -> tuple[Column, Column]:
        """The rates of the chosen member."""
        return self._chosen([member.rates(t, r, h, m) for member in self.members])

    def layer(self, t: Array, step: Array, theta: Array, r: Column, a: Array) -> tuple[Array, Column]:
        """The layer of the chosen member."""
        return self._chosen([member.layer(t, step, theta, r, a) for member in self.members])

    def _chosen(self, pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        first, second = zip(*pairs, strict=True)
        return jnp.stack(first)[self.index], jnp.stack(second)[self.index]
