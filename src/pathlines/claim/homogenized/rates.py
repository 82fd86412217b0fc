"""Orders of convergence, measured: slopes in log-log coordinates with their uncertainties."""

from __future__ import annotations

from typing import Any

import numpy as np


def log_slope(x: Any, y: Any, error: Any = None) -> tuple[float, float]:
    """Slope of ln|y| against ln x with its standard error.

    With the standard ``error`` of each y the fit is weighted and the uncertainty is propagated; without, every point
    counts alike and the uncertainty comes from the residuals.
    """
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
