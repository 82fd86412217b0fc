"""Skeleton of a claim: copy, rename, change. One file is all it takes.

Put it in ``src/pathlines/claim/<family>/`` (found by itself), or keep it anywhere and use ``pathlines --load FILE …``.
"""

from typing import Annotated

import numpy as np

from pathlines.claim import Curve, Evidence, absolute, claim
from pathlines.claim.base import Axes
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, at_least, means
from pathlines.integrate import flow
from pathlines.model import SelfAttention


class Equiangular(Setting):
    """Tokens with one common overlap."""

    n: Annotated[int, at_least(2), means("tokens", "n")] = 8
    overlap: of.Overlap = 0.1
    until: of.Until = 2.0


def simulate(s: Equiangular) -> Evidence:
    """Run the engine on the setting; every number of the statement is a field of it."""
    tokens = Sphere(s.n).simplex(s.n, s.overlap)
    times = np.linspace(0, s.until, 41)
    run = flow(SelfAttention(0.0), tokens, times=times, record="mean_overlap", rtol=1e-10)
    curve = run["mean_overlap"].values
    return Evidence({"overlap": curve[-1]}, curves=(Curve("tokens", times, curve),), runs=(run,))


def predict(s: Equiangular) -> Evidence:
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
    where="derived; no statement in the paper",
    models=("sa",),
    quick=Equiangular(),
    full=Equiangular(n=64),
    within={"overlap": absolute(1e-8, "solver tolerance 1e-10 with room for accumulation over the run")},
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "overlap ρ"),
)
