"""Skeleton of a claim: copy, rename, change. One file is all it takes.

Put it in ``src/pathlines/claim/<family>/`` (found by itself), or keep it anywhere and use ``pathlines --load FILE …``.
"""

from typing import Any

import numpy as np

from pathlines.claim import Curve, Evidence, absolute, claim
from pathlines.claim.base import Axes
from pathlines.domain import Sphere
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.integrate import flow
from pathlines.model import SelfAttention


def simulate(s: Any) -> Evidence:
    """Run the engine on the setting; every number of the statement is an entry of it."""
    tokens = Sphere(s.n).simplex(s.n, s.overlap)
    times = np.linspace(0, s.until, 41)
    run = flow(SelfAttention(0.0), tokens, times=times, record="mean_overlap", rtol=1e-10)
    curve = run["mean_overlap"].values
    return Evidence({"overlap": curve[-1]}, curves=(Curve("tokens", times, curve),), runs=(run,))


def predict(s: Any) -> Evidence:
    """Compute the same numbers in another way: a closed form, another method, a reference value."""
    times = np.linspace(0, s.until, 41)
    odds = (s.overlap + 1 / (s.n - 1)) / (1 - s.overlap) * np.exp(2 * times)
    curve = (odds - 1 / (s.n - 1)) / (1 + odds)
    return Evidence({"overlap": curve[-1]}, curves=(Curve("closed form", times, curve),))


claim(
    "mine/first",
    PERSPECTIVE,
    "equiangular start at β = 0 (derived)",
    "Without temperature, tokens with one common overlap ρ₀ follow (ρ+1/(n−1))/(1−ρ) = e^{2t}·(ρ₀+1/(n−1))/(1−ρ₀).",
    models=("sa",),
    quick={"n": 8, "overlap": 0.1, "until": 2.0},
    full={"n": 64},
    within={"overlap": absolute(1e-8, "solver tolerance 1e-10 with room for accumulation over the run")},
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "overlap ρ"),
)
