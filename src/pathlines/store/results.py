"""A folder of netCDF files, one a result, never half written and never trusted blindly."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import xarray as xr

from pathlines.foundation.errors import PathlinesWarning, StoreError

DIGEST = "pathlines_sha256"
ORPHANED = 3600.0
"""Seconds after which an unfinished file is nobody's."""


def default_root() -> Path:
    """$PATHLINES_STORE, else the user's cache folder."""
    named = os.environ.get("PATHLINES_STORE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pathlines"


def content_digest(data: xr.Dataset) -> str:
    """A hash of names, dimensions, values and attributes."""
    digest = hashlib.sha256()
    for name in sorted(map(str, data.variables)):
        variable = data[name]
        digest.update(f"{name}{variable.dims}{variable.dtype.str}".encode())
        digest.update(np.ascontiguousarray(variable.values).tobytes())
    for name in sorted(data.attrs):
        if name != DIGEST:
            digest.update(f"{name}={data.attrs[name]}".encode())
    return digest.hexdigest()


class Store:
    """``get`` a dataset by its address or ``put`` it there; a killed writer leaves no half file."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()

    def path(self, name: str) -> Path:
        """Where the result of that address lies."""
        return self.root / f"{name}.nc"

    def get(self, name: str) -> xr.Dataset | None:
        """The stored dataset; ``None`` when there is none or the file is damaged (it is then recomputed)."""
        path = self.path(name)
        if not path.exists():
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = xr.load_dataset(path, engine="h5netcdf")
            if data.attrs.get(DIGEST) == content_digest(data):
                return data
            why = "its checksum does not match"
        except Exception as error:
            why = f"it cannot be read ({type(error).__name__})"
        warnings.warn(
            f"Stored result {path.name} is not trusted: {why}; it is computed again.", PathlinesWarning, stacklevel=2
        )
        return None

    def put(self, name: str, data: xr.Dataset) -> Path:
        """Write under a temporary name, then rename.

        The file is made in memory and written in one piece: HDF5 itself ends the process when a disk is full.
        """
        path = self.path(name)
        content = data.assign_attrs({DIGEST: content_digest(data)}).to_netcdf(engine="h5netcdf")
        with self._writing() as temporary:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        return path

    def check_writable(self) -> None:
        """Raise ``StoreError`` now rather than after hours of computing."""
        with self._writing():
            pass

    @contextmanager
    def _writing(self) -> Iterator[Path]:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._sweep_up()
            handle, name = tempfile.mkstemp(prefix=".writing-", suffix=".nc", dir=self.root)
            os.close(handle)
            try:
                yield Path(name)
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"The results folder {self.root} cannot be written ({error.strerror or error}); "
                "set PATHLINES_STORE to a folder that can."
            ) from error

    def _sweep_up(self) -> None:
        """Remove what killed writers left; a writer at work is younger."""
        for orphan in self.root.glob(".writing-*"):
            with suppress(OSError):
                if time.time() - orphan.stat().st_mtime > ORPHANED:
                    orphan.unlink()

    def remove(self, name: str) -> None:
        """Forget a result."""
        self.path(name).unlink(missing_ok=True)


def bytes_dataset(content: bytes) -> xr.Dataset:
    """A dataset that holds one JSON document."""
    return xr.Dataset({"document": ("byte", np.frombuffer(content, np.uint8))})


def dataset_bytes(data: xr.Dataset) -> bytes:
    """The document of ``bytes_dataset``."""
    return data["document"].values.tobytes()
