"""Dask clusters: one on this machine, one that is there, or one that SLURM or PBS make.

Dask's scheduler hands out tasks, replaces workers that die or fall silent, and tries lost tasks again; what it gives up
on is ``Lost``, as with the processes of this machine. Workers need this package at the same versions and the store's
path; a person's own files are sent along, and unpacked under the hash of what is in them.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import tomllib
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.foundation.files import write_whole
from pathlines.foundation.spared import use
from pathlines.store.code import user_files
from pathlines.sweep.subject import Subject
from pathlines.sweep.tasks import Report, Task, engine_code, work
from pathlines.sweep.workers import ENVIRONMENT, Lost, without_the_script

CONNECT = 10.0
"""Seconds in which a scheduler must answer."""
FAILURES = 2
"""Workers that may die over a task before Dask gives it up; the study then divides it."""
KINDS = ("SLURM", "PBS", "SGE", "LSF", "OAR", "HTCondor", "Moab")
Files = tuple[tuple[str, str], ...]
"""Paths with texts."""


def is_cluster(on: str) -> bool:
    """Whether the word names a cluster: dask, an address, or a file."""
    return on == "dask" or "://" in on or on.endswith(".toml")


class DaskCluster:
    """A connection to a cluster; ``close`` ends what it started."""

    def __init__(self, on: str, workers: int | None = None) -> None:
        self.stack = ExitStack()
        try:
            self._open(on, workers)
        except BaseException:
            self.stack.close()
            raise

    def _open(self, on: str, workers: int | None) -> None:
        try:
            use("dask")
            import dask
            import distributed
        except ImportError:
            raise ArgumentError("Dask is not installed: pip install 'pathlines[cluster]'.") from None
        for name in ("distributed", "distributed.worker", "distributed.nanny", "distributed.scheduler"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.stack.enter_context(
            dask.config.set(
                {
                    "distributed.scheduler.allowed-failures": FAILURES,
                    "distributed.nanny.pre-spawn-environ": {**ENVIRONMENT, "JAX_ENABLE_X64": "1"},
                }
            )
        )
        if on == "dask":
            self.stack.enter_context(without_the_script())
            count = workers or os.cpu_count() or 1
            cluster: Any = distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            )
        elif on.endswith(".toml"):
            cluster = _from_file(Path(on))
        else:
            cluster = on
        if not isinstance(cluster, str):
            self.stack.callback(_leave, cluster)
        try:
            self.client = distributed.Client(cluster, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            reason = f"No scheduler answers at {on} within {CONNECT:g} s ({type(error).__name__})."
            raise ArgumentError(reason) from None
        self.stack.callback(_leave, self.client)
        self._compare()
        self.label = f"Dask, {len(self.client.scheduler_info()['workers'])} workers, {self.client.dashboard_link}"

    def _compare(self) -> None:
        """Refuse workers whose code or versions are not ours; those that come later say so themselves."""
        try:
            codes = self.client.run(engine_code)
        except Exception as error:
            raise PathlinesError(f"The workers cannot import this version of pathlines ({error}).") from error
        ours = engine_code()
        for address, code in codes.items():
            if code != ours:
                raise PathlinesError(f"Worker {address} has other code or versions than this driver: install the same.")

    def spread(
        self, function: Callable[[Any], Any], groups: list[list[Any]], started: Callable[[Any], None] | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (item, function(item)) as groups finish, as ``workers.spread`` does; a group is one task."""
        from distributed import as_completed

        name = uuid.uuid4().hex
        futures = {
            self.client.submit(_in_order, function, group, key=f"{name}-{k}", pure=False): group
            for k, group in enumerate(groups)
        }
        try:
            for group in groups if started is not None else ():
                for item in group:
                    started(item) if started is not None else None
            for future in as_completed(list(futures), loop=self.client.loop):
                error = future.exception()
                group = futures.pop(future)
                found = [Lost(_cause(error))] * len(group) if error is not None else future.result()
                yield from zip(group, found, strict=True)
        finally:
            self.client.cancel(list(futures))

    def results(self, tasks: list[Task]) -> Iterator[tuple[Task, Report | Lost]]:
        """The tasks of a study, with the files of a person that they need."""
        sent = _files_of(tasks[0].subject) if tasks else ()
        by_name = {task.part: task for task in tasks}
        for (task, _), report in self.spread(work_elsewhere, [[(task, sent)] for task in tasks]):
            yield by_name[task.part], report

    def close(self) -> None:
        """Leave the cluster, and end it where it was started here."""
        self.stack.close()


def _leave(what: Any) -> None:
    """Close a client or a cluster; one that is too busy to answer is left to itself."""
    with suppress(TimeoutError, OSError):
        what.close()


def _in_order(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [function(item) for item in items]


def _cause(error: BaseException) -> str:
    kind = type(error).__name__
    return f"its workers died, {FAILURES + 1} of them" if kind == "KilledWorker" else f"{kind}: {error}"


def _from_file(path: Path) -> Any:
    """The cluster of a file: ``kind = "SLURM"``, ``workers``, and [options] of dask-jobqueue's class."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArgumentError(f"The file {path} cannot be read ({error}).") from None
    kind = said.get("kind")
    if kind not in KINDS:
        raise ArgumentError(f"The `kind` of {path} must be one of {', '.join(KINDS)}, but is {kind!r}.")
    try:
        use("dask")
        import dask_jobqueue
    except ImportError:
        raise ArgumentError("dask-jobqueue is not installed: pip install 'pathlines[cluster]'.") from None
    options = {"cores": 1, "processes": 1, **said.get("options", {})}
    try:
        cluster = getattr(dask_jobqueue, f"{kind}Cluster")(**options)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"The options of {path} are not those of dask-jobqueue's {kind}Cluster ({error})."
        ) from None
    cluster.adapt(minimum=int(said.get("at_least", 0)), maximum=int(said.get("workers", 10)))
    return cluster


def _files_of(subject: Subject) -> Files:
    """The files of a person that the subject stands on."""
    return texts_of((*subject.files, *([subject.home] if subject.home.endswith(".py") else [])))


def texts_of(files: tuple[str, ...]) -> Files:
    """Files of a person, and those that they import, with what is in them: to be sent along."""
    return tuple((path, Path(path).read_text(encoding="utf-8")) for path in user_files(files)) if files else ()


def work_elsewhere(item: tuple[Task, Files]) -> Report:
    """A task on a machine that may not have the files of the driver."""
    task, files = item
    place = places_here(files)
    subject = task.subject
    home, own = place.get(subject.home, subject.home), tuple(place.get(f, f) for f in subject.files)
    return work(msgspec.structs.replace(task, subject=msgspec.structs.replace(subject, home=home, files=own)))


def places_here(files: Files) -> dict[str, str]:
    """Where each file that was sent along lies on this machine."""
    return dict(zip((path for path, _ in files), _unpacked(files), strict=True))


def _unpacked(files: Files) -> list[str]:
    """Where the files lie here: as they are if they are the same, else beside one another in a folder of their own."""
    if all(_same(Path(path), text) for path, text in files):
        return [path for path, _ in files]
    name = hashlib.sha256(repr(files).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"pathlines-{os.getuid()}-{name}"
    top = os.path.commonpath([Path(path).parent for path, _ in files])
    found = []
    for path, text in files:
        target = folder / Path(path).relative_to(top)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _same(target, text):
            write_whole(target, text.encode())
        found.append(str(target))
    return found


def _same(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
