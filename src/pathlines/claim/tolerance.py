"""How far a measured number may be from the expected one, and why that far."""

from __future__ import annotations

import msgspec
import numpy as np


class Tolerance(msgspec.Struct, frozen=True):
    """``kind`` says what is compared, ``value`` how far it may be, ``reason`` where that number comes from.

    ``errors`` standard errors of the compared numbers are allowed on top.
    """

    kind: str
    value: float
    reason: str
    errors: float = 0.0

    def excess(
        self, measured: np.ndarray, expected: np.ndarray, uncertainty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(error, allowed) entry by entry; the quantity agrees where error ≤ allowed."""
        noise = self.errors * uncertainty
        if self.kind == "relative":
            return np.abs(measured - expected), self.value * np.abs(expected) + noise
        if self.kind == "of the largest":
            return np.abs(measured - expected), np.full_like(measured, self.value * np.abs(expected).max())
        if self.kind == "at most":
            return measured - expected, self.value + noise
        if self.kind == "at least":
            return expected - measured, self.value + noise
        if self.kind == "standard errors":
            return np.abs(measured - expected), self.value * uncertainty
        return np.abs(measured - expected), self.value + noise


def absolute(value: float, reason: str, errors: float = 0.0) -> Tolerance:
    """|measured - expected| ≤ value + errors · standard error."""
    return Tolerance("absolute", value, reason, errors)


def relative(value: float, reason: str, errors: float = 0.0) -> Tolerance:
    """|measured - expected| ≤ value·|expected| + errors · standard error."""
    return Tolerance("relative", value, reason, errors)


def of_largest(value: float, reason: str) -> Tolerance:
    """|measured - expected| ≤ value · (the largest |expected| of the quantity): for the entries of one matrix."""
    return Tolerance("of the largest", value, reason)


def at_most(reason: str, slack: float = 0.0, errors: float = 0.0) -> Tolerance:
    """measured ≤ expected + slack + errors · standard error: the prediction is an upper bound."""
    return Tolerance("at most", slack, reason, errors)


def at_least(reason: str, slack: float = 0.0, errors: float = 0.0) -> Tolerance:
    """measured ≥ expected - slack - errors · standard error: the prediction is a lower bound."""
    return Tolerance("at least", slack, reason, errors)


def exactly(reason: str) -> Tolerance:
    """measured = expected, for counts and labels."""
    return Tolerance("exactly", 0.0, reason)


def standard_errors(multiple: float, reason: str) -> Tolerance:
    """|measured - expected| ≤ multiple · standard error (that of the expected value included)."""
    return Tolerance("standard errors", multiple, reason)
