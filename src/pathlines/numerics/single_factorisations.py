"""Dense factorisations that are safe in lanes.

A batched LAPACK call of JAX on the CPU hands its batch to the thread pool it runs on and waits: two programs that do so
at the same time wait for each other for ever. Here a batch is a loop over single calls, which run where they are.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_batching.sequential_vmap
def cholesky_factor(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = matrix; NaN when it is not positive definite."""
    return jnp.linalg.cholesky(matrix, symmetrize_input=False)


@jax.custom_batching.sequential_vmap
def symmetric_eigenvalues(matrix: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Eigenvalues in ascending order."""
    return jnp.linalg.eigvalsh(matrix, symmetrize_input=False)


@jax.custom_batching.sequential_vmap
def singular_values(matrix: Float[Array, "n m"]) -> Float[Array, " r"]:
    """Singular values in descending order."""
    return jnp.linalg.svd(matrix, compute_uv=False)
