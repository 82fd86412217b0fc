"""Expansions in the step η, read off exact differences: y = c_0 η^k + c_1 η^{k+1} + …, from as many terms as points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def leading(eta: Any, y: Any, power: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """c_0 for k = ``power``, and how much it changes without the largest η; ``y`` is (steps, …).

    The truncated terms are smaller than the second number while the series converges.
    """
    eta, y = np.asarray(eta, float), np.asarray(y, float)
    scaled = y / eta.reshape(-1, *(1,) * (y.ndim - 1)) ** power
    return _settled(lambda e: np.vander(e, increasing=True), eta, scaled)


def first_slope(y: Callable[[float], np.ndarray]) -> np.ndarray:
    """y'(0) of a function of η with y(0) = 0, from y at η = 1e-3 and 2e-3."""
    return 2 * y(1e-3) / 1e-3 - y(2e-3) / 2e-3


APART = 10
"""Changes by the largest η left out beyond which a limit is not zero."""


def apart(eta: Any, y: Any) -> bool:
    """Whether y stays away from zero as η → 0 in every entry: then no expansion from a higher power of η is needed."""
    limit, change = leading(eta, y)
    return bool(np.all(np.abs(limit) > APART * change))


DOMINATED = 0.6
"""Where the rest exceeds this share of the leading term at the largest η, an order cannot be read."""


def order_of(eta: Any, y: Any, power: float) -> tuple[float, float]:
    """The order k, ln|y| = k ln η + a_0 + a_1 η + …, and its change without the largest η.

    NaN where y changes sign, and where its term of order ``power``, which should lead, does not.
    """
    eta, y = np.asarray(eta, float), np.asarray(y, float)
    first = leading(eta, y, power)[0] * eta**power
    if np.any(y * y[0] <= 0) or np.any(np.abs(y - first) > DOMINATED * np.abs(first)):
        return np.nan, np.nan
    columns = lambda e: np.column_stack([np.log(e), np.vander(e, len(e) - 1, increasing=True)])  # noqa: E731
    order, change = _settled(columns, eta, np.log(np.abs(y)))
    return float(order), float(change)


def _settled(
    columns: Callable[[np.ndarray], np.ndarray], eta: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first coefficient of the expansion through all points, and its distance from that without the largest η."""
    down = np.argsort(eta)[::-1]
    best, less = (np.linalg.solve(columns(eta[k]), y[k].reshape(len(k), -1))[0] for k in (down, down[1:]))
    return best.reshape(y.shape[1:]), np.abs(best - less).reshape(y.shape[1:])
