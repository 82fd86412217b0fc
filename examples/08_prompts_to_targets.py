"""N prompts to N targets with one transformer: three prompts share tokens, and each goes to a target of its own.

Measure-to-measure interpolation using Transformers, arXiv:2411.04551.
"""

import numpy as np

import pathlines as pl

rng = np.random.default_rng(0)


def prompts(d, count, n, shared):
    """Unit tokens; the first ``shared`` are the same in every prompt."""
    common = rng.standard_normal((shared, d))
    drawn = [np.vstack([common, rng.standard_normal((n - shared, d))]) for _ in range(count)]
    return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in drawn]


inputs, targets = prompts(8, 3, 4, 3), prompts(8, 3, 4, 3)
solver = pl.MeasureInterpolator().fit(inputs, targets)
for stage in solver.timeline_:
    print(f"{stage.pieces:3d} pieces, W2 {stage.w2:8.2g}, least distance {stage.separation:8.2g}: {stage.name}")

found = pl.verify_schedule(solver.schedule_, inputs, targets)  # integrated by code that the solver does not share
print(f"verified: W2 = {max(found.w2):.2g}, and back again to {found.round_trip:.2g}")
