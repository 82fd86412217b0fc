"""Who may listen to whom, by position: masks with positional weights.

A mask gives nonnegative weights q_jk of the pair (listener j, speaker k ≤ j), n × n and lower triangular. Its *rows*
p_jk = q_jk/Σ_k q_jk are what positional attention averages with. Strict masks leave out k = j, and then the first token
hears nobody. ALiBi with slope λ (in units of 1/n, as in Kinetic theory for Transformers and the lost-in-the-middle
phenomenon, arXiv:2605.09213) has q_jk = e^{-λ(j-k)/n}. Building a matrix takes O(n²).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer
from pathlines.foundation.module import Module
from pathlines.foundation.numbers import checked_mask


class PositionMask(Module):
    """Weights q_jk of the pairs of positions; subclasses are final and say ``weights``."""

    strict: eqx.AbstractVar[bool]

    @abstractmethod
    def weights(self, n: int) -> Float[Array, "n n"]:
        """q_jk, lower triangular and nonnegative."""

    def rows(self, n: int) -> Float[Array, "n n"]:
        """p_jk = q_jk/Σ_k q_jk; a listener without speakers has zeros."""
        q = self.weights(n)
        return q / jnp.maximum(q.sum(axis=1, keepdims=True), jnp.finfo(q.dtype).tiny)

    def last_row(self, n: int) -> Float[Array, " n"]:
        """p_nk, what the last position listens to."""
        return self.rows(n)[-1]

    def check(self, n: int) -> None:
        """``ArgumentError`` for a wrong number of positions, or a listener, other than the first, without speakers."""
        sums = np.asarray(self.weights(positive_integer("n", n, 2)).sum(axis=1))
        empty = np.flatnonzero(sums <= 0)
        empty = empty[1:] if self.strict and len(empty) and empty[0] == 0 else empty
        if len(empty):
            raise ArgumentError(
                f"The mask leaves row {empty[0] + 1} of {n} empty: give this position something to see."
            )


def _apart(n: int) -> Float[Array, "n n"]:
    """j - k."""
    return jnp.arange(n)[:, None] - jnp.arange(n)[None, :]


def alibi_weights(n: int, slope: Float[Array, ""], strict: bool) -> Float[Array, "n n"]:
    """e^{-λ(j-k)/n} for k < j (strict) or k ≤ j, else 0."""
    apart = _apart(n)
    return jnp.where(apart >= int(strict), jnp.exp(-slope * jnp.maximum(apart, 0) / n), 0.0)


class AlibiMask(PositionMask):
    """q_jk = e^{-λ(j-k)/n}: λ = 0 is the plain causal mask, λ > 0 prefers what is near. Sums take O(n) by recursion."""

    slope: Float[Array, ""]
    strict: bool = eqx.field(static=True)

    def __init__(self, slope: float = 0.0, *, strict: bool = True) -> None:
        self.slope, self.strict = jnp.asarray(finite_number("slope", slope, -600.0, 600.0)), bool(strict)

    def weights(self, n: int) -> Float[Array, "n n"]:
        """e^{-λ(j-k)/n} below the diagonal."""
        return alibi_weights(n, self.slope, self.strict)

    def last_row(self, n: int) -> Float[Array, " n"]:
        """O(n), for long prompts."""
        apart = jnp.arange(n)[::-1]
        q = jnp.where(apart >= int(self.strict), jnp.exp(-self.slope * apart / n), 0.0)
        return q / q.sum()

    def check(self, n: int) -> None:
        """Every position but the first hears the one before it."""
        positive_integer("n", n, 2)


class WindowMask(PositionMask):
    """The last ``width`` tokens, and the first ``sinks`` of the prompt; e^{-λ(j-k)/n} on them."""

    width: int = eqx.field(static=True)
    sinks: int = eqx.field(static=True)
    slope: Float[Array, ""]
    strict: bool = eqx.field(static=True)

    def __init__(self, width: int, *, sinks: int = 0, slope: float = 0.0, strict: bool = True) -> None:
        self.width, self.sinks = positive_integer("width", width), positive_integer("sinks", sinks, 0)
        self.slope, self.strict = jnp.asarray(finite_number("slope", slope, -600.0, 600.0)), bool(strict)

    def weights(self, n: int) -> Float[Array, "n n"]:
        """Those of the ALiBi mask, inside the window and on the sinks."""
        least = int(self.strict)
        near = (_apart(n) < self.width + least) | (jnp.arange(n) < self.sinks)
        return alibi_weights(n, self.slope, self.strict) * near


class StridedMask(PositionMask):
    """The last ``width`` tokens and, before them, every ``stride``-th one counted from the listener."""

    stride: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    strict: bool = eqx.field(static=True)

    def __init__(self, stride: int, width: int = 1, *, strict: bool = True) -> None:
        self.stride, self.width = positive_integer("stride", stride), positive_integer("width", width)
        self.strict = bool(strict)

    def weights(self, n: int) -> Float[Array, "n n"]:
        """Ones."""
        apart, least = _apart(n), int(self.strict)
        return ((apart >= least) & ((apart < self.width + least) | (apart % self.stride == 0))).astype(float)


class MatrixMask(PositionMask):
    """Any lower triangular matrix of nonnegative weights whose rows sum to one (or are empty, the first only)."""

    matrix: Float[Array, "n n"]
    strict: bool = eqx.field(static=True)

    def __init__(self, matrix: Any) -> None:
        rows = checked_mask(matrix)
        self.matrix, self.strict = jnp.asarray(rows), not np.diag(rows).any()

    def weights(self, n: int) -> Float[Array, "n n"]:
        """The matrix."""
        if n != len(self.matrix):
            raise ArgumentError(f"The mask is of {len(self.matrix)} positions, but there are {n} tokens.")
        return self.matrix


RECENT = 64
"""Tokens that a sink keeps beside its first ones, if nothing is said."""
NAMED = "causal, alibi:SLOPE, window:WIDTH, sink:COUNT:WIDTH, strided:STRIDE, or a file .npy with a matrix"


def read_mask(text: str, *, slope: float = 0.0) -> PositionMask:
    """The mask of a word: "window:64", "sink:4:64", "strided:8", "alibi:2", "causal", or a file of a matrix.

    ``slope`` λ is that of the words that do not name one themselves. A sink without a width keeps 64 recent tokens.
    """
    name, *words = str(text).split(":")
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = [math.nan]
    whole: list[Any] = [int(v) if v.is_integer() else v for v in numbers]  # what is not whole is refused by name
    said: list[Any] = [name, *whole]
    match said:
        case ["causal"]:
            return AlibiMask(slope)
        case ["alibi", own]:
            return AlibiMask(own)
        case ["window", width]:
            return WindowMask(width, slope=slope)
        case ["sink", sinks]:
            return WindowMask(RECENT, sinks=sinks, slope=slope)
        case ["sink", sinks, width]:
            return WindowMask(width, sinks=sinks, slope=slope)
        case ["strided", stride]:
            return StridedMask(stride)
    if Path(text).suffix == ".npy" and Path(text).is_file():
        try:
            return MatrixMask(np.load(text, allow_pickle=False))
        except (ValueError, OSError, EOFError):
            raise ArgumentError(f"The file {text} holds no matrix that NumPy can read.") from None
    raise ArgumentError(f"There is no mask `{text}`; a mask is {NAMED}.")
