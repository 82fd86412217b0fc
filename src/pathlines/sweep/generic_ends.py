"""Where random starts end under a symmetric V = QᵀK: simulated, and told apart by eigenvectors and signs."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from pathlines.domain import Sphere
from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.integrate import ensemble
from pathlines.integrate.observe import positions
from pathlines.limit.followups.mode_atlas import symmetric_matrix
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

ARRIVED = 1e-3
"""Distance of a token from an eigenvector at which it has arrived."""
STILL = 0.02
"""Largest distance that a token may still have to go where it counts as at rest."""
FIXED = 1e-6
"""Moves over a tenth of the run below which nothing moves but the solver's rounding."""


class End(NamedTuple):
    """Where a share of the starts ended: "pure" with its eigenvector p (descending order) and split, "mixed" (at rest
    elsewhere) or "moving"."""

    kind: str
    p: int
    n_plus: int
    n_minus: int
    share: float


def generic_ends(
    value: Any, beta: float = 1.0, n: int = 20, starts: int = 64, seed: int = 0, until: float | None = None
) -> list[End]:
    """Where uniform random tokens end, the most frequent end first.

    Args:
        value: V, a symmetric matrix (d, d); Q = V and K = I.
        beta: β ≥ 0. The larger, the more splits are stable.
        n: tokens of each start. The more, the more splits there are to end in.
        starts: random starts. The more, the finer the shares.
        seed: of the starts.
        until: depth-time; by default 1000 over the largest |eigenvalue|. The longer, the fewer still move.

    Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085. Cost O(starts · n² d) a step.
    """
    matrix = symmetric_matrix("value", value)
    values = np.linalg.eigvalsh(matrix)
    scale = float(np.abs(values).max()) or 1.0
    last = 1000.0 / scale if until is None else finite_number("until", until, 0.0)
    value = np.diag(values[::-1])
    run = ensemble(
        SelfAttention(beta, weights=FixedWeights(value, query=value)),
        partial(Sphere(len(values)).uniform, n=positive_integer("n", n)),
        runs=positive_integer("starts", starts),
        key=jax.random.key(seed),
        times=np.array([0.8, 0.9, 1.0]) * last,
        record=positions,
    )
    steps = np.abs(np.diff(run["tokens"].values, axis=1)).max(axis=(2, 3))
    found = [_end(x, _left(*moves)) for x, moves in zip(run["tokens"].values[:, -1], steps, strict=True)]
    kinds, counts = np.unique(found, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    named = [(KINDS[int(kinds[i][0])], [int(k) for k in kinds[i][1:]], float(counts[i] / starts)) for i in order]
    return [End(kind, p, plus, minus, share) for kind, (p, plus, minus), share in named]


KINDS = ("pure", "mixed", "moving")


def _left(before: float, after: float) -> float:
    """What is left to go after two moves of equal duration, if they shrink geometrically; inf if they do not."""
    if after < FIXED:
        return 0.0
    return after**2 / (before - after) if after < before else np.inf


def _end(x: np.ndarray, left: float) -> tuple[int, int, int, int]:
    """(kind, p, n₊, n₋) of final tokens in coordinates of the eigenvectors, ``left`` what they have to go."""
    at = int(np.argmax(np.sum(x * x, axis=0)))
    if np.all(np.linalg.norm(x - np.sign(x[:, [at]]) * np.eye(x.shape[1])[at], axis=1) < ARRIVED):
        plus = int(np.sum(x[:, at] > 0))
        return 0, at, max(plus, len(x) - plus), min(plus, len(x) - plus)
    return (1 if left < STILL else 2), -1, 0, 0
