"""Schemes for the homogenized SDE of finitely many heads, their expectations without sampling: what a step size costs.

A step of length δ draws one head a with probability p_a and a sign ε = ±1, G_a = P(B_a - b_ρ)
(Homogenized Transformers, arXiv:2604.01978, for the SDE; schemes and their errors derived):

    Euler    x ← N(x + δD + √(ηδ/H) ε G_a)
    split    y = Φ_{δ/2}x,  z = N(y + √(ηδ/H) ε G_a(y)),  x ← Φ_{δ/2}z,    Φ the flow of D,

so the expectation over all heads and signs is a sum over (2m)^K branches; two heads of equal chance have opposite G_a
and leave 2^K.
"""

from __future__ import annotations

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.numbers import one_of
from pathlines.limit.homogenized.cubature import BLOCK, Function, check_expectation
from pathlines.limit.homogenized.finite_law import FiniteLawSDE, HeadFields, flowed, tangent, unit

METHODS = ("split", "euler")


def scheme_expectation(
    sde: FiniteLawSDE, start: np.ndarray, until: float, function: Function, steps: int, method: str = "split"
) -> np.ndarray:
    """E φ after ``steps`` steps of length T/``steps``; ``function`` takes (leaves, n, d) to (leaves, …)."""
    one_of("method", method, METHODS)
    check_expectation(sde, start, function)
    delta = finite_number("until", until, 0.0, open_low=True) / positive_integer("steps", steps)
    x = unit(finite_array("start", start, ("n", "d")).astype(float))[..., None]
    weights = np.ones(1)
    for _ in range(steps):
        cuts = range(BLOCK, len(weights), BLOCK)
        grown = [_grown(sde, block, delta, method) for block in np.split(x, cuts, axis=-1)]
        shares = [np.outer(p, part).ravel() for part in np.split(weights, cuts) for p in [_chances(sde)]]
        x, weights = np.concatenate(grown, axis=-1), np.concatenate(shares)
    return np.tensordot(weights, function(np.moveaxis(x, -1, 0)), 1)


def _even(sde: FiniteLawSDE) -> bool:
    p = sde.probabilities
    return len(p) == 2 and p[0] == p[1]


def _chances(sde: FiniteLawSDE) -> np.ndarray:
    """Of the branches: all heads with sign +, then all with sign -."""
    p = np.ones(1) if _even(sde) else sde.probabilities
    return np.concatenate([p, p]) / 2


def _grown(sde: FiniteLawSDE, x: np.ndarray, delta: float, method: str) -> np.ndarray:
    """All branches of the leaves (n, d, leaves), branch after branch."""
    y = x if method == "euler" else flowed(sde.drift, x, delta / 2)
    fields = HeadFields(sde, y).fields
    apart = fields - np.tensordot(sde.probabilities, fields, 1)
    noise = np.sqrt(sde.step * delta / sde.heads) * tangent(y, apart)[: 1 if _even(sde) else None]
    rest = y + delta * sde.drift(y) if method == "euler" else y
    ends = np.concatenate([unit(rest + sign * g) for sign in (1, -1) for g in noise], axis=-1)
    return ends if method == "euler" else flowed(sde.drift, ends, delta / 2)
