"""How far tokens are from being points with masses."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.observable.linkage import component_labels, linked_labels


@observable("slow_manifold_distance", "largest diameter of a cluster", "max_q diam C_q")
def slow_manifold_distance(snapshot: Snapshot) -> Array:
    """max_q max_{i,j ∈ C_q} |x_i - x_j|, clusters linked by gaps below 1/(2√β).

    The distance to the slow manifold of clustered states (Dynamic metastability in the self-attention model,
    arXiv:2410.06833): it falls at the contraction rates of clusters and jumps where two of them meet. O(n²).
    """
    beta = getattr(snapshot.model, "beta", None)
    if beta is None or not snapshot.model.on_sphere:
        raise FormError(f"{type(snapshot.model).__name__} has no slow manifold: it needs β and unit tokens.")
    if snapshot.many:
        labels = linked_labels(snapshot.tokens, 1 / (8 * beta))
    else:
        u = snapshot.deficits
        labels = component_labels((8 * beta * u <= 1) | jnp.eye(u.shape[0], dtype=bool))
    within = snapshot.of_rows(lambda u, i: jnp.max(jnp.where(labels == labels[i], u, 0.0)))
    return jnp.sqrt(2 * jnp.maximum(jnp.max(within), 0.0))
