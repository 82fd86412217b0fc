"""Chunks of a study in the store: one file for each, whole or not there, with the keys of its points."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pathlines.foundation.errors import StoreError
from pathlines.foundation.files import default_root
from pathlines.store.results import Store
from pathlines.sweep.leases import clear_abandoned, leased
from pathlines.sweep.plan import Keys
from pathlines.sweep.points import MISSING, Layout, Results, concatenated
from pathlines.sweep.remote import RemoteStore, clear_abandoned_there, is_url, leased_there, local_root

FOLDER = "studies"
SUFFIX = ".chunk"
VALUE = "value "
"""Before the names of variables in a file."""


def study_root(root: Path | str | None) -> str:
    """The folder or URL of a store: the one given, else $PATHLINES_STORE, else the user's cache folder."""
    named = os.environ.get("PATHLINES_STORE", "") if root is None else str(root)
    return named if is_url(named) else local_root(named or default_root())


class Kept(NamedTuple):
    """What a chunk's file holds."""

    keys: Keys
    results: Results
    seconds: float


class ChunkStore:
    """The chunks of one subject at one state of its code."""

    def __init__(self, root: Path | str | None, subject: str) -> None:
        self.root, self.subject = study_root(root), subject
        self.store: Store | RemoteStore
        if is_url(self.root):
            self.store = RemoteStore(f"{self.root.rstrip('/')}/{FOLDER}/{subject}")
        else:
            self.store = Store(Path(self.root) / FOLDER / subject)

    @property
    def folder(self) -> Path:
        """Where they lie, on this machine."""
        if isinstance(self.store, RemoteStore):
            raise StoreError(f"The store {self.store.url} is no folder of this machine.")
        return self.store.root

    def leased(self, name: str) -> AbstractContextManager[bool]:
        """Whether a chunk is ours for the length of a block."""
        return leased_there(self.store, name) if isinstance(self.store, RemoteStore) else leased(self.folder, name)

    def clear_abandoned(self) -> None:
        """Remove leases that killed processes left."""
        if isinstance(self.store, RemoteStore):
            clear_abandoned_there(self.store)
        else:
            clear_abandoned(self.folder)

    def names(self) -> set[str]:
        """Names of all chunks that are there; what a killed writer left unfinished begins with a dot."""
        if isinstance(self.store, RemoteStore):
            return self.store.names(SUFFIX)
        return {path.stem for path in self.folder.glob(f"[!.]*{SUFFIX}")} if self.folder.is_dir() else set()

    def get(self, name: str) -> Kept | None:
        """A chunk; ``None`` where there is none or it is damaged (a warning says so)."""
        found = self.store.get_bytes(name, SUFFIX)
        return None if found is None else _kept(found)

    def put(self, name: str, keys: Keys, results: Results, seconds: float) -> None:
        """Keep a chunk; rows of the file that are not among these are kept too."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = self.get(name)
        if there is not None:
            left = matched(there.keys, keys) == MISSING
            if left.any():
                keys = np.concatenate([keys, there.keys[left]])
                results = concatenated([results, rows_of(there.results, left)])
        self.store.put_bytes(name, SUFFIX, _file(keys, results, seconds))

    def forget(self, names: Iterable[str]) -> None:
        """Remove chunks."""
        for name in names:
            self.store.remove(name, SUFFIX)


def rows_of(results: Results, which: np.ndarray) -> Results:
    """Some rows."""
    values = {name: column[which] for name, column in results.values.items()}
    return Results(values, results.status[which], results.errors, results.layout)


def matched(wanted: Keys, there: Keys) -> np.ndarray:
    """For each key that is wanted the row that has it, or -1."""
    if not len(there):
        return np.full(len(wanted), MISSING)
    order = np.argsort(there[:, 0], kind="stable")
    first = there[order, 0]
    row = order[np.minimum(np.searchsorted(first, wanted[:, 0]), len(first) - 1)]
    return np.where((there[row] == wanted).all(axis=1), row, MISSING)


class _Story(msgspec.Struct):
    """What a file says beside its arrays."""

    layout: Layout
    errors: tuple[str, ...]
    seconds: float


def _file(keys: Keys, results: Results, seconds: float) -> bytes:
    """Arrays as NumPy writes them, none of them objects."""
    story = msgspec.json.encode(_Story(results.layout, results.errors, seconds))
    values: dict[str, Any] = {VALUE + name: column for name, column in results.values.items()}
    body = io.BytesIO()
    np.savez(body, key=keys, status=results.status, story=np.frombuffer(story, np.uint8), **values)
    return body.getvalue()


def _kept(body: bytes) -> Kept | None:
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        story = msgspec.json.decode(arrays["story"].tobytes(), type=_Story)
        values = {name.removeprefix(VALUE): a for name, a in arrays.items() if name.startswith(VALUE)}
        return Kept(arrays["key"], Results(values, arrays["status"], story.errors, story.layout), story.seconds)
    except (KeyError, ValueError, OSError):
        return None
