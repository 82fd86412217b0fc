"""Which atom of a prompt goes to which atom of its target.

A flow moves atoms and never splits one: n atoms reach m exactly in the limit only if groups of them weigh what the
targets do (arXiv:2411.04551, after Theorem 1.2). Otherwise the best groups leave a residual, of order √(m/n) for equal
weights (derived): the W₂ that is left when every atom ends at an atom of the target. It is no lower bound of all
flows: an atom may also end between two of them.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog

from pathlines.transport.sphere.measure import Measure

EQUAL = 1e-9
"""Weights this near are equal."""
CHOICES = 200
"""Ways to round the sizes of groups that are all looked at; beyond, the largest remainders are rounded up."""


TRIALS = 20_000
"""Places of atoms that are tried in search of groups of just the right weight."""
MANY = 200
"""Atoms beyond which no such search is made."""


class Grouping(NamedTuple):
    """For each atom of the prompt the atom of the target it goes to, and the W₂ that is left when all have arrived."""

    to: np.ndarray
    residual: float

    @property
    def one_to_one(self) -> bool:
        """Whether no two atoms go to the same."""
        return len(set(self.to.tolist())) == len(self.to)


def grouping(prompt: Measure, target: Measure, printed: Measure | None = None) -> Grouping:
    """The nearest assignment of atoms whose groups weigh what the target's atoms do, as well as that is possible.

    ``printed`` is the target itself where ``target`` holds its atoms moved elsewhere: sizes of groups and the residual
    are those of the target itself.
    """
    goal = target if printed is None else printed
    n, m = len(prompt.weights), len(target.weights)
    if m == 1:
        return Grouping(np.zeros(n, int), 0.0)
    cost = np.sum((prompt.points[:, None] - target.points[None]) ** 2, axis=2)
    if n == m:
        unequal = np.abs(prompt.weights[:, None] - target.weights[None]) > EQUAL
        to = linear_sum_assignment(cost + 1e6 * unequal)[1]
        if not unequal[np.arange(n), to].any():
            return Grouping(to, 0.0)
    if np.ptp(prompt.weights) > EQUAL:
        found = _exact(prompt.weights, goal.weights, cost)
        if found is not None:
            return Grouping(found, 0.0)
    slots = _slots(n, goal)
    to = slots[linear_sum_assignment(cost[:, slots])[1]]
    return Grouping(to, residual(goal.points, np.bincount(to, prompt.weights, m), goal.weights))


def _exact(weights: np.ndarray, wanted: np.ndarray, cost: np.ndarray) -> np.ndarray | None:
    """The nearest groups that weigh just what is wanted; None if there are none or ``TRIALS`` do not find them.

    Depth first, heavy atoms first; a branch ends where a target is full or the way is longer than the best found.
    """
    order, room = np.argsort(-weights, kind="stable"), wanted.copy()
    to, trials = np.zeros(len(weights), int), 0
    best: tuple[float, np.ndarray | None] = (np.inf, None)

    def place(k: int, way: float) -> None:
        nonlocal best, trials
        trials += 1
        if k == len(order):
            best = (way, to.copy())
            return
        atom = order[k]
        for j in np.argsort(cost[atom], kind="stable"):
            longer = way + weights[atom] * cost[atom, j]
            if room[j] - weights[atom] > -EQUAL and longer < best[0] and trials < TRIALS:
                room[j] -= weights[atom]
                to[atom] = j
                place(k + 1, longer)
                room[j] += weights[atom]

    if len(weights) <= MANY:
        place(0, 0.0)
    return best[1]


def _slots(n: int, goal: Measure) -> np.ndarray:
    """Targets repeated as often as they get atoms: n·w_j rounded down, the rest where the least W₂ is left."""
    counts = np.floor(n * goal.weights + EQUAL).astype(int)
    left, order = n - int(counts.sum()), np.argsort(counts - n * goal.weights, kind="stable")
    best = counts.copy()
    best[order[:left]] += 1
    if left > 0 and comb(len(counts), left) <= CHOICES:
        more = [counts + np.bincount(c, minlength=len(counts)) for c in combinations(range(len(counts)), left)]
        best = min(more, key=lambda c: residual(goal.points, c / n, goal.weights))
    return np.repeat(np.arange(len(counts)), best)


def residual(points: np.ndarray, reached: np.ndarray, wanted: np.ndarray) -> float:
    """W₂ between two measures on the same atoms, by the linear program of transport."""
    if np.abs(reached - wanted).max() < EQUAL:
        return 0.0
    m = len(points)
    cost = np.sum((points[:, None] - points[None]) ** 2, axis=2).ravel()
    rows = np.vstack([np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))])
    found = linprog(cost, A_eq=rows, b_eq=np.concatenate([reached, wanted]), method="highs")
    return float(np.sqrt(max(found.fun, 0.0)))
