"""How far a measured number may be from the expected one, and why that far."""

from __future__ import annotations

import msgspec
import numpy as np


class Tolerance(msgspec.Struct, frozen=True):
    """``kind`` says what is compared, ``value`` how far it may be, ``reason`` where that number comes from."""

    kind: str
    value: float
    reason: str

    def excess(
        self, measured: np.ndarray, expected: np.ndarray, uncertainty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(error, allowed) entry by entry; the quantity agrees where error ≤ allowed."""
        if self.kind == "relative":
            return np.abs(measured - expected), self.value * np.abs(expected)
        if self.kind == "of the largest":
            return np.abs(measured - expected), np.full_like(measured, self.value * np.abs(expected).max())
        if self.kind == "at most":
            return measured - expected, np.full_like(measured, self.value)
        if self.kind == "at least":
            return expected - measured, np.full_like(measured, self.value)
        if self.kind == "standard errors":
            return np.abs(measured - expected), self.value * uncertainty
        return np.abs(measured - expected), np.full_like(measured, self.value)


def absolute(value: float, reason: str) -> Tolerance:
    """|measured - expected| ≤ value."""
    return Tolerance("absolute", value, reason)


def relative(value: float, reason: str) -> Tolerance:
    """|measured - expected| ≤ value·|expected|."""
    return Tolerance("relative", value, reason)


def of_largest(value: float, reason: str) -> Tolerance:
    """|measured - expected| ≤ value · (the largest |expected| of the quantity): for the entries of one matrix."""
    return Tolerance("of the largest", value, reason)


def at_most(reason: str, slack: float = 0.0) -> Tolerance:
    """measured ≤ expected + slack: the prediction is an upper bound."""
    return Tolerance("at most", slack, reason)


def at_least(reason: str, slack: float = 0.0) -> Tolerance:
    """measured ≥ expected - slack: the prediction is a lower bound."""
    return Tolerance("at least", slack, reason)


def exactly(reason: str) -> Tolerance:
    """measured = expected, for counts and labels."""
    return Tolerance("exactly", 0.0, reason)


def standard_errors(multiple: float, reason: str) -> Tolerance:
    """|measured - expected| ≤ multiple · standard error (that of the expected value included)."""
    return Tolerance("standard errors", multiple, reason)
