"""Means of few or equal samples, with standard errors that can be trusted in the tails."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import beta, norm

from pathlines.numerics.few_samples import TAIL, student


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


def controlled_mean(values: Any, controls: Any) -> tuple[float, float]:
    """Mean over samples with control variates, and its standard error: the intercept of ``values`` on ``controls``.

    ``controls`` (samples, k) have expectation zero exactly; what they explain of the values is no noise. With fewer
    than 2k + 10 samples the fit would explain noise, and the plain mean is taken.
    """
    y, x = np.asarray(values, float), np.asarray(controls, float)
    if len(y) < 2 * x.shape[1] + 10:
        mean, error = mean_and_error(y)
        return float(mean), float(error)
    design = np.column_stack([np.ones(len(y)), x])
    fit, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ fit
    free = len(y) - design.shape[1]
    spread = np.linalg.pinv(design.T @ design)[0, 0] * (left @ left) / free
    return float(fit[0]), float(student(free + 1) * np.sqrt(spread))


def root_and_error(mean: float, error: float) -> tuple[float, float]:
    """Square root of a mean square, with the standard error carried over."""
    root = float(np.sqrt(mean))
    return root, error / (2 * root) if root > 0 else np.inf
