"""Means of few or equal samples, with standard errors that can be trusted in the tails."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import beta, norm, t

TAIL = 4.0
"""Where errors must be right: tolerances are four to five standard errors."""


def student(samples: int) -> float:
    """Student's quantile over the normal one at four standard errors: tends to 1 with the number of samples.

    3.1 for six samples, 1.4 for 15, 1.05 for 100: what a standard error estimated from few samples is short of.
    """
    return float(t.isf(norm.sf(TAIL), samples - 1) / TAIL) if samples > 1 else np.inf


def mean_and_error(values: Any, axis: int = 0, unit: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean along ``axis`` and its standard error, times Student's factor for few samples.

    ``unit`` is the smallest difference between two values (1 for counts). Samples that are all alike say only that
    other values have a chance below 10.4/m (m samples, four standard errors), so the error is at least 2.6 unit/m.
    """
    array = np.asarray(values, float)
    count = array.shape[axis]
    error = student(count) * array.std(axis=axis, ddof=1) / np.sqrt(count)
    return array.mean(axis=axis), np.maximum(error, -np.log(norm.sf(TAIL)) / TAIL * unit / count)


def share_and_error(successes: Any, trials: Any) -> tuple[np.ndarray, np.ndarray]:
    """Share of successes, and a quarter of the longer arm of its exact (Clopper–Pearson) interval at four errors.

    √(p(1−p)/m) for many trials; 2.6/m, not zero, where none or all succeeded.
    """
    k, m = np.asarray(successes, float), np.asarray(trials, float)
    level = norm.sf(TAIL)
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, beta.ppf(level, k, m - k + 1), 0.0)
        high = np.where(k < m, beta.isf(level, k + 1, m - k), 1.0)
    share = k / m
    return share, np.maximum(high - share, share - low) / TAIL
