"""A thousand Gaussian clouds to their fate, against the published approach (explicit Euler with a projection).

    python benchmarks/gaussian.py

Peer: covariances one by one in Python, steps of 10⁻², eigenvalues clipped at zero after each, until tr Σ > 10³ or
|Σ'| < 10⁻⁴, the middle of the thresholds in the scripts of arXiv:2501.18322. It runs on all the clouds; the few that
neither grow nor come to rest in 10⁵ steps are left out of its time, since another limit would change it. A second peer
is the same loop with all clouds in one array. Our time goes from the matrices to the classes, with the making of
the models. Errors are those of blow-up times and limits that are known in closed form (V = I).
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
from pathlines.integrate.gaussian_fate import fates
from pathlines.limit.gaussian.softmax import identity_value_covariance
from pathlines.model.gaussian.closure import SoftmaxGaussian

HERE = Path(__file__).parent


def random_weights(count, d, seed=0):
    rng = np.random.default_rng(seed)
    V, Q, K = rng.standard_normal((3, count, d, d))
    return V, np.swapaxes(K, 1, 2) @ Q / np.sqrt(d)


def euler(V, A, cov, step=1e-2, largest=1e3, still=1e-4, most=100_000):
    """The published loop: explicit Euler, projection on the cone, stopped by size or speed: (Σ, time, stopped)."""
    for n in range(1, most + 1):
        rate = V @ cov @ A @ cov
        rate = rate + rate.T
        cov = cov + step * rate
        values, vectors = np.linalg.eigh(cov)
        cov = (vectors * np.maximum(values, 0)) @ vectors.T
        if np.trace(cov) > largest or np.linalg.norm(rate) < still:
            return cov, n * step, True
    return cov, most * step, False


def euler_in_one_array(V, A, cov, step=1e-2, largest=1e3, still=1e-4, most=100_000):
    """The same for all clouds at once; those that stop are taken out."""
    for _ in range(most):
        rate = V @ cov @ A @ cov
        rate = rate + np.swapaxes(rate, 1, 2)
        values, vectors = np.linalg.eigh(cov + step * rate)
        cov = (vectors * np.maximum(values, 0)[:, None]) @ np.swapaxes(vectors, 1, 2)
        going = (np.trace(cov, axis1=1, axis2=2) <= largest) & (np.linalg.norm(rate, axis=(1, 2)) >= still)
        if not going.all():
            V, A, cov = V[going], A[going], cov[going]
        if not len(cov):
            break


def clocks(work):
    """(wall, processor) seconds of a call, and its result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - processor, result


def batch(count=1000, d=4, repeats=9):
    """Seconds for all fates after compilation, and those of both peers; ours and a ninth of the loop by turns."""
    V, A = random_weights(count, d)
    starts = np.broadcast_to(np.eye(d), (count, d, d))

    def ours():
        return fates([SoftmaxGaussian(v, a) for v, a in zip(V, A, strict=True)], starts)

    first = clocks(ours)[0]
    mine, loop, stopped = [], np.zeros((count, 2)), np.zeros(count, bool)
    for part in np.array_split(np.arange(count), repeats):
        *seconds, found = clocks(ours)
        mine.append(seconds)
        for k in part:
            *loop[k], (_, _, stopped[k]) = clocks(lambda k=k: euler(V[k], A[k], np.eye(d)))
    (wall, processor), (their_wall, their_processor) = np.median(mine, axis=0), loop[stopped].sum(axis=0)
    stacked_wall, stacked_processor, _ = clocks(lambda: euler_in_one_array(V[stopped], A[stopped], starts[stopped]))
    kinds = {k: sum(f.kind == k for f in found) / count for k in sorted({f.kind for f in found})}
    return {
        "seconds": wall,
        "processor seconds": processor,
        "first call with compilation s": first,
        "peer seconds": their_wall,
        "peer processor seconds": their_processor,
        "peer, clouds that never stop and are not counted": int(np.sum(~stopped)),
        "peer seconds with these": loop[:, 0].sum(),
        "ratio": their_wall / wall,
        "ratio of processor seconds": their_processor / processor,
        "peer in one array seconds": stacked_wall,
        "ratio, peer in one array": stacked_wall / wall,
        "ratio of processor seconds, peer in one array": stacked_processor / processor,
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
    states = [
        np.abs(c - identity_value_covariance(t, a, np.eye(d))).max() for (c, t, _), a in zip(early, A, strict=True)
    ]
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
