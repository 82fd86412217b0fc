"""What a worker is given, does and says: one chunk, computed, and kept before it is counted."""

from __future__ import annotations

import time

import msgspec
import numpy as np

from pathlines.foundation.errors import PathlinesError, StoreError
from pathlines.foundation.precision import enable_float64
from pathlines.store.code import fingerprint
from pathlines.sweep.chunks import ChunkStore, matched
from pathlines.sweep.locate import located
from pathlines.sweep.plan import Keys
from pathlines.sweep.points import DONE, MISSING, Points, one_line
from pathlines.sweep.subject import Known, Subject

ENGINE = "pathlines.sweep.tasks"
"""The module whose code driver and workers must share."""


class Task(msgspec.Struct, frozen=True):
    """Points of one chunk; ``again`` says that those in the store are not enough (they failed)."""

    subject: Subject
    root: str
    folder: str
    chunk: str
    program: int
    part: int
    keys: Keys
    points: Points
    code: str
    again: bool = False


class Report(msgspec.Struct, frozen=True):
    """What became of a task; ``held``: someone else is at work on it; ``refused``: it cannot be done or kept here."""

    computed: int = 0
    failed: int = 0
    seconds: float = 0.0
    held: bool = False
    refused: str = ""
    unstored: bool = False


def engine_code() -> str:
    """A hash of the code that computes studies, and of the versions of what it stands on."""
    return fingerprint(ENGINE)


def work(task: Task) -> Report:
    """Do a task in a process that may know nothing of it yet; it raises nothing."""
    try:
        enable_float64()
        if engine_code() != task.code:
            return Report(refused="the code or the versions of driver and worker differ")
        return done(task, located(task.subject))
    except StoreError as error:
        return Report(refused=one_line(str(error)), unstored=True)
    except (Exception, SystemExit) as error:
        return Report(refused=one_line(str(error) if isinstance(error, PathlinesError) else error))


def done(task: Task, known: Known) -> Report:
    """Compute and keep the points of a chunk that nobody else is at work on and nobody has finished."""
    store = ChunkStore(task.root, task.folder)
    with store.leased(task.chunk) as mine:
        if not mine:
            return Report(held=True)
        there = None if task.again or task.chunk not in store.names() else store.get(task.chunk)
        if there is not None and (matched(task.keys, there.keys) != MISSING).all():
            return Report()
        began = time.perf_counter()
        results = known.kernel().evaluate(task.points)
        seconds = time.perf_counter() - began
        store.put(task.chunk, task.keys, results, seconds)
    return Report(task.points.size, int(np.sum(results.status != DONE)), seconds)
