"""Who may listen to whom, by position: masks with positional weights, for every kind of attention and every sum.

A mask gives nonnegative weights q_jk of the pair (listener j, speaker k ≤ j), n × n and lower triangular. It makes the
masses of the tokens depend on who listens, m_jk = q_jk m_k, and a kind of attention is then what it always is:

- kinds that normalise (softmax, L2, hard-max) over what is seen, a_jk ∝ q_jk m_k e^{s_jk}: the score gets + ln q_jk.
  (Hard-max is the limit β → ∞ of that: it looks for the largest s_jk that is seen, and q_jk m_k shares out ties.)
- kinds that do not (unnormalised, linear, affine, sigmoid) have a_jk = q_jk m_k f(s_jk), over Σ_k q_jk m_k where
  ``reduce`` is "mean" (positional attention, rows p_jk = q_jk/Σ_k q_jk) and as it stands where it is "sum" (the
  measure on positions × tokens of arXiv:2312.14820 and arXiv:2501.18322, masses 1/n of the whole context).

Strict masks leave out k = j: the first token hears nobody and rests. ALiBi with slope λ (in units of 1/n, as in Kinetic
theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213) has q_jk = e^{-λ(j-k)/n}.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require
from pathlines.foundation.module import Module
from pathlines.foundation.numbers import checked_mask, one_of
from pathlines.foundation.traceable import is_traced, traceable_number

REDUCTIONS = ("mean", "sum")
STEEPEST = 600.0
BLOCK = 1 << 20
"""Weights that are looked at together."""


class PositionMask(Module):
    """Weights q_jk of the pairs of positions; subclasses are final and say ``seen``."""

    strict: eqx.AbstractVar[bool]
    reduce: eqx.AbstractVar[str]

    @abstractmethod
    def seen(self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int) -> Float[Array, "r c"]:
        """q_jk of those listeners and speakers among n positions."""

    @property
    def in_order(self) -> bool:
        """Whether everyone hears all before him (and himself, unless ``strict``): sums are then prefix sums."""
        return False

    @property
    def band(self) -> tuple[int, int] | None:
        """(s, w) where a position hears the first s and none before the last w, itself counted; else nothing."""
        return None

    def weights(self, n: int) -> Float[Array, "n n"]:
        """q_jk, lower triangular and nonnegative: O(n²)."""
        return self.seen(jnp.arange(n), jnp.arange(n), n)

    def rows(self, n: int) -> Float[Array, "n n"]:
        """p_jk = q_jk/Σ_k q_jk; a listener without speakers has zeros."""
        q = self.weights(n)
        return q / jnp.maximum(q.sum(axis=1, keepdims=True), jnp.finfo(q.dtype).tiny)

    def listens(self, heard: np.ndarray) -> np.ndarray:
        """Which positions hear any of those that are marked."""
        n = len(heard)
        size, everyone = max(1, BLOCK // n), jnp.arange(n)
        parts = (everyone[k : k + size] for k in range(0, n, size))
        return np.concatenate([(np.asarray(self.seen(rows, everyone, n)) > 0) @ heard for rows in parts]) > 0

    def check(self, n: int, multiplicities: Any = None) -> None:
        """``ArgumentError`` for a wrong number of positions, or a listener without speakers where there are earlier."""
        positive_integer("n", n)
        any_one = self.listens(np.ones(n, bool))
        first = int(np.argmax(any_one)) if self.strict and any_one.any() else 0
        if not any_one[first:].all():
            raise _empty(first + int(np.argmin(any_one[first:])), n, "give this position something to see")
        if multiplicities is not None and not is_traced(multiplicities):
            left = any_one & ~self.listens(np.asarray(multiplicities) > 0)
            if left.any():
                raise _empty(int(np.argmax(left)), n, "all that it sees has multiplicity 0; give some of it mass")


def _empty(row: int, n: int, remedy: str) -> ArgumentError:
    return ArgumentError(f"The mask leaves row {row + 1} of {n} empty: {remedy}.")


def _apart(rows: Array, columns: Array) -> Int[Array, "r c"]:
    """j - k."""
    return rows[:, None] - columns[None, :]


class PrefixMask(PositionMask):
    """q_jk = e^{h_k - h_j} on a prefix of the tokens: sums are recursions, O(n). Subclasses say ``heights``."""

    flat: eqx.AbstractVar[bool]

    @abstractmethod
    def heights(self, n: int) -> Float[Array, " n"]:
        """h_k; all zero where ``flat``."""

    def counts(self, n: int) -> Int[Array, " n"]:
        """How many tokens, from the first, a position sees."""
        return jnp.arange(n) + int(not self.strict)

    def seen(self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int) -> Float[Array, "r c"]:
        """e^{h_k - h_j} on the prefix."""
        inside = columns[None, :] < self.counts(n)[rows][:, None]
        if self.flat:
            return inside.astype(float)
        h = self.heights(n)
        return jnp.where(inside, jnp.exp(jnp.where(inside, h[columns][None, :] - h[rows][:, None], 0.0)), 0.0)

    def mass(self, masses: Float[Array, " n"]) -> Float[Array, " n"]:
        """Σ_k q_jk m_k, by the recursion Σ_j = e^{h_{j-1} - h_j} Σ_{j-1} + m_j over everything up to j."""
        n = masses.shape[0]
        counts = self.counts(n)
        if self.flat:
            sums = jnp.cumsum(masses)
            return jnp.where(counts > 0, sums[counts - 1], 0.0)
        h = self.heights(n).astype(masses.dtype)
        fall = jnp.exp(jnp.concatenate([jnp.zeros_like(h[:1]), h[:-1] - h[1:]]))
        join = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])  # noqa: E731
        sums = jax.lax.associative_scan(join, (fall, masses))[1]
        return jnp.where(counts > 0, sums[counts - 1] * jnp.exp(h[counts - 1] - h), 0.0)

    def listens(self, heard: np.ndarray) -> np.ndarray:
        """By counting."""
        return np.append(0, np.cumsum(heard))[np.asarray(self.counts(len(heard)))] > 0


class AlibiMask(PrefixMask):
    """q_jk = e^{-λ(j-k)/n}: λ = 0 is the plain causal mask, λ > 0 prefers what is near."""

    slope: Float[Array, ""]
    strict: bool = eqx.field(static=True)
    reduce: str = eqx.field(static=True)
    flat: bool = eqx.field(static=True)

    def __init__(self, slope: Any = 0.0, *, strict: bool = True, reduce: str = "mean") -> None:
        self.slope, self.flat = _rate("slope", slope)
        self.strict, self.reduce = bool(strict), one_of("reduce", reduce, REDUCTIONS)

    @property
    def in_order(self) -> bool:
        """Always."""
        return True

    def heights(self, n: int) -> Float[Array, " n"]:
        """λk/n."""
        return self.slope * jnp.arange(n, dtype=self.slope.dtype) / n


def _rate(name: str, value: Any) -> tuple[Array, bool]:
    """λ, and whether it is known to be zero."""
    found = traceable_number(name, value, -STEEPEST, STEEPEST)
    return jnp.asarray(found, float), not is_traced(found) and found == 0


class PlacedMask(PrefixMask):
    """q_jk = e^{-r(s_j - s_k)} for s_k ≤ s_j (s_k < s_j, if ``strict``): given positions s_1 ≤ … ≤ s_n and decay.

    Tokens that share a position are the atoms of one conditional law and hear each other, if not strict.
    """

    places: Float[Array, " n"]
    ends: Int[Array, " n"]
    decay: Float[Array, ""]
    strict: bool = eqx.field(static=True)
    reduce: str = eqx.field(static=True)
    flat: bool = eqx.field(static=True)
    distinct: bool = eqx.field(static=True)

    def __init__(self, places: Any, *, decay: Any = 0.0, strict: bool = False, reduce: str = "mean") -> None:
        s = finite_array("places", places, ("n",)).astype(float)
        if len(s) == 0 or np.any(np.diff(s) < 0):
            raise ArgumentError("Argument `places` must hold positions that do not decrease; sort the tokens by them.")
        self.places, self.ends = jnp.asarray(s), jnp.asarray(np.searchsorted(s, s, "left" if strict else "right"))
        self.decay, self.flat = _rate("decay", decay)
        self.strict, self.reduce = bool(strict), one_of("reduce", reduce, REDUCTIONS)
        self.distinct = bool(np.all(np.diff(s) > 0))

    @property
    def in_order(self) -> bool:
        """Unless a position is shared."""
        return self.distinct

    def heights(self, n: int) -> Float[Array, " n"]:
        """r s_k."""
        return self.decay * self.places

    def counts(self, n: int) -> Int[Array, " n"]:
        """Up to the last of the own position, or the first."""
        return self.ends

    def check(self, n: int, multiplicities: Any = None) -> None:
        """One place a token."""
        if n != len(self.places):
            raise ArgumentError(f"Argument `places` must have one position a token ({n}), not {len(self.places)}.")
        super().check(n, multiplicities)


class WindowMask(PositionMask):
    """The last ``width`` tokens, and the first ``sinks`` of the prompt; e^{-λ(j-k)/n} on them."""

    width: int = eqx.field(static=True)
    sinks: int = eqx.field(static=True)
    slope: Float[Array, ""]
    strict: bool = eqx.field(static=True)
    reduce: str = eqx.field(static=True)

    def __init__(
        self, width: int, *, sinks: int = 0, slope: Any = 0.0, strict: bool = True, reduce: str = "mean"
    ) -> None:
        self.width, self.sinks = positive_integer("width", width), positive_integer("sinks", sinks, 0)
        self.slope, _ = _rate("slope", slope)
        self.strict, self.reduce = bool(strict), one_of("reduce", reduce, REDUCTIONS)

    @property
    def band(self) -> tuple[int, int] | None:
        """The sinks, and the window with oneself."""
        return self.sinks, self.width + int(self.strict)

    def seen(self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int) -> Float[Array, "r c"]:
        """Those of the ALiBi mask, inside the window and on the sinks."""
        apart, least = _apart(rows, columns), int(self.strict)
        near = (apart >= least) & ((apart < self.width + least) | (columns < self.sinks)[None, :])
        return jnp.where(near, jnp.exp(-self.slope * jnp.maximum(apart, 0).astype(self.slope.dtype) / n), 0.0)

    def listens(self, heard: np.ndarray) -> np.ndarray:
        """By counting."""
        n, before = len(heard), np.append(0, np.cumsum(heard))
        end = np.arange(n) + int(not self.strict)
        start = np.maximum(end - self.width, 0)
        return before[end] - before[start] + before[np.minimum(self.sinks, start)] > 0


class StridedMask(PositionMask):
    """The last ``width`` tokens and, before them, every ``stride``-th one counted from the listener."""

    stride: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    strict: bool = eqx.field(static=True)
    reduce: str = eqx.field(static=True)

    def __init__(self, stride: int, width: int = 1, *, strict: bool = True, reduce: str = "mean") -> None:
        self.stride, self.width = positive_integer("stride", stride), positive_integer("width", width)
        self.strict, self.reduce = bool(strict), one_of("reduce", reduce, REDUCTIONS)

    def seen(self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int) -> Float[Array, "r c"]:
        """Ones."""
        apart, least = _apart(rows, columns), int(self.strict)
        return ((apart >= least) & ((apart < self.width + least) | (apart % self.stride == 0))).astype(float)


class MatrixMask(PositionMask):
    """Any lower triangular matrix of nonnegative weights whose rows sum to one (or are empty, the first only)."""

    matrix: Float[Array, "n n"]
    strict: bool = eqx.field(static=True)
    reduce: str = eqx.field(static=True)

    def __init__(self, matrix: Any, *, reduce: str = "mean") -> None:
        rows = checked_mask(matrix)
        self.matrix, self.strict = jnp.asarray(rows), not np.diag(rows).any()
        self.reduce = one_of("reduce", reduce, REDUCTIONS)

    def seen(self, rows: Int[Array, " r"], columns: Int[Array, " c"], n: int) -> Float[Array, "r c"]:
        """Rows of the matrix."""
        if n != len(self.matrix):
            raise ArgumentError(f"The mask is of {len(self.matrix)} positions, but there are {n} tokens.")
        return self.matrix[rows[:, None], columns[None, :]]


RECENT = 64
"""Tokens that a sink keeps beside its first ones, if nothing is said."""
NAMED = "causal, alibi:SLOPE, window:WIDTH, sink:COUNT:WIDTH, strided:STRIDE, or a file .npy with a matrix"
FLAGS: dict[str, dict[str, Any]] = {
    "strict": {"strict": True},
    "self": {"strict": False},
    "mean": {"reduce": "mean"},
    "sum": {"reduce": "sum"},
}
"""What may end a word: whether a token hears itself, and how kinds that do not normalise sum."""


def read_mask(text: str, *, slope: float = 0.0, strict: bool = True) -> PositionMask:
    """The mask of a word: "window:64", "sink:4:64", "strided:8", "alibi:2", "causal", or a file of a matrix.

    ``slope`` λ is that of the words that do not name one themselves, ``strict`` that of the words that do not end in
    ":self" or ":strict"; ":sum" or ":mean" may end them too. A sink without a width keeps 64 recent tokens.
    """
    name, *words = str(text).split(":")
    how: dict[str, Any] = {"strict": strict}
    while words and words[-1] in FLAGS:
        how |= FLAGS[words.pop()]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = [math.nan]
    whole: list[Any] = [int(v) if v.is_integer() else v for v in numbers]  # what is not whole is refused by name
    said: list[Any] = [name, *whole]
    match said:
        case ["causal"]:
            return AlibiMask(slope, **how)
        case ["alibi", own]:
            return AlibiMask(own, **how)
        case ["window", width]:
            return WindowMask(width, slope=slope, **how)
        case ["sink", sinks]:
            return WindowMask(RECENT, sinks=sinks, slope=slope, **how)
        case ["sink", sinks, width]:
            return WindowMask(width, sinks=sinks, slope=slope, **how)
        case ["strided", stride]:
            return StridedMask(stride, **how)
    if Path(text).suffix == ".npy" and Path(text).is_file():
        try:
            matrix = np.load(text, allow_pickle=False)
        except (ValueError, OSError, EOFError):
            raise ArgumentError(f"The file {text} holds no matrix that NumPy can read.") from None
        return MatrixMask(matrix)
    raise ArgumentError(f"There is no mask `{text}`; a mask is {NAMED}.")


def as_mask(mask: Any, *, slope: float = 0.0, strict: bool = False) -> PositionMask | None:
    """A mask, its word, positions that may be shared (one a token) or a matrix, as a mask; nothing as nothing."""
    if mask is None or isinstance(mask, PositionMask):
        return mask
    if isinstance(mask, str):
        return read_mask(mask, slope=slope, strict=strict)
    try:
        size = np.ndim(mask)
    except ValueError:  # rows of different lengths
        size = 0
    require(size in (1, 2), "mask", f"be a mask, its word ({NAMED}), one position a token or a matrix", mask)
    return PlacedMask(mask, strict=strict) if size == 1 else MatrixMask(mask)
