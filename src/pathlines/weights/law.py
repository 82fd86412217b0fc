"""The law ρ_* of one random head θ = (V, A), from which every layer draws afresh (Homogenized Transformers)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.module import Module
from pathlines.foundation.registry import Registry
from pathlines.foundation.traceable import is_traced, traceable_array
from pathlines.weights.heads import Heads


class Atoms(Module):
    """A law that is a finite sum Σ_a p_a δ_(V_a, A_a): every expectation over ρ_* is exact."""

    probabilities: Float[Array, " a"]
    values: Float[Array, "a d d"]
    scores: Float[Array, "a d d"]


class HeadLaw(Module):
    """ρ_* on pairs (V, A) of d × d matrices: scores x_kᵀ A x_i with query i, values V x_k (arXiv:2604.01978)."""

    d: eqx.AbstractVar[int]

    @abstractmethod
    def heads(self, key: PRNGKeyArray, count: int, dtype: Any = float) -> Heads:
        """``count`` independent heads: the same for the same key, whatever tokens they will act on."""

    @property
    @abstractmethod
    def mean_value(self) -> Float[Array, "d d"]:
        """E V."""

    @property
    @abstractmethod
    def mean_score(self) -> Float[Array, "d d"]:
        """E A."""

    @property
    def atoms(self) -> Atoms | None:
        """The finite sum that the law is; ``None`` for laws with a density."""
        return None

    @property
    def score_std(self) -> float:
        """Standard deviation of ⟨A x, y⟩ for unit x, y: the logit scale is b = β · score_std."""
        return 0.0

    @property
    def centred(self) -> bool:
        """Whether E V = 0, so that the homogenized drift vanishes."""
        return False


def square_matrix(name: str, matrix: Any, d: int) -> Float[Array, ...] | None:
    """A d × d matrix, or a number c standing for c·I (kept as a number), or ``None``."""
    if matrix is None:
        return None
    array = traceable_array(name, matrix)
    return jnp.asarray(array if array.ndim == 0 else traceable_array(name, array, (d, d)), float)


def as_matrix(matrix: Array | None, d: int) -> Float[Array, "d d"]:
    """The matrix that a number, a matrix or ``None`` (zero) stands for."""
    if matrix is None:
        return jnp.zeros((d, d))
    return matrix * jnp.eye(d, dtype=matrix.dtype) if matrix.ndim == 0 else matrix


def is_zero(matrix: Array | None) -> bool:
    """Whether a mean is absent or zero."""
    return matrix is None or (not is_traced(matrix) and not np.any(np.asarray(matrix)))


LAWS: Registry[Callable[..., HeadLaw]] = Registry("law of heads", "pathlines.weights")
