"""What is measured: a case is one problem with its contenders, ours and peers."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.registry import Registry
from pathlines.kernels.native import native_library

NATIVE = "native"
QUADRATIC = "dense sums are chosen, which take minutes"
EXTRA = "pip install 'pathlines[bench]'"
PEERS = {
    "torch": "PyTorch",
    "pykeops": "KeOps",
    "finufft": "FINUFFT",
    "torchdiffeq": "torchdiffeq",
    "diffrax": "diffrax",
}


class Contender(msgspec.Struct, frozen=True):
    """One way to compute the answer of a case.

    ``make(problem)`` prepares what need not be timed and returns the timed call, which ends when its answer is there;
    ``read(problem, answer)`` turns the answer into the array that the case's ``error`` looks at. ``needs`` is the
    module of a peer, or ``NATIVE``; ``unfit(problem)`` says why it must not even be tried; ``compiles`` that its first
    call takes many seconds, ``steady`` that its first call is as good as any other.
    """

    name: str
    make: Callable[[Any], Callable[[], Any]]
    ours: bool = False
    needs: str = ""
    unfit: Callable[[Any], str] = lambda problem: ""
    read: Callable[[Any, Any], np.ndarray] = lambda problem, answer: np.asarray(answer)
    compiles: bool = False
    steady: bool = False


class Case(msgspec.Struct, frozen=True):
    """One problem: ``build()`` makes it, ``error(problem, array)`` is the largest deviation from an independent sum."""

    name: str
    n: int
    d: int
    dtype: str
    what: str
    build: Callable[[], Any]
    contenders: tuple[Contender, ...]
    error: Callable[[Any, np.ndarray], float]
    quick: bool = False

    @property
    def group(self) -> str:
        """The first word of the name."""
        return self.name.partition("/")[0]


CASES: Registry[Case] = Registry("bench case", "pathlines.sweep.bench")
GROUPS = ("drift", "steps", "circle", "sphere", "solve", "ensemble")


def add(case: Case) -> None:
    """Register a case under its name."""
    CASES.register(case.name, case)


def ordered(names: list[str]) -> list[Case]:
    """The cases in the order of the page: by group, precision and size."""
    cases = [CASES[name] for name in names]
    return sorted(cases, key=lambda c: (GROUPS.index(c.group), c.dtype, c.n, c.d, c.name))


def installed(module: str) -> bool:
    """Whether a peer's module can be imported."""
    return find_spec(module) is not None


def missing_peers() -> list[str]:
    """Peers that are not installed, by their names."""
    return [name for module, name in PEERS.items() if not installed(module)]


def reason_to_leave_out(contender: Contender, problem: Any, quick: bool) -> str:
    """Why a contender cannot take part, or an empty string."""
    if contender.needs == NATIVE and native_library() is None:
        return "no native kernels here"
    if contender.needs in PEERS and not installed(contender.needs):
        return f"{PEERS[contender.needs]} is not installed"
    if quick and contender.compiles:
        return "compiles for many seconds; left out of a quick run"
    return contender.unfit(problem)


def too_large(wanted: float) -> str:
    """Why an allocation of that many bytes is not tried, or an empty string."""
    free = free_memory()
    return f"needs {wanted / 1e9:.1f} GB, {free / 1e9:.1f} GB are free" if wanted > 0.7 * free else ""


def free_memory() -> float:
    """Bytes that can be had without swapping, where the system says so; infinity elsewhere."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024.0 * float(found.split()[1])
    except (OSError, StopIteration):
        pages = getattr(os, "sysconf_names", {})
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if "SC_PHYS_PAGES" in pages else np.inf
