"""Orders of convergence, measured: slopes in log-log coordinates with their uncertainties."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.foundation.errors import require


def log_slope(x: Any, y: Any, error: Any = None) -> tuple[float, float]:
    """Slope of ln|y| against ln x with its standard error.

    With the standard ``error`` of each y the fit is weighted and the uncertainty is propagated; without, every point
    counts alike and the uncertainty comes from the residuals.
    """
    several("steps", x)
    logs, heights = np.log(np.asarray(x, float)), np.log(np.abs(np.asarray(y, float)))
    known = error is not None
    weights = (np.asarray(y, float) / np.asarray(error, float)) ** 2 if known else np.ones_like(logs)
    off = logs - np.average(logs, weights=weights)
    spread = float(weights @ off**2)
    slope = float(weights @ (off * heights)) / spread
    if known:
        return slope, spread**-0.5
    rest = heights - np.mean(heights) - slope * off
    freedom = max(len(logs) - 2, 1)
    return slope, float(np.sqrt(rest @ rest / freedom / spread))


def limiting_order(x: Any, y: Any, bends: int = 1) -> tuple[float, float]:
    """Order p of errors y = C x^p (1 + c x + …) without noise: ln|y| = p ln x + a + cx + … by least squares, with
    ``bends`` terms cx + …, fewer where the points do not suffice; and the last of them at the smallest step.

    The last number is what the next order still bends the slope by at the smallest step. Two points give their slope.
    """
    steps, heights = np.asarray(x, float), np.log(np.abs(np.asarray(y, float)))
    if len(steps) < 3:
        return log_slope(x, y)
    powers = np.arange(min(bends, len(steps) - 2) + 1)
    columns = np.column_stack([np.log(steps), steps[:, None] ** powers])
    fit, *_ = np.linalg.lstsq(columns, heights, rcond=None)
    return float(fit[0]), float(abs(fit[-1]) * steps.min() ** powers[-1])


def unreadable(quantity: str, steps: Any, until: float) -> dict[str, str]:
    """What to change where ``limiting_order`` cannot be trusted to 0.05: too few, too long or too similar steps, or
    steps that end at different times.
    """
    eta = np.sort(np.asarray(steps, float))
    ends = np.abs(np.round(until / eta) * eta - until).max()
    apart = len(eta) > 2 and bool(np.all(eta[1:] > 1.5 * eta[:-1]))
    if apart and eta[-1] <= 0.25 and ends <= 0.01 * until:
        return {}
    return {quantity: f"three or more steps of at most 0.25 that halve and divide until={until:g} would show the order"}


def several(name: str, values: Any, least: int = 2) -> None:
    """Refuse lists too short for a slope."""
    different = len(np.unique(np.asarray(values, float)))
    require(different >= least, name, f"hold at least {least} different numbers", list(values))
