"""Worker processes that outlive one another: what one of them dies of is the failure of its item alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from pathlines.foundation.compiler import compile_quickly
from pathlines.foundation.errors import PathlinesError

ENVIRONMENT = {
    "NPROC": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
}
"""One thread per worker for JAX and NumPy, there being one worker per core; the current folder is not imported from.

Their results are stored, so their programs are not: keeping hundreds that nobody asks for again takes a tenth longer.
"""


ATTEMPTS = 5


class Lost(msgspec.Struct, frozen=True):
    """What is left of an item whose worker died."""

    reason: str


def spread(
    work: Callable[[Any], Any],
    groups: list[list[Any]],
    count: int,
    started: Callable[[Any], None] | None = None,
    apart: bool = False,
    quickly: bool = True,
) -> Iterator[tuple[Any, Any]]:
    """Yield (item, work(item)) as items finish; a group is done by one worker in its order, so that it shares programs.

    A worker that dies (the kernel out of memory, a crash) is replaced; its item is ``Lost`` and the rest of its group
    goes on. With ``apart``, each group has a process of its own; without ``quickly``, programs are compiled for speed.
    ``work`` must be importable by name and raise nothing.
    """
    os.environ.update({k: os.environ.get(k) or v for k, v in ENVIRONMENT.items()})
    if quickly:
        compile_quickly(os.environ)
    queue = [list(g) for g in groups if g]
    workers = [_started(work) for _ in range(min(count, len(queue)))]
    try:
        busy: dict[Connection, _Worker] = {}
        while queue or busy:
            for worker in [w for w in workers if w.pipe not in busy][: len(queue)]:
                worker.give(queue.pop(0), started)
                busy[worker.pipe] = worker
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                item, result = worker.take()
                lost = isinstance(result, Lost)
                if worker.items and not lost:
                    worker.begin(started)
                else:
                    del busy[worker.pipe]
                    queue[:0] = [worker.items] if worker.items else []
                    if lost or apart:
                        worker.process.terminate()
                        workers[workers.index(worker)] = _started(work)
                yield item, result
    finally:
        for worker in workers:
            worker.process.terminate()


def _started(work: Callable[[Any], Any]) -> _Worker:
    """A worker; one that is killed before it has read what to do is started again."""
    for _ in range(ATTEMPTS):
        with suppress(BrokenPipeError):
            return _Worker(work)
    raise PathlinesError("Worker processes are killed as soon as they start (out of memory?); `--jobs 1` needs none.")


class _Worker:
    """A process, the pipe to it, and what it still has to do."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with without_the_script():
            self.process.start()
        theirs.close()
        self.items: list[Any] = []

    def give(self, items: list[Any], started: Callable[[Any], None] | None) -> None:
        self.items = items
        self.begin(started)

    def begin(self, started: Callable[[Any], None] | None) -> None:
        if started is not None:
            started(self.items[0])
        with suppress(OSError):  # if it died between two items, reading from the pipe will say so
            self.pipe.send(self.items[0])

    def take(self) -> tuple[Any, Any]:
        item = self.items.pop(0)
        try:
            return item, self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return item, Lost(_cause(self.process.exitcode))


@contextmanager
def without_the_script() -> Iterator[None]:
    """A spawned process would run the script again that started it; ``work`` is found by its module."""
    main = sys.modules["__main__"]
    kept: dict[str, Any] = {name: main.__dict__.pop(name) for name in ("__file__", "__spec__") if name in main.__dict__}
    main.__dict__["__spec__"] = None
    try:
        yield
    finally:
        main.__dict__.update(kept)


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process ended with exit code {code}"


def _follow_the_parent() -> None:
    """A worker whose parent was killed would go on with its item, perhaps for hours, for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_the_parent, daemon=True).start()
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        pipe.send(work(item))


class Aside:
    """One worker process for those who wait: it keeps what it compiled, and is replaced if an item takes too long."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.lock = threading.Lock()
        self.worker: _Worker | None = None

    def ask(self, item: Any, seconds: float) -> Any:
        """``work(item)``, or ``Lost`` with the reason; whoever comes meanwhile waits for their turn."""
        with self.lock:
            if self.worker is None:
                os.environ.update({k: os.environ.get(k) or v for k, v in ENVIRONMENT.items()})
                self.worker = _started(self.work)
            self.worker.give([item], None)
            if self.worker.pipe.poll(seconds):
                _, result = self.worker.take()
            else:
                result = Lost(f"it took longer than {seconds:g} s")
            if isinstance(result, Lost):
                self._end()
            return result

    def _end(self) -> None:
        if self.worker is not None:
            self.worker.process.terminate()
            self.worker.pipe.close()
            self.worker = None

    def close(self) -> None:
        """End the worker, whatever it does."""
        self._end()
