"""Studies in files: a Python file that makes one, or TOML with the arguments of ``study``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.registry import near
from pathlines.sweep.locate import definitions_of
from pathlines.sweep.study import Study, study

SUFFIXES = (".py", ".toml")
KEYS = ("target", "axes", "repeat", "record", "times", "size", "many", "load", "setting")


def study_in(path: Path) -> Study:
    """The study of a file; a file that has none is an error."""
    if not path.is_file():
        raise ArgumentError(f"There is no file {path}.")
    return _of_script(path) if path.suffix == ".py" else _of_table(path)


def _of_script(path: Path) -> Study:
    found = [v for k, v in vars(definitions_of(str(path.resolve()))).items() if isinstance(v, Study) and k[0] != "_"]
    if not found:
        raise ArgumentError(f"{path} defines no study: it needs a line such as `mine = pl.study(function, axes)`.")
    if len(found) > 1:
        raise ArgumentError(f"{path} defines {len(found)} studies: leave one in it.")
    return found[0]


def _of_table(path: Path) -> Study:
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ArgumentError(f"The file {path} cannot be read ({error}).") from None
    for key in said:
        if key not in KEYS:
            close = near(key, KEYS)
            hint = f" Did you mean {close}?" if close else ""
            raise ArgumentError(
                f"{path} has a key `{key}`; it takes {', '.join(KEYS)}." + (f" ({hint}?)" if hint else "")
            )
    if "target" not in said:
        raise ArgumentError(f'{path} defines no study: it needs a line such as `target = "sa"`.')
    setting = said.pop("setting", {})
    for key, value in (("axes", said.get("axes", {})), ("setting", setting)):
        if not isinstance(value, dict):
            raise ArgumentError(f"The `{key}` of {path} must be a table, but is {value!r}.")
    target: Any = said.pop("target")
    if isinstance(target, str) and ":" in target:
        file, _, name = target.rpartition(":")
        module = definitions_of(str((path.parent / file).resolve()))
        if not hasattr(module, name):
            raise ArgumentError(f"{file} defines no `{name}`.")
        target = getattr(module, name)
    said["load"] = [str(path.parent / f) for f in said.get("load", ())]
    return study(target, said.pop("axes", {}), **said, **setting)
