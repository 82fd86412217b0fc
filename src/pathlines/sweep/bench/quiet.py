"""Whether the machine was ours while we measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

QUIET = 0.15
"""Cores that others may use before times stop meaning something."""


class Watch:
    """How much processor time others take from its making on, where the system tells (Linux)."""

    def __init__(self) -> None:
        self._began, self._all, self._own = time.monotonic(), _all_seconds(), _own_seconds()

    def others(self) -> float | None:
        """Cores that other processes (and other guests of the host) kept busy on average."""
        now = _all_seconds()
        if now is None or self._all is None:
            return None
        taken = now - self._all - (_own_seconds() - self._own)
        return max(0.0, taken / max(time.monotonic() - self._began, 1e-3))


def warning(others: float | None) -> str:
    """What to say about times measured beside others, or an empty string."""
    if others is None or others < QUIET:
        return ""
    return (
        f"Others kept {others:.1f} cores busy while this was measured: libraries whose threads wait by spinning suffer "
        "most from that, so ratios flatter us. Measure again on a quiet machine."
    )


def _all_seconds() -> float | None:
    """Processor time of everybody, stolen time included."""
    path = Path("/proc/stat")
    if not path.exists():
        return None
    user, nice, system, _, _, *more = (int(x) for x in path.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Processor time of this process and of those it has waited for."""
    return sum(os.times()[:4])
