"""Absurd sizes are refused by their predicted cost, before any work and with the limit named."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.setting import Setting

OPERATIONS = 1e15
"""Floating-point operations of about a day on one core."""
HOURS = 24.0
"""What a changed setting may take."""
USUAL_MEMORY = 16e9
"""Bytes assumed where the system does not say."""


def machine_memory() -> float:
    """Bytes of memory of this machine."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return USUAL_MEMORY


def peak_memory() -> float:
    """The most bytes that this program has held: ``ru_maxrss`` may still be that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return 1024.0 * float(line.split()[1])
    import resource  # Windows has none

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def within(what: str, cost: float, limit: float, unit: str, *, force: bool = False) -> None:
    """Raise unless the predicted cost is within its limit, or the user insists."""
    if not (force or cost <= limit):
        raise ArgumentError(f"{what} would take {cost:.2g} {unit}, but the limit is {limit:.2g} (--force insists).")


def affordable(what: str, *, memory: float = 0.0, operations: float = 0.0, force: bool = False) -> None:
    """Raise unless lower bounds of memory (bytes) and work (operations) are what a machine can give."""
    within(what, memory / 1e9, machine_memory() / 1e9, "GB of memory", force=force)
    within(what, operations, OPERATIONS, "operations (a day is 1e+15)", force=force)


def growth(usual: Setting, wanted: Setting) -> float:
    """How many times the work grows, in proportion to each whole number of the setting (the largest of a list; seeds
    do not count), which for numbers of tokens is the least it does.
    """
    before, after = msgspec.to_builtins(usual), msgspec.to_builtins(wanted)
    sizes = {name: (_largest(before[name]), _largest(after[name])) for name in before if "seed" not in name}
    return math.prod(max(1.0, after / max(before, 1.0)) for before, after in sizes.values())


def enlarged(what: str, seconds: float, usual: Setting, wanted: Setting, *, force: bool = False) -> None:
    """Raise if a setting that usually takes ``seconds`` was changed to more than a day."""
    hours = seconds * growth(usual, wanted) / 3600
    within(f"{what} at this setting", hours, HOURS, "hours", force=force)


def _largest(value: Any) -> float:
    if isinstance(value, (list, tuple)):
        return max((_largest(x) for x in value), default=0.0)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else 0.0
