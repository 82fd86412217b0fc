"""Kernels that come with the package, for levels of processors that many machines share.

``python -m pathlines.kernels.native.prebuilt`` compiles them into the package before a wheel is built (``make wheel``).
A library is named by its source, by XLA's version of native calls and by the level of the processor: one that does not
fit is not found, and the kernels are compiled on first use instead.
"""

from __future__ import annotations

import platform
from pathlib import Path

from pathlines.kernels.native.build import call_version, compile_kernels, compiler, source_hash, undamaged

FOLDER = Path(__file__).parent / "prebuilt"
V3 = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])
V4 = V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
LEVELS: dict[str, tuple[tuple[str, frozenset[str]], ...]] = {
    "x86_64": (("x86-64-v4", V4), ("x86-64-v3", V3)),
    "aarch64": (("armv8.2-a", frozenset({"asimd", "atomics"})),),
}
"""By machine: levels as compilers name them, the fastest first, and the features of a processor that they need."""


def brought() -> Path | None:
    """The fastest library of the package that this processor can run; None if there is none."""
    if not FOLDER.is_dir():
        return None
    features = _features()
    fitting = (_path(level) for level, needed in _levels() if needed <= features)
    return next((path for path in fitting if undamaged(path)), None)


def prebuild() -> list[Path]:
    """Compile for all levels of this kind of machine, in place of what was there."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("kernels-*"):
        old.unlink()
    paths = [_path(level) for level, _ in _levels()]
    for (level, _), path in zip(_levels(), paths, strict=True):
        compile_kernels(compiler(), f"-march={level}", path)
    return paths


def _levels() -> tuple[tuple[str, frozenset[str]], ...]:
    return LEVELS.get(platform.machine(), ()) if platform.system() == "Linux" else ()


def _path(level: str) -> Path:
    return FOLDER / f"kernels-{level}-{source_hash(level, call_version())}.so"


def _features() -> frozenset[str]:
    """What the processor says it can do; nothing where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    found = next((line for line in lines if line.startswith(("flags", "Features"))), ":")
    return frozenset(found.partition(":")[2].split())


if __name__ == "__main__":
    print(*prebuild(), sep="\n")
