"""Files that are there in full or not at all."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pathlines.foundation.errors import StoreError

UNFINISHED = ".writing-"
ORPHANED = 3600.0
"""Seconds after which an unfinished file is nobody's."""


def default_root() -> Path:
    """Where results are kept: $PATHLINES_STORE, else the user's cache folder; a URL there is for studies alone."""
    named = os.environ.get("PATHLINES_STORE")
    if named and "://" not in named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pathlines"


def write_whole(path: Path | str, content: bytes) -> Path:
    """Write a file that has all of the content or stays as it was; ``StoreError`` when the disk says no."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
    return Path(path)


@contextmanager
def whole_file(path: Path | str) -> Iterator[Path]:
    """A file beside ``path`` to write to; it takes its place when the block ends well and vanishes when it does not.

    Someone who is killed leaves an unfinished file, which the next writer in that folder removes after an hour.
    Devices and pipes are written to as they are.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        with _readable(path):
            yield target
        return
    with _readable(path):
        sweep_up(target.parent)
        temporary = _new_file(target)
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


def sweep_up(folder: Path) -> None:
    """Remove what killed writers left; a writer at work is younger."""
    for orphan in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            if time.time() - orphan.stat().st_mtime > ORPHANED:
                orphan.unlink()


def _new_file(target: Path) -> Path:
    """An empty file with the suffix and the permissions that the target has or would have."""
    temporary = target.with_name(f"{UNFINISHED}{secrets.token_hex(8)}{target.suffix}")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return temporary


def _flush(path: Path) -> None:
    """Some file systems notice only now that they are full."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _readable(path: Path | str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"The file {path} cannot be written ({error.strerror or error}).") from error
