import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.foundation.errors import FormError
from pathlines.model import SelfAttention, Snapshot
from pathlines.observable.slow_manifold import slow_manifold_distance


def snapshot(angles, beta, **options):
    x = jnp.stack([jnp.cos(jnp.asarray(angles)), jnp.sin(jnp.asarray(angles))], axis=1)
    return Snapshot(SelfAttention(beta, **options), x, jnp.zeros(()), x)


def test_chains_are_linked_and_clusters_kept_apart():
    """β = 25: gaps below 0.1 link; the chain of three is 0.15 long, the pair 0.02, and they are 1 apart."""
    angles = [0.0, 0.07, 0.15, 1.15, 1.17]
    assert float(slow_manifold_distance(snapshot(angles, 25.0))) == pytest.approx(2 * np.sin(0.075), rel=1e-12)
    assert float(slow_manifold_distance(snapshot(angles, 60.0))) == pytest.approx(2 * np.sin(0.01), rel=1e-12)
    assert float(slow_manifold_distance(snapshot([0.0, 2.0], 25.0))) == 0.0


def test_no_sphere_no_manifold():
    with pytest.raises(FormError, match="slow manifold"):
        slow_manifold_distance(snapshot([0.0, 1.0], 9.0, space="euclidean"))
