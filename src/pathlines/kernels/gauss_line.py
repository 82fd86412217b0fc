"""Sums of Gaussian bumps on a line as local polynomials: a fast Gauss transform without truncation in sight.

In units of the bandwidth, φ(s) = Σ_i e^{-(s-y_i)²/2}. Around the centres of unit cells, s = c + τ and y = b + η,

    φ'(c + τ) = Σ_j τ^j/j! Σ_b Σ_k (-1)^{j+1} He_{j+k+1}(c - b) e^{-(c-b)²/2} M_k(b),   M_k(b) = Σ_{y_i ∈ b} η_i^k/k!,

a sum over the few cells b within reach: one pass over the samples, then small matrix products. The remainder is bounded
by Cramér's inequality |He_m(x)| e^{-x²/4} ≤ 1.09 √(m!).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

ORDER = 32
"""Powers of τ and η kept: with |τ|, |η| ≤ 1/2 the rest is below rounding."""
REACH = 10
"""Cells further away than this weigh less than e^{-50}."""
APART = 2 * REACH + 4
"""Empty cells between groups that do not feel each other: longer gaps are shortened to this."""


class Expansions(NamedTuple):
    """φ' as polynomials Σ_j coefficients[j] τ^j, |τ| ≤ 1/2, around the centres of all cells within one of a sample.

    ``row`` is the sample (row of the input) a cell belongs to, ``follows`` whether the cell before it is its neighbour
    on the line, ``noise`` a bound on what rounding and the remainder can add to φ' there.
    """

    row: np.ndarray
    centre: np.ndarray
    follows: np.ndarray
    coefficients: np.ndarray
    noise: np.ndarray


def expand_derivative(points: np.ndarray) -> Expansions:
    """φ' of every row of ``points`` (in units of the bandwidth) wherever it can have a zero of density maximum.

    At a maximum Σ((s-y)² - 1)e^{-(s-y)²/2} ≤ 0, so some point is within one: other cells need no polynomial, and
    nothing underflows however far apart points are. O(points · ORDER) time, O(points + cells · ORDER) memory.
    """
    n = points.shape[1]
    ordered = np.sort(points, axis=1).ravel()
    boxes = np.floor(ordered)
    first = np.append(True, boxes[1:] != boxes[:-1])
    first[::n] = True
    starts = np.flatnonzero(first)
    box, row = boxes[starts], starts // n
    steps = np.where(np.diff(row) > 0, APART, np.minimum(np.diff(box), APART)).astype(np.int64)
    place = APART + np.append(0, np.cumsum(steps))
    moments = _moments(ordered - boxes - 0.5, starts)
    table = np.full(place[-1] + APART, -1)
    table[place] = np.arange(len(place))
    wanted = np.zeros(len(table), bool)
    for side in (-1, 0, 1):
        wanted[place + side] = True
    cells = np.flatnonzero(wanted)
    owner = table[cells]
    for side in (-1, 1):
        owner = np.where(owner < 0, table[cells + side], owner)
    coefficients, noise = np.zeros((len(cells), ORDER)), np.zeros(len(cells))
    for distance, matrix in _translations().items():
        sources = table[cells - distance]
        here = np.flatnonzero(sources >= 0)
        coefficients[here] += moments[sources[here]] @ matrix
        noise[here] += moments[sources[here], 0] * np.exp(-(max(abs(distance) - 1, 0) ** 2) / 4)
    centre = box[owner] + (cells - place[owner]) + 0.5
    follows = np.append(False, np.diff(cells) == 1)
    return Expansions(row[owner], centre, follows, coefficients, 64 * np.finfo(float).eps * noise)


def _moments(offsets: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """M_k of every box, k = 0..ORDER-1."""
    found, term = np.empty((len(starts), ORDER)), np.ones_like(offsets)
    for k in range(ORDER):
        found[:, k] = np.add.reduceat(term, starts)
        term *= offsets / (k + 1)
    return found


@cache
def _translations() -> dict[int, np.ndarray]:
    """For each distance c - b: the matrix from M_k to the coefficients of τ^j."""
    k, j = np.mgrid[:ORDER, :ORDER]
    factorials = np.cumprod(np.append(1.0, np.arange(1.0, ORDER)))
    found = {}
    for distance in range(-REACH, REACH + 1):
        hermite = [np.exp(-(distance**2) / 2)]
        hermite.append(distance * hermite[0])
        for m in range(1, 2 * ORDER):
            hermite.append(distance * hermite[m] - m * hermite[m - 1])
        found[distance] = (-1.0) ** (j + 1) * np.array(hermite)[j + k + 1] / factorials[j]
    return found
