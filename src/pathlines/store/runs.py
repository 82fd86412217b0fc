"""Runs as files that can be opened again."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr

from pathlines.foundation.errors import ArgumentError, of_kind, require
from pathlines.foundation.files import write_whole
from pathlines.integrate.forms import Form
from pathlines.integrate.run import Certificate, Run
from pathlines.store.results import altered, file_bytes, read_dataset


class _Setting(msgspec.Struct):
    """What everyone may rely on in the setting of a run; it holds more."""

    model: dict[str, Any]
    papers: list[str]
    derived: dict[str, str | int | float | bool | None] | None = None


def run_to_dataset(run: Run) -> xr.Dataset:
    """The data of a run, which carries its story, in the types of netCDF."""
    data = run.data.copy()
    for name, variable in data.data_vars.items():
        if variable.dtype == bool:
            data[name] = variable.astype("int8")
    return data


def dataset_to_run(data: xr.Dataset) -> Run:
    """The inverse of ``run_to_dataset``, without the live model; what no run would hold is an exception."""
    attributes: dict[str, Any] = dict(data.attrs)
    if data["time"].dims != ("time",) or data["time"].dtype.kind not in "iuf":
        raise ValueError("times must be numbers in a row")
    msgspec.json.decode(attributes["setting"], type=_Setting)
    return Run(
        data=data.drop_attrs(deep=False),
        certificates=tuple(msgspec.json.decode(attributes["certificates"], type=list[Certificate])),
        forms=tuple(msgspec.json.decode(attributes["forms"], type=list[Form])),
        outcome=str(attributes["outcome"]),
        setting=msgspec.json.decode(attributes["setting"], type=dict[str, Any])
        | {"versions": msgspec.json.decode(attributes["versions"], type=dict[str, str])},
        seconds=float(attributes["seconds"]),
    )


def save_run(run: Run, path: Path | str) -> Path:
    """Write a run to a netCDF file of your choice.

    Args:
        run: any run; its setting, outcome, forms and certificates go with it.
        path: the name ends in .nc, or gets that ending.
    """
    of_kind("run", run, Run, "a run")
    path = Path(of_kind("path", path, (str, PathLike), "the name of a file"))
    require(bool(path.name), "path", "be the name of a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path.with_name(path.name.removesuffix(".nc") + ".nc"), file_bytes(run_to_dataset(run)))


def open_run(path: Path | str) -> Run:
    """Open a run again.

    Args:
        path: what ``save_run`` wrote; a file that is not a run, or was altered, is an error.
    """
    path = Path(of_kind("path", path, (str, PathLike), "the name of a file"))
    if not path.exists():
        raise ArgumentError(f"There is no file {path}.")
    changed = ArgumentError(f"The file {path} has been altered since it was written: its checksum does not match.")
    try:
        if altered(path):
            raise changed
        data, trusted = read_dataset(path)
        run = dataset_to_run(data)
    except ArgumentError:
        raise
    except Exception as error:
        raise ArgumentError(f"The file {path} is not a Pathlines run ({type(error).__name__}).") from error
    if not trusted:
        raise changed
    return run
