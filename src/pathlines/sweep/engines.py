"""Where the chunks of a study are computed: in this process, in processes of this machine, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from pathlines.foundation.errors import ArgumentError, StoreError
from pathlines.sweep.cluster import DaskCluster, is_cluster
from pathlines.sweep.points import one_line
from pathlines.sweep.subject import Known
from pathlines.sweep.tasks import Report, Task, done, work
from pathlines.sweep.workers import Lost, spread

NAMES = "serial, processes, dask, the address of a scheduler (tcp://…) or a file cluster.toml"


@runtime_checkable
class Engine(Protocol):
    """Computes tasks."""

    label: str

    def results(self, tasks: list[Task]) -> Iterator[tuple[Task, Report | Lost]]:
        """Each task with what became of it, as they finish."""

    def close(self) -> None:
        """Let go of what it holds."""


class Serial:
    """This process; runs of a model are on all cores all the same."""

    label = "this process"

    def __init__(self, known: Known) -> None:
        self.known = known

    def results(self, tasks: list[Task]) -> Iterator[tuple[Task, Report | Lost]]:
        """One after the other."""
        for task in tasks:
            try:
                yield task, done(task, self.known)
            except StoreError as error:
                yield task, Report(refused=one_line(str(error)), unstored=True)

    def close(self) -> None:
        """Nothing is held."""


class Processes:
    """Worker processes of this machine, one for each core; chunks of one program go to one of them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1
        self.label = f"{self.count} processes"

    def results(self, tasks: list[Task]) -> Iterator[tuple[Task, Report | Lost]]:
        """As they finish."""
        yield from spread(work, shared_out(tasks, self.count), self.count, quickly=False)

    def close(self) -> None:
        """Workers end with what they were started for."""


def shared_out(tasks: list[Task], count: int) -> list[list[Task]]:
    """Tasks of one program together, unless that would leave workers without any."""
    programs: dict[int, list[Task]] = {}
    for task in tasks:
        programs.setdefault(task.program, []).append(task)
    if len(programs) >= 2 * count:
        return list(programs.values())
    return [[task] for task in tasks]


def check_engine(on: str) -> None:
    """Refuse what names no engine, before anything else is done."""
    if on not in ("serial", "processes") and not is_cluster(on):
        raise ArgumentError(f"Argument `on` must be {NAMES}, but is {on!r}.")


def engine_named(on: str, known: Known, workers: int | None) -> Engine:
    """The engine that a person asked for."""
    check_engine(on)
    if is_cluster(on):
        return DaskCluster(on, workers)
    return Serial(known) if on == "serial" else Processes(workers)


def live_only(known: Known) -> bool:
    """Whether a subject exists in this process only: a function that was typed at a prompt."""
    home = known.subject.home
    return bool(home) and not home.endswith(".py") and not home.startswith("pathlines.")
