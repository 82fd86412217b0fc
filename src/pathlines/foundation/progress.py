"""A progress bar for anything over two seconds, and silence for the rest.

Where nobody looks at a terminal (a pipe, the log of a cluster) it is a line after two seconds, and one whenever the
time that has passed has doubled: a day of work is sixteen lines.
"""

from __future__ import annotations

import sys
import time
from multiprocessing import parent_process
from types import TracebackType
from typing import Any

PATIENCE = 2.0


class Progress:
    """``with Progress("label", total) as bar: bar.update(done)``: said on stderr once two seconds passed.

    ``show``: False for silence, True for the bar; by default a bar on a terminal, and lines elsewhere. Worker processes
    are silent: who started them says how far they are.
    """

    def __init__(self, label: str, total: float, *, show: bool | None = None) -> None:
        self._label, self._total = label, total
        self._show = show or (show is None and parent_process() is None)
        self._lines = show is None and not sys.stderr.isatty()
        self._began = time.monotonic()
        self._patience = PATIENCE
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: float, note: str = "") -> None:
        """Say how much is done, out of ``total``."""
        if not self._show or (self._bar is None and time.monotonic() - self._began < self._patience):
            return
        if self._lines:
            self._patience = 2 * (time.monotonic() - self._began)
            if done >= self._total:  # nobody waits any more
                return
            print(f"{self._label} {note}".rstrip() + f": {done / self._total:.0%}", file=sys.stderr, flush=True)
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=done, description=f"{self._label} {note}".rstrip())

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(self._label, total=self._total)
