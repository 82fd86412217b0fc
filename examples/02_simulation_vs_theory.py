"""Compare a simulation with a closed form: orthogonal tokens collapse along the exact equiangular curve."""

import numpy as np

import pathlines as pl
from pathlines.limit.clustering.equiangular import overlap_at, phase_curve

pl.enable_float64()
n, beta, times = 32, 4.0, np.linspace(0.0, 8.0, 33)
run = pl.flow(pl.SelfAttention(beta), pl.Sphere(n).simplex(n), times=times, record=pl.mean_overlap, rtol=1e-11)
exact = overlap_at(times, n, beta)
print(f"largest difference from the closed form: {np.max(np.abs(run['mean_overlap'].values - exact)):.1e}")
print(f"collapse to 1 - 1e-3 at t = {phase_curve(beta, n):.12f}")
