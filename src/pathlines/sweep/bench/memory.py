"""Peak memory of one drift with n = 2·10⁵, d = 3, each method in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec

from pathlines.foundation.bounds import peak_memory

COUNT, WIDTH = 200_000, 3
PORTABLE_ROWS = 4000
"""The portable path keeps one block of rows at a time, so a few thousand rows show its peak."""


class Memory(msgspec.Struct, frozen=True):
    """Bytes held at most, interpreter and libraries included, and ``before`` the drift of so many ``rows``."""

    method: str
    n: int
    d: int
    rows: int
    dtype: str
    before: float
    peak: float


def peak_memories(n: int = COUNT, d: int = WIDTH, dtype: str = "float64") -> list[Memory]:
    """Of the native and the portable dense sums with general (Q, K, V), and of what is chosen for Q = K = V = I."""
    rows = {"native": n, "portable": min(n, PORTABLE_ROWS), "automatic": n}
    return [_in_a_process(method, n, d, count, dtype) for method, count in rows.items()]


def _in_a_process(method: str, n: int, d: int, rows: int, dtype: str) -> Memory:
    code = "import sys; from pathlines.sweep.bench.memory import one_drift; one_drift(*sys.argv[1:])"
    words = [sys.executable, "-P", "-c", code, method, str(n), str(d), str(rows), dtype]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return Memory(method, n, d, rows, dtype, **found)


def one_drift(method: str, n: str, d: str, rows: str, dtype: str) -> None:
    """What the process does: print {"before", "peak"} in bytes."""
    import jax
    import jax.numpy as jnp

    from pathlines.attention import SoftmaxAttention
    from pathlines.foundation.precision import enable_float64
    from pathlines.kernels.native import native_library
    from pathlines.kernels.portable import portable_attend
    from pathlines.sweep.bench.fields import jax_field, uniform_tokens

    enable_float64()
    native_library()
    p = uniform_tokens(int(n), int(d), dtype, general=method != "automatic")
    x = jnp.asarray(p.x)
    before = peak_memory()
    if method == "portable":
        q, k, v = p.projections(x, jnp.asarray)
        masses = jnp.full(len(x), 1 / len(x), x.dtype)
        answer = jax.jit(portable_attend)(SoftmaxAttention(), q[: int(rows)], k, v, masses)[0]
    else:
        answer = jax.jit(jax_field(p, method))(x)
    answer.block_until_ready()
    print(json.dumps({"before": before, "peak": peak_memory()}))
