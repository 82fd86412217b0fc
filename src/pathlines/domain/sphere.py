"""The unit sphere: layer normalisation, idealised."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain.space import Domain, checked_tokens, sines
from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer, require
from pathlines.foundation.keys import random_key
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.traceable import is_traced
from pathlines.numerics.chi import bartlett


def _inner(x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n 1"]:
    """<x, y> of each row; written out for many short ones, where a reduction takes ten times as long."""
    if x.shape[-1] > 4 or x.size < 1 << 14:
        return jnp.sum(x * y, axis=-1, keepdims=True)
    products = x * y
    total = products[..., :1]
    for c in range(1, x.shape[-1]):
        total = total + products[..., c : c + 1]
    return total


class Sphere(Domain):
    """S^{d-1} in R^d: P_x v = v - <x, v> x, retraction N(x) = x/|x|.

    ``Sphere(3).uniform(key, n=64)`` draws 64 tokens on the ordinary sphere; ``Sphere(2)`` is the circle.

    Args:
        dim: d ≥ 1, the ambient dimension; the sphere itself has d - 1. The larger, the nearer to orthogonal are random
            tokens (overlaps of size d^{-1/2}) and the more alike are all pairs.
    """

    dim: int = eqx.field(static=True)

    def __init__(self, dim: int) -> None:
        self.dim = positive_integer("dim", dim)

    def tangent(self, x: Float[Array, "*n d"], v: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """P_x v = v - <x, v> x for unit x."""
        return v - _inner(x, v) * x

    def retract(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """N(x) = x/|x|."""
        return x / jnp.sqrt(_inner(x, x))

    def distance(self, x: Float[Array, "*n d"], y: Float[Array, "*n d"]) -> Float[Array, "*n"]:
        """Great-circle distance 2 arcsin(|x - y|/2), accurate for close points."""
        chord = jnp.sqrt(jnp.sum((x - y) ** 2, axis=-1))
        return 2 * jnp.arcsin(jnp.minimum(chord / 2, 1.0))

    def check(self, tokens: Any) -> None:
        """Raise unless rows are unit vectors (to 1e-6 in float64, 1e-4 in float32)."""
        array = checked_tokens(tokens, self.dim)
        if is_traced(array):
            return
        off = np.abs(np.linalg.norm(array.astype(np.float64), axis=-1) - 1.0)
        worst = float(off.max())
        if worst > (1e-4 if array.dtype == np.float32 else 1e-6):
            row = tuple(int(i) for i in np.unravel_index(off.argmax(), off.shape))
            raise ArgumentError(
                f"Argument `tokens` must have rows of length 1, but row {row[0] if len(row) == 1 else row} is off by "
                f"{worst:.3g}; pass pathlines.Sphere({self.dim}).normalise(tokens)."
            )

    def normalise(self, tokens: Any, dtype: DTypeLike | None = None) -> Float[Array, "*n d"]:
        """Divide each row by its length; a zero row is an error."""
        make_room_for_programs()
        array = checked_tokens(tokens, self.dim)
        fine = is_traced(array) or bool((np.linalg.norm(array, axis=-1) > 0).all())
        require(fine, "tokens", "have no zero row", array)
        return self.retract(jnp.asarray(array, resolve_dtype(dtype or "float64")))

    def uniform(self, key: PRNGKeyArray, n: int, dtype: DTypeLike = "float64") -> Float[Array, "n d"]:
        """n i.i.d. uniform points (normalised Gaussians).

        Args:
            key: a JAX key; the same key gives the same points.
            n: how many, n ≥ 1. A drift costs n² of them (less on the circle and on S²). The more, the dearer a drift.
            dtype: "float64" (which must be enabled) or "float32".
        """
        make_room_for_programs()
        n, wanted = positive_integer("n", n), resolve_dtype(dtype)
        return self.retract(jax.random.normal(random_key("key", key), (n, self.dim), wanted))

    def uniform_span(self, key: PRNGKeyArray, n: int, dtype: DTypeLike = "float64") -> Float[Array, "n n"]:
        """A factor R, n × n with unit rows, of the Gram matrix of n ≤ d i.i.d. uniform points of S^{d-1}.

        Row-normalised Bartlett factor: lower triangular, strict part N(0, 1), diagonal sqrt(chi²_{d-i}), i = 0..n-1.
        Exact in law for everything that is invariant under rotations, at a cost independent of d.
        """
        make_room_for_programs()
        n, wanted = positive_integer("n", n), resolve_dtype(dtype)
        require(n <= self.dim, "n", f"be at most d = {self.dim} for a span factor", n)
        return self.retract(bartlett(random_key("key", key), n, self.dim, dtype=wanted))

    def von_mises_fisher(
        self, key: PRNGKeyArray, n: int, concentration: float, centre: Any = None, dtype: DTypeLike = "float64"
    ) -> Float[Array, "n d"]:
        """n points with density ∝ exp(κ <x, centre>), by Wood's rejection sampler (acceptance above one half).

        Args:
            key: a JAX key.
            n: how many, n ≥ 1. The more, the dearer a drift.
            concentration: κ ≥ 0. At 0 the law is uniform; the larger, the tighter around the centre (angles of size
                ((d-1)/κ)^{1/2}).
            centre: the direction (d,), of any length but zero; by default the first basis vector.
            dtype: "float64" or "float32".
        """
        n, wanted = positive_integer("n", n), resolve_dtype(dtype)
        kappa = finite_number("concentration", concentration, low=0.0)
        require(self.dim >= 2, "dim", "be at least 2 for a von Mises-Fisher law", self.dim)
        along, across = jax.random.split(random_key("key", key))
        cosine = _von_mises_fisher_cosine(along, n, self.dim, kappa, wanted)
        axis = np.eye(self.dim)[0] if centre is None else finite_array("centre", centre, (self.dim,))
        axis = self.normalise(axis[None, :], wanted)[0]
        side = self.tangent(jnp.broadcast_to(axis, (n, self.dim)), self.uniform(across, n, wanted))
        return cosine[:, None] * axis[None] + jnp.sqrt(1 - cosine**2)[:, None] * self.retract(side)

    def simplex(self, n: int, overlap: float = 0.0, dtype: DTypeLike = "float64") -> Float[Array, "n d"]:
        """n points with one common inner product: <x_i, x_j> = ρ for i ≠ j, the start of the equiangular reductions.

        Args:
            n: how many, n ≤ d, or n ≤ d + 1 at the least overlap. The more, the later they collapse.
            overlap: ρ, -1/(n-1) ≤ ρ < 1. At 0 tokens are orthogonal; the larger, the sooner they are one point.
            dtype: "float64" or "float32".
        """
        make_room_for_programs()
        n, wanted = positive_integer("n", n), resolve_dtype(dtype)
        low = -1.0 / (n - 1) if n > 1 else -np.inf
        rho = finite_number("overlap", overlap, low=low - 1e-15)
        require(rho < 1.0, "overlap", "be below 1", rho)
        gram = (1 - rho) * np.eye(n) + rho
        values, vectors = np.linalg.eigh(gram)
        factor = vectors * np.sqrt(np.clip(values, 0.0, None))
        rank = n - 1 if values[0] < 1e-12 else n
        if rank > self.dim:
            raise ArgumentError(
                f"Argument `n` must be at most {self.dim + n - rank} for n points of S^{self.dim - 1} with one common "
                f"overlap {rho:g}, but is {n}."
            )
        points = np.zeros((n, self.dim))
        points[:, : min(n, self.dim)] = factor[:, ::-1][:, : self.dim]
        return self.retract(jnp.asarray(points, wanted))

    def clusters(
        self, key: PRNGKeyArray, centres: Any, sizes: Any, spread: float = 0.0, dtype: DTypeLike = "float64"
    ) -> Float[Array, "n d"]:
        """``sizes[k]`` tokens around each centre: N(centre + spread · Gaussian)."""
        centres = self.normalise(centres, dtype)
        sizes = np.asarray(sizes)
        require(
            sizes.shape == centres.shape[:1] and bool((sizes >= 1).all()), "sizes", "be one count per centre", sizes
        )
        spread = finite_number("spread", spread, low=0.0)
        points = jnp.repeat(centres, sizes, axis=0, total_repeat_length=int(sizes.sum()))
        return self.retract(points + spread * jax.random.normal(random_key("key", key), points.shape, points.dtype))

    def sines(self, n: int, dtype: DTypeLike = "float64") -> Float[Array, "n d"]:
        """The deterministic start G(n, d): normalised rows of sin(1.3 i + 2.1 j + 0.7 i j)."""
        return self.normalise(sines(n, self.dim), dtype)


def _von_mises_fisher_cosine(key: PRNGKeyArray, n: int, d: int, kappa: float, dtype: np.dtype) -> Float[Array, " n"]:
    """Cosines to the centre: W = (1 - (1+b)B)/(1 - (1-b)B), B ~ Beta((d-1)/2, (d-1)/2), accepted by log-ratio."""
    m = d - 1
    b = m / (2 * kappa + np.sqrt(4 * kappa**2 + m**2))
    centre = (1 - b) / (1 + b)
    constant = kappa * centre + m * np.log1p(-(centre**2))

    def propose(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        cosine, accepted, key = state
        key, first, second = jax.random.split(key, 3)
        beta = jax.random.beta(first, m / 2, m / 2, (n,), dtype)
        proposal = (1 - (1 + b) * beta) / (1 - (1 - b) * beta)
        ratio = kappa * proposal + m * jnp.log1p(-centre * proposal) - constant
        ok = ratio >= jnp.log(jax.random.uniform(second, (n,), dtype))
        return jnp.where(accepted, cosine, proposal), accepted | ok, key

    start = (jnp.zeros(n, dtype), jnp.zeros(n, bool), key)
    cosine, _, _ = jax.lax.while_loop(lambda s: ~jnp.all(s[1]), propose, start)
    return cosine
