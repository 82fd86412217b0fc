"""verify: run claims in worker processes, store each verdict as it falls."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pathlines.claim import CLAIMS, Outcome, evaluate
from pathlines.claim.cost import Cost
from pathlines.claim.evaluate import LastSimulation
from pathlines.claim.mistakes import objections
from pathlines.foundation.bounds import peak_memory
from pathlines.foundation.errors import ArgumentError, StoreError
from pathlines.foundation.load import load_file
from pathlines.foundation.precision import enable_float64
from pathlines.foundation.programs import make_room_for_programs
from pathlines.store.address import address
from pathlines.store.code import fingerprint
from pathlines.store.results import Store
from pathlines.sweep.cluster import DaskCluster, Files, is_cluster, places_here, texts_of
from pathlines.sweep.workers import Aside, Lost, spread


class Job(msgspec.Struct, frozen=True):
    """One claim at one size with some settings changed; ``load`` are extra files that register claims.

    With ``power``, mistakes are put into the claim to see whether its bounds and zeros object.
    """

    id: str
    size: str
    changes: dict[str, Any]
    load: tuple[str, ...] = ()
    power: bool = False

    @property
    def address(self) -> str:
        """Where its outcome is stored."""
        claim = CLAIMS[self.id]
        judges = ("pathlines.claim.evaluate", *(["pathlines.claim.mistakes"] if self.power else []))
        asked = [self.size, claim.setting(self.size, self.changes), claim.within, claim.expected, self.power]
        return address(self.id, msgspec.to_builtins(asked), fingerprint(*claim.homes, *judges, files=self.load))


class Finished(msgspec.Struct, frozen=True):
    """A job with its outcome or its failure.

    ``stored`` says that it was not computed now, ``unstored`` why it could not be kept, ``cost``
    what it took where that was asked for.
    """

    job: Job
    outcome: Outcome | None
    failure: str = ""
    trace: str = ""
    stored: bool = False
    unstored: str = ""
    cost: Cost | None = None

    @property
    def refused(self) -> bool:
        """Whether a changed setting, and not the claim, is what failed."""
        return bool(self.job.changes) and self.failure.startswith(f"{ArgumentError.__name__}:")


def verify(
    pattern: str = "*", *, full: bool = False, changes: dict[str, Any] | None = None, fresh: bool = False
) -> tuple[Finished, ...]:
    """Claims whose ids fit a pattern, one after the other in this process, with their outcomes.

    Args:
        pattern: an id, the beginning of one ("clustering"), or a glob ("homogenized/C0*"); every claim by default.
        full: the paper's size instead of the quick one; hours instead of seconds for some.
        changes: fields of the setting in place of the declared ones.
        fresh: compute again what is stored.

    ``Finished.outcome`` has the verdict, the numbers and their tolerances. What is finished is stored, as by
    ``pathlines verify``, which runs many at a time.
    """
    jobs = [Job(name, "full" if full else "quick", changes or {}) for name in CLAIMS.match(pattern)]
    return tuple(verify_jobs(jobs, store=Store(), fresh=fresh, workers=1))


def verify_jobs(
    jobs: list[Job],
    *,
    store: Store,
    fresh: bool = False,
    workers: int | None = None,
    started: Callable[[Job], None] | None = None,
    costs: bool = False,
    on: str = "processes",
) -> Iterator[Finished]:
    """Yield each job as it finishes: stored outcomes first, the rest from worker processes, the longest first.

    Jobs of one simulation are done by one worker, which compiles their programs once, and where a claim and its
    erratum are asked for at one setting it is run once. Every outcome is in the store before it is yielded, so an
    interrupted sweep is resumed by calling again. With ``costs``, nothing is recalled and each claim is measured in a
    process of its own. ``on`` may name a Dask cluster instead of the processes of this machine.
    """
    waiting = []
    for job in jobs:
        outcome = None if fresh or costs else recalled(store, job)
        if outcome is None:
            waiting.append(job)
        else:
            yield Finished(job, outcome, stored=True)
    if waiting:
        store.check_writable()
    count = min(workers or os.cpu_count() or 1, len(waiting))
    if waiting and is_cluster(on):
        yield from _on_a_cluster(waiting, store, on, workers, started)
    elif count <= 1 and not costs:
        last = LastSimulation()
        yield from (_here(job, store, started, last) for group in _groups(waiting) for job in group)
    else:
        yield from _in_processes(waiting, store, count, started, costs)


def recalled(store: Store, job: Job) -> Outcome | None:
    """The stored outcome of a job, if there is a trustworthy one."""
    document = store.get_document(job.address)
    try:
        return None if document is None else msgspec.convert(document, Outcome)
    except msgspec.ValidationError:
        return None


def _here(job: Job, store: Store, started: Callable[[Job], None] | None, last: LastSimulation) -> Finished:
    if started is not None:
        started(job)
    return _finish(job, _attempt(job, last), store)


def claims_aside() -> Aside:
    """A process that evaluates claims one at a time, for ``verify_aside``."""
    return Aside(_in_worker)


def verify_aside(job: Job, aside: Aside, store: Store, seconds: float) -> Finished:
    """One job: recalled, or evaluated in a process that is ended where it takes longer."""
    kept = recalled(store, job)
    if kept is not None:
        return Finished(job, kept, stored=True)
    result = aside.ask(job, seconds)
    return Finished(job, None, result.reason) if isinstance(result, Lost) else _finish(job, result, store)


def _groups(jobs: list[Job]) -> list[list[Job]]:
    """Jobs of the same simulation and size, those of one setting next to one another."""
    groups: dict[tuple[Any, str], dict[str, list[Job]]] = {}
    for job in jobs:
        settings = groups.setdefault((CLAIMS[job.id].simulate, job.size), {})
        settings.setdefault(repr(job.changes), []).append(job)
    return [list(chain.from_iterable(settings.values())) for settings in groups.values()]


class _Result(NamedTuple):
    """What an attempt leaves: a claim that breaks is one failure, not the end of the sweep."""

    address: str
    content: bytes
    failure: str = ""
    trace: str = ""
    cost: Cost | None = None


def _measured(job: Job) -> _Result:
    """The same with what it cost this process, which did nothing else; importing the claims is not counted."""
    list(CLAIMS)
    began = time.process_time()
    result = _attempt(job)
    return result._replace(cost=Cost(time.process_time() - began, round(peak_memory() / 1e6)))


_LAST = LastSimulation()
"""Of a worker process, which never changes what it has imported."""


def _in_worker(job: Job) -> _Result:
    return _attempt(job, _LAST)


def _attempt(job: Job, last: LastSimulation | None = None) -> _Result:
    """The outcome, with the address of the code that this process has: files may change while a sweep is running."""
    enable_float64()
    try:
        for file in job.load:
            load_file(file)
        claim, where = CLAIMS[job.id], job.address
        outcome = evaluate(claim, job.size, job.changes, last)
        if job.power:
            found = objections(claim, job.size, job.changes, outcome.checks)
            outcome = msgspec.structs.replace(outcome, objections=found)
    except (Exception, SystemExit) as error:
        return _Result("", b"", f"{type(error).__name__}: {error}", traceback.format_exc())
    finally:
        make_room_for_programs()
    return _Result(where, msgspec.msgpack.encode(outcome))


def _finish(job: Job, result: _Result, store: Store) -> Finished:
    if result.failure:
        return Finished(job, None, result.failure, result.trace)
    outcome = msgspec.msgpack.decode(result.content, type=Outcome)
    try:
        store.put_document(result.address, msgspec.to_builtins(outcome))
    except StoreError as error:
        return Finished(job, outcome, unstored=str(error), cost=result.cost)
    return Finished(job, outcome, cost=result.cost)


def _in_processes(
    jobs: list[Job], store: Store, count: int, started: Callable[[Job], None] | None, costs: bool
) -> Iterator[Finished]:
    groups = [[job] for job in jobs] if costs else sorted(_groups(jobs), key=_seconds, reverse=True)
    work = _measured if costs else _in_worker
    for job, result in spread(work, groups, count, started, apart=costs):
        yield Finished(job, None, result.reason) if isinstance(result, Lost) else _finish(job, result, store)


class _Sent(NamedTuple):
    """A job with the files of a person that it needs, and where its outcome belongs."""

    job: Job
    files: Files
    address: str


def _elsewhere(item: _Sent) -> _Result:
    """A job on a machine that may not have the files of the driver."""
    try:
        place = places_here(item.files)
    except OSError as error:
        return _Result("", b"", f"{type(error).__name__}: {error}")
    own = tuple(place.get(str(Path(f).resolve()), f) for f in item.job.load)
    return _in_worker(msgspec.structs.replace(item.job, load=own))


def _on_a_cluster(
    jobs: list[Job], store: Store, on: str, workers: int | None, started: Callable[[Job], None] | None
) -> Iterator[Finished]:
    """Workers of a cluster judge, and this process keeps the outcomes.

    Files to load are sent along as they were at the start, so outcomes lie under the addresses that they had then.
    """
    cluster = DaskCluster(on, workers)
    sent = {load: texts_of(load) for load in {job.load for job in jobs}}
    groups = [[_Sent(job, sent[job.load], job.address) for job in group] for group in _groups(jobs)]
    ordered = sorted(groups, key=lambda group: _seconds([item.job for item in group]), reverse=True)
    tell = None if started is None else lambda item: started(item.job)
    try:
        for item, result in cluster.spread(_elsewhere, ordered, tell):
            if isinstance(result, Lost):
                yield Finished(item.job, None, result.reason)
            else:
                yield _finish(item.job, result._replace(address=item.address) if item.files else result, store)
    finally:
        cluster.close()


def _seconds(group: list[Job]) -> float:
    """What a group is expected to take; one that nobody measured may be the longest, so it is not left for the end."""
    cost = CLAIMS[group[0].id].cost(group[0].size)
    return math.inf if cost is None else len({repr(job.changes) for job in group}) * cost.seconds
