"""Leases: who computes a chunk says so beside it, and for as long as they live nobody else does.

A lease is a small file whose time of change is a heartbeat. It is nobody's once the heart has not beaten for
``STALE`` seconds, or at once where its process ran on this machine and is gone. Clocks of machines are not compared: a
file that is written now says what time it is on the file system.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from pathlines.foundation.errors import StoreError

BEAT = 2.0
"""Seconds between heartbeats."""
STALE = 30.0
"""Seconds without one after which a lease is nobody's; a machine that is busy beats late."""
LOCK = "leases.lock"


class Owner(msgspec.Struct, frozen=True):
    """A process, so that another one on its machine can see whether it lives."""

    host: str
    pid: int
    born: str


def myself() -> Owner:
    """This process."""
    return Owner(socket.gethostname(), os.getpid(), _birth(os.getpid()))


@contextmanager
def leased(folder: Path, name: str) -> Iterator[bool]:
    """Whether the chunk is ours for the length of the block; ``False``: someone is at work on it."""
    path = folder / f"{name}.lease"
    if not _take(folder, path):
        yield False
        return
    try:
        with beating(_beat, path):
            yield True
    finally:
        with suppress(OSError):
            path.unlink()


@contextmanager
def beating(beat: Callable[..., None], *given: Any) -> Iterator[None]:
    """``beat(*given, over)`` in a thread of its own, until the event ``over`` is set at the end of the block."""
    over = threading.Event()
    heart = threading.Thread(target=beat, args=(*given, over), daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()
        heart.join()


def clear_abandoned(folder: Path) -> None:
    """Remove leases that killed processes left beside what they had finished."""
    for path in folder.glob("*.lease") if folder.is_dir() else ():
        with suppress(OSError), FileLock(folder / LOCK):
            if _abandoned(folder, path):
                path.unlink(missing_ok=True)


def _take(folder: Path, path: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / LOCK):
            if path.exists() and not _abandoned(folder, path):
                return False
            path.write_bytes(msgspec.json.encode(myself()))
            return True
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"The results folder {folder} cannot be written ({reason}).") from error


def _abandoned(folder: Path, path: Path) -> bool:
    try:
        owner = msgspec.json.decode(path.read_bytes(), type=Owner)
        since = path.stat().st_mtime
    except FileNotFoundError:
        return True
    except msgspec.DecodeError:
        owner, since = Owner("", 0, ""), path.stat().st_mtime
    if owner.host == socket.gethostname() and owner.born:
        return _birth(owner.pid) != owner.born
    return _now(folder) - since > STALE


def _now(folder: Path) -> float:
    """The time on the file system."""
    (folder / LOCK).touch()
    return (folder / LOCK).stat().st_mtime


def _birth(pid: int) -> str:
    """When a process of this machine was started, as the system counts; "" for one that is gone or cannot be seen."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]


def _beat(path: Path, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with suppress(OSError):
            os.utime(path)
