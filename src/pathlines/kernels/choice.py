"""Which summation is used, and why: the choice is recorded with the run."""

from __future__ import annotations

import msgspec

DENSE_PAIRS = 1 << 24


class Choice(msgspec.Struct, frozen=True):
    """A method with the reason it was taken, in words for the user."""

    method: str
    reason: str


def choose_dense(n: int) -> Choice:
    """Rows at once while the n × n matrix stays below 128 MiB, row blocks beyond; same answer."""
    if n * n <= DENSE_PAIRS:
        return Choice("dense", f"n² = {n * n} weights fit in memory")
    return Choice("blocked", f"n² = {n * n} weights would not fit comfortably; rows are taken in blocks")
