"""Random settings at which the choice of a summation might be slow or wrong: the worst ones found.

Both ways are timed in turn at each (n, d, β, dtype); what was chosen is compared with the faster one and, where a
direct sum in float64 is affordable, with the truth.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pathlines as pl
from pathlines.attention import SoftmaxAttention
from pathlines.kernels.choice import Sums, choose_summation
from pathlines.kernels.portable import portable_attend

HERE = Path(__file__).parent


def drift_of(n, d, beta, dtype, summation, relative):
    model = pl.SelfAttention(beta, summation=summation)
    model = jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, model)
    return jax.jit(lambda x: model.with_fast_sums(n, d, dtype, relative)[0].attend(x, jnp.zeros((), dtype))[0])


def medians(calls, rounds):
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call().block_until_ready()
            times[name].append(time.perf_counter() - began)
    return {name: float(np.median(t)) for name, t in times.items()}


def one(rng):
    d, dtype = int(rng.choice([2, 3, 4])), str(rng.choice(["float32", "float64"]))
    n, beta = int(10 ** rng.uniform(1, 4.2)), float(10 ** rng.uniform(-1, 2.5))
    relative = 1e-5 if dtype == "float32" else 1e-9
    choice = choose_summation(Sums(SoftmaxAttention(), n, d, beta, dtype, relative=relative))
    x = rng.standard_normal((n, d))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), dtype)
    calls = {}
    for name in ("dense", "spectral"):
        try:
            program = drift_of(n, d, beta, dtype, name, relative)
            program(x)
        except pl.foundation.errors.ArgumentError:
            continue
        calls[name] = lambda program=program: program(x)
    seconds = medians(calls, 15)
    chosen = "spectral" if choice.method == "spectral" else "dense"
    row = {"n": n, "d": d, "beta": beta, "dtype": dtype, "chosen": chosen} | seconds
    row["over best"] = seconds[chosen] / min(seconds.values())
    if n <= 5000:
        wide = x.astype("float64")
        exact = portable_attend(SoftmaxAttention(), beta * wide, wide, wide, jnp.full(n, 1 / n))[0]
        row["error"] = float(jnp.abs(calls[chosen]() - exact).max())
        row["allowed"] = max(relative, 50 * float(jnp.finfo(dtype).eps) * (1 + beta))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=60)
    cases = parser.parse_args().cases
    pl.enable_float64()
    rng = np.random.default_rng(0)
    rows = [one(rng) for _ in range(cases)]
    slow = sorted(rows, key=lambda r: -r["over best"])[:5]
    wrong = [r for r in rows if r.get("error", 0) > r.get("allowed", 1)]
    result = {"cases": cases, "slower than the other by 2": sum(r["over best"] > 2 for r in rows), "slowest": slow}
    text = json.dumps(result | {"wrong": wrong}, indent=2)
    (HERE / "results" / "choice.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
