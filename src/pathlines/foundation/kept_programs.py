"""Programs that JAX has compiled are kept on disk: the same run in another process does not wait for the compiler.

A small ``pathlines run`` takes 4.2 s of processor time when its programs are new and 2.4 s when they are kept. JAX
finds them by their code, its own version and its flags; the folder is that of this processor, since they hold its
instructions.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

from pathlines.foundation.caches import private_folder, processor

MOST_BYTES = 300e6
"""Programs on disk beyond which the oldest are removed; one of a small flow takes 30 kB."""
SETTINGS: dict[str, str | float] = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
FOLDER = "jax_compilation_cache_dir"


def keep_programs() -> Path | None:
    """Keep what JAX compiles from now on in the user's cache, and use what is kept there; the folder.

    For scripts: call it once at the start (``pathlines …`` does). A folder that you gave JAX yourself
    (JAX_COMPILATION_CACHE_DIR) stays as it is, and JAX_ENABLE_COMPILATION_CACHE=false leaves everything out. Where no
    private folder can be had nothing is kept (``None``). Results do not depend on it.
    """
    if named := os.environ.get(FOLDER.upper()):
        return Path(named)
    try:
        folder = private_folder(f"programs-{hashlib.sha256(processor().encode()).hexdigest()[:12]}")
        _bound(folder)
    except OSError:
        return None
    settings = {FOLDER: str(folder), **SETTINGS}
    if "jax" not in sys.modules:
        os.environ.update({name.upper(): str(value) for name, value in settings.items()})
    else:
        import jax

        for name, value in settings.items():
            jax.config.update(name, value)
    return folder


def _bound(folder: Path) -> None:
    """Remove the oldest programs until half of what is allowed is left, where there are too many."""
    found = sorted((f.stat().st_mtime, f.stat().st_size, f) for f in folder.iterdir() if f.is_file())
    total = sum(size for _, size, _ in found)
    if total <= MOST_BYTES:
        return
    for _, size, file in found:
        if total <= MOST_BYTES / 2:
            break
        with suppress(FileNotFoundError):
            file.unlink()
        total -= size
