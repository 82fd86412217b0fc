"""See clusters form: tokens on the sphere, their energy and their number, in one figure."""

import jax

import pathlines as pl

pl.enable_float64()
tokens = pl.Sphere(3).uniform(jax.random.key(0), n=120)
run = pl.flow(pl.SelfAttention(beta=9.0), tokens, until=20.0, record=[pl.tokens, pl.energy_fraction, pl.cluster_count])
print(run)
pl.plot(run).savefig("01_clusters.pdf")
