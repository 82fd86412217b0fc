"""A folder of netCDF and JSON files, one per result, never half written and never trusted blindly."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from pathlines.foundation.errors import PathlinesWarning, StoreError
from pathlines.foundation.files import default_root, sweep_up, write_whole

DIGEST = "pathlines_sha256"
SEAL = b"\npathlines sha256 "
"""Before the hash of all bytes, at the end of the file: readers of HDF5 do not look beyond their own end."""


def content_digest(data: xr.Dataset) -> str:
    """A hash of names, dimensions, values and all attributes."""
    digest = hashlib.sha256()
    for name in sorted(map(str, data.variables)):
        variable = data[name]
        digest.update(f"{name}{variable.dims}{variable.dtype.str}".encode())
        digest.update(np.ascontiguousarray(variable.values).tobytes())
        digest.update("".join(f"{k}={variable.attrs[k]}" for k in sorted(variable.attrs)).encode())
    for name in sorted(data.attrs):
        if name != DIGEST:
            digest.update(f"{name}={data.attrs[name]}".encode())
    return digest.hexdigest()


def file_bytes(data: xr.Dataset) -> bytes:
    """The netCDF file of a dataset with its checksum, made in memory: HDF5 ends the process when a disk is full."""
    body = bytes(data.assign_attrs({DIGEST: content_digest(data)}).to_netcdf(engine="h5netcdf"))
    return body + SEAL + hashlib.sha256(body).hexdigest().encode()


def altered(path: Path) -> bool:
    """Whether the bytes of a file are not those that its seal was made for; HDF5 can search damaged ones for ever.

    Files without a seal (cut off, or older than seals) are for HDF5 and the checksum of their content to judge.
    """
    body, mark, seal = path.read_bytes().rpartition(SEAL)
    return bool(mark) and seal != hashlib.sha256(body).hexdigest().encode()


def read_dataset(path: Path) -> tuple[xr.Dataset, bool]:
    """The dataset of a file, and whether its checksum is right; any exception if the file is damaged.

    HDF5 looks at it first: where it cannot read, h5netcdf leaves a half-made object that complains when collected.
    """
    with h5py.File(path, "r") as file:
        dict(file.attrs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = xr.load_dataset(path, engine="h5netcdf")
    return data, data.attrs.get(DIGEST) == content_digest(data)


class Store:
    """``get`` a dataset by its address or ``put`` it there; a killed writer leaves no half file."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()

    def path(self, name: str, suffix: str = ".nc") -> Path:
        """Where the result of that address lies."""
        return self.root / f"{name}{suffix}"

    def get(self, name: str) -> xr.Dataset | None:
        """The stored dataset; ``None`` when there is none or the file is damaged (it is then recomputed)."""
        path = self.path(name)
        if not path.exists():
            return None
        try:
            data, trusted = (xr.Dataset(), False) if altered(path) else read_dataset(path)
            if trusted:
                return data
            why = "its checksum does not match"
        except Exception as error:
            why = f"it cannot be read ({type(error).__name__})"
        _distrust(path, why)
        return None

    def put(self, name: str, data: xr.Dataset) -> Path:
        """Write the file, whole or not at all."""
        return self._write(self.path(name), file_bytes(data))

    def _write(self, path: Path, content: bytes) -> Path:
        with self._remedy():
            self.root.mkdir(parents=True, exist_ok=True)
            return write_whole(path, content)

    def get_document(self, name: str) -> Any:
        """The stored document, or ``None`` as in ``get``."""
        path = self.path(name, ".json")
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_bytes())
            document = found["document"]
            if found["sha256"] == _document_digest(document):
                return document
            why = "its checksum does not match"
        except (ValueError, KeyError, TypeError, OSError) as error:
            why = f"it cannot be read ({type(error).__name__})"
        _distrust(path, why)
        return None

    def put_document(self, name: str, document: Any) -> Path:
        """Write plain values as JSON (with the words NaN and Infinity where numbers are), whole or not at all."""
        whole = {"sha256": _document_digest(document), "document": document}
        return self._write(self.path(name, ".json"), json.dumps(whole, ensure_ascii=False).encode())

    def get_bytes(self, name: str, suffix: str) -> bytes | None:
        """Stored bytes whose seal is right, or ``None`` as in ``get``."""
        path = self.path(name, suffix)
        try:
            body, mark, seal = path.read_bytes().rpartition(SEAL)
        except FileNotFoundError:
            return None
        except OSError as error:
            _distrust(path, f"it cannot be read ({type(error).__name__})")
            return None
        if mark and seal == hashlib.sha256(body).hexdigest().encode():
            return body
        _distrust(path, "its checksum does not match")
        return None

    def put_bytes(self, name: str, suffix: str, body: bytes) -> Path:
        """Write bytes with a seal, whole or not at all: a tenth of the time of a netCDF file of few numbers."""
        return self._write(self.path(name, suffix), body + SEAL + hashlib.sha256(body).hexdigest().encode())

    def check_writable(self) -> None:
        """Raise ``StoreError`` now rather than after hours of computing."""
        with self._remedy():
            self.root.mkdir(parents=True, exist_ok=True)
            sweep_up(self.root)
            tempfile.TemporaryFile(dir=self.root).close()

    @contextmanager
    def _remedy(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.__cause__ if isinstance(error, StoreError) else error
            raise StoreError(
                f"The results folder {self.root} cannot be written ({getattr(reason, 'strerror', None) or reason}); "
                "set PATHLINES_STORE to a folder that can."
            ) from error

    def remove(self, name: str, suffix: str = ".nc") -> None:
        """Forget a result."""
        self.path(name, suffix).unlink(missing_ok=True)


def _document_digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, ensure_ascii=False).encode()).hexdigest()


def _distrust(path: Path, why: str) -> None:
    text = f"Stored result {path.name} is not trusted: {why}; it is computed again."
    warnings.warn(text, PathlinesWarning, stacklevel=3)


def bytes_dataset(content: bytes) -> xr.Dataset:
    """A dataset that holds one file."""
    return xr.Dataset({"document": ("byte", np.frombuffer(content, np.uint8))})


def dataset_bytes(data: xr.Dataset) -> bytes:
    """The file of ``bytes_dataset``."""
    return data["document"].values.tobytes()
