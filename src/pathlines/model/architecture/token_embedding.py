"""The first hidden states of given tokens, at initialisation."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.module import Module
from pathlines.model.architecture.random_architecture import RandomArchitecture, Stream
from pathlines.numerics.draws import Draws


class TokenEmbedding(Module):
    """h_i = norm(c E[id_i] + P_i + T_0) with Gaussian E, P, T: rows of E are shared by equal ids, T_0 by all tokens.

    What the architecture does not have (norm, positions, types, scale c) is left out; a smaller ``embedding_width`` is
    projected afterwards. Where tokens are patches an id stands for a patch of independent standard normal inputs, but
    the first for the class token if there is one. A law of starts for ``chain``.
    """

    model: RandomArchitecture
    rows: Int[Array, " n"]
    distinct: int = eqx.field(static=True)

    def __init__(self, model: RandomArchitecture, ids: Any) -> None:
        array = np.asarray(ids)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ArgumentError(f"Argument `ids` must be a list of whole numbers, but has shape {array.shape}.")
        if model.shape.positions == "learned" and len(array) > model.shape.context:
            raise ArgumentError(f"Argument `ids` must have at most {model.shape.context} tokens, but has {len(array)}.")
        unique, rows = np.unique(array, return_inverse=True)
        self.model, self.rows, self.distinct = model, jnp.asarray(rows), len(unique)

    def __call__(self, key: PRNGKeyArray) -> Stream:
        """One draw of all embeddings."""
        model, a = self.model, self.model.shape
        n, width = len(self.rows), a.embedding_width or a.width
        table = a.patch_inputs * (self.distinct + width) or self.distinct * width
        projection = width * a.width if a.embedding_width else 0
        draws = Draws(key, table + width * (n + 2) + projection, 2, model.numbers.dtype)
        h = self._table(draws, width)[self.rows]
        if a.class_token:
            h = h.at[0].set(model.matrix("embedding", draws, 1, width)[0])
        if a.positions == "learned":
            h = h + model.matrix("position", draws, n, width)
        if a.types:
            h = h + model.matrix("type", draws, 1, width)
        if a.embedding_norm:
            h = model.normed(h)
        if a.embedding_width:
            h = h @ model.matrix("projection", draws, width, a.width)
        return Stream(h, jnp.floor(draws.uniform(2) * 2**24) if a.shared else None)

    def _table(self, draws: Draws, width: int) -> Float[Array, "distinct width"]:
        """The embedding of each distinct id."""
        model, inputs = self.model, self.model.shape.patch_inputs
        if inputs:
            return draws.normal(self.distinct, inputs) @ model.matrix("embedding", draws, inputs, width)
        return model.size("embedding_scale") * model.matrix("embedding", draws, self.distinct, width)
