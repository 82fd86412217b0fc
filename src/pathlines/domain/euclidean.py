"""R^d: attention without layer normalisation."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain.space import Domain, checked_tokens, sines
from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.keys import random_key
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.programs import make_room_for_programs


class Euclidean(Domain):
    """R^d with the identity as tangent projection and retraction.

    Args:
        dim: d ≥ 1, the dimension. The larger, the more alike are the distances between random tokens.
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int) -> None:
        self.dim = positive_integer("dim", dim)

    def tangent(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Every vector is tangent."""
        return v

    def retract(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Every point is in the domain."""
        return x

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """|x - y|."""
        return jnp.sqrt(jnp.sum((x - y) ** 2, axis=-1))

    def check(self, tokens: Any) -> None:
        """Raise unless tokens are finite rows of length d."""
        checked_tokens(tokens, self.dim)

    def cube(
        self, key: PRNGKeyArray, n: int, low: float = -1.0, high: float = 1.0, dtype: DTypeLike = "float64"
    ) -> Float[Array, "n d"]:
        """n i.i.d. uniform points of [low, high]^d."""
        make_room_for_programs()
        n, wanted = positive_integer("n", n), resolve_dtype(dtype)
        low, high = finite_number("low", low), finite_number("high", high)
        require(low < high, "high", f"be above low = {low:g}", high)
        return jax.random.uniform(random_key("key", key), (n, self.dim), wanted, low, high)

    def gaussian(
        self, key: PRNGKeyArray, n: int, scale: float = 1.0, dtype: DTypeLike = "float64"
    ) -> Float[Array, "n d"]:
        """n i.i.d. points of N(0, scale² I)."""
        make_room_for_programs()
        n, wanted = positive_integer("n", n), resolve_dtype(dtype)
        return finite_number("scale", scale, low=0.0) * jax.random.normal(random_key("key", key), (n, self.dim), wanted)

    def sines(self, n: int, scale: float = 1.0, dtype: DTypeLike = "float64") -> Float[Array, "n d"]:
        """The deterministic start: scale · sin(1.3 i + 2.1 j + 0.7 i j)."""
        return jnp.asarray(scale * sines(n, self.dim), resolve_dtype(dtype))
