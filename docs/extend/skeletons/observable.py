"""Skeleton of an observable: copy, rename, change. One file is all it takes.

Put it in ``src/pathlines/observable/`` (found by itself), or keep it anywhere and use ``pathlines --load FILE …``.
"""

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot


@observable("closest_pair", "closest pair", "min uᵢⱼ", floor=0.0)
def closest_pair(snapshot: Snapshot, floor: float) -> Array:
    """min over i ≠ j of u_ij = ½|x_i - x_j|², not below ``floor``.

    ``snapshot`` offers tokens, deficits, masses, attention, time and start_tokens. Say ``needs_tokens=True`` when pair
    deficits are not enough, ``ambient=True`` when the value changes under rotations, ``dims=(...)`` for arrays.
    """
    u = snapshot.deficits
    off_diagonal = jnp.where(jnp.eye(u.shape[0], dtype=bool), jnp.inf, u)
    return jnp.maximum(jnp.min(off_diagonal), floor)
