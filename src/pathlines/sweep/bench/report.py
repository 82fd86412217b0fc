"""bench: measure the cases, one after the other, and judge the goals."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from pathlines.foundation.errors import UnknownNameError
from pathlines.foundation.progress import Progress
from pathlines.sweep.bench.case import CASES, GROUPS, PEERS, missing_peers, ordered
from pathlines.sweep.bench.goals import Goal, goals
from pathlines.sweep.bench.machine import Machine, machine
from pathlines.sweep.bench.measure import Result, measure
from pathlines.sweep.bench.memory import Memory, peak_memories
from pathlines.sweep.bench.quiet import Watch

SECONDS = {"quick": 0.5, "full": 5.0}


class Report(msgspec.Struct, frozen=True):
    """Everything one run of the bench found; ``others`` is how many cores were kept busy by someone else meanwhile."""

    date: str
    size: str
    machine: Machine | None
    results: tuple[Result, ...]
    memories: tuple[Memory, ...]
    goals: tuple[Goal, ...]
    missing: tuple[str, ...]
    others: float | None


def chosen_cases(only: str = "", quick: bool = False) -> list[str]:
    """Names of the cases that fit the pattern; a quick run without one takes a few small cases."""
    if only:
        try:
            names = CASES.match(only)
        except UnknownNameError as error:
            text = f"No bench case matches `{only}`; their names begin with {', '.join(GROUPS)} (as in `drift/n=32*`)."
            raise UnknownNameError(text) from error
        few = [name for name in names if CASES[name].quick] if quick else []
        return few or names
    return [name for name in CASES if CASES[name].quick or not quick]


def bench(
    only: str = "", quick: bool = False, *, peaks: bool = True, memory: bool | None = None, progress: bool | None = None
) -> Report:
    """Measure ours against peers: contenders interleaved in this process, medians over rounds.

    ``only`` is a name, the beginning of one, or a glob over ``CASES``; ``quick`` takes seconds instead of minutes.
    ``peaks`` measures what the machine can do, ``memory`` (by default in a full run of everything) the peak memory of a
    large drift in processes of their own.
    """
    cases = ordered(chosen_cases(only, quick))
    seconds = SECONDS["quick" if quick else "full"]
    memory = not quick and not only if memory is None else memory
    results: list[Result] = []
    watch = Watch()
    with Progress("bench", len(cases) + 2, show=progress) as bar:
        bar.update(0, "peaks of the machine")
        found = machine() if peaks else None
        for number, case in enumerate(cases, start=1):
            bar.update(number, case.name)
            results.append(measure(case, seconds, quick))
        bar.update(len(cases) + 1, "peak memory")
        others = watch.others()
        memories = peak_memories() if memory else []
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    judged = goals(results, found, memories)
    missing = tuple(missing_peers()) if any(c.needs in PEERS for case in cases for c in case.contenders) else ()
    size = "quick" if quick else "full"
    return Report(date, size, found, tuple(results), tuple(memories), judged, missing, others)
