"""A Gaussian cloud in scale-free variables, on a clock that never reaches a blow-up."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.papers import UNIFIED, Paper
from pathlines.model.base import Model
from pathlines.model.gaussian_closure import Cloud, Factor, GaussianClosure

STILL = 1e-10
"""Scale-free speed below which a covariance counts as converged."""

TO_ZERO = -12.0
"""ln(ρ/ρ_0) below which a cloud counts as collapsed."""


class Scaled(eqx.Module):
    """L = √ρ Y with |Y| = 1, and the elapsed time in units of its first scale."""

    shape: Factor
    log_size: Float[Array, ""]
    time: Float[Array, ""]


class ScaledClosure(Model):
    """Y' = B̂Y - ½φY,  (ln ρ)' = φ = 2⟨B̂Y, Y⟩,  t' = 1/g,  B̂ = B/g,  ds = g dt,  g = Σ_h |C_h| pace_h.

    The centred closure (α = 0) of A Unified Perspective, arXiv:2501.18322. B = Σ_h C_h Cov_h(y|x) A_h for softmax
    (Cov = Σ), l2 (Cov = (Σ^{-1}+2KᵀK)^{-1}, twice) and Sinkhorn, and pace_h ≥ |Cov_h(y|x) A_h|, so that |B̂| ≤ 1 and
    nothing diverges: a blow-up is ln ρ → ∞ at finite t. For softmax g ∝ tr Σ, and the equation for Y has no ρ.
    ``growth`` is the ln(ρ/ρ_0) at which a run may stop. Stiff near rank-one limits: method "rodas5p" from s ≈ 1000 on.
    Derived.
    """

    papers: ClassVar[tuple[Paper, ...]] = (UNIFIED,)

    inner: GaussianClosure
    log_start: Float[Array, ""]
    unit: Float[Array, ""]
    growth: float = eqx.field(static=True)
    still: float = eqx.field(static=True)

    def __init__(self, inner: GaussianClosure, factor: Factor, growth: float = 25.0, still: float = STILL) -> None:
        self.inner, self.growth, self.still = inner, growth, still
        self.log_start = jnp.log(jnp.sum(factor * factor))
        self.unit = self.clock(factor)

    def moved(self, factor: Factor) -> tuple[Factor, Float[Array, ""]]:
        """(dL/dt, g) of the centred cloud."""
        velocity, rate = self.inner.total(Cloud(jnp.zeros(factor.shape[0], factor.dtype), factor))
        return velocity.factor, rate

    def clock(self, factor: Factor) -> Float[Array, ""]:
        """g = Σ_h |C_h| pace_h."""
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
        factor = self.factor(state)
        return self.inner.tokens(Cloud(jnp.zeros(factor.shape[0], factor.dtype), factor), t)

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
        moving = velocity * jnp.exp(-state.log_size / 2) / rate
        half = jnp.sum(moving * state.shape) / jnp.sum(state.shape**2)
        return Scaled(moving - half * state.shape, 2 * half, self.unit / rate)

    def retract(self, state: Scaled) -> Scaled:
        """|Y| = 1, the rest of the size in ln ρ."""
        size = jnp.sum(state.shape**2)
        return Scaled(state.shape / jnp.sqrt(size), state.log_size + jnp.log(size), state.time)

    def residual(self, state: Scaled) -> Float[Array, ""]:
        """|Y'| + |φ|: how far from standing still, scale-free."""
        slope = self.drift(state, jnp.zeros((), state.log_size.dtype))
        return jnp.sqrt(jnp.sum(slope.shape**2)) + jnp.abs(slope.log_size)

    def is_ripe(self, state: Scaled) -> Array:
        """Whether the fate is decided: grown by e^growth, shrunk by e^{-12}, or standing still."""
        change = state.log_size - self.log_start
        return (change > self.growth) | (change < TO_ZERO) | (self.residual(state) < self.still)
