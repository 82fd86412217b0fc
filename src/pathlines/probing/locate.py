"""Where a model is: a folder, or a package installed beside us that carries one."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from pathlines.foundation.errors import ArgumentError


def model_folder(name: str) -> Path:
    """The folder with config.json that ``name`` means: itself, one below it, or one inside an importable package.

    Packages are searched, never imported: what they import in turn need not be installed.
    """
    if not name.strip():
        raise ArgumentError("Argument `model` must name a folder or an installed package, but is empty.")
    path = Path(name).expanduser()
    if path.is_file() and path.name == "config.json":
        return path.parent
    if path.is_dir():
        return _only_model(path, f"the folder {path}")
    if path.suffix == ".gguf":
        raise ArgumentError(
            f"`{name}` is a GGUF file, whose quantised weights are not read; give the folder it was converted from."
        )
    package = name.replace("-", "_")
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ArgumentError(
            f"There is no folder and no installed package `{name}`; give a folder with a config.json and weights."
        )
    return _only_model(Path(spec.submodule_search_locations[0]), f"the package `{name}`")


def _only_model(root: Path, what: str) -> Path:
    if (root / "config.json").is_file():
        return root
    found = sorted(f.parent for f in root.rglob("config.json") if not _hidden(f, root) and _describes_a_model(f))
    if not found:
        raise ArgumentError(f"There is no config.json with a `model_type` in {what}; a model's folder has one.")
    if len(found) > 1:
        raise ArgumentError(f"There are {len(found)} models in {what}; name one: {', '.join(map(str, found))}.")
    return found[0]


def _hidden(file: Path, root: Path) -> bool:
    """Whether it lies in a folder like .venv or .cache, whose models nobody meant."""
    return any(part.startswith(".") for part in file.relative_to(root).parts)


def _describes_a_model(file: Path) -> bool:
    try:
        return "model_type" in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
