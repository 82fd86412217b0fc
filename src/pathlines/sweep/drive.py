"""Running a plan: what the store has is taken, the rest is handed to an engine, and nothing is counted before it is
kept. Chunks that another driver is at work on are waited for, and those whose worker died are tried again, in halves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import PathlinesError, StoreError
from pathlines.sweep.chunks import ChunkStore, Kept
from pathlines.sweep.engines import Engine
from pathlines.sweep.grid import Grid
from pathlines.sweep.plan import Chunk, StudyPlan
from pathlines.sweep.points import MISSING, Layout, gathered
from pathlines.sweep.subject import Subject
from pathlines.sweep.tasks import Report, Task, engine_code
from pathlines.sweep.workers import Lost

PATIENCE = 0.5
"""Seconds between two looks at a chunk that another driver is at work on."""
ATTEMPTS = 2
"""Deaths of workers over the same points after which they are divided, and one alone is a failure."""


class Standing(NamedTuple):
    """How a study stands: points in all, done (failed ones among them), recalled from the store, computed now."""

    total: int
    done: int
    failed: int
    recalled: int
    computed: int
    seconds: float


class _Part(NamedTuple):
    """Points of a chunk that are still to be computed, and how many workers died of them."""

    chunk: Chunk
    where: np.ndarray
    again: bool
    deaths: int = 0


class Drive:
    """One run of a plan with its grid."""

    def __init__(self, plan: StudyPlan, subject: Subject, chunks: ChunkStore) -> None:
        self.plan, self.subject, self.chunks, self.root = plan, subject, chunks, chunks.root
        self.grid = Grid(plan.shape)
        self.computed = self.recalled = 0
        self.began = time.monotonic()
        self._code = ""

    def recall(self, retry_failed: bool = False) -> list[_Part]:
        """Take what the store has; what is left to do."""
        left, there = [], self.chunks.names()
        plans = list(self.plan.chunks())
        for chunk in plans:
            kept = self.chunks.get(chunk.name) if chunk.name in there else None
            self.grid.take(chunk.where, chunk.keys, kept)
        others = there - {chunk.name for chunk in plans}
        for name in sorted(others) if len(self.grid.missing) else ():
            self._take_foreign(self.chunks.get(name))
        failed = np.zeros(self.plan.count, bool)
        if retry_failed:
            failed[self.grid.failed] = True
            self.grid.status[failed] = MISSING
        for chunk in plans:
            mine = chunk.where[self.grid.status[chunk.where] == MISSING]
            if len(mine):
                left.append(_Part(chunk, mine, bool(failed[mine].any())))
        self.recalled = self.plan.count - len(self.grid.missing)
        return left

    def _take_foreign(self, kept: Kept | None) -> None:
        """Points that another study of the same subject has computed."""
        missing = self.grid.missing
        if kept is not None and len(missing):
            self.grid.take(missing, self.plan.keys(missing), kept)

    def through(self, left: list[_Part], engine: Engine) -> Iterator[Standing]:
        """Compute what is left, with how it stands after each chunk."""
        self._code = engine_code()
        self.chunks.clear_abandoned()
        while left:
            held: list[_Part] = []
            again: list[_Part] = []
            tasks = [self._task(part, number) for number, part in enumerate(left)]
            for task, report in engine.results(tasks):
                part = left[task.part]
                if isinstance(report, Lost):
                    again += self._after_a_death(part, report)
                elif report.refused:
                    raise StoreError(report.refused) if report.unstored else PathlinesError(report.refused)
                elif report.held:
                    held.append(part)
                else:
                    again += self._finished(part, report)
                yield self.standing()
            left = again + held
            if held and not again:
                time.sleep(PATIENCE)

    def _finished(self, part: _Part, report: Report) -> list[_Part]:
        """Count what is in the store; what should be there and is not (a damaged file) is computed again."""
        kept = self.chunks.get(part.chunk.name)
        missing = self.grid.take(part.where, self.plan.keys(part.where), kept)
        self.computed += report.computed
        self.recalled += len(part.where) - len(missing) if not report.computed else 0
        return [_Part(part.chunk, missing, True)] if len(missing) else []

    def _after_a_death(self, part: _Part, lost: Lost) -> list[_Part]:
        """Once more, then each half by itself; a point that workers die of is a failure with its reason."""
        if part.deaths + 1 < ATTEMPTS:
            return [part._replace(deaths=part.deaths + 1)]
        if len(part.where) > 1:
            return [_Part(part.chunk, half, part.again) for half in np.array_split(part.where, 2)]
        keys = self.plan.keys(part.where)
        self.chunks.put(part.chunk.name, keys, gathered([lost.reason], Layout({})), 0.0)
        return self._finished(part, Report(1, 1))

    def _task(self, part: _Part, number: int) -> Task:
        name, program, folder = part.chunk.name, part.chunk.program, self.chunks.subject
        keys, points = self.plan.keys(part.where), self.plan.points(part.where)
        return Task(self.subject, self.root, folder, name, program, number, keys, points, self._code, part.again)

    def standing(self) -> Standing:
        """Points in all, done, failed, recalled, computed, and seconds since the beginning."""
        done, failed = self.plan.count - len(self.grid.missing), len(self.grid.failed)
        seconds = time.monotonic() - self.began
        return Standing(self.plan.count, done, failed, self.recalled, self.computed, seconds)
