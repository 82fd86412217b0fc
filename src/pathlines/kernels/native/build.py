"""Compile the C++ kernels once for this machine and keep them in the user's cache.

On first use rather than at installation: wheels stay pure Python, the machine's own instruction set may be used, and a
missing compiler breaks nothing: the portable path takes over and says so once.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import jax
from filelock import FileLock

from pathlines.foundation.caches import private_folder, processor
from pathlines.foundation.errors import PathlinesWarning

FOLDER = Path(__file__).parent
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fPIC", "-pthread")


@cache
def native_library() -> ctypes.CDLL | None:
    """The compiled kernels, registered with JAX; ``None`` (with one warning) when they cannot be had.

    PATHLINES_NATIVE=off leaves them out. The file is named by a hash of source, flags, JAX and processor.
    """
    if os.environ.get("PATHLINES_NATIVE", "on").lower() in ("off", "0", "no"):
        return None
    try:
        library = ctypes.cdll.LoadLibrary(str(_compiled()))
        names = (f"{source.stem}_{kind}" for source in _sources() for kind in ("float32", "float64"))
        for name in (name for name in names if hasattr(library, name)):
            jax.ffi.register_ffi_target(f"pathlines_{name}", jax.ffi.pycapsule(getattr(library, name)), "cpu")
    except (OSError, subprocess.SubprocessError) as error:
        reason = " ".join(str(error).split())[:160]
        text = f"Native kernels are not available ({reason}); the portable ones give the same answers, more slowly."
        warnings.warn(text, PathlinesWarning, stacklevel=2)
        return None
    return library


def _sources() -> list[Path]:
    """One file an operation: ``name.cpp`` exports name_float32, name_float64 or both."""
    return sorted(FOLDER.glob("*.cpp"))


def _compiled() -> Path:
    """The library's file. The workers of a sweep all come here at once: one compiles, the others wait for it."""
    folder = private_folder("native")
    texts = [f.read_text() for f in (*_sources(), *sorted(FOLDER.glob("*.h")))]
    parts = (*texts, " ".join(FLAGS), jax.__version__, processor())
    path = folder / f"kernels-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.so"
    if not _whole(path):
        with FileLock(path.with_suffix(".lock")):
            if not _whole(path):
                _compile(compiler(), path)
    return path


def _whole(path: Path) -> bool:
    """Whether the file is there as this user compiled it: a damaged library ends the process that loads it."""
    digest = path.with_suffix(".sha256")
    try:
        ours = not hasattr(os, "geteuid") or all(f.lstat().st_uid == os.geteuid() for f in (path, digest))
        return ours and digest.read_bytes() == hashlib.sha256(path.read_bytes()).hexdigest().encode()
    except OSError:
        return False


def compiler() -> list[str]:
    """$CXX, which may hold several words (``ccache g++``), or what is installed."""
    named = shlex.split(os.environ.get("CXX", ""))
    found = shutil.which("g++") or shutil.which("clang++")
    if not named and found is None:
        raise OSError("no C++ compiler was found")
    return named or [str(found)]


def _compile(words: list[str], path: Path) -> None:
    """Under the lock of ``path``, so scratch folders of that name are those of compilations that were killed."""
    print("Compiling the native kernels (once, about twenty seconds).", file=sys.stderr, flush=True)
    for left in path.parent.glob(f"{path.stem}-*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{path.stem}-", dir=path.parent) as scratch:
        objects = [Path(scratch) / f"{source.stem}.o" for source in _sources()]
        command = [*words, *FLAGS, "-w", "-I", jax.ffi.include_dir()]
        jobs = [[*command, "-c", str(s), "-o", str(o)] for s, o in zip(_sources(), objects, strict=True)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(partial(_run, scratch), jobs))
        output, digest = Path(scratch) / path.name, Path(scratch) / "digest"
        _run(scratch, [*words, *FLAGS, "-shared", *map(str, objects), "-o", str(output)])
        digest.write_text(hashlib.sha256(output.read_bytes()).hexdigest())
        output.replace(path)
        digest.replace(path.with_suffix(".sha256"))


def _run(scratch: str, command: list[str]) -> None:
    environment = {**os.environ, "TMPDIR": scratch}  # what a killed compiler leaves goes with the folder
    subprocess.run(command, check=True, capture_output=True, timeout=300, env=environment)
