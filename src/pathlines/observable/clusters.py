"""How many clusters there are."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pathlines.integrate.looking import Seen, at_once
from pathlines.integrate.observe import observable
from pathlines.kernels.native import native_cluster_counts
from pathlines.model.base import MANY_TOKENS, Snapshot
from pathlines.observable.linkage import component_labels, linked_labels


def linked(x: Float[Array, "n d"], reach: Array | float) -> Int[Array, " n"]:
    """The group of each point of a sphere by single linkage at the angle ``reach``; numbers of groups have gaps.

    On the circle groups are cut where the gap to the next angle is wider: O(n log n) there and on S², O(n²d) elsewhere.
    """
    if x.shape[1] != 2:
        cosine = jnp.cos(jnp.minimum(reach, math.pi))
        if x.shape[0] > MANY_TOKENS:
            return linked_labels(x, 1 - cosine)
        near = x @ x.T >= cosine
        return component_labels(near | jnp.eye(x.shape[0], dtype=bool))
    angles = jnp.arctan2(x[:, 1], x[:, 0])
    order = jnp.argsort(angles)
    ascending = angles[order]
    wide = (jnp.roll(ascending, -1) - ascending).at[-1].add(2 * math.pi) > reach
    group = jnp.cumsum(jnp.roll(wide, 1).at[0].set(False).astype(int))
    group = jnp.where(~wide[-1] & (group == group[-1]), 0, group)
    return jnp.zeros_like(group).at[order].set(group)


def _labels(snapshot: Snapshot, delta: float) -> Array:
    if snapshot.many:
        return linked_labels(snapshot.tokens, delta)
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


@at_once(cluster_count)
def _cluster_counts(seen: Seen, delta: float) -> np.ndarray | None:
    if seen.states.shape[1] > MANY_TOKENS:
        return None
    return native_cluster_counts(seen.states, delta).astype(jnp.result_type(int))


@observable("cluster_sizes", "cluster sizes", "|Cₖ|", dims=("token",), delta=1e-3)
def cluster_sizes(snapshot: Snapshot, delta: float) -> Array:
    """Sizes of the components in decreasing order, padded with zeros."""
    labels = _labels(snapshot, delta)
    return jnp.sort(jnp.zeros(labels.shape[0], int).at[labels].add(1))[::-1]
