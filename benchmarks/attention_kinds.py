"""One attention field of n = 4000 tokens in d = 64 dimensions, by kind, against PyTorch's fused softmax attention.

    python benchmarks/attention_kinds.py

All in one process, taken in turns: ratios of medians. Queries and keys are scaled so that scores have the usual size
(|q|² = |k|² = √d). Prints a table and writes benchmarks/results/attention_kinds.json.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

import pathlines as pl
from pathlines.attention import ATTENTIONS, SinkhornAttention
from pathlines.attention.sinkhorn import balance
from pathlines.kernels.dense import attend, softmax_sums

HERE = Path(__file__).parent


def fields(n, d, dtype, seed=0):
    """Functions of no argument, one for each kind and the peer, and the normalisations of converged Sinkhorn."""
    x = np.random.default_rng(seed).standard_normal((n, d)).astype(dtype) / d**0.25
    tokens, masses = jnp.asarray(x), jnp.full(n, 1 / n, dtype)
    call = eqx.filter_jit(lambda kind, y: attend(kind, y, y, y, masses)[0])
    truncated = {"sinkhorn, 21 normalisations": SinkhornAttention(iterations=21)}
    kinds = {**{name: ATTENTIONS[name]() for name in ATTENTIONS}, **truncated}
    found = {name: (lambda kind=kind: call(kind, tokens).block_until_ready()) for name, kind in kinds.items()}
    y = torch.from_numpy(x)[None, None]
    found["torch, scaled_dot_product_attention"] = lambda: torch.nn.functional.scaled_dot_product_attention(
        y, y, y, scale=1.0
    )
    iterations = int(balance(softmax_sums, 1e-12, tokens, tokens, masses).iterations)
    return found, 2 * iterations + 1


def measured(functions, repeats):
    """Median seconds of each, taken in turns; the first call of each compiles."""
    for function in functions.values():
        function()
    seconds = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - began)
    return {name: float(np.median(s)) for name, s in seconds.items()}


def table(n, d, dtype, repeats):
    functions, normalisations = fields(n, d, dtype)
    seconds = measured(functions, repeats)
    one = seconds["softmax"]
    return {
        "seconds": seconds,
        "over softmax": {name: s / one for name, s in seconds.items()},
        "normalisations of converged sinkhorn (rows or columns)": normalisations,
        "targets": {
            "softmax over torch ≤ 1": one / seconds["torch, scaled_dot_product_attention"],
            "l2 over softmax ≤ 1.2": seconds["l2"] / one,
            "sinkhorn over softmax ≤ iterations + 1 = 22": seconds["sinkhorn, 21 normalisations"] / one,
            f"converged sinkhorn over softmax ≤ {normalisations + 1}": seconds["sinkhorn"] / one,
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    pl.enable_float64()
    results = {
        f"n = {given.n}, d = {given.d}, {dtype}": table(given.n, given.d, dtype, given.repeats)
        for dtype in ("float32", "float64")
    }
    results["machine"] = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    results["versions"] = {"jax": jax.__version__, "torch": torch.__version__, "numpy": np.__version__}
    text = json.dumps(results, indent=2, ensure_ascii=False)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "attention_kinds.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
