"""Two clusters of coincident tokens (A mathematical perspective on Transformers, arXiv:2312.10794)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.clustering.clusters import two_cluster_overlap
from pathlines.model import SelfAttention
from pathlines.observable.pairs import overlaps


class Pair(Setting):
    """Two clusters of coincident tokens."""

    n1: Annotated[of.Count, means("tokens of the first cluster", "n₁")] = 3
    n2: Annotated[of.Count, means("tokens of the second cluster", "n₂")] = 7
    beta: of.Beta = 2.5
    overlap: Annotated[of.Cosine, means("overlap of the clusters at the start", "g₀")] = -0.3
    times: of.Times = (2.0, 5.0)


def simulate(s: Pair) -> Evidence:
    """All n₁ + n₂ tokens in the plane, none merged."""
    pair = np.array([[1.0, 0.0], [s.overlap, np.sqrt(1 - s.overlap**2)]])
    tokens = Sphere(2).normalise(np.repeat(pair, [s.n1, s.n2], axis=0))
    curve = np.unique(np.concatenate([np.linspace(0, max(s.times), 60), s.times]))
    run = flow(SelfAttention(s.beta), tokens, times=curve, record=overlaps, rtol=1e-12)
    between = run["overlaps"].values[:, 0, -1]
    return Evidence(
        {"overlap": between[np.searchsorted(curve, s.times)]},
        curves=(Curve("tokens", curve, between),),
        runs=(run,),
    )


def predict(s: Pair) -> Evidence:
    """The scalar equation for g."""
    curve = np.linspace(0, max(s.times), 200)
    return Evidence(
        {"overlap": two_cluster_overlap(np.asarray(s.times), s.n1, s.n2, s.beta, s.overlap)},
        curves=(Curve("scalar equation", curve, two_cluster_overlap(curve, s.n1, s.n2, s.beta, s.overlap)),),
    )


claim(
    "clustering/CL-43",
    PERSPECTIVE,
    "two-cluster reduction (derived)",
    "Clusters of n₁ and n₂ coincident tokens with inner product g obey "
    "ġ = (1−g²)[n₂/(n₂+n₁e^{β(1−g)}) + n₁/(n₁+n₂e^{β(1−g)})] under SA.",
    where="derived; no statement in the paper",
    models=("sa",),
    quick=Pair(),
    within={
        "overlap": absolute(1e-10, "solver tolerance 1e-12 on both sides; g(2) = -.0499134932, g(5) = .8403446670")
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "inner product g"),
)
