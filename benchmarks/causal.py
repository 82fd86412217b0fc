"""Retrieval by the adjoint estimator against PyTorch's autograd, and what long prompts cost.

    python benchmarks/causal.py

Peer: the same estimator in PyTorch, all prompts of a batch in one array: the same K = 15 Fourier modes by cumulative
sums, the same classical steps, the derivative of the last angle by autograd, in one thread (two spin while they wait,
where a machine is shared). It runs on fewer prompts and its processor time is scaled to ours: prompts are independent,
so that errors are equal at equal numbers. Both means are compared, too. Long prompts: seconds of one prompt forwards
(and with its adjoint), the slope of the time in N, the largest resident memory of a process of its own. Prints a table
and writes benchmarks/results/causal.json.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import torch
from scipy import special

import pathlines as pl
from pathlines.integrate.prompts import decoded
from pathlines.model.causal.decoder import CausalDecoder

HERE = Path(__file__).parent
BETA, SLOPE, VOCABULARY, DEPTH = 1.0, 2.0, 8, 1.0


def clock(work, repeats=1):
    """Least wall and processor seconds of some calls, and the last result."""
    found = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        result = work()
        found.append((time.perf_counter() - wall, time.process_time() - processor))
    return (*np.min(found, axis=0).tolist(), result)


def peer(n, prompts, steps, modes, seed=0):
    """N J_i W(θ_N - θ_i) averaged over prompts, in PyTorch."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    m = torch.arange(1, modes + 1, dtype=torch.float64)
    strength = torch.as_tensor(2 * special.iv(np.arange(1, modes + 1), BETA)) * m
    growth = torch.exp(SLOPE * torch.arange(n, dtype=torch.float64) / n)
    total = torch.cumsum(growth, 0) - growth
    scale = torch.where(total > 0, 1 / total, torch.zeros_like(total))[:, None]

    def drift(x):
        phases = x[..., None] * m
        c, s = torch.cos(phases), torch.sin(phases)
        even, odd = (torch.cumsum(growth[:, None] * y, 1) - growth[:, None] * y for y in (c, s))
        return -((s * even - c * odd) * scale) @ strength

    start = (2 * np.pi * torch.rand(prompts, n, dtype=torch.float64)).requires_grad_()
    x, h = start, DEPTH / steps
    for _ in range(steps):
        one = drift(x)
        two = drift(x + h / 2 * one)
        three = drift(x + h / 2 * two)
        x = x + h / 6 * (one + 2 * two + 2 * three + drift(x + h * three))
    (gradient,) = torch.autograd.grad(x[:, -1].sum(), start)
    apart = (x[:, -1:] - start).detach()
    k = torch.arange(1, 30, dtype=torch.float64)
    weights = torch.exp(-((np.pi * k / VOCABULARY) ** 2) / 2)
    kernel = sum(w * torch.cos(q * apart) for w, q in zip(weights, k, strict=True))
    return (n * gradient * kernel)[:, :-1].mean(0).numpy()


def estimator(n=256, prompts=5000, batch=64, batches=2):
    """Both at one setting."""
    model, key = CausalDecoder(BETA, SLOPE), jax.random.key(0)

    def ours():
        return pl.retrieval(model, n, DEPTH, key=key, prompts=prompts, vocabulary=VOCABULARY, progress=False)

    ours()
    steps = 10  # what `decoded` takes at this depth: βe^β T/0.3
    wall, processor, found = clock(ours, 3)
    peer(n, batch, steps, 15)
    _, their_processor, means = clock(lambda: [peer(n, batch, steps, 15, seed=k) for k in range(batches)])
    share = prompts / (batch * batches)
    return {
        "seconds": wall,
        "processor seconds": processor,
        "peer prompts": batch * batches,
        "peer processor seconds, scaled": their_processor * share,
        "ratio of processor seconds": their_processor * share / processor,
        "mean profile, ours and peer's": [float(found["profile"].mean()), float(np.mean(means))],
        "target": "< 6 s, at least 30 times the peer",
    }


def long_prompts():
    """Seconds of one prompt by its length."""
    model, rows = CausalDecoder(BETA, SLOPE), {}
    for n in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        starts = np.random.default_rng(0).uniform(0, 2 * np.pi, (1, n))
        rows[n] = clock(lambda x=starts: decoded(model, x, DEPTH, adjoint=False), 2)[:2]
    both = clock(lambda: decoded(model, np.random.default_rng(0).uniform(0, 6, (1, 10_000)), DEPTH), 2)
    size = np.log(list(rows))
    return {
        "forward seconds": {str(n): r[0] for n, r in rows.items()},
        "forward processor seconds": {str(n): r[1] for n, r in rows.items()},
        "slope in N": float(np.polyfit(size, np.log([r[0] for r in rows.values()]), 1)[0]),
        "slope in N, processor": float(np.polyfit(size, np.log([r[1] for r in rows.values()]), 1)[0]),
        "forward and adjoint seconds at N = 10⁴": both[0],
        "target": "< 1 s with adjoint at 10⁴, < 10 s at 10⁶, slope 1.0 ± 0.1",
    }


def memory(n=1_000_000):
    """Largest resident memory of a process that follows one prompt, in MB."""
    done = subprocess.run([sys.executable, __file__, "--one", str(n)], capture_output=True, text=True, check=True)
    return {"MB": float(done.stdout.split()[-1]), "target": "< 1000 MB at N = 10⁶"}


def closed_form(positions=1000):
    """Milliseconds of the profile on many positions, making it included."""
    grid = np.linspace(0.001, 1, positions)
    wall = clock(lambda: pl.limit.causal.retrieval_profile(BETA, SLOPE, VOCABULARY, DEPTH)(grid), 9)[0]
    return {"milliseconds": 1e3 * wall, "target": "< 50 ms"}


def one(n):
    """The memory of one long prompt, printed."""
    decoded(CausalDecoder(BETA, SLOPE), np.random.default_rng(0).uniform(0, 6, (1, n)), DEPTH, adjoint=False)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main():
    """All of it."""
    pl.enable_float64()
    if "--one" in sys.argv:
        one(int(sys.argv[-1]))
        return
    found = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "memory": memory(),  # first: a child starts with the largest memory of its parent
        "N = 256, 5000 prompts": estimator(),
        "long prompts": long_prompts(),
        "closed form": closed_form(),
    }
    for name, rows in found.items():
        print(name)
        for label, value in rows.items():
            print(f"  {label}: {value}")
    (HERE / "results" / "causal.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
