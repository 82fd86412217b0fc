"""How many clusters there are."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot


def component_labels(adjacency: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """The smallest index of each token's connected component, by minimum propagation with pointer jumping."""
    n = adjacency.shape[0]

    def spread(state: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, _ = state
        lowest = jnp.min(jnp.where(adjacency, labels[None, :], n), axis=1)
        new = jnp.minimum(labels, lowest)
        return new[new], jnp.any(new != labels)

    labels, _ = jax.lax.while_loop(lambda s: s[1], spread, (jnp.arange(n), jnp.asarray(True)))
    return labels


def linked(x: Float[Array, "n d"], reach: Array | float) -> Int[Array, " n"]:
    """The group of each point of a sphere by single linkage at the angle ``reach``; numbers of groups have gaps.

    On the circle groups are cut where the gap to the next angle is wider: O(n log n) there, O(n²d) elsewhere.
    """
    if x.shape[1] != 2:
        near = x @ x.T >= jnp.cos(jnp.minimum(reach, math.pi))
        return component_labels(near | jnp.eye(x.shape[0], dtype=bool))
    angles = jnp.arctan2(x[:, 1], x[:, 0])
    order = jnp.argsort(angles)
    ascending = angles[order]
    wide = (jnp.roll(ascending, -1) - ascending).at[-1].add(2 * math.pi) > reach
    group = jnp.cumsum(jnp.roll(wide, 1).at[0].set(False).astype(int))
    group = jnp.where(~wide[-1] & (group == group[-1]), 0, group)
    return jnp.zeros_like(group).at[order].set(group)


def _labels(snapshot: Snapshot, delta: float) -> Array:
    u = snapshot.deficits
    return component_labels((u <= delta) | jnp.eye(u.shape[0], dtype=bool))


@observable("cluster_labels", "cluster of each token", "c(i)", dims=("token",), delta=1e-3)
def cluster_labels(snapshot: Snapshot, delta: float) -> Array:
    """The smallest token index in the same component of the graph u_ij ≤ δ."""
    return _labels(snapshot, delta)


@observable("cluster_count", "clusters", "#clusters", delta=1e-3)
def cluster_count(snapshot: Snapshot, delta: float) -> Array:
    """Connected components of the graph u_ij ≤ δ.

    The numerical rank of the thresholded Gram matrix, used elsewhere, over-counts when the relation is not transitive.
    """
    labels = _labels(snapshot, delta)
    return jnp.sum(labels == jnp.arange(labels.shape[0]))


@observable("cluster_sizes", "cluster sizes", "|Cₖ|", dims=("token",), delta=1e-3)
def cluster_sizes(snapshot: Snapshot, delta: float) -> Array:
    """Sizes of the components in decreasing order, padded with zeros."""
    labels = _labels(snapshot, delta)
    return jnp.sort(jnp.zeros(labels.shape[0], int).at[labels].add(1))[::-1]
