"""How strongly the last position of a random architecture depends on every other, by its reverse derivative."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, positive_integer, require
from pathlines.model.architecture.random_architecture import RandomArchitecture, Stream
from pathlines.model.architecture.token_embedding import TokenEmbedding

TOGETHER = 16
"""Runs that are computed side by side."""


def dependence(
    architecture: Architecture, ids: Any, *, key: PRNGKeyArray, runs: int = 32, directions: int = 4
) -> np.ndarray:
    """‖∂h_N/∂h_i‖²_F/d of random transformers, an unbiased estimate for each run and position: shape (runs, n).

    h_i is the residual stream before the first layer, h_N that of the last position after the last. For a cotangent q
    that is a unit vector in a uniform direction, E|J_iᵀq|² = ‖J_i‖²_F/d, and one reverse pass has J_iᵀq for every i,
    where forward mode would need a pass for each position. ``directions`` K of them, orthonormal, are averaged: exact
    at K = d.

    Args:
        architecture: a record; its layers draw weights of their own.
        ids: token ids, equal numbers for equal tokens.
        key: of all runs; run r draws embeddings, weights and directions from its own part.
        runs: random initialisations.
        directions: K ≤ width. The more, the less each run's estimate scatters, in proportion to the cost.
    """
    runs, directions = positive_integer("runs", runs), positive_integer("directions", directions)
    require(directions <= architecture.width, "directions", f"be at most the width {architecture.width}", directions)
    if architecture.shared:
        raise ArgumentError("Argument `architecture` must have layers with weights of their own.")
    model = RandomArchitecture(architecture)
    start = TokenEmbedding(model, np.asarray(ids))
    return np.asarray(_measured(model, start, jax.random.split(key, runs), architecture.layers, directions))


@eqx.filter_jit
def _measured(
    model: RandomArchitecture, start: TokenEmbedding, keys: PRNGKeyArray, layers: int, directions: int
) -> Float[Array, "runs n"]:
    one = partial(_of_one, model, start, layers, directions)
    return jax.lax.map(one, keys, batch_size=TOGETHER)


def _of_one(
    model: RandomArchitecture, start: TokenEmbedding, layers: int, directions: int, key: PRNGKeyArray
) -> Float[Array, " n"]:
    first, chain, frame = jax.random.split(key, 3)
    h = start(first).hidden

    def last(hidden: Array) -> Array:
        def layer(h: Array, number: Array) -> tuple[Array, None]:
            return model.random_layer(Stream(h), number, jax.random.fold_in(chain, number)).hidden, None

        return jax.lax.scan(layer, hidden, jnp.arange(layers))[0][-1]

    _, back = jax.vjp(last, h)
    cotangents = jnp.linalg.qr(jax.random.normal(frame, (h.shape[-1], directions), h.dtype))[0].T
    gradients = jax.vmap(lambda q: back(q)[0])(cotangents)
    return jnp.mean(jnp.sum(gradients**2, axis=-1), axis=0)
