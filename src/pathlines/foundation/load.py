"""Files of your own that register models, observables, claims or figures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from pathlines.foundation.errors import ArgumentError


def load_file(path: str | Path) -> None:
    """Import a Python file once; whatever it registers is then known by name."""
    file = Path(path).resolve()
    name = f"pathlines_loaded_{abs(hash(str(file)))}"
    if name in sys.modules:
        return
    if not file.is_file():
        raise ArgumentError(f"There is no file {path} to load.")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"The file {path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ArgumentError(f"The file {path} could not be loaded: {type(error).__name__}: {error}") from error
