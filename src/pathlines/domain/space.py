"""The idea of a domain: a tangent projection and a retraction."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.module import Module
from pathlines.foundation.traceable import traceable_array


class Domain(Module):
    """Points are rows of an ``(n, d)`` array; ``dim`` is always the ambient dimension d."""

    dim: eqx.AbstractVar[int]

    @abstractmethod
    def tangent(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Project ambient vectors v on the tangent spaces at x."""

    @abstractmethod
    def retract(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Bring points that left the domain back to it."""

    @abstractmethod
    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """Geodesic distance."""

    @abstractmethod
    def check(self, tokens: Any) -> None:
        """Raise ``ArgumentError`` unless the rows of ``tokens`` are points of this domain."""


def sines(n: int, d: int, a: float = 1.3, b: float = 2.1, c: float = 0.7) -> np.ndarray:
    """The deterministic start INIT(n, d; a, b, c)_ij = sin(a i + b j + c i j), i = 1..n, j = 1..d.

    Reproducible by anyone in any language; reference trajectories use it. Normalise the rows for the sphere.
    """
    n, d = positive_integer("n", n), positive_integer("d", d)
    i, j = np.arange(1, n + 1)[:, None], np.arange(1, d + 1)[None, :]
    return np.sin(a * i + b * j + c * i * j)


@jax.jit
def pair_deficits(x: Float[Array, "n d"]) -> Float[Array, "n n"]:
    """u_ij = ½|x_i - x_j|², from differences, so that nearly coincident points keep their relative precision.

    On the sphere u_ij = 1 - <x_i, x_j>, which in floating point stops at 1e-16. Cost O(n²d) time, O(n²) memory.
    """

    def add(total: Array, component: Array) -> tuple[Array, None]:
        difference = component[:, None] - component[None, :]
        return total + 0.5 * difference * difference, None

    total, _ = jax.lax.scan(add, jnp.zeros((x.shape[0],) * 2, x.dtype), x.T, unroll=4)
    return total


def checked_tokens(tokens: Any, dim: int) -> Any:
    """Return tokens as a finite ``(..., n, d)`` array with n ≥ 1 and the domain's d."""
    array = traceable_array("tokens", tokens)
    if array.ndim < 2 or array.shape[-1] != dim or array.shape[-2] < 1:
        raise ArgumentError(f"Argument `tokens` must have shape (n, {dim}) with n ≥ 1, but has shape {array.shape}.")
    return array
