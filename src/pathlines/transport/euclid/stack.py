"""Stack – rearrange – unstack: one coordinate moved conditionally on the bins of the coordinates before it.

1. *Stack* (shears, volume preserving): x_j += Σ_r Λ_r stair_r(x_r), stair_r the number of the bin of x_r, each jump a
ramp of width δ: two pieces for each edge. Λ_{r+1} = n_r Λ_r (mixed radix), so every cell of bins has a storey of its
own. 2. *Rearrange*: one increasing piecewise linear map along e_j, whose knots are those of all storeys.
3. *Unstack*: the stack reversed.

4 Σ(n_r - 1) + K Π n_r + 2 pieces for K knots in each cell [derived; the ingredients are those of arXiv:2602.08606].
Points in ramps, a share of about δ Σ n_r ρ(edge), are misplaced: the cost in KL is of that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.schedule import EuclideanSchedule

RAMP = 2.0**-20
"""δ, for data of size O(1): a power of two, so that ramps of dyadic height are exact."""

CellMap = Callable[[tuple[int, ...]], tuple[np.ndarray, np.ndarray]]
"""Cell of bins → knots and values of its increasing map."""


def conditional_schedule(d: int, edges: Sequence[np.ndarray], cell_map: CellMap) -> EuclideanSchedule:
    """Moves coordinate j = len(edges) of R^d in each cell of bins of the first j by the map of that cell."""
    j, shape = len(edges), tuple(len(e) + 1 for e in edges)
    cells = [cell_map(cell) for cell in np.ndindex(*shape)]
    size = max(float(np.abs(np.concatenate(c)).max()) for c in cells)
    storey = 2.0 ** np.ceil(np.log2(max(32.0, 3 * size)))
    weights = storey * np.cumprod([1, *shape[:-1]])
    lifts = [weights[:j] @ np.array(cell, float) for cell in np.ndindex(*shape)]
    order = np.argsort(lifts)
    knots = np.concatenate([cells[i][0] + lifts[i] for i in order])
    values = np.concatenate([cells[i][1] + lifts[i] for i in order])
    axis = np.eye(d)[j]
    stack = _stairs(d, edges, weights, axis)
    return stack.compose(increasing_schedule(knots, values, 1.0, 1.0, axis)).compose(stack.inverse())


def _stairs(d: int, edges: Sequence[np.ndarray], weights: np.ndarray, axis: np.ndarray) -> EuclideanSchedule:
    """x += axis Σ_r weight_r stair_r(x_r), two pieces for each edge."""
    flow = EuclideanSchedule.empty(d)
    for r, (edge, weight) in enumerate(zip(edges, weights)):
        hinges = np.column_stack([edge - RAMP / 2, edge + RAMP / 2]).ravel()
        w = np.tile([weight / RAMP, -weight / RAMP], len(edge))
        a = np.broadcast_to(np.eye(d)[r], (len(w), d))
        flow = flow.compose(EuclideanSchedule(w[:, None] * axis, a, -hinges, np.ones(len(w))))
    return flow


def dyadic(edges: np.ndarray) -> np.ndarray:
    """Edges rounded to quarters of a ramp, which moves none by more than δ/8; equal ones are joined."""
    return np.unique(np.round(np.asarray(edges, float) * 4 / RAMP) * RAMP / 4)
