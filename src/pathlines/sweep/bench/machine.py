"""What the machine can do at most, measured in the same process: products, exponentials, copies."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.kernels.native import native_library
from pathlines.kernels.native.build import FLAGS, FOLDER, compiler
from pathlines.sweep.bench.case import PEERS, installed

CORES = os.cpu_count() or 1
DTYPES = ("float32", "float64")
SIDE = 1536
COPIED = 1 << 27


class Machine(msgspec.Struct, frozen=True):
    """Processor, versions and peaks: GEMM in GFLOP/s, exponentials in 10⁹/s, copy in GB/s, an empty JAX call in µs.

    Exponentials are those of an array in cache, which our kernels are compared with, and of numbers in registers.
    """

    processor: str
    cores: int
    versions: dict[str, str]
    gemm: dict[str, float]
    exponentials: dict[str, float]
    exponentials_in_registers: dict[str, float]
    copy: float
    empty_call: float


def machine() -> Machine:
    """Measure the peaks: about two seconds, and as many for a compiler."""
    cache, registers = exponential_rates()
    gemm = {dtype: gemm_rate(dtype) for dtype in DTYPES}
    return Machine(_processor(), CORES, _versions(), gemm, cache, registers, copy_rate(), empty_call())


def best_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of a few calls after a first one: a peak is what is possible."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def gemm_rate(dtype: str) -> float:
    """GFLOP/s of a square product, in the fastest library there is."""
    a = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(dtype)
    b = jnp.asarray(a)
    product = jax.jit(jnp.matmul)
    calls = [lambda: a @ a, lambda: product(b, b).block_until_ready()]
    if installed("torch"):
        import torch

        c = torch.from_numpy(a)
        calls.append(lambda: c @ c)
    return 2e-9 * SIDE**3 / min(best_seconds(call) for call in calls)


def copy_rate() -> float:
    """GB/s read and written by one copy of a large array on all cores."""
    source, target = np.ones(COPIED // 8), np.zeros(COPIED // 8)
    parts = np.array_split(np.arange(len(source)), CORES)
    ends = [(int(p[0]), int(p[-1]) + 1) for p in parts]
    with ThreadPoolExecutor(CORES) as pool:
        copy = lambda ab: np.copyto(target[ab[0] : ab[1]], source[ab[0] : ab[1]])  # noqa: E731
        return 2e-9 * COPIED / best_seconds(lambda: list(pool.map(copy, ends)))


def empty_call() -> float:
    """Microseconds of a compiled JAX function of one small array that hardly computes: what a call costs at least."""
    x, many = jnp.ones((32, 3)), 1000
    program = jax.jit(lambda x: x + 1)

    def calls() -> None:
        for _ in range(many):
            program(x).block_until_ready()

    return 1e6 * best_seconds(calls) / many


def exponential_rates() -> tuple[dict[str, float], dict[str, float]]:
    """10⁹ exponentials per second on all cores, (in cache, in registers); without a compiler XLA's, in cache only."""
    if native_library() is None:
        return {dtype: _exponentials_by_xla(dtype) for dtype in DTYPES}, {}
    with tempfile.TemporaryDirectory() as scratch:
        library = _probe(Path(scratch))
        cache, registers = ({t: _probed(library, f"{w}_{t}") for t in DTYPES} for w in ("cache", "registers"))
        return cache, registers


def _probe(folder: Path) -> ctypes.CDLL:
    """``exponentials.cpp``, compiled with the flags of the kernels."""
    source, output = Path(__file__).with_name("exponentials.cpp"), folder / "exponentials.so"
    words = [*compiler(), *FLAGS, "-shared", "-w", "-I", str(FOLDER), str(source), "-o", str(output)]
    subprocess.run(words, check=True, timeout=120)
    return ctypes.CDLL(str(output))


def _probed(library: ctypes.CDLL, name: str) -> float:
    count, function = 20_000_000, getattr(library, name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_int64]
    with ThreadPoolExecutor(CORES) as pool:
        return 1e-9 * count * CORES / best_seconds(lambda: list(pool.map(function, [count] * CORES)), 20)


def _exponentials_by_xla(dtype: str) -> float:
    x = -jnp.linspace(0, 10, 1 << 14, dtype=dtype)
    many = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda _, s: s + jnp.exp(x - s), jnp.zeros_like(x)))
    return 1e-9 * 200 * x.size / best_seconds(lambda: many(x).block_until_ready())


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("pathlines", "jax", "numpy", "scipy", *PEERS):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
