"""Times behind the speed claims of the metastability family.

The peer is the method of the public notebook of Emergence of meta-stable clustering in mean-field transformer models
(arXiv:2410.23228): explicit Euler with step 1e-4 in the unscaled clock and all pairs of tokens, here in PyTorch (where
installed; NumPy otherwise) with rows in blocks. A few of its steps are timed and scaled to the whole run; its accuracy
is that of the same Euler steps with our sums, which differ from direct ones by rounding only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import pathlines as pl
from pathlines.domain.circle_law import QuietMoments
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.limit.metastability.growth import dominant_degree, growth_rates
from pathlines.limit.metastability.kde_modes import bracket
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import perceptron_potential
from pathlines.model.metastability.circle import CircleAttention
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.observable.kde_modes import find_modes, normal_modes

HERE = Path(__file__).parent


def median_seconds(call, rounds=5):
    call()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def staircase():
    angles = np.sort(np.random.default_rng(0).uniform(0, 2 * np.pi, 12))
    rows = {}
    for kind in ("usa", "sa"):
        found = cluster_flow(angles, 400.0, kind=kind)
        rows[f"{kind} seconds"] = median_seconds(lambda kind=kind: cluster_flow(angles, 400.0, kind=kind), 3)
        rows[f"{kind} ln t of the last merger"] = float(found.log_times[-1])
    return rows | {"target": "< 1 s"}


def mean_field(beta=81.0, tokens=1e8):
    start = QuietMoments(tokens, noisy=40)(jax.random.key(0))
    until = (0.5 * np.log(tokens) + 2) / growth_rates(beta, 2, dominant_degree(beta, 2))[-1]
    options = {"times": [until], "record": "potential_modes", "rtol": 1e-8, "progress": False}
    call = lambda: pl.flow(CircleDensity(beta, 256), start, **options)  # noqa: E731
    began = time.perf_counter()
    run = call()
    first = time.perf_counter() - began
    return {
        "seconds with compilation": first,
        "seconds compiled": median_seconds(call, 3),
        "maxima of the potential": int(run["potential_modes"][-1]),
        "forms": [f.name for f in run.forms],
        "target": "circle to saturation, beta=81: < 2 s",
    }


def minimiser():
    rows = {}
    for beta in (1.0, 4.0, 25.0):
        land = perceptron_landscape(perceptron_potential([[1, 0], [np.cos(2), np.sin(2)]], [1.0, -0.7]), beta)
        rows[f"beta={beta:g} seconds"] = median_seconds(lambda land=land: perceptron_minimiser(land), 3)
        rows[f"beta={beta:g} KKT gap"] = float(perceptron_minimiser(land).kkt_gap)
    return rows | {"target": "< 1 s, certified"}


def modes():
    n, beta, runs = 10_000, 100.0, 1500
    began = time.perf_counter()
    table = normal_modes(n, beta, runs, 0)
    seconds = time.perf_counter() - began
    low, high = bracket(n, beta)
    wide = np.random.default_rng(1).standard_normal(100_000)
    return {
        "samples": runs,
        "seconds": seconds,
        "mean": table.mean,
        "standard error": table.error,
        "relative error": table.error / table.mean,
        "bracket": [low, high],
        "uncertified counts": int((table.doubtful > 0).sum()),
        "one sample n=1e5 beta=1e4 seconds": median_seconds(lambda: find_modes(wide, 1e4), 3),
        "target": "n=1e4, beta=100 to 1 % in < 60 s",
    }


def torch_step(theta, beta, dt, block=64):
    """One explicit Euler step over all pairs, ``block`` rows at a time."""
    import torch

    out = torch.empty_like(theta)
    for begin in range(0, len(theta), block):
        turn = theta[None, :] - theta[begin : begin + block, None]
        out[begin : begin + block] = (torch.exp(beta * torch.cos(turn)) * torch.sin(turn)).mean(dim=1)
    return theta + dt * out


def numpy_step(theta, beta, dt, block=200):
    out = np.empty_like(theta)
    for begin in range(0, len(theta), block):
        turn = theta[None, :] - theta[begin : begin + block, None]
        out[begin : begin + block] = (np.exp(beta * np.cos(turn)) * np.sin(turn)).mean(axis=1)
    return theta + dt * out


def seconds_of_dense_steps(theta, beta, dt, steps=3):
    try:
        import torch

        state, step, name = torch.tensor(theta), torch_step, "PyTorch"
    except ModuleNotFoundError:
        state, step, name = theta, numpy_step, "NumPy"
    state = step(state, beta, dt)
    began = time.perf_counter()
    for _ in range(steps):
        state = step(state, beta, dt)
    return (time.perf_counter() - began) / steps, name


def against_notebook(n=20_000, beta=5.0, until=0.6, dt=1e-4):
    start = pl.Sphere(2).uniform(jax.random.key(0), n)
    model = CircleAttention(beta, unnormalised=True)
    angles = model.initial(start)
    ours = {"times": [until], "record": "tokens", "method": "rk4", "step": until / 120, "progress": False}
    turned = lambda run: np.asarray(run.final.state)  # noqa: E731
    run = lambda: pl.flow(model, start, **ours)  # noqa: E731
    seconds, steps = median_seconds(run, 5), round(until / dt)

    @jax.jit
    def euler(theta):
        return jax.lax.fori_loop(0, steps, lambda i, y: y + dt * model.drift(y, jnp.zeros(())), theta)

    tight = turned(pl.flow(model, start, times=[until], record="tokens", method="dop853", rtol=1e-12, progress=False))
    off = {"ours": np.abs(turned(run()) - tight), "Euler": np.abs(np.asarray(euler(angles)) - tight)}
    dense, name = seconds_of_dense_steps(np.asarray(angles), beta, dt)
    return {
        "ours seconds (RK4, 120 steps)": seconds,
        f"one dense Euler step in {name}, seconds": dense,
        "dense Euler, all steps (scaled up), seconds": dense * steps,
        "ratio": dense * steps / seconds,
        **{f"{who} root mean square error of angles": float(np.sqrt(np.mean(e**2))) for who, e in off.items()},
        **{f"{who} largest error of angles": float(e.max()) for who, e in off.items()},
        "setting": f"N={n}, beta={beta:g}, T={until:g} unscaled, Euler step {dt:g}",
        "target": "ratio at least 100 at equal or better accuracy",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true", help="print only, leave the stored results alone")
    options = parser.parse_args()
    pl.enable_float64()
    results = {
        "staircase 12 to 1, beta=400": staircase(),
        "mean field to saturation": mean_field(),
        "certified minimiser": minimiser(),
        "expected modes": modes(),
        "against the public notebook": against_notebook(),
        "machine": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()},
        "versions": {"jax": jax.__version__, "numpy": np.__version__, "python": platform.python_version()},
    }
    text = json.dumps(results, indent=2)
    if not options.dry:
        (HERE / "results" / "metastability.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
