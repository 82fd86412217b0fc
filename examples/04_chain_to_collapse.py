"""From a random transformer to its limit to a collapse prediction (Homogenized Transformers, arXiv:2604.01978)."""

import jax
import numpy as np

import pathlines as pl

pl.enable_float64()
n, d, b = 16, 256, 2.0

# The chain: fresh Gaussian heads at every layer. Only the Gram matrix is moved, so the cost does not depend on d.
net = pl.RandomTransformer(d, heads=4, step=0.3, logit_scale=b, qk_dim=float("inf"))
numbers = net.parameters
depth = 160
run = pl.chain(
    net, pl.Sphere(d).simplex(n), depth=depth, every=20, key=jax.random.key(0), runs=32, record="mean_overlap"
)
print(run)

# Which limit holds at this depth, step and number of heads?
print(pl.regime(0.3, numbers.noise, depth, centred=True).reason)

# The limit: an ODE for the common overlap γ, and the layer map that keeps the finite step.
tau = run.data["tau"].values
flow = pl.limit.homogenized.overlap_curve(tau, n, b)
layers = pl.limit.homogenized.layer_map_curve(depth, n, b, numbers.layer_time, d=d).overlap[:: depth // (len(tau) - 1)]
mean, error = run["mean_overlap"].mean("run").values, run["mean_overlap"].std("run").values / np.sqrt(32)
print("   τ    simulated        layer map   limit")
for row in zip(tau, mean, error, layers, flow, strict=True):
    print("{:5.2f}   {:.4f} ± {:.4f}   {:.4f}      {:.4f}".format(*row))

# The prediction, without running anything: when do tokens become alike, and what moves that?
theory = pl.limit.homogenized
print(f"γ = 1/2 at τ = {theory.collapse_time(n, b):.4f}, layer {theory.collapse_depth(n, b, numbers.layer_time)}")
print("depth scales as", ", ".join(f"{e.name}^{e.exponent:+.2f}" for e in theory.sensitivities(n, b).effects()[:4]))
