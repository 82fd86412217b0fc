"""A density on the circle carried by random layers, on a grid."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, finite_array, of_kind, positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import PathModel
from pathlines.model.homogenized.random_transformer import RandomTransformer, moved


class CircleMeasure(PathModel):
    """The measure of ``TransportedMeasure`` for d = 2 as masses q_j of N equal cells [θ_j, θ_{j+1}] of the circle.

    A layer draws the heads of the chain (for a given key the same as the Lagrangian form), evaluates the layer map of
    the angle, Θ(θ_j), at the edges from the density there (trapezoid rule, weights f_j), and lays the mass q_j of each
    cell on the image arc between Θ_j and Θ_{j+1} with a monotone cubic profile whose end densities are f/|Θ'|.
    Densities and slopes at the edges come from six neighbours. Mass is conserved to rounding and stays positive
    whatever the step. This replaces the density form of the stochastic Fokker-Planck equation of arXiv:2604.01978,
    whose explicit discretisation with noise on a grid is unstable (derived).

    The error is O(N⁻⁴) while the density is resolved and no layer folds the circle. A layer folds it where Θ' < 0
    somewhere: an arc is laid down reversed over its neighbours, and the density has an inverse square root at each end
    of the fold, which leaves order about one (measured: 2e-2, 5e-3, 2e-3, 1e-3 at N = 64..512 in the first Fourier
    modes). The flow of the limit never folds; a layer does with a probability that falls quickly with v = η²/H (one
    layer of 400 at v = 0.05, of 4000 at v = 0.025, none seen of 32000 at v = 0.0125, for b = 2, p = ∞). ``chain``
    counts folds in the certificate and the coordinate ``folds`` of the run.

    The state is the vector of masses. Good values: N = 128..512, v ≤ 0.02, until the density is as narrow as some
    cells. Cost O(N²) per layer and head.
    """

    watched: ClassVar[tuple[str, str]] = (
        "folds",
        "layers that fold the circle (Θ' < 0 somewhere), after which the order in 1/N is about one instead of four",
    )

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    chain: RandomTransformer
    cells: int = eqx.field(static=True)

    def __init__(self, chain: RandomTransformer, cells: int = 256) -> None:
        of_kind("chain", chain, RandomTransformer, "a RandomTransformer")
        require(chain.d == 2, "chain", "have d = 2", chain.d)
        require(chain.multiplicities is None, "chain", "have no multiplicities", chain.multiplicities)
        self.chain, self.cells = chain, positive_integer("cells", cells, least=8)

    @property
    def edges(self) -> Float[Array, " N"]:
        """θ_j = -π + 2πj/N."""
        return -jnp.pi + 2 * jnp.pi * jnp.arange(self.cells, dtype=float) / self.cells

    @property
    def clocks(self) -> dict[str, float]:
        """Those of the chain."""
        return self.chain.clocks

    @property
    def derived(self) -> dict[str, Any]:
        """Those of the chain."""
        return self.chain.derived

    def check(self, tokens: Any) -> None:
        """Masses ≥ 0 of the cells with sum one, or tokens on the circle."""
        masses = finite_array("start", tokens)
        if masses.ndim == 2 and masses.shape[1] == 2:
            Sphere(2).check(masses)
            return
        if masses.shape != (self.cells,):
            raise ArgumentError(
                f"Argument `start` must be {self.cells} masses or tokens of shape (n, 2), but has shape {masses.shape}."
            )
        good = bool((masses >= 0).all()) and abs(float(masses.sum()) - 1) < 1e-6
        require(good, "start", "be masses ≥ 0 with sum 1", masses)

    def initial(self, tokens: Float[Array, ...]) -> Float[Array, " N"]:
        """The masses; those of the empirical measure for tokens, each in the cell it falls into."""
        if tokens.ndim == 1:
            return tokens
        angles = jnp.arctan2(tokens[:, 1], tokens[:, 0])
        cell = jnp.floor((angles + jnp.pi) * (self.cells / (2 * jnp.pi))).astype(int) % self.cells
        return jnp.zeros(self.cells, tokens.dtype).at[cell].add(1 / tokens.shape[0])

    def layer_work(self, state: Any) -> float:
        """Attention of all edges, and where each arc lands."""
        return float((self.chain.heads + 4) * self.cells**2)

    def masses_of(self, distribution: Any) -> Float[Array, " N"]:
        """Masses of the cells from a distribution function F on [-π, π] (NumPy), F(π) - F(-π) = 1."""
        ends = np.linspace(-np.pi, np.pi, self.cells + 1)
        return jnp.asarray(np.maximum(np.diff(distribution(ends)), 0.0))

    def density(self, state: Float[Array, " N"]) -> Float[Array, " N"]:
        """f(θ_j), to O(N⁻⁶)."""
        return edge_values(state) * self.cells / (2 * math.pi)

    def mean(self, state: Float[Array, " N"]) -> Float[Array, " 2"]:
        """∫ x μ(dx)."""
        return self.modes(state, 1)[0]

    def modes(self, state: Float[Array, " N"], largest: int) -> Float[Array, "K 2"]:
        """(∫ cos kθ dμ, ∫ sin kθ dμ), k = 1..largest, by the trapezoid rule."""
        angles = jnp.arange(1, largest + 1, dtype=state.dtype)[:, None] * self.edges.astype(state.dtype)[None]
        return jnp.stack([jnp.cos(angles) @ edge_values(state), jnp.sin(angles) @ edge_values(state)], axis=-1)

    def _circle(self, dtype: Any) -> Float[Array, "N 2"]:
        theta = self.edges.astype(dtype)
        return jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)

    def random_layer(self, state: Float[Array, " N"], number: Array, key: PRNGKeyArray) -> Float[Array, " N"]:
        """The heads of the chain, then ``carried``."""
        return self.watched_layer(state, number, key)[0]

    def watched_layer(
        self, state: Float[Array, " N"], number: Array, key: PRNGKeyArray
    ) -> tuple[Float[Array, " N"], Bool[Array, ""]]:
        """A layer, and whether it folds the circle."""
        images = self.images(state, self.chain.law.heads(key, self.chain.heads, state.dtype))
        return pushed(state, images), folds(images)

    def carried(self, state: Float[Array, " N"], heads: Any) -> Float[Array, " N"]:
        """One layer with given heads."""
        return pushed(state, self.images(state, heads))

    def images(self, state: Float[Array, " N"], heads: Any) -> Float[Array, " N"]:
        """Θ(θ_j), where one layer with given heads takes the edges."""
        x = self._circle(state.dtype)
        weights = jnp.maximum(edge_values(state), 0.0)
        chain = eqx.tree_at(lambda c: c.multiplicities, self.chain, weights, is_leaf=lambda leaf: leaf is None)
        y = moved(x, chain.step / chain.heads * chain.attended(x, heads), chain.update)
        turned = jnp.arctan2(x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0], jnp.sum(x * y, axis=-1))
        return self.edges.astype(state.dtype) + turned


def edge_values(cells: Float[Array, " N"]) -> Float[Array, " N"]:
    """Values at left edges, times the cell width, of a periodic function whose integrals over the cells are given."""
    pair = lambda k: jnp.roll(cells, k) + jnp.roll(cells, 1 - k)  # noqa: E731
    return (37 * pair(1) - 8 * pair(2) + pair(3)) / 60


def arcs_between(images: Float[Array, " N"]) -> Float[Array, " N"]:
    """Signed lengths of the shorter arcs from each image to the next."""
    return _wrapped(jnp.roll(images, -1) - images)


def folds(images: Float[Array, " N"]) -> Bool[Array, ""]:
    """Whether a map with these images of the edges reverses an arc, or runs backwards at an edge (to O(N⁻⁶))."""
    arcs = arcs_between(images)
    return jnp.any(arcs < 0) | jnp.any(edge_values(arcs) < 0)


def pushed(masses: Float[Array, " N"], images: Float[Array, " N"]) -> Float[Array, " N"]:
    """Masses of the cells after the edges went to ``images``: cell j fills the shorter arc between its two images."""
    count = masses.shape[0]
    width = 2 * math.pi / count
    arcs = arcs_between(images)
    density, stretch = jnp.maximum(edge_values(masses), 0.0), jnp.abs(edge_values(arcs))
    tiny = jnp.finfo(masses.dtype).tiny
    lengths = jnp.maximum(jnp.abs(arcs), tiny)
    steepness = lambda f, s: f * lengths / jnp.maximum(s * masses, tiny)  # noqa: E731
    left, right = steepness(density, stretch), steepness(jnp.roll(density, -1), jnp.roll(stretch, -1))
    # Fritsch and Carlson: a cubic with end slopes in [0, 3] times its secant is monotone
    left, right = jnp.clip(left, 0.0, 3.0), jnp.clip(right, 0.0, 3.0)
    forward = arcs >= 0
    start = jnp.where(forward, images, jnp.roll(images, -1))
    left, right = jnp.where(forward, left, right), jnp.where(forward, right, left)
    theta = -math.pi + width * jnp.arange(count, dtype=masses.dtype)
    low = _wrapped(theta[:, None] - start[None])
    reach = lambda u: _profile(jnp.clip(u / lengths[None], 0.0, 1.0), left[None], right[None])  # noqa: E731
    return (reach(low + width) - reach(low)) @ masses


def _profile(u: Float[Array, "k N"], left: Float[Array, "1 N"], right: Float[Array, "1 N"]) -> Float[Array, "k N"]:
    """The cubic from 0 at u = 0 to 1 at u = 1 with end slopes ``left`` and ``right``."""
    return u * (left + u * (3 - 2 * left - right + u * (left + right - 2)))


def _wrapped(angle: Float[Array, "*k"]) -> Float[Array, "*k"]:
    """The angle modulo 2π, in [-π, π)."""
    return jnp.mod(angle + math.pi, 2 * math.pi) - math.pi


def _build(heads: int = 1, step: float = 0.2, logit_scale: float = 2.0, cells: int = 256) -> CircleMeasure:
    return CircleMeasure(RandomTransformer(2, heads=heads, step=step, logit_scale=logit_scale), cells)


MODELS.register(
    "circle-measure",
    Description(
        _build,
        "Random mean field on the circle, Eulerian",
        "q ← masses of Φ_# μ in N cells,  Φ the layer map of the angle evaluated from the density",
        "A density on the circle folded and concentrated by common noise; mass and positivity are exact.",
        "start: N masses with sum 1; cells = 128…512, step = 0.2, logit_scale = 2",
        (HOMOGENIZED,),
    ),
)
