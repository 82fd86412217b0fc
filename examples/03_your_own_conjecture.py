"""A conjecture in ten lines: does the late rate of collapse depend on the temperature?"""

import jax
import numpy as np

import pathlines as pl
from pathlines.observable.analysis import decay_rate

pl.enable_float64()
sphere = pl.Sphere(3)
start = sphere.normalise(np.asarray(sphere.uniform(jax.random.key(1), 10)) + np.array([1.5, 0, 0]))
for beta in (0.0, 1.0, 5.0):
    run = pl.flow(pl.SelfAttention(beta), start, times=np.linspace(0, 60, 241), record=pl.diameter, rtol=1e-10)
    print(f"β = {beta:g}: late rate {decay_rate(run.time, run['diameter'].values):.7f}")
