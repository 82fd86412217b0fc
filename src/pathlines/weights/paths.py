"""Paths of heads over depth-time, for ``VaryingWeights``: pytrees, so that other numbers need no other program."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.module import Module


class Oscillating(Module):
    """A_h(t) = A_h + B_h cos(ω_h t)."""

    base: Float[Array, "h d d"]
    swing: Float[Array, "h d d"]
    frequency: Float[Array, " h"]

    def __init__(self, base: Any, swing: Any, frequency: Any) -> None:
        self.base = jnp.asarray(finite_array("base", base, ("h", "d", "d")), float)
        self.swing = jnp.asarray(finite_array("swing", swing, self.base.shape), float)
        self.frequency = jnp.asarray(finite_array("frequency", frequency, self.base.shape[:1]), float)

    def __call__(self, t: Any) -> Array:
        """The heads at depth-time t."""
        return self.base + self.swing * jnp.cos(self.frequency * t)[:, None, None]


class Decaying(Module):
    """A_h(t) = A_h + B_h e^{-κt}."""

    base: Float[Array, "h d d"]
    swing: Float[Array, "h d d"]
    decay: Float[Array, ""]

    def __init__(self, base: Any, swing: Any, decay: float = 1.0) -> None:
        self.base = jnp.asarray(finite_array("base", base, ("h", "d", "d")), float)
        self.swing = jnp.asarray(finite_array("swing", swing, self.base.shape), float)
        self.decay = jnp.asarray(finite_number("decay", decay, 0.0))

    def __call__(self, t: Any) -> Array:
        """The heads at depth-time t."""
        return self.base + self.swing * jnp.exp(-self.decay * t)


class PiecewiseLinear(Module):
    """Heads at the times 0, Δ, 2Δ, …, linear between them and constant after the last: (layers + 1, H, d, d)."""

    knots: Float[Array, "k h d d"]
    spacing: Float[Array, ""]

    def __init__(self, knots: Any, spacing: float) -> None:
        self.knots = jnp.asarray(finite_array("knots", knots, ("k", "h", "d", "d")), float)
        self.spacing = jnp.asarray(finite_number("spacing", spacing, 0.0, open_low=True))

    def __call__(self, t: Any) -> Array:
        """The heads at depth-time t."""
        last = self.knots.shape[0] - 1
        place = jnp.clip(t / self.spacing, 0.0, last)
        before = jnp.minimum(jnp.floor(place), max(last - 1, 0)).astype(int)
        share = place - before.astype(place.dtype)
        return (1 - share) * self.knots[before] + share * self.knots[jnp.minimum(before + 1, last)]


def ornstein_uhlenbeck(
    mean: Any, size: float, relaxation: float, layers: int, spacing: float, seed: int = 0
) -> np.ndarray:
    """Knots of a symmetric Ornstein–Uhlenbeck path about ``mean`` (H, d, d), for ``PiecewiseLinear``.

    dA = -κ(A - mean) dt + noise of stationary standard deviation ``size``, sampled exactly at the layers and joined by
    straight lines: along these, ∫ ∂_tE dt is an ordinary integral (its limit for fine layers is Stratonovich's).
    """
    middle = finite_array("mean", mean, ("h", "d", "d")).astype(float)
    rng, count = np.random.default_rng(seed), positive_integer("layers", layers)
    keep = np.exp(-finite_number("relaxation", relaxation, 0.0) * finite_number("spacing", spacing, 0.0, open_low=True))
    draws = finite_number("size", size, 0.0) * rng.standard_normal((count + 1, *middle.shape))
    draws = (draws + np.swapaxes(draws, -1, -2)) / 2**0.5
    for k in range(1, count + 1):
        draws[k] = keep * draws[k - 1] + np.sqrt(1 - keep**2) * draws[k]
    return middle + draws
