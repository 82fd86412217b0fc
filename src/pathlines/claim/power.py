"""What a claim would notice: the smallest relative error of a prediction that would be refuted."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.tolerance import Tolerance

ONE_SIDED = ("at most", "at least")
LARGEST = 1e3
"""An error of this factor that goes unnoticed counts as one that always does."""


def notices(tolerance: Tolerance, measured: Any, expected: Any, uncertainty: Any) -> float | None:
    """The smallest ε such that both expected·(1 + ε) and expected·(1 − ε) would be refuted by what was measured.

    The quantity is multiplied as a whole, and refuted when one entry is. None for bounds, for predictions that are
    zero, and where the comparison does not hold as it is. Accepted factors form an interval around one, so bisection
    finds its ends; ∞ when no factor up to 10³ is refuted.
    """
    m, e, u = (np.asarray(v, float) for v in (measured, expected, uncertainty))
    finite = all(np.isfinite(v).all() for v in (m, e))
    if tolerance.kind in ONE_SIDED or not finite or not np.any(e) or _refuted(tolerance, m, e, u):
        return None
    return max(_end(lambda f: _refuted(tolerance, m, e * f, u), sign) for sign in (1, -1))


def _refuted(tolerance: Tolerance, m: np.ndarray, e: np.ndarray, u: np.ndarray) -> bool:
    error, allowed = tolerance.excess(m, e, u)
    return not bool(np.all(error <= allowed))


def _end(refuted: Any, sign: int) -> float:
    low, high = 0.0, LARGEST
    if not refuted(1 + sign * high):
        return np.inf
    for _ in range(60):
        middle = np.sqrt(max(low, 1e-16) * high)
        low, high = (low, middle) if refuted(1 + sign * middle) else (middle, high)
    return float(high)
