"""Laws with finitely many heads: all expectations are finite sums."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, finite_array, require
from pathlines.weights.heads import Heads
from pathlines.weights.law import LAWS, Atoms, HeadLaw


class MixtureHeads(HeadLaw):
    """(V, A) = (V_a, A_a) with probability p_a, a = 1..m: all expectations are finite sums.

    Args:
        values: V_a, (m, d, d). Values that differ more from their mean make more noise.
        scores: A_a, (m, d, d).
        probabilities: p_a ≥ 0 that sum to one, (m,); by default equal. Unequal ones are skew.
    """

    d: int = eqx.field(static=True)
    values: Float[Array, "a d d"]
    scores: Float[Array, "a d d"]
    probabilities: Float[Array, " a"]

    def __init__(self, values: Any, scores: Any, probabilities: Any = None) -> None:
        stack = finite_array("values", values, ("atoms", "d", "d"))
        self.d = stack.shape[-1]
        others = finite_array("scores", scores)
        if others.shape != stack.shape:
            raise ArgumentError(
                f"Argument `scores` must have the shape of `values` {stack.shape}, but has {others.shape}."
            )
        chances = np.full(len(stack), 1 / len(stack)) if probabilities is None else probabilities
        chances = finite_array("probabilities", chances, (len(stack),)).astype(float)
        require(bool((chances >= 0).all()), "probabilities", "be at least 0", chances)
        require(abs(float(chances.sum()) - 1) < 1e-9, "probabilities", "sum to 1", float(chances.sum()))
        self.values = jnp.asarray(stack, float)
        self.scores = jnp.asarray(finite_array("scores", scores), float)
        self.probabilities = jnp.asarray(chances)

    def heads(self, key: PRNGKeyArray, count: int, dtype: Any = float) -> Heads:
        """Independent indices; no normals at all."""
        chosen = jax.random.choice(key, self.values.shape[0], (count,), p=self.probabilities)
        return Heads(self.scores[chosen].astype(dtype), None, self.values[chosen].astype(dtype))

    @property
    def mean_value(self) -> Float[Array, "d d"]:
        """Σ p_a V_a."""
        return jnp.einsum("a,aij->ij", self.probabilities, self.values)

    @property
    def mean_score(self) -> Float[Array, "d d"]:
        """Σ p_a A_a."""
        return jnp.einsum("a,aij->ij", self.probabilities, self.scores)

    @property
    def atoms(self) -> Atoms | None:
        """The atoms themselves."""
        return Atoms(self.probabilities, self.values, self.scores)


def fixed_heads(value: Any, score: Any) -> MixtureHeads:
    """The same head (V, A) in every layer: a deterministic chain."""
    return MixtureHeads(np.asarray(value)[None], np.asarray(score)[None])


LAWS.register("mixture", MixtureHeads)
LAWS.register("fixed", fixed_heads)
