"""A4: permutations of the cells of a grid by shears, which preserve volume.

The unit cube has m^d cells of side h = 1/m. A *row shift* moves one line of cells along an axis: x_1 += kh·trap(x_2),
trap = 1 on the row but for ramps of width δ at its ends, 4 pieces. The commutator of a row and a column shift, R C
R^{-1} C^{-1}, is a 3-cycle of cells and fixes all others: 16 pieces. Any permutation takes at most one 3-cycle for
each cell, P ≤ 16 m², with one blank row outside the square. A point keeps its place inside its cell, so the points
treated wrongly are those in ramps, of area at most 4δ/h whatever the number of pieces, and log-determinants are zero
[derived; programme of arXiv:2602.08606].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.transport.euclid.schedule import EuclideanSchedule

RAMP_SHARE = 1e-5
"""δ/h."""


def _band(d: int, move: int, read: int, amount: float, low: float, high: float, ramp: float) -> list[tuple[Any, ...]]:
    """x_move += amount on low < x_read < high, zero outside, ramps inside the band: (w, a, b) of 4 pieces."""
    w, a = np.eye(d)[move] * amount / ramp, np.eye(d)[read]
    hinges = (low, low + ramp, high - ramp, high)
    return [(sign * w, a, -at) for sign, at in zip((1, -1, -1, 1), hinges)]


def line_shift(
    m: int, axis: int, line: Sequence[int | None], steps: int, ramp: float = RAMP_SHARE, d: int = 2
) -> EuclideanSchedule:
    """Shifts the cells of one line along ``axis`` by ``steps`` cells; ``line`` gives the cell in every other
    coordinate.

    For d > 2 the line is lifted first: coordinates other than the axis and the first one read send the slab of their
    cell far away along that one, where the shift acts alone: 4(2d - 3) pieces.
    """
    h = 1.0 / positive_integer("m", m)
    others = [r for r in range(d) if r != axis]
    read, lifts = others[0], others[1:]
    far = 4.0 * (m + 2) * h
    lifted: list[tuple[Any, ...]] = []
    for k, r in enumerate(lifts):
        cell = line[r]
        lifted += _band(d, read, r, far * 2**k, cell * h, (cell + 1) * h, ramp * h)  # type: ignore[operator]
    offset = far * (2 ** len(lifts) - 1)
    low = line[read] * h + offset  # type: ignore[operator]
    moved = _band(d, axis, read, steps * h, low, low + h, ramp * h)
    undone = [(-w, a, b) for w, a, b in reversed(lifted)]
    return _of([*lifted, *moved, *undone])


def _of(rows: list[tuple[Any, ...]]) -> EuclideanSchedule:
    w, a, b = zip(*rows)
    return EuclideanSchedule(np.array(w), np.array(a), np.array(b), np.ones(len(rows)))


def three_cycle(
    m: int, cell: Sequence[int], k: int, step: int, inverse: bool = False, ramp: float = RAMP_SHARE
) -> EuclideanSchedule:
    """Cells (i-k, j, …) → (i, j, …) → (i, j-step, …) → (i-k, j, …), for cell = (i, j, …); all others stay.

    R shifts row j by k cells, C column i by ``step``: the commutator is R, C, R^{-1}, C^{-1}; 16 pieces in the plane,
    48 in R³.
    """
    d = len(cell)
    row = line_shift(m, 0, [None, *cell[1:]], k, ramp, d)
    column = line_shift(m, 1, [cell[0], None, *cell[2:]], step, ramp, d)
    first, second = (column, row) if inverse else (row, column)
    return first.compose(second).compose(first.inverse()).compose(second.inverse())


def permutation_cycles(images: np.ndarray) -> list[tuple[int, int, int, int, bool]]:
    """3-cycles (i, j, k, l, inverse) whose product sends cell c of an m × m grid to cell ``images[c]`` (raster order).

    Cell c = i + m j has column i and row j. Cells are settled one after another; a blank row j = m lies outside.
    """
    m = round(len(images) ** 0.5)
    if m * m != len(images) or sorted(images) != list(range(m * m)):
        raise ArgumentError("Argument `images` must be a permutation of m² cells.")
    content = {(c % m, c // m): (int(t) % m, int(t) // m) for c, t in enumerate(images)}
    where = {t: c for c, t in content.items()}
    cycles = []
    for goal in ((i, j) for j in range(m) for i in range(m)):
        at = where[goal]
        if at == goal:
            continue
        cycle, inverse = _settling(at, goal, m)
        a, b, c = cycle
        i, j, k, step = b[0], b[1], b[0] - a[0], b[1] - c[1]
        cycles.append((i, j, k, step, inverse))
        arrows = ((a, c), (c, b), (b, a)) if inverse else ((a, b), (b, c), (c, a))
        moved = [(end, content.pop(start, None)) for start, end in arrows]
        for cell, target in moved:
            if target is not None:
                content[cell] = target
                where[target] = cell
    return cycles


def _settling(at: tuple[int, int], goal: tuple[int, int], m: int) -> tuple[tuple[Any, ...], bool]:
    """Cells of a 3-cycle A → B → C → A (or its inverse) that brings ``at`` to ``goal`` and moves no settled cell."""
    if at[1] == goal[1]:
        return (at, goal, (goal[0], m)), False
    if at[0] == goal[0]:
        return (((at[0] + 1) % m if at[0] + 1 < m else at[0] - 1, at[1]), at, goal), False
    return (at, (goal[0], at[1]), goal), True


def permutation_schedule(images: np.ndarray, ramp: float = RAMP_SHARE) -> EuclideanSchedule:
    """The 3-cycles of a permutation of m² cells as one schedule, at most 16 m² pieces."""
    m = round(len(images) ** 0.5)
    flow = [three_cycle(m, (i, j), k, step, inverse, ramp) for i, j, k, step, inverse in permutation_cycles(images)]
    if not flow:
        return EuclideanSchedule.empty(2)
    return EuclideanSchedule(*(np.concatenate([getattr(f, n) for f in flow]) for n in "wabt"))
