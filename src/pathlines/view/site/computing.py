"""Answers of the pages: computed by few threads, from a short line, within a time, and kept under their address.

JAX computes outside of Python's lock and its threads share the compiled programs, which processes would not. A client
who asks again while waiting gives up its older place in the line.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.store.address import address

WORKERS = 2
WAITING = 60
"""Places in the line; whoever comes when it is full is asked to come again."""
SECONDS = 20.0
"""What one answer may take; a run then shows what it has."""
KEPT_BYTES = 128e6
"""Of answers that are kept, the youngest."""
BUSY = "The server has all hands full; try again in a moment."
BUG = "This could not be computed; the terminal says more."


class OvertakenError(PathlinesError):
    """The same client has asked for something newer."""


class Answers:
    """A line, its workers, and what they have answered."""

    def __init__(self, workers: int = WORKERS, waiting: int = WAITING) -> None:
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="pathlines-view")
        self.places = waiting + workers
        self.kept: OrderedDict[str, bytes] = OrderedDict()
        self.going: dict[str, Future[bytes]] = {}
        self.last: dict[str, str] = {}
        self.lock = threading.RLock()  # an answer that is there at once is kept by the thread that asked

    async def of(self, kind: str, setting: Any, compute: Callable[[], Any], client: str = "") -> bytes:
        """The JSON of ``compute()``, from what is kept where the same setting was asked for before."""
        name = address(kind, setting, "")
        with self.lock:
            if name in self.kept:
                self.kept.move_to_end(name)
                return self.kept[name]
            self._leave(client, name)
            future = self.going.get(name)
            if future is None:
                if len(self.going) >= self.places:
                    raise ArgumentError(BUSY)
                future = self.going[name] = self.pool.submit(self._work, compute)
                future.add_done_callback(lambda done: self._keep(name, done))
            if client:
                self.last[client] = name
        try:
            return await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            if future.cancelled():
                raise OvertakenError("Something newer was asked for.") from None
            raise

    def _leave(self, client: str, name: str) -> None:
        """What this client alone still waits for, and has not been begun, is not computed."""
        before = self.last.pop(client, name) if client else name
        if before != name and before not in self.last.values() and before in self.going:
            future = self.going[before]
            threading.Thread(target=future.cancel).start()  # its callback takes the lock that is held here

    def _work(self, compute: Callable[[], Any]) -> bytes:
        return msgspec.json.encode(compute())

    def _keep(self, name: str, done: Future[bytes]) -> None:
        with self.lock:
            self.going.pop(name, None)
            if done.cancelled() or done.exception() is not None:
                return
            self.kept[name] = done.result()
            while len(self.kept) > 1 and sum(map(len, self.kept.values())) > KEPT_BYTES:
                self.kept.popitem(last=False)

    @property
    def idle(self) -> bool:
        """Whether nobody computes."""
        return not self.going

    def close(self) -> None:
        """Begin nothing more."""
        self.pool.shutdown(wait=False, cancel_futures=True)


class Deadline:
    """Ends a flow that takes too long as Ctrl-C would: it keeps what it has."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.at, self.over, self.seconds = time.monotonic() + seconds, False, seconds

    def __call__(self, arrays: Any) -> None:
        """Looked at by a flow every so often."""
        if time.monotonic() > self.at and not self.over:
            self.over = True
            raise KeyboardInterrupt

    def said(self, outcome: str) -> str:
        """The outcome in words for who did not press Ctrl-C."""
        if not self.over:
            return outcome
        return outcome.replace("interrupted", "stopped") + f": the page computes for at most {self.seconds:g} s"
