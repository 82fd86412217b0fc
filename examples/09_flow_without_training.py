"""A normalizing flow without training: samples in, explicit network out, with its density and conditional draws."""

import numpy as np

import pathlines as pl

# A law in the plane whose density we know, and 5000 samples of it.
law = pl.transport.GaussianMixture(
    [0.35, 0.35, 0.3],
    [[-1.5, 0], [1.2, 1], [0.5, -1.8]],
    [[[0.5, 0.2], [0.2, 0.4]], [[0.4, -0.15], [-0.15, 0.3]], [[0.6, 0], [0, 0.2]]],
)
samples, fresh = law.sample(5000, seed=1), law.sample(50_000, seed=2)

# From samples: every piece is one ReLU neuron, x' = w (a·x + b)₊ for a time t, whose flow is known exactly.
flow = pl.TriangularFlow().fit(samples)
gap = law.log_prob(fresh) - flow.log_prob(fresh)
print(f"from samples: {flow.report_.pieces} pieces, KL {gap.mean():.4f} ± {gap.std() / 50_000**0.5:.4f} on fresh ones")
print(f"round trip |x - Φ⁻¹Φx| ≤ {flow.report_.round_trip:.1g}")

# Conditional draws: y given x = 0.3, and x stays exactly 0.3.
given = flow.sample(20_000, given=0.3)
exact = law.line([0.3])
levels = np.quantile(given[:, 1], [0.25, 0.5, 0.75])
print("levels of the drawn quartiles given x = 0.3:", np.round(exact.cdf(levels), 3))

# From the density: as many pieces as a certified error needs.
known = pl.TriangularFlow(error=0.02).fit_density(law)
print(f"from the density: {known.report_.pieces} pieces, KL {known.report_.kl:.4f} ± {known.report_.kl_error:.4f}")

# The network is a file that any program can read.
print("written to", known.schedule_.save("flow.json"))
