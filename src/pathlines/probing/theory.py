"""The prediction of ``limit.architecture`` for what a probe measures: the same observables over the same tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathlines.architecture import Architecture
from pathlines.foundation.progress import Progress
from pathlines.limit.architecture.predict import predict
from pathlines.probing.curves import OBSERVABLES, Curve, Curves


def predicted_curves(
    architecture: Architecture, ids: Sequence[np.ndarray], keep: Sequence[np.ndarray | None] | None = None
) -> Curves:
    """Mean over inputs; the mean cosine with its predicted standard deviation over seeds, which inputs share."""
    found = []
    with Progress("theory", len(ids)) as bar:
        for one, kept in zip(ids, keep or [None] * len(ids), strict=True):
            found.append(predict(architecture, one, keep=kept))
            bar.update(len(found))
    curves = {}
    for name in OBSERVABLES:
        mean = np.mean([getattr(p, name) for p in found], axis=0)
        spread = np.mean([p.spread for p in found], axis=0) if name == "mean_cosine" else np.zeros_like(mean)
        curves[name] = Curve(mean.tolist(), spread.tolist())
    return curves
