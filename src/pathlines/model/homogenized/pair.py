"""Two tokens seen through their overlap alone, R = ⟨x_1, x_2⟩ = tanh y."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, require
from pathlines.model.capability import PathModel

Scalar = Float[Array, ""]


class PairModel(PathModel):
    """A chain on y = artanh R, which has room for 1 - R and 1 + R down to 1e-300.

    Starts are an overlap R in (-1, 1) or two unit tokens (2, d); observables of pairs see both.
    """

    def initial(self, tokens: Any) -> Scalar:
        """y = ½ ln((1+R)/(1-R)), from |x_1 ± x_2| when tokens are given."""
        if jnp.ndim(tokens) == 0:
            return jnp.arctanh(tokens)
        near, far = jnp.sum((tokens[0] - tokens[1]) ** 2), jnp.sum((tokens[0] + tokens[1]) ** 2)
        return 0.5 * jnp.log(far / near)

    def check(self, tokens: Any) -> None:
        """An overlap strictly between -1 and 1, or two unit tokens that are neither equal nor opposite."""
        array = np.asarray(tokens)
        if array.ndim == 0:
            require(-1 < float(array) < 1, "start", "be an overlap > -1 and < 1", float(array))
            return
        if array.ndim != 2 or array.shape[0] != 2:
            raise ArgumentError(
                f"Argument `start` must be an overlap or two tokens (2, d), but has shape {array.shape}."
            )
        Sphere(array.shape[1]).check(array)
        require(np.abs(array[0] @ array[1]) < 1, "start", "be two tokens that are not parallel", array)

    @property
    def on_sphere(self) -> bool:
        """Unit tokens."""
        return True

    def overlap(self, state: Scalar) -> Scalar:
        """R."""
        return jnp.tanh(state)

    def deficits(self, state: Scalar, t: Array) -> Float[Array, "2 2"]:
        """u_12 = 1 - R = 2/(1 + e^{2y})."""
        return 2 * jax.nn.sigmoid(-2 * state) * (1 - jnp.eye(2, dtype=state.dtype))

    def spread(self, state: Scalar) -> Array | None:
        """1 - R."""
        return 2 * jax.nn.sigmoid(-2 * state)


class PairDiffusion(PairModel):
    """dy = μ(y) dt + σ(y) dB, by Platen's explicit scheme of weak order two (order two in the mean of any observable).

    Y' = Y + ½(μ(Ȳ) + μ)Δ + ¼(σ(Y⁺) + σ(Y⁻) + 2σ)ΔW + ¼(σ(Y⁺) - σ(Y⁻))(ΔW² - Δ)/√Δ,  Ȳ = Y + μΔ + σΔW, Y^± = Y + μΔ ±
    σ√Δ.
    """

    @abstractmethod
    def coefficients(self, y: Scalar) -> tuple[Scalar, Scalar]:
        """(μ, σ)."""

    @property
    def tick(self) -> Scalar:
        """Δ."""
        return self.time_step  # type: ignore[attr-defined]

    def random_layer(self, state: Scalar, number: Array, key: PRNGKeyArray) -> Scalar:
        """One step of length Δ."""
        return self.stepped(state, jax.random.normal(key, state.shape, state.dtype))

    def stepped(self, y: Scalar, z: Scalar) -> Scalar:
        """The step with ΔW = √Δ z."""
        root = jnp.sqrt(self.tick)
        mu, sigma = self.coefficients(y)
        ahead = y + mu * self.tick
        later = self.coefficients(ahead + sigma * root * z)[0]
        high, low = (self.coefficients(ahead + sign * sigma * root)[1] for sign in (1, -1))
        noise = (high + low + 2 * sigma) * z + (high - low) * (z * z - 1)
        return y + (later + mu) / 2 * self.tick + noise / 4 * root
