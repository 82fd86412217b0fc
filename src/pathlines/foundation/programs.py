"""Compiled programs are forgotten before they fill the table of memory maps of a process.

Linux allows a process some 65,000 maps, a compiled program takes about ten, and a compiler that gets no more ends the
process. Those who run thousands of different programs in one process ask here between them.
"""

from __future__ import annotations

from pathlib import Path

import jax

MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
CROWDED = 0.4
"""Share of the table above which programs are forgotten: one piece of work hardly takes the rest."""


def forget_programs_when_crowded() -> bool:
    """Drop what JAX has compiled if the table of maps is filling up; whether it was dropped. Cost: milliseconds."""
    crowded = share_of_maps() > CROWDED
    if crowded:
        jax.clear_caches()
    return crowded


def share_of_maps() -> float:
    """Used over allowed memory maps of this process; 0 where the system does not say."""
    try:
        with MAPS.open("rb") as maps:
            return sum(1 for _ in maps) / int(MOST_MAPS.read_text())
    except (OSError, ValueError):
        return 0.0
