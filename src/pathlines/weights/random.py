"""Random matrices of the general-weights phase diagrams (A mathematical perspective, arXiv:2312.10794)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import positive_integer


def goe(key: PRNGKeyArray, d: int) -> Float[Array, "d d"]:
    """(B + Bᵀ)/√2 with B standard Gaussian: Gaussian orthogonal ensemble."""
    b = jax.random.normal(key, (positive_integer("d", d),) * 2, float)
    return (b + b.T) / jnp.sqrt(2.0)


def gaussian_product(key: PRNGKeyArray, d: int) -> Float[Array, "d d"]:
    """Q^T K/√d with Q, K standard Gaussian."""
    q, k = jax.random.normal(key, (2, positive_integer("d", d), d), float)
    return q.T @ k / jnp.sqrt(float(d))


def wishart(key: PRNGKeyArray, d: int) -> Float[Array, "d d"]:
    """B Bᵀ/√d with B standard Gaussian: symmetric positive definite."""
    b = jax.random.normal(key, (positive_integer("d", d),) * 2, float)
    return b @ b.T / jnp.sqrt(float(d))
