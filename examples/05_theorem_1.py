"""Theorem 1 of Homogenized Transformers (arXiv:2604.01978): a deep chain follows an SDE with drift and common noise."""

import jax
import numpy as np

import pathlines as pl

pl.enable_float64()
eta, depth, runs = 0.2, 6, 400
start = pl.Sphere(4).sines(5)

# Values with a mean, V = I + N/2, and fixed scores A = I: every layer draws a fresh V.
law = pl.GaussianHeads(4, sigma_v=0.5, sigma_a=0.0, value_mean=1.0, score_mean=1.0)
chain = pl.RandomTransformer(law=law, beta=1.0, step=eta)

# Its limit in the time t = ηℓ: with the boxed drift D, and with the drift b alone.
full, plain = (pl.model.homogenized.HomogenizedSDE(law, 1.0, step=eta, corrector=c) for c in ("full", "none"))

# All three see the same heads, so that only their difference is left to measure.
models, key = [chain, full, plain], jax.random.key(0)
deep, limit, first = pl.integrate.coupled_chains(
    models, [start] * 3, depth=depth, key=key, runs=runs, record=pl.mean_overlap
)
for name, run in (("boxed drift", limit), ("b alone", first)):
    gap = (deep["mean_overlap"] - run["mean_overlap"]).isel(time=-1).values
    print(f"chain − SDE with {name}: {gap.mean():+.5f} ± {gap.std() / np.sqrt(runs):.5f}")

# The ODE without noise has no spread; the noise is the same for all tokens, so it does not average out.
flow = pl.flow(
    pl.model.homogenized.HomogenizedODE(law, 1.0, step=eta),
    start,
    times=eta * np.arange(depth + 1),
    record=pl.mean_overlap,
)
last = deep["mean_overlap"].isel(time=-1)
print(f"chain {last.mean().item():.3f}, one run ± {last.std().item():.3f}; ODE {flow['mean_overlap'].values[-1]:.3f}")

# Every run of the SDE; chain, SDE and ODE side by side are the figure homogenized/theorem-1.
pl.plot(limit).savefig("05_theorem_1.pdf")
print("for the whole picture: pathlines figure homogenized/theorem-1")
