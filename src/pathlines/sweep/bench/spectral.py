"""One softmax drift with Q = K = V = I on the circle and on S²: series against FINUFFT, and where they start to pay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pathlines.attention import SoftmaxAttention
from pathlines.kernels.native import native_library
from pathlines.kernels.spectral import degree, spectral_attend
from pathlines.kernels.spectral.attend import portable_attention, start_of
from pathlines.sweep.bench.case import NATIVE, QUADRATIC, Case, Contender, add
from pathlines.sweep.bench.drift import drift_error, in_jax, in_torch
from pathlines.sweep.bench.fields import Tokens, jax_field, tangent, uniform_tokens
from pathlines.sweep.bench.nufft import TOLERANCE, circle_nufft, circle_velocity, sphere_nufft, sphere_velocity

BETA = 4.0
SIZES = {"circle": (100, 1000, 10_000, 100_000, 1_000_000), "sphere": (1000, 10_000, 100_000, 1_000_000)}
QUICK = {"circle": (100, 10_000), "sphere": (1000,)}
DENSE_UP_TO = 10_000
"""Dense sums of more tokens take minutes and say nothing new."""


def in_series(native: bool, p: Tokens) -> Callable[[], Any]:
    """One compiled drift by harmonics."""
    x, d = jnp.asarray(p.x), p.x.shape[1]
    masses = jnp.full(len(p.x), 1 / len(p.x), x.dtype)

    def drift(x: jax.Array) -> jax.Array:
        if native:
            return tangent(x, spectral_attend(SoftmaxAttention(), x, x, p.beta, masses, TOLERANCE)[0])
        cut, start = degree(p.beta, d, TOLERANCE), start_of(p.beta, d)
        beta = jnp.asarray(p.beta, x.dtype)
        return tangent(x, portable_attention(SoftmaxAttention(), x, x, masses, beta, cut, start, False)[0])

    program = jax.jit(drift)
    return lambda: program(x).block_until_ready()


def quadratic(p: Tokens) -> str:
    """Why what is chosen for these tokens is not tried: it would sum over all pairs of too many."""
    if len(p.x) <= DENSE_UP_TO:
        return ""
    if native_library() is None:
        return "which sums are chosen is seen in native calls only"
    text = jax.jit(jax_field(p, "automatic")).lower(jnp.asarray(p.x)).as_text()
    return QUADRATIC if "pathlines_attend_" in text else ""


def spectral_contenders(space: str, n: int) -> tuple[Contender, ...]:
    """FINUFFT and, while it can be waited for, dense sums."""
    make, read = {"circle": (circle_nufft, circle_velocity), "sphere": (sphere_nufft, sphere_velocity)}[space]
    dense = (
        Contender("PyTorch SDPA", partial(in_torch, True, False), needs="torch"),
        Contender("native dense", partial(in_jax, "native", False), ours=True, needs=NATIVE),
    )
    return (
        Contender("FINUFFT", make, needs="finufft", read=read),
        *(dense if n <= DENSE_UP_TO else ()),
        Contender("native series", partial(in_series, True), ours=True, needs=NATIVE),
        Contender("portable series", partial(in_series, False), ours=True),
        Contender("automatic", partial(in_jax, "automatic", False), ours=True, unfit=quadratic),
    )


for space, d in (("circle", 2), ("sphere", 3)):
    for n in SIZES[space]:
        what = f"one softmax drift, Q = K = V = I, d = {d}, β = {BETA:g}, kernel error ≤ {TOLERANCE:g}, n = {n}"
        build, quick = partial(uniform_tokens, n, d, "float64", general=False, beta=BETA), n in QUICK[space]
        add(Case(f"{space}/n={n}", n, d, "float64", what, build, spectral_contenders(space, n), drift_error, quick))
