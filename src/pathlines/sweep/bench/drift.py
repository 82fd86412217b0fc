"""One softmax drift with general (Q, K, V), and a hundred dependent ones: the table of dense attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.sweep.bench.case import NATIVE, Case, Contender, add, too_large
from pathlines.sweep.bench.fields import (
    Field,
    Tokens,
    dense_rows,
    jax_field,
    keops_field,
    numpy_field,
    torch_field,
    uniform_tokens,
    unit,
)

SIZES = ((32, 3), (200, 128), (1000, 3), (1000, 64), (4000, 128), (20000, 2), (20000, 3))
QUICK = {"float32": ((1000, 3),), "float64": ((32, 3), (1000, 3), (1000, 64))}
STEPPED = ((32, 3), (200, 128))
STEPS, STEP = 100, 0.01
ROWS = 16

Call = Callable[[], Any]


def euler(field: Field, x: Any) -> Any:
    """x ← N(x + h f(x)), in any library that runs line by line."""
    for _ in range(STEPS):
        x = unit(x + STEP * field(x))
    return x


def in_numpy(make: Callable[[Tokens], Field], steps: bool, p: Tokens) -> Call:
    """The call of a NumPy field."""
    field = make(p)
    return (lambda: euler(field, p.x)) if steps else (lambda: field(p.x))


def in_torch(fused: bool, steps: bool, p: Tokens) -> Call:
    """The call of a PyTorch field, without gradients."""
    import torch

    field, x = torch_field(p, fused), torch.from_numpy(p.x)

    def call() -> Any:
        with torch.inference_mode():
            return euler(field, x) if steps else field(x)

    return call


def in_jax(way: str, steps: bool, p: Tokens) -> Call:
    """The call of one compiled program; many steps are one program too."""
    field, x = jax_field(p, way), jnp.asarray(p.x)
    one = jax.vmap(field) if x.ndim == 3 else field
    walk = lambda x: jax.lax.fori_loop(0, STEPS, lambda _, y: unit(y + STEP * one(y)), x)  # noqa: E731
    program = jax.jit(walk if steps else one)
    return lambda: program(x).block_until_ready()


def drift_contenders(steps: bool) -> tuple[Contender, ...]:
    """Peers first, then ours, of which ``automatic`` is what a user gets."""
    square = lambda p: too_large(2 * p.pairs)  # noqa: E731
    return (
        Contender("NumPy", partial(in_numpy, numpy_field, steps), unfit=square, steady=True),
        Contender("PyTorch eager", partial(in_torch, False, steps), needs="torch", unfit=square),
        Contender("PyTorch SDPA", partial(in_torch, True, steps), needs="torch"),
        Contender("KeOps", partial(in_numpy, keops_field, steps), needs="pykeops", compiles=True),
        Contender("native", partial(in_jax, "native", steps), ours=True, needs=NATIVE),
        Contender("portable", partial(in_jax, "portable", steps), ours=True),
        Contender("automatic", partial(in_jax, "automatic", steps), ours=True),
    )


def drift_error(p: Tokens, answer: np.ndarray) -> float:
    """Against a direct sum in float64, on a few rows."""
    rows = np.linspace(0, len(p.x) - 1, min(ROWS, len(p.x))).astype(int)
    return float(np.abs(answer[rows] - dense_rows(p, rows)).max())


def steps_error(p: Tokens, answer: np.ndarray) -> float:
    """Against the same steps in float64."""
    heads = None if p.heads is None else tuple(m.astype(float) for m in p.heads)
    wide = Tokens(p.x.astype(float), p.beta, heads)  # type: ignore[arg-type]
    return float(np.abs(answer - euler(numpy_field(wide), wide.x)).max())


for n, d in SIZES:
    for dtype in ("float32", "float64"):
        name, build, quick = f"n={n},d={d}/{dtype}", partial(uniform_tokens, n, d, dtype), (n, d) in QUICK[dtype]
        what = f"one softmax drift, general (Q, K, V), n = {n}, d = {d}"
        add(Case(f"drift/{name}", n, d, dtype, what, build, drift_contenders(steps=False), drift_error, quick))
        if (n, d) in STEPPED:
            what = f"{STEPS} dependent drifts (explicit Euler on the sphere), general (Q, K, V), n = {n}, d = {d}"
            add(Case(f"steps/{name}", n, d, dtype, what, build, drift_contenders(steps=True), steps_error, quick))
