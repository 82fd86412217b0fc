"""Times behind the speed claims of the clustering family, as ratios against named peers in one run."""

from __future__ import annotations

import argparse
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
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import pathlines as pl

HERE = Path(__file__).parent


def median_seconds(call, repeats=5):
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def polytope_figure():
    """n = 20, d = 2, V = I, T = 12, tolerance 1e-9, against SciPy and against loops over tokens with explicit steps."""
    start = np.asarray(pl.Euclidean(2).cube(jax.random.key(0), 20, -5, 5))
    model = pl.model.clustering.RescaledAttention(np.eye(2))
    began = time.perf_counter()
    pl.flow(model, start, until=12.0, rtol=1e-9)
    first = time.perf_counter() - began
    ours = median_seconds(lambda: pl.flow(model, start, until=12.0, rtol=1e-9))

    def field(t, flat):
        z = flat.reshape(20, 2)
        scores = np.exp(2 * t) * (z @ z.T)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return (weights / weights.sum(1, keepdims=True) @ z - z).ravel()

    scipy = median_seconds(lambda: solve_ivp(field, (0, 12), start.ravel(), "DOP853", rtol=1e-9, atol=1e-9), 3)
    began = time.perf_counter()
    _token_loops(start, 0.1, steps=3)
    loops = (time.perf_counter() - began) / 3 * 50
    return {
        "seconds": ours,
        "first call with compilation": first,
        "scipy DOP853": scipy,
        "token loops, 50 steps of 0.1 (extrapolated from 3)": loops,
        "ratio scipy": scipy / ours,
        "ratio loops": loops / ours,
        "target": "< 0.1 s",
    }


def _token_loops(z, dt, steps):
    """One explicit step at a time, a row of attention per token, a matrix exponential per pair: as often written."""
    n = len(z)
    for k in range(steps):
        grow = lambda: expm(k * dt * np.eye(2))  # noqa: B023, E731
        new = z.copy()
        for i in range(n):
            scores = np.array([(grow() @ z[i]) @ (grow() @ z[j]) for j in range(n)])
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            new[i] = z[i] + dt * sum(weights[j] * (z[j] - z[i]) for j in range(n))
        z = new
    return z


def phase_panel(d, full):
    """n = 32, 2048 samples × 90 β × 300 times (a sixteenth of the samples unless --full, scaled up)."""
    betas, times = np.linspace(0.1, 9, 90), np.linspace(0, 30, 300)
    samples = 2048 if full else 128
    pl.phase_diagram(d, betas[:10], times, 32)
    began = time.perf_counter()
    pl.phase_diagram(d, betas, times, samples, progress=True)
    seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "samples": samples,
        "seconds for 2048 samples": seconds * 2048 / samples,
        "target": "< 300 s" if d == 2 else "< 60 s",
    }


def startup():
    """pathlines --help, and whether importing the package imports JAX."""
    program = [sys.executable, "-m", "pathlines", "--help"]
    seconds = median_seconds(lambda: subprocess.run(program, capture_output=True, check=True))
    code = "import sys, pathlines; print('jax' in sys.modules)"
    imports = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    return {"seconds": seconds, "import pathlines imports jax": imports, "target": "< 0.5 s"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all 2048 samples of the phase panels")
    full = parser.parse_args().full
    pl.enable_float64()
    results = {
        "startup": startup(),
        "polytope figure": polytope_figure(),
        "phase panel d = 2": phase_panel(2, full),
        "phase panel d = 64 (span)": phase_panel(64, full),
        "peak memory GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "machine": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "versions": {"jax": jax.__version__, "numpy": np.__version__, "python": platform.python_version()},
    }
    text = json.dumps(results, indent=2)
    (HERE / "results" / "clustering.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
