"""Modes of a Gaussian kernel density estimator, counted with a certificate.

P̂(t) = √β/(n√(2π)) Σ_i e^{-β(t-X_i)²/2}, bandwidth h = β^{-1/2} (On the number of modes of Gaussian kernel density
estimators, arXiv:2412.09080). A mode is a zero at which P̂' falls from + to -. P̂' is a polynomial on cells of width h
(``kernels/gauss_line.py``), whose zeros are isolated by halving intervals until each is monotone or free of zeros.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pathlines.foundation.errors import (
    ArgumentError,
    PathlinesWarning,
    finite_array,
    finite_number,
    positive_integer,
    require,
)
from pathlines.foundation.progress import Progress
from pathlines.kernels.gauss_line import ORDER, Expansions, expand_derivative

PARTS = 16
"""Intervals a cell is first cut into."""
HALVINGS = 24
"""After which an interval is shorter than what rounding can resolve at a double zero."""
BATCH = 1 << 17
"""Points worked on at a time."""
POWERS = np.arange(ORDER)


class ModeTable(msgspec.Struct, frozen=True):
    """Modes of many samples: ``position[k]`` is a mode of sample ``run[k]``; ``count`` and ``doubtful`` of each sample.

    ``doubtful`` counts the stretches in which rounding leaves open whether there are further pairs of mode and antimode
    (none is counted there); zero certifies the count.
    """

    beta: float
    run: np.ndarray
    position: np.ndarray
    count: np.ndarray
    doubtful: np.ndarray

    @property
    def mean(self) -> float:
        """Average number of modes."""
        return float(self.count.mean())

    @property
    def error(self) -> float:
        """Standard error of the average (infinite for one sample)."""
        return float(self.count.std(ddof=1) / np.sqrt(len(self.count))) if len(self.count) > 1 else np.inf


def count_modes(samples: Any, beta: float) -> Any:
    """The number of modes of one sample (n,) as an int, or of each row of (runs, n) as an array.

    Warns where rounding leaves a count open: a degenerate mode, about to split, counts as one.
    """
    table = find_modes(samples, beta)
    open_ = int(np.count_nonzero(table.doubtful))
    if open_:
        warnings.warn(
            f"The count of {open_} of {len(table.count)} samples is not certified: a mode there is about to split "
            "(find_modes tells which).",
            PathlinesWarning,
            stacklevel=2,
        )
    return int(table.count[0]) if np.ndim(samples) == 1 else table.count


def mode_positions(samples: Any, beta: float) -> np.ndarray:
    """The modes of one sample (n,), in increasing order, to rounding."""
    finite_array("samples", samples, ("n",))
    return find_modes(samples, beta).position


def find_modes(samples: Any, beta: float) -> ModeTable:
    """All modes of every row. O(n) time per row beyond the sort; any spread of the samples, no underflow."""
    rows = np.atleast_2d(finite_array("samples", samples)).astype(float)
    require(rows.ndim == 2 and rows.size > 0, "samples", "be a list of numbers, or several as rows", np.shape(samples))
    beta = finite_number("beta", beta, 0.0, open_low=True)
    most = float(np.abs(rows).max() * np.sqrt(beta))
    if most > 1e9:
        raise ArgumentError(
            f"Samples must be within 1e9 bandwidths of zero to keep their digits, but reach {most:.2g}."
        )
    size = max(1, BATCH // rows.shape[1])
    return joined([_modes(rows[i : i + size], beta) for i in range(0, len(rows), size)])


def normal_modes(n: int, beta: float, runs: int, seed: int) -> ModeTable:
    """Modes of ``runs`` independent samples of n standard normals; the same seed draws the same samples."""
    n, runs = positive_integer("n", n), positive_integer("runs", runs)
    finite_number("beta", beta, 0.0, open_low=True)
    rng, parts = np.random.default_rng(positive_integer("seed", seed, 0)), []
    size = max(1, BATCH // n)
    with Progress("samples", runs) as bar:
        for begin in range(0, runs, size):
            parts.append(find_modes(rng.standard_normal((min(size, runs - begin), n)), beta))
            bar.update(begin + size)
    return joined(parts)


def joined(parts: list[ModeTable]) -> ModeTable:
    """One table of several, their samples numbered on."""
    before = np.cumsum([0] + [len(p.count) for p in parts[:-1]])
    return ModeTable(
        parts[0].beta,
        np.concatenate([p.run + b for p, b in zip(parts, before, strict=True)]),
        np.concatenate([p.position for p in parts]),
        np.concatenate([p.count for p in parts]),
        np.concatenate([p.doubtful for p in parts]),
    )


class Intervals(NamedTuple):
    """Pieces of cells with the values of P̂' at their ends."""

    cell: np.ndarray
    left: np.ndarray
    right: np.ndarray
    at_left: np.ndarray
    at_right: np.ndarray

    def where(self, chosen: np.ndarray) -> Intervals:
        """Some of them."""
        return Intervals(*(x[chosen] for x in self))

    @property
    def falls(self) -> np.ndarray:
        """From + (or zero) to -: an odd number of zeros, one of them a mode."""
        return (self.at_left >= 0) & (self.at_right < 0)


def _modes(rows: np.ndarray, beta: float) -> ModeTable:
    local = expand_derivative(rows * np.sqrt(beta))
    brackets, left_open = _isolated(local)
    position = (local.centre[brackets.cell] + _zeros(local.coefficients, brackets)) / np.sqrt(beta)
    run = local.row[brackets.cell]
    order = np.lexsort((position, run))
    count = np.bincount(run, minlength=len(rows))
    doubtful = np.bincount(local.row[left_open.cell], minlength=len(rows))
    return ModeTable(beta, run[order], position[order], count, doubtful)


def _isolated(local: Expansions) -> tuple[Intervals, Intervals]:
    """Intervals with one falling zero each, and one of each stretch that rounding leaves open.

    Values within rounding of zero have signs by chance: such a stretch counts as one falling zero if P̂' falls from its
    first end to its last, and as none otherwise.
    """
    powers = POWERS[2:]
    curvature = np.abs(local.coefficients[:, 2:]) @ (powers * (powers - 1) * 0.5 ** (powers - 2.0))
    todo, found = _first_intervals(local), []
    for _ in range(HALVINGS):
        width, bend = todo.right - todo.left, curvature[todo.cell]
        same = (todo.at_left >= 0) == (todo.at_right >= 0)
        lowest = np.minimum(np.abs(todo.at_left), np.abs(todo.at_right))
        free = same & (lowest > width**2 / 8 * bend + local.noise[todo.cell])
        todo, width, bend = todo.where(~free), width[~free], bend[~free]
        slope = _values(local.coefficients[todo.cell, 1:] * POWERS[1:], (todo.left + todo.right) / 2)
        monotone = np.abs(slope) > width / 2 * bend
        found.append(todo.where(monotone & todo.falls))
        todo = _halved(local, todo.where(~monotone))
        if len(todo.cell) == 0:
            break
    falling, open_ = _stretches(local, todo)
    found.append(falling)
    return Intervals(*(np.concatenate(x) for x in zip(*found, strict=True))), open_


def _stretches(local: Expansions, todo: Intervals) -> tuple[Intervals, Intervals]:
    """One falling interval, the middle one, of each connected stretch that falls in all; the first of every stretch."""
    todo = todo.where(np.lexsort((todo.left, todo.cell)))
    same = (np.diff(todo.cell) == 0) & (todo.left[1:] == todo.right[:-1])
    crossing = (np.diff(todo.cell) == 1) & local.follows[todo.cell[1:]] & (todo.left[1:] == -0.5)
    joint = same | (crossing & (todo.right[:-1] == 0.5))
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(todo.cell)), bool), ~joint]))
    last = np.append(first[1:], len(todo.cell))[: len(first)] - 1
    # the middle one of the falls of a stretch, from their running number
    number = np.cumsum(todo.falls)
    before = number[first] - todo.falls[first]
    fallen = (todo.at_left[first] >= 0) & (todo.at_right[last] < 0)
    middle = np.searchsorted(number, before + (number[last] - before) // 2 + 1)
    return todo.where(middle[fallen]), todo.where(first)


def _first_intervals(local: Expansions) -> Intervals:
    """Every cell in PARTS; neighbours share the value at their common end, so that no zero is seen twice or lost."""
    ends = np.linspace(-0.5, 0.5, PARTS + 1)
    values = local.coefficients @ ends ** POWERS[:, None]
    next_one = np.flatnonzero(local.follows)
    values[next_one - 1, -1] = values[next_one, 0]
    cells, parts = np.indices((len(values), PARTS)).reshape(2, -1)
    return Intervals(cells, ends[parts], ends[parts + 1], values[:, :-1].ravel(), values[:, 1:].ravel())


def _halved(local: Expansions, todo: Intervals) -> Intervals:
    middle = (todo.left + todo.right) / 2
    value = _values(local.coefficients[todo.cell], middle)
    left = todo._replace(right=middle, at_right=value)
    right = todo._replace(left=middle, at_left=value)
    return Intervals(*(np.concatenate(pair) for pair in zip(left, right, strict=True)))


def _values(coefficients: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Horner's rule, one polynomial a row."""
    value = np.zeros_like(at)
    for column in coefficients.T[::-1]:
        value = value * at + column
    return value


def _zeros(coefficients: np.ndarray, brackets: Intervals) -> np.ndarray:
    """The falling zero of each bracket, by bisection."""
    left, right, own = brackets.left, brackets.right, coefficients[brackets.cell]
    for _ in range(50):
        middle = (left + right) / 2
        above = _values(own, middle) >= 0
        left, right = np.where(above, middle, left), np.where(above, right, middle)
    return (left + right) / 2
