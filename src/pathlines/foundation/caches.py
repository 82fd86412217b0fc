"""Folders of code that this user compiled for this machine: private, because what lies in them is executed."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def private_folder(name: str) -> Path:
    """That folder of the user's cache, made if need be; ``OSError`` for one that others own or can write to."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pathlines" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "geteuid"):
        found = folder.stat()
        if found.st_uid != os.geteuid():
            raise OSError(f"the cache folder {folder} belongs to another user")
        if found.st_mode & 0o022:
            raise OSError(f"others can write to the cache folder {folder}")
    return folder


def processor() -> str:
    """What code for this very machine depends on."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else [platform.processor()]
    return platform.machine() + "".join(sorted({x for x in lines if x.startswith(("model name", "flags", "Features"))}))
