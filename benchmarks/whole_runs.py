"""Whole runs of `flow` at random settings: native steps against compiled ones, the worst ratios, and the growth with n.

    python benchmarks/whole_runs.py [--cases 200] [--seed 0]

Each setting (n, d, β, weights, dtype, method, records) is run by both ways in turn, threads warm and programs compiled;
processor seconds and wall seconds are compared by their medians. Writes benchmarks/results/whole_runs.json.
"""

import argparse
import json
import os
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import jax
import numpy as np

import pathlines as pl

HERE = Path(__file__).parent
JOURNEY = import_module("pathlines.integrate.journey")
FLOW = import_module("pathlines.integrate.flow")
NATIVE = JOURNEY.native_run
ROUNDS = 7


def by(native):
    """Takes native steps, or leaves them out."""
    for module in (JOURNEY, FLOW):
        module.native_run = NATIVE if native else lambda *_: None


def drawn(rng):
    """A random setting as words and numbers."""
    d = int(rng.choice([2, 3, 3, 4, 5, 8, 16, 64]))
    return {
        "n": int(10 ** rng.uniform(0.6, 3.2 if d < 9 else 2.7)),
        "d": d,
        "beta": float(10 ** rng.uniform(-1, 2)),
        "weights": str(rng.choice(["identity", "identity", "value", "qkv", "two heads"])),
        "dtype": str(rng.choice(["float32", "float64"])),
        "method": str(rng.choice(["rk45", "rk45", "dop853", "rk4"])),
        "records": int(rng.choice([1, 11, 101])),
        "record": str(rng.choice(["tokens", "energy_fraction", "cluster_count", "mean_overlap"])),
    }


def posed(s, rng):
    """The run of a setting, as a call."""
    heads = 2 if s["weights"] == "two heads" else 1
    q, k, v = (np.eye(s["d"]) + 0.3 * rng.normal(size=(heads, s["d"], s["d"])) / np.sqrt(s["d"]) for _ in range(3))
    weights = {
        "identity": None,
        "value": pl.weights.FixedWeights(v),
        "qkv": pl.weights.FixedWeights(v, q, k),
        "two heads": pl.weights.FixedWeights(v, q, k),
    }[s["weights"]]
    model = pl.SelfAttention(s["beta"], weights=weights, summation="dense")
    x = pl.Sphere(s["d"]).uniform(jax.random.key(int(rng.integers(1 << 30))), n=s["n"]).astype(s["dtype"])
    rtol = 1e-4 if s["dtype"] == "float32" else 1e-7
    how = {"step": 0.05} if s["method"] == "rk4" else {"rtol": rtol}
    times = np.linspace(0.0, 3.0, s["records"] + 1)[1:]
    settings = {"times": times, "record": s["record"], "form": "tokens", "method": s["method"], "progress": False}
    return lambda: pl.flow(model, x, **settings, **how)


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def compared(call):
    """{way: (wall, processor) seconds}, alternating."""
    samples = {True: [], False: []}
    for way in samples:
        by(way)
        call()
    for _ in range(ROUNDS):
        for way, found in samples.items():
            by(way)
            found.append(timed(call))
    by(True)
    return {way: np.median(found, axis=0) for way, found in samples.items()}


def search(cases, rng):
    rows = []
    for _ in range(cases):
        setting = drawn(rng)
        found = compared(posed(setting, rng))
        (wall, cpu), (wall_old, cpu_old) = found[True], found[False]
        rows.append({**setting, "seconds": wall, "wall ratio": wall / wall_old, "processor ratio": cpu / cpu_old})
        print(json.dumps(rows[-1]), flush=True)
    ratios = np.array([r["processor ratio"] for r in rows])
    slow = [r for r in rows if r["processor ratio"] > 1.3]
    return {
        "rows": rows,
        "median": float(np.median(ratios)),
        "worst": float(ratios.max()),
        "slower than 1.3": len(slow),
    }


def growth():
    """Slope of ln(seconds) against ln(n) of ten Runge-Kutta steps: pairs, and harmonics on S²."""
    found = {}
    for name, sizes in (("dense", (1000, 2000, 4000, 8000)), ("spectral", (50_000, 100_000, 200_000, 400_000))):
        seconds = []
        for n in sizes:
            model, x = pl.SelfAttention(4.0, summation=name), pl.Sphere(3).uniform(jax.random.key(0), n=n)
            settings = {"times": [0.5], "method": "rk4", "step": 0.05, "record": "variance", "progress": False}
            call = partial(pl.flow, model, x, **settings)
            call()
            seconds.append(float(np.median([timed(call)[1] for _ in range(ROUNDS)])))
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        found[name] = {"n": sizes, "processor seconds": seconds, "slope": slope}
        print(name, found[name], flush=True)
    return found


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--cases", type=int, default=200)
    words.add_argument("--seed", type=int, default=0)
    given = words.parse_args()
    pl.enable_float64()
    found = {"load": os.getloadavg()[0], "growth": growth(), **search(given.cases, np.random.default_rng(given.seed))}
    (HERE / "results" / "whole_runs.json").write_text(json.dumps(found, indent=1) + "\n")
    print({k: found[k] for k in ("median", "worst", "slower than 1.3")})


if __name__ == "__main__":
    main()
