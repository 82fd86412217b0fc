"""A Gaussian cloud in scale-free variables, on a clock that never reaches a blow-up."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.module import Module
from pathlines.foundation.papers import UNIFIED, Paper
from pathlines.model.capability import Pauses
from pathlines.model.gaussian.closure import Cloud, Factor, GaussianClosure
from pathlines.numerics.jacobi import orthogonal_rows

STILL = 1e-10
"""Scale-free speed below which a covariance counts as converged."""

TO_ZERO = -12.0
"""ln(ρ/ρ_0) below which a cloud counts as collapsed, if it shrinks along every axis and its shape has settled."""

SETTLED = 1e-2
"""Speed of a settled shape; one that keeps turning while it shrinks must shrink three times as far."""

SEEN = 1e-9
"""Axes of Y shorter than this are rounding."""


class Scaled(Module):
    """L = √ρ Y with |Y| = 1, and the elapsed time in units of its first scale."""

    shape: Factor
    log_size: Float[Array, ""]
    time: Float[Array, ""]


class ScaledClosure(Pauses):
    """Y' = B̂Y - ½φY,  (ln ρ)' = φ = 2⟨B̂Y, Y⟩,  t' = 1/g,  B̂ = B/g,  ds = g dt,  g ≥ Σ_h |C_h| pace_h.

    The centred closure (α = 0) of A Unified Perspective, arXiv:2501.18322. B = Σ_h C_h Cov_h(y|x) A_h for softmax
    (Cov = Σ), l2 (Cov = (Σ^{-1}+2KᵀK)^{-1}, twice) and Sinkhorn, and pace_h ≥ |Cov_h(y|x) A_h L|/|L|, so that |B̂Y| ≤ 1
    and nothing diverges: a blow-up is ln ρ → ∞ at finite t. For softmax g = Σ_h |C_h| pace_h ∝ tr Σ, and the equation
    for Y has no ρ. For the others that sum vanishes where the heads no longer see the cloud (KL → 0), t would be e^s
    and a cloud that comes to rest like 1/t lost in rounding: g is the sum plus ρ/(ρ_0 + ρ) of what it was at first.
    ``growth`` is the ln(ρ/ρ_0) at which a run may stop. Stiff near rank-one limits: method "rodas5p" from s ≈ 1000 on.
    Derived.
    """

    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)

    inner: GaussianClosure
    log_start: Float[Array, ""]
    least: Float[Array, ""]
    unit: Float[Array, ""]
    growth: float = eqx.field(static=True)
    still: float = eqx.field(static=True)

    def __init__(self, inner: GaussianClosure, factor: Factor, growth: float = 25.0, still: float = STILL) -> None:
        self.inner, self.growth, self.still = inner, growth, still
        self.log_start = jnp.log(jnp.sum(factor * factor))
        pace = self.inner.total(_centred(factor))[1]
        self.least = jnp.zeros_like(pace) if inner.homogeneous else pace
        self.unit = self.clock(factor)

    def moved(self, factor: Factor) -> tuple[Factor, Float[Array, ""]]:
        """(dL/dt, g) of the centred cloud."""
        velocity, pace = self.inner.total(_centred(factor))
        size = jnp.sum(factor * factor)
        return velocity.factor, pace + self.least * size / (jnp.exp(self.log_start) + size)

    def clock(self, factor: Factor) -> Float[Array, ""]:
        """g = ds/dt."""
        return self.moved(factor)[1]

    def begin(self, factor: Factor) -> Scaled:
        """The state of Σ = LLᵀ at t = 0."""
        size = jnp.sum(factor * factor)
        return Scaled(factor / jnp.sqrt(size), jnp.log(size), jnp.zeros((), factor.dtype))

    def factor(self, state: Scaled) -> Factor:
        """L = √ρ Y."""
        return jnp.exp(state.log_size / 2) * state.shape

    def initial(self, tokens: Float[Array, "n d"]) -> Scaled:
        """From tokens, whose mean is left out."""
        return self.begin(self.inner.initial(tokens).factor)

    def tokens(self, state: Scaled, t: Array) -> Float[Array, "n d"]:
        """Points with the covariance of the cloud, centred."""
        return self.inner.tokens(_centred(self.factor(state)), t)

    def check(self, tokens: Any) -> None:
        """As the closure."""
        self.inner.check(tokens)

    @property
    def on_sphere(self) -> bool:
        """R^d."""
        return False

    def drift(self, state: Scaled, t: Array) -> Scaled:
        """(B̂Y - ½φY, φ, g_0/g)."""
        factor = self.factor(state)
        velocity, rate = self.moved(factor)
        rate = jnp.where(rate > 0, rate, 1.0)  # nothing moves where V or A is zero
        moving = velocity * jnp.exp(-state.log_size / 2) / rate
        half = jnp.sum(moving * state.shape) / jnp.sum(state.shape**2)
        return Scaled(moving - half * state.shape, 2 * half, self.unit / rate)

    def retract(self, state: Scaled) -> Scaled:
        """|Y| = 1, the rest of the size in ln ρ."""
        size = jnp.sum(state.shape**2)
        return Scaled(state.shape / jnp.sqrt(size), state.log_size + jnp.log(size), state.time)

    def speeds(self, state: Scaled) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """(speed of YYᵀ, φ, the largest of (ln λ_i)'), λ_i the variances along the axes of Σ.

        The speed is that of Bures, |Y' - YΩ| at the best antisymmetric Ω: ½ Σ_ij M_ij²/(s_i² + s_j²) is its square,
        M = (YYᵀ)' in the axes of Y and s_i their lengths. Y → YO moves nothing, and does not count.
        """
        slope = self.drift(state, jnp.zeros((), state.log_size.dtype))
        turn, rows = orthogonal_rows(state.shape)
        half = rows @ (turn.T @ slope.shape).T
        moved, squares = half + half.T, jnp.sum(rows**2, axis=1)
        pairs = squares[:, None] + squares[None]
        speed = jnp.sqrt(jnp.sum(jnp.where(pairs > 0, moved**2 / jnp.where(pairs > 0, pairs, 1.0), 0.0)) / 2)
        seen = squares > SEEN**2
        along = jnp.where(seen, jnp.diagonal(moved) / jnp.where(seen, squares, 1.0), -jnp.inf)
        return speed, slope.log_size, jnp.max(along) + slope.log_size

    def verdict(self, state: Scaled) -> tuple[Float[Array, ""], Array]:
        """(residual, collapsed): the speed of YYᵀ plus |φ|, and whether the cloud has shrunk for good.

        That is by e^{-12}, along every axis and with a shape that no longer changes; or by e^{-36} along every axis.
        """
        speed, growth, fastest = self.speeds(state)
        change = state.log_size - self.log_start
        collapsed = (fastest < 0) & (change < jnp.where(speed < SETTLED, TO_ZERO, 3 * TO_ZERO))
        return speed + jnp.abs(growth), collapsed

    def is_decided(self, state: Scaled) -> Array:
        """Whether the fate is decided: grown by e^growth, collapsed, or standing still."""
        residual, collapsed = self.verdict(state)
        return (state.log_size - self.log_start > self.growth) | collapsed | (residual < self.still)

    def should_pause(self, state: Scaled) -> Array:
        """What is seen of ``is_decided`` at every step, without the axes of Y, which cost half as much as a step."""
        slope = self.drift(state, jnp.zeros((), state.log_size.dtype))
        residual = jnp.sqrt(jnp.sum(slope.shape**2)) + jnp.abs(slope.log_size)
        return (state.log_size - self.log_start > self.growth) | (residual < self.still)


def _centred(factor: Factor) -> Cloud:
    return Cloud(jnp.zeros(factor.shape[0], factor.dtype), factor)
