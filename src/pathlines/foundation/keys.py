"""Keys of random numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from pathlines.foundation.errors import require


def random_key(name: str, value: Any) -> PRNGKeyArray:
    """Return ``value`` after checking that it is one key of ``jax.random``, new style or old."""
    kind = getattr(value, "dtype", None)
    new = kind is not None and jax.dtypes.issubdtype(kind, jax.dtypes.prng_key) and value.shape == ()
    old = kind == np.uint32 and np.shape(value) == (2,)
    require(bool(new or old), name, "be a key such as jax.random.key(0)", value)
    return value
