"""Differentiate through the dynamics: which start keeps a metastable state alive the longest?"""

import jax
import jax.numpy as jnp
import numpy as np

import pathlines as pl

pl.enable_float64()
model = pl.SelfAttention(beta=4.0)


def tokens(angles):
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)


@jax.jit
@jax.value_and_grad
def late_overlap(angles):
    """Mean overlap at t = 8: one once all clusters have merged, low while several live."""
    return pl.flow(model, tokens(angles), times=[8.0], record="mean_overlap", rtol=1e-6)["mean_overlap"][-1]


def life(angles):
    """The last time, of those up to 200, at which there is more than one cluster."""
    run = pl.flow(model, tokens(angles), times=np.linspace(0, 200, 801), record="mean_overlap", max_steps=20_000)
    alive = run["mean_overlap"].values < 0.99
    return run.time[alive][-1]


angles = jnp.asarray(np.random.default_rng(0).normal(0, 1.0, 12))
print(f"a random start lives until t = {life(angles):.1f}")
for step in range(41):
    value, slope = late_overlap(angles)
    if step % 10 == 0:
        print(f"step {step:2d}: mean overlap at t = 8 is {value:.4f}")
    angles = angles - 0.2 * slope / jnp.linalg.norm(slope)
print(f"the start found is still alive at t = {life(angles):.1f}")
