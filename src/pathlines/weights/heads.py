"""The idea of weights: heads (Q, K, V) at each depth."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.module import Module
from pathlines.foundation.traceable import traceable_array


class Heads(Module):
    """H heads at one depth: scores <Q_h x_i, K_h x_j>, values V_h x_j. ``None`` stands for the identity."""

    query: Float[Array, "h p d"] | None
    key: Float[Array, "h p d"] | None
    value: Float[Array, "h d d"]


class Weights(Module):
    """Heads as a function of depth-time t."""

    @abstractmethod
    def at(self, t: Array) -> Heads | None:
        """The heads at depth-time t; ``None`` for Q = K = I and a scalar value."""

    @property
    @abstractmethod
    def breakpoints(self) -> tuple[float, ...]:
        """Times at which the heads jump: an integrator must not step over them."""

    @property
    @abstractmethod
    def value_sign(self) -> Array:
        """The scalar v of V = v I when ``at`` is ``None``; one otherwise."""


def stacked(name: str, matrix: Any, leading: int) -> np.ndarray:
    """Return a finite stack of matrices with ``leading`` axes in front, adding missing axes of size one."""
    array = traceable_array(name, matrix)
    if not 2 <= array.ndim <= 2 + leading:
        wanted = " or ".join(["(p, d)", "(heads, p, d)", "(pieces, heads, p, d)"][: leading + 1])
        raise ArgumentError(f"Argument `{name}` must have shape {wanted}, but has shape {array.shape}.")
    while array.ndim < 2 + leading:
        array = array[None]
    return array


def check_heads(query: np.ndarray | None, key: np.ndarray | None, value: np.ndarray) -> None:
    """Raise unless the stacks agree: equal leading axes, Q and K of one shape, V square of the same width."""
    if value.shape[-1] != value.shape[-2]:
        raise ArgumentError(f"Argument `value` must hold square matrices, but has shape {value.shape}.")
    for name, matrix in (("query", query), ("key", key)):
        if matrix is not None and (matrix.shape[:-2] != value.shape[:-2] or matrix.shape[-1] != value.shape[-1]):
            raise ArgumentError(
                f"Argument `{name}` must match `value` in heads and width d, but has shape {matrix.shape} "
                f"against {value.shape}."
            )
    if query is not None and key is not None and query.shape != key.shape:
        raise ArgumentError(f"Argument `key` must have the shape of `query` {query.shape}, but has {key.shape}.")
    for name, matrix, other in (("query", query, key), ("key", key, query)):
        if matrix is not None and other is None and matrix.shape[-1] != matrix.shape[-2]:
            raise ArgumentError(f"Argument `{name}` must be square when the other of Q, K is the identity.")
