"""Means over samples that come in batches, with control variates; errors that hold in the tails, also of a few."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, t

TAIL = 4.0
"""Where errors must be right: tolerances are four to five standard errors."""


def student(samples: int) -> float:
    """Student's quantile over the normal one at four standard errors: tends to 1 with the number of samples.

    3.1 for six samples, 1.4 for 15, 1.05 for 100: what a standard error estimated from few samples is short of.
    """
    return float(t.isf(norm.sf(TAIL), samples - 1) / TAIL) if samples > 1 else np.inf


class ControlledSums:
    """Sums over samples of a value and of k controls whose means are known, for many places at once.

    The mean is that of the value less Σ b_j (c_j - E c_j) with the coefficients b of least variance: what the controls
    explain of the values is no noise. With fewer than 2k + 10 samples the fit would explain noise, and the plain mean
    is taken. Standard errors are those of Student's law (``student``).
    """

    def __init__(self, known: np.ndarray, places: int) -> None:
        self.known, self.count, size = np.asarray(known, float), 0, 1 + len(known)
        self.first, self.second = np.zeros((size, places)), np.zeros((size, size, places))
        self.largest = np.zeros(places)

    def add(self, count: int, first: ArrayLike, second: ArrayLike, largest: ArrayLike) -> None:
        """``count`` more samples: sums of (value, controls), of their products, and the largest square of a value."""
        self.count += count
        self.first += np.asarray(first)
        self.second += np.asarray(second)
        self.largest = np.maximum(self.largest, np.asarray(largest))

    def mean_and_error(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error at each place."""
        mean = self.first / self.count
        spread = np.moveaxis(self.second / self.count - mean[:, None] * mean[None], -1, 0)
        k = len(self.known)
        if k == 0 or self.count < 2 * k + 10:
            return mean[0], self._error(spread[:, 0, 0], 0)
        joint = spread[:, 1:, 0]
        # pinv: a control that does not vary explains nothing
        slopes = np.einsum("pij,pj->pi", np.linalg.pinv(spread[:, 1:, 1:], rcond=1e-12, hermitian=True), joint)
        left = spread[:, 0, 0] - np.sum(slopes * joint, axis=1)
        return mean[0] - np.sum(slopes * (mean[1:].T - self.known), axis=1), self._error(left, k)

    def _error(self, variance: np.ndarray, fitted: int) -> np.ndarray:
        free = self.count - 1 - fitted
        return student(free + 1) * np.sqrt(np.maximum(variance, 0) / free)

    @property
    def largest_share(self) -> float:
        """The largest share of one sample in the sum of squares at a place: 1 where a single one decides.

        Places whose sum of squares is below a hundredth of the largest are left out: their noise is not what matters.
        """
        squares = self.second[0, 0]
        noisy = squares >= 0.01 * squares.max()
        return float(np.max(self.largest[noisy] / np.maximum(squares[noisy], np.finfo(float).tiny)))
