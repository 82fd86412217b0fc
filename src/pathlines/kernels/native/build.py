"""The C++ kernels: those that came with the package, or compiled once for this machine and kept in the user's cache.

Wheels carry kernels for common processors (``prebuilt.py``). Without them, or where PATHLINES_NATIVE=own asks for the
machine's whole instruction set, they are compiled on first use. A missing compiler breaks nothing: the portable path
takes over and says so once.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
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
FLAGS = ("-std=c++17", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fPIC", "-pthread")
OWN = "-march=native"
CHOICE = "PATHLINES_NATIVE"


@cache
def native_library() -> ctypes.CDLL | None:
    """The compiled kernels, registered with JAX; ``None`` (with one warning) when they cannot be had.

    PATHLINES_NATIVE=off leaves them out, PATHLINES_NATIVE=own compiles them for this machine even where the package
    brought some.
    """
    from pathlines.kernels.native.prebuilt import brought  # it compiles with what stands here

    choice = os.environ.get(CHOICE, "on").lower()
    if choice in ("off", "0", "no"):
        return None
    try:
        library = ctypes.cdll.LoadLibrary(str((None if choice == "own" else brought()) or _compiled()))
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
    """The library's file, named by a hash of source, flags, JAX and processor.

    The workers of a sweep all come here at once: one compiles, the others wait for it.
    """
    path = private_folder("native") / f"kernels-{source_hash(OWN, jax.__version__, processor())}.so"
    if not _whole(path):
        with FileLock(path.with_suffix(".lock")):
            if not _whole(path):
                print("Compiling the native kernels (once, about twenty seconds).", file=sys.stderr, flush=True)
                compile_kernels(compiler(), OWN, path)
    return path


def source_hash(*more: str) -> str:
    """Of the sources, the flags that all libraries share, and whatever else one depends on."""
    texts = [f.read_text() for f in (*_sources(), *sorted(FOLDER.glob("*.h")))]
    return hashlib.sha256("|".join((*texts, " ".join(FLAGS), *more)).encode()).hexdigest()[:16]


def call_version() -> str:
    """The version of XLA's interface for native calls: libraries made with it serve every JAX that has the same."""
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    return ".".join(re.findall(r"#define XLA_FFI_API_M(?:AJ|IN)OR (\d+)", header))


def _whole(path: Path) -> bool:
    """Whether the file is there as this user compiled it."""
    try:
        owners = {f.lstat().st_uid for f in (path, path.with_suffix(".sha256"))}
        return (not hasattr(os, "geteuid") or owners == {os.geteuid()}) and undamaged(path)
    except OSError:
        return False


def undamaged(path: Path) -> bool:
    """Whether the file is what its digest says: a damaged library ends the process that loads it."""
    try:
        return path.with_suffix(".sha256").read_bytes() == hashlib.sha256(path.read_bytes()).hexdigest().encode()
    except OSError:
        return False


def compiler() -> list[str]:
    """$CXX, which may hold several words (``ccache g++``), or what is installed."""
    named = shlex.split(os.environ.get("CXX", ""))
    found = shutil.which("g++") or shutil.which("clang++")
    if not named and found is None:
        raise OSError("no C++ compiler was found")
    return named or [str(found)]


def compile_kernels(words: list[str], machine: str, path: Path) -> None:
    """Under the lock of ``path``, so scratch folders of that name are those of compilations that were killed."""
    for left in path.parent.glob(f"{path.stem}-*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{path.stem}-", dir=path.parent) as scratch:
        objects = [Path(scratch) / f"{source.stem}.o" for source in _sources()]
        command = [*words, *FLAGS, machine, "-w", "-I", jax.ffi.include_dir()]
        jobs = [[*command, "-c", str(s), "-o", str(o)] for s, o in zip(_sources(), objects, strict=True)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(partial(_run, scratch), jobs))
        output, digest = Path(scratch) / path.name, Path(scratch) / "digest"
        _run(scratch, [*words, *FLAGS, machine, "-shared", *map(str, objects), "-o", str(output)])
        digest.write_text(hashlib.sha256(output.read_bytes()).hexdigest())
        output.replace(path)
        digest.replace(path.with_suffix(".sha256"))


def _run(scratch: str, command: list[str]) -> None:
    environment = {**os.environ, "TMPDIR": scratch}  # what a killed compiler leaves goes with the folder
    subprocess.run(command, check=True, capture_output=True, timeout=300, env=environment)
