"""Stores of studies at a URL that fsspec knows (s3://bucket/folder, gs://, memory://, …): sealed objects and leases.

Objects are written in one piece, and each has the seal that files have, so that half of one is no result. There is no
lock between machines here: whoever wrote a lease last and finds it unchanged has it, and in the worst case two drivers
compute the same chunk, to the same bits.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pathlines.foundation.errors import ArgumentError, PathlinesWarning, StoreError
from pathlines.store.results import SEAL
from pathlines.sweep.leases import beating

BEAT = 5.0
"""Seconds between heartbeats of a lease: each is a request."""
STALE = 60.0
"""Seconds without one after which a lease is nobody's."""
LOCAL = ("file://",)
NOW = "clock.now"
"""An object that is written to learn what time it is where the objects are."""


def is_url(root: Any) -> bool:
    """Whether a store is named by a URL of something else than a folder of this machine."""
    return isinstance(root, str) and "://" in root and not root.startswith(LOCAL)


def local_root(root: str | Path) -> str:
    """The folder of a store on this machine, which a file:// URL names too."""
    text = str(root)
    return text.removeprefix("file://") if text.startswith(LOCAL) else text


def check_url(root: str) -> None:
    """Refuse what no installed package can reach, in one line."""
    try:
        import fsspec
    except ImportError:
        raise ArgumentError("Stores at a URL need the package fsspec: pip install fsspec.") from None
    protocol = root.partition("://")[0]
    try:
        fsspec.get_filesystem_class(protocol.partition("::")[0])
    except ImportError as error:
        raise ArgumentError(f"A store at {protocol}:// needs a package that is not installed: {error}.") from None
    except ValueError:
        known = "s3, gs, abfs, sftp, memory, file, …"
        raise ArgumentError(f"There is no kind of store {protocol}:// (fsspec knows {known}).") from None


class RemoteStore:
    """What ``Store`` does with bytes, at a URL."""

    def __init__(self, url: str) -> None:
        check_url(url)
        import fsspec

        self.url = url.rstrip("/")
        self.fs, self.path = fsspec.core.url_to_fs(self.url)
        self.path = self.path.rstrip("/")

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def names(self, suffix: str) -> set[str]:
        """Names of all objects with that ending."""
        self.fs.invalidate_cache()
        try:
            found = self.fs.ls(self.path, detail=False)
        except FileNotFoundError:
            return set()
        plain = (str(path).rstrip("/").rpartition("/")[2] for path in found)
        return {name.removesuffix(suffix) for name in plain if name.endswith(suffix)}

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, or nothing."""
        try:
            found: bytes = self.fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return found

    def write(self, name: str, body: bytes) -> None:
        """An object in one piece."""
        try:
            if "local" in _protocols(self.fs):
                self.fs.makedirs(self.path, exist_ok=True)
            self.fs.pipe_file(self._at(name), body)
        except Exception as error:  # every provider has its own
            reason = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"The store {self.url} cannot be written ({reason[:200]}).") from error

    def get_bytes(self, name: str, suffix: str) -> bytes | None:
        """Stored bytes whose seal is right; ``None`` where there are none, or with a warning where they are damaged."""
        whole = self.read(name + suffix)
        if whole is None:
            return None
        body, mark, seal = whole.rpartition(SEAL)
        if mark and seal == hashlib.sha256(body).hexdigest().encode():
            return body
        text = f"Stored result {name + suffix} is not trusted: its checksum does not match; it is computed again."
        warnings.warn(text, PathlinesWarning, stacklevel=3)
        return None

    def put_bytes(self, name: str, suffix: str, body: bytes) -> None:
        """Write bytes with a seal."""
        self.write(name + suffix, body + SEAL + hashlib.sha256(body).hexdigest().encode())

    def remove(self, name: str, suffix: str) -> None:
        """Forget a result."""
        with suppress(FileNotFoundError):
            self.fs.rm_file(self._at(name + suffix))

    def check_writable(self) -> None:
        """Raise ``StoreError`` now rather than after hours of computing."""
        probe = f".probe-{secrets.token_hex(6)}"
        self.write(probe, b"")
        self.remove(probe, "")

    def age(self, name: str) -> float:
        """Seconds since an object was written, by the clock of where it is; none that is there is infinitely young."""
        self.write(NOW, b"")
        self.fs.invalidate_cache()
        try:
            return float((self.fs.modified(self._at(NOW)) - self.fs.modified(self._at(name))).total_seconds())
        except (FileNotFoundError, NotImplementedError):
            return 0.0


def _protocols(fs: Any) -> tuple[str, ...]:
    found = fs.protocol
    return (found,) if isinstance(found, str) else tuple(found)


@contextmanager
def leased_there(store: RemoteStore, name: str) -> Iterator[bool]:
    """Whether the chunk is ours for the length of the block; ``False``: someone is at work on it."""
    lease, mark = f"{name}.lease", secrets.token_hex(16).encode()
    if store.read(lease) is not None and store.age(lease) < STALE:
        yield False
        return
    store.write(lease, mark)
    if store.read(lease) != mark:  # someone else was faster
        yield False
        return
    try:
        with beating(_beat, store, lease, mark):
            yield True
    finally:
        store.remove(lease, "")


def clear_abandoned_there(store: RemoteStore) -> None:
    """Remove leases whose heart has stopped."""
    for name in store.names(".lease"):
        if store.age(f"{name}.lease") >= STALE:
            store.remove(name, ".lease")


def _beat(store: RemoteStore, lease: str, mark: bytes, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with suppress(StoreError):
            store.write(lease, mark)
