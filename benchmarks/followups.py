"""Proximal particles beside BlackJAX's MALA at the same number of gradients: sliced W₂ to exact samples, honest.

    python benchmarks/followups.py

Targets: an ill-conditioned Gaussian (variances 1 to 0.01, d = 10), three Gaussians in the plane, a bent Gaussian.
All start from N(0, I) with 200 particles or chains; ours takes 300 steps of one gradient each and, where the
normaliser has no closed form, values of V as well, which are counted; MALA takes 300 steps of one gradient, with
the step that was best on a pilot run of its own, which is not counted. Both are judged by the sliced W₂ (50
directions, each coordinate over its standard deviation) of the 200 last states to 5,000 exact samples; "exact" is
what 200 exact samples have. Means of three seeds. In the plane particles lie quieter than samples and win; in d =
10 two hundred particles are too few, and MALA wins.
"""

import json
import time
from functools import partial
from pathlib import Path

import numpy as np

import pathlines as pl

pl.enable_float64()  # before JAX runs

import blackjax  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

N, STEPS, SEEDS, DIRECTIONS = 200, 300, (0, 1, 2), 50
RESULTS = Path(__file__).parent / "results" / "followups.json"
SCALES = jnp.asarray(np.geomspace(1.0, 0.01, 10))
CENTRES, WIDTH = jnp.asarray([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]]), 0.5


def thin(x):
    return 0.5 * jnp.sum(x**2 / SCALES)


def mixture(x):
    return -jax.nn.logsumexp(-jnp.sum((x - CENTRES) ** 2, axis=1) / (2 * WIDTH**2))


def bent(x):
    return 0.5 * x[0] ** 2 + 2 * (x[1] - 0.5 * x[0] ** 2) ** 2


def exact(name, count, rng):
    if name == "thin":
        return rng.normal(size=(count, 10)) * np.sqrt(np.asarray(SCALES))
    if name == "mixture":
        return np.asarray(CENTRES)[rng.integers(3, size=count)] + WIDTH * rng.normal(size=(count, 2))
    x = rng.normal(size=count)
    return np.stack([x, 0.5 * x**2 + 0.5 * rng.normal(size=count)], axis=1)


QUADRATIC = pl.model.followups.QuadraticPotential(np.diag(1 / np.asarray(SCALES)))
OURS = {
    "thin, preconditioned": (
        "thin",
        lambda: pl.ProximalSampler(QUADRATIC, 10, 0.2, 0.3, preconditioner=np.diag(SCALES)),
    ),
    "thin": ("thin", lambda: pl.ProximalSampler(QUADRATIC, 10, 0.005, 0.01)),
    "mixture": ("mixture", lambda: pl.ProximalSampler(mixture, 2, 0.05, 0.08)),
    "bent": ("bent", lambda: pl.ProximalSampler(bent, 2, 0.05, 0.08)),
}
TARGETS = {"thin": (thin, 10), "mixture": (mixture, 2), "bent": (bent, 2)}


def sliced(x, y):
    rng = np.random.default_rng(5)
    scale = y.std(axis=0)
    directions = rng.normal(size=(DIRECTIONS, x.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    levels = (np.arange(400) + 0.5) / 400
    cut = lambda z: np.quantile(z / scale @ directions.T, levels, axis=0)  # noqa: E731
    return float(np.sqrt(np.mean((cut(x) - cut(y)) ** 2)))


@partial(jax.jit, static_argnames=("potential", "d"))
def chains(potential, d, factor, step, key):
    """Last states of N chains in coordinates divided by ``factor``, and the mean acceptance."""
    kernel = blackjax.mala(lambda z: -potential(z * factor), step)
    start, moves = jax.random.split(key)
    states = jax.vmap(kernel.init)(jax.random.normal(start, (N, d)) / factor)

    def one(states, key):
        states, info = jax.vmap(kernel.step)(jax.random.split(key, N), states)
        return states, info.acceptance_rate.mean()

    states, rates = jax.lax.scan(one, states, jax.random.split(moves, STEPS))
    return states.position * factor, rates.mean()


def mala(potential, d, step, seed, whiten=None):
    factor = jnp.ones(d) if whiten is None else jnp.sqrt(whiten)
    points, rate = chains(potential, d, factor, jnp.asarray(step), jax.random.key(seed))
    return np.asarray(points), float(rate)


def main():
    table = {}
    truth = {name: exact(name, 5_000, np.random.default_rng(99)) for name in TARGETS}
    for label, (name, build) in OURS.items():
        potential, d = TARGETS[name]
        whiten = SCALES if "preconditioned" in label else None
        grid = np.geomspace(0.0005, 0.8, 7)
        pilots = [(sliced(mala(potential, d, h, 77, whiten=whiten)[0], truth[name]), h) for h in grid]
        step = min(pilots)[1]
        began = time.perf_counter()
        runs = [mala(potential, d, step, seed, whiten=whiten) for seed in SEEDS]
        peer_seconds = (time.perf_counter() - began) / len(SEEDS)
        sampler = build()
        found = [sampler.sample(N, STEPS, seed, progress=False) for seed in SEEDS]
        ideal = [sliced(exact(name, N, np.random.default_rng(seed)), truth[name]) for seed in SEEDS]
        table[label] = {
            "ours": np.mean([sliced(f.particles, truth[name]) for f in found]),
            "MALA": np.mean([sliced(x, truth[name]) for x, _ in runs]),
            "exact": np.mean(ideal),
            "gradients per particle, ours and MALA": [found[0].gradients // N, STEPS + 1],
            "values of V per particle, ours and MALA": [found[0].values // N, STEPS + 1],
            "MALA step and acceptance": [step, np.mean([rate for _, rate in runs])],
            "seconds, ours and MALA": [np.mean([f.seconds for f in found]), peer_seconds],
        }
        row = table[label]
        print(f"{label}: ours {row['ours']:.4f}, MALA {row['MALA']:.4f}, exact {row['exact']:.4f}", flush=True)
    RESULTS.write_text(json.dumps(table, indent=1, default=float, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
