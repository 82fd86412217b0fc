"""The libraries real models are published for, imported on demand."""

from __future__ import annotations

import importlib
import os
from typing import Any

from pathlines.foundation.errors import PathlinesError


def torch_and_transformers() -> tuple[Any, Any]:
    """(torch, transformers), without network access unless HF_HUB_OFFLINE=0 is set."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        return importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise PathlinesError(
            f"Probing real models needs torch and transformers ({error}); pip install 'pathlines[probe]'."
        ) from error
