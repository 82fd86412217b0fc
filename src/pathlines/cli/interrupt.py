"""Ctrl-C in every verb: one message, exit code 130, within two seconds.

Python raises ``KeyboardInterrupt`` in the main thread, between two of its own instructions. A compiled program of a
minute delays it by a minute; an interrupt that meets a callback of the garbage collector is lost there; one that meets
the import of a compiled module ends in a crash. So a second thread hears of the signal as well: a lost interrupt is
sent again, and who has not ended in time is ended. During imports there is nothing to keep, and the end is at once.
This file imports only what Python itself has loaded or loads at once, because it comes before everything else.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

CODE = 130
MESSAGE = "pathlines: interrupted; what was stored is kept, and the same command goes on from there."
GRACE = 1.0
"""Seconds to write a checkpoint and the last lines before the process is ended."""
AGAIN = 0.05
"""Seconds after which a lost interrupt is sent again: callbacks of the collector take less."""
OVER = b"\0"
"""What the watching thread reads when there is nothing left to watch; signals are other bytes."""
SHOW_CURSOR = "\x1b[?25h"
"""For terminals on which a progress bar had hidden it."""


class Interrupts:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.received = self.over = False

    def raise_here(self, number: int, frame: FrameType | None) -> NoReturn:
        """The handler of SIGINT."""
        self.received = True
        if _importing(frame):
            end()
        raise KeyboardInterrupt

    def again(self) -> None:
        """Raise it once more, in the main thread."""
        if not self.over:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Within the block Ctrl-C raises ``KeyboardInterrupt``, and ends the process if that had no effect.

    Where signals cannot be handled (another thread, Windows) or are ignored on purpose (``nohup``), nothing is changed.
    """
    found = Interrupts()
    able = threading.current_thread() is threading.main_thread() and hasattr(signal, "pthread_kill")
    if not able or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield found
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    handler, hook = signal.signal(signal.SIGINT, found.raise_here), sys.unraisablehook
    wakeup = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    sys.unraisablehook = _sending_again(hook, found)
    watcher = threading.Thread(target=_watch, args=(reads,), daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        found.over = True
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook
        os.write(writes, OVER)
        watcher.join()
        os.close(reads)
        os.close(writes)


def _sending_again(hook: Any, interrupts: Interrupts) -> Any:
    """The hook for errors that nobody can catch, but interrupts among them come again."""

    def send_again(what: Any) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN, interrupts.again).start()
        else:
            hook(what)

    return send_again


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _watch(reads: int) -> None:
    """Wait for the first interrupt, then for the end of the block, and lose patience."""
    deadline: float | None = None
    while True:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([reads], [], [], patience)[0]:
            end()
        if OVER in (read := os.read(reads, 64)):
            return
        if deadline is None and bytes([signal.SIGINT]) in read:
            deadline = time.monotonic() + GRACE


def end() -> NoReturn:
    """The message and the exit code, at once: what Python and its libraries do when they leave can take seconds."""
    flushing = threading.Thread(target=_flush, daemon=True)
    flushing.start()
    flushing.join(0.1)
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.terminate()
    shown = SHOW_CURSOR if sys.stderr.isatty() else ""
    os.write(2, f"{shown}{MESSAGE}\n".encode())
    os._exit(CODE)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
