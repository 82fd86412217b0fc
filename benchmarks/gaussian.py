"""A thousand Gaussian clouds to their fate, against the published approach (explicit Euler with a projection).

    python benchmarks/gaussian.py

The peer integrates covariances one by one in Python, with steps of 10⁻² and eigenvalues clipped at zero after each, as
the scripts of arXiv:2501.18322 do. Errors are those of blow-up times and limits that are known in closed form (V = I).
Prints a table and writes benchmarks/results/gaussian.json.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import jax
import numpy as np

import pathlines as pl
from pathlines.integrate.fate import fates
from pathlines.limit.gaussian.softmax import identity_value_covariance
from pathlines.model.gaussian_closure import SoftmaxGaussian

HERE = Path(__file__).parent


def random_weights(count, d, seed=0):
    rng = np.random.default_rng(seed)
    V, Q, K = rng.standard_normal((3, count, d, d))
    return V, np.swapaxes(K, 1, 2) @ Q / np.sqrt(d)


def euler(V, A, cov, step=1e-2, largest=1e3, still=1e-4, most=100_000):
    """The published loop: explicit Euler, projection on the cone, stopped by size or speed."""
    elapsed = 0.0
    for _ in range(most):
        rate = V @ cov @ A @ cov
        rate = rate + rate.T
        cov, elapsed = cov + step * rate, elapsed + step
        values, vectors = np.linalg.eigh(cov)
        cov = (vectors * np.maximum(values, 0)) @ vectors.T
        if np.trace(cov) > largest or np.linalg.norm(rate) < still:
            break
    return cov, elapsed


def batch(count=1000, d=4):
    """Seconds for all fates after compilation, and those of the loop on a part of them."""
    V, A = random_weights(count, d)
    models = [SoftmaxGaussian(v, a) for v, a in zip(V, A, strict=True)]
    starts = np.broadcast_to(np.eye(d), (count, d, d))
    began = time.perf_counter()
    fates(models, starts)
    first = time.perf_counter() - began
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        found = fates(models, starts)
        seconds.append(time.perf_counter() - began)
    ours = float(np.median(seconds))
    part = 40
    began = time.perf_counter()
    for k in range(part):
        euler(V[k], A[k], np.eye(d))
    theirs = (time.perf_counter() - began) / part * count
    kinds = {k: sum(f.kind == k for f in found) / count for k in sorted({f.kind for f in found})}
    return {
        "seconds": ours,
        "first call with compilation s": first,
        "peer seconds": theirs,
        "ratio": theirs / ours,
        "classes": kinds,
        "target": "< 5 s for 1000 clouds d=4; at least 20 times the peer",
    }


def accuracy(count=40, d=4):
    """V = I: blow-up times of both against 1/λ_max(A + Aᵀ) from Σ_0 = I, and the state of the loop half-way."""
    _, A = random_weights(count, d, seed=1)
    exact = np.array([1 / np.linalg.eigvalsh(a + a.T)[-1] for a in A])
    keep = exact > 0
    A, exact = A[keep], exact[keep]
    found = fates([SoftmaxGaussian(np.eye(d), a) for a in A], np.broadcast_to(np.eye(d), (len(A), d, d)))
    ours = np.array([f.blow_up_time for f in found])
    theirs = np.array([euler(np.eye(d), a, np.eye(d))[1] for a in A])
    early = [
        euler(np.eye(d), a, np.eye(d), most=max(1, int(t / 2e-2)), largest=np.inf)
        for a, t in zip(A, exact, strict=True)
    ]
    states = [np.abs(c - identity_value_covariance(t, a, np.eye(d))).max() for (c, t), a in zip(early, A, strict=True)]
    own, other = (float(np.median(np.abs(x / exact - 1))) for x in (ours, theirs))
    return {
        "median relative error of T*": own,
        "largest relative error of T*": float(np.abs(ours / exact - 1).max()),
        "peer, median relative error of T*": other,
        "peer, median error of Σ half-way": float(np.median(states)),
        "error ratio": other / own,
        "target": "at least 10⁶ times smaller than the peer's",
    }


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    pl.enable_float64()
    results = {
        "1000 clouds, d=4, softmax": batch(),
        "accuracy": accuracy(),
        "machine": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "versions": {"jax": jax.__version__, "numpy": np.__version__, "python": platform.python_version()},
    }
    text = json.dumps(results, indent=2, ensure_ascii=False)
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "gaussian.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
