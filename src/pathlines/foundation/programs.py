"""Compiled programs are forgotten before they fill the table of memory maps of a process.

Linux allows a process some 65,000 maps; a compiled flow takes about 160 of them and 10 MB, an operation of JAX outside
a program about ten maps, and a compiler that gets no more ends the process. Every entry that compiles asks here first.
JAX forgets all programs or none: those still needed are compiled again, once for a hundred others.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
COMPILED = "/jax/core/compile/backend_compile_duration"
"""What JAX announces when it has compiled a program."""
ROOM = 0.2
"""Share of the table that programs may take before they are forgotten."""
LAST_RESORT = 0.6
"""Share of the table above which threads besides the main one forget programs, though another thread may be tracing."""
BETWEEN_LOOKS = 8
"""Programs compiled between two looks at the table, which take milliseconds; a program takes less than a percent."""


@dataclass
class _Count:
    """Programs compiled since the last look, how often all were forgotten, the share of the table taken without any."""

    fresh: int = 0
    forgotten: int = 0
    bare: float | None = None

    def compiled(self, event: str, duration_secs: float, **kwargs: Any) -> None:
        self.fresh += event == COMPILED


_count = _Count()
jax.monitoring.register_event_duration_secs_listener(_count.compiled)


def make_room_for_programs() -> bool:
    """Forget what JAX has compiled if it crowds the table of maps; whether it was forgotten.

    Never while a program is being traced. Costs a tenth of a microsecond where nothing was compiled since the last
    call, so that runs of equal shapes neither look nor compile again.
    """
    if _count.fresh < BETWEEN_LOOKS or _tracing():
        return False
    _count.fresh = 0
    taken = share_of_maps()
    _count.bare = taken if _count.bare is None else min(_count.bare, taken)
    main = threading.current_thread() is threading.main_thread()
    if taken < (_count.bare + ROOM if main else LAST_RESORT):
        return False
    jax.clear_caches()
    _return_memory()
    _count.forgotten += 1
    _count.bare = share_of_maps()
    return True


def times_forgotten() -> int:
    """How often the programs of this process were forgotten: what was compiled before is compiled anew."""
    return _count.forgotten


def share_of_maps() -> float:
    """Used over allowed memory maps of this process; 0 where the system does not say."""
    try:
        with MAPS.open("rb") as maps:
            return sum(1 for _ in maps) / int(MOST_MAPS.read_text())
    except (OSError, ValueError):
        return 0.0


def _return_memory() -> None:
    """Give what programs held back to the system, where the C library can: else only further programs may use it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _tracing() -> bool:
    """Whether some function is being traced in this thread: inside of it every number is one of the tracer's."""
    return isinstance(jnp.zeros(()) + 1, jax.core.Tracer)
