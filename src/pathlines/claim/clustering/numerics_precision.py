"""Late times: the deficit form u_ij = 1-<x_i,x_j> keeps its digits where coordinates have none left (derived)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.tolerance import relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.model import SelfAttention
from pathlines.observable.pairs import deficits


class LateDeficits(Setting):
    """A run far beyond the digits of coordinates."""

    n: of.Tokens = 6
    d: of.Dimension = 3
    beta: of.Beta = 2.0
    times: of.Times = (20.0, 40.0, 150.0)
    late: Annotated[of.Positive, means("1 − overlap that counts as late")] = 1e-10
    early: Annotated[of.Positive, means("where the coordinates are compared, at first", unit="depth-time")] = 14.0
    early_deficit: Annotated[of.Positive, means("largest 1 − overlap at which the coordinates are compared")] = 2e-8
    records: of.Records = 31
    seed: of.Seed = 0
    rtol: of.Rtol = 1e-13


def _hemisphere_start(s: LateDeficits) -> Array:
    """Uniform tokens reflected to <x, e_1> > 0."""
    x = Sphere(s.d).uniform(jax.random.key(s.seed), s.n)
    return x.at[:, 0].set(jnp.abs(x[:, 0]))


def _deficit_run(s: LateDeficits, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, Run]:
    grid = np.union1d(np.linspace(0.0, times[-1], s.records), times)
    options: dict[str, Any] = {"record": deficits, "method": "dop853", "rtol": s.rtol, "form": "gram-deficit"}
    run = flow(SelfAttention(s.beta), _hemisphere_start(s), times=grid, **options)
    return grid, run["deficits"].values[:, 0, 1], run


def simulate(s: LateDeficits) -> Evidence:
    """u_12 e^{2t} of the deficit form with relative step control, at ``times`` (doubled until the first is late)."""
    times = np.asarray(s.times, float)
    grid, u, run = _deficit_run(s, times)
    while len(u) == len(grid) and u[np.searchsorted(grid, times[0])] > s.late:
        times = 2 * times
        grid, u, run = _deficit_run(s, times)
    scaled = u * np.exp(2 * grid[: len(u)])
    at = scaled[np.searchsorted(grid, times)] if len(u) == len(grid) else np.full(len(times), np.nan)
    values = {"constancy": at / at[0], "prefactor": at[0]}
    return Evidence(values, curves=(Curve("deficit form", grid[: len(u)], scaled),), runs=(run,))


def predict(s: LateDeficits) -> Evidence:
    """A constant; its value from coordinates solved by SciPy, up to the time where they still have digits."""
    until, u = s.early, np.inf
    while u > s.early_deficit and until < 1e4:
        grid = np.linspace(0.0, until, 41)
        x = direct.trajectory(lambda y: direct.velocity(y, s.beta), np.asarray(_hemisphere_start(s)), grid, s.rtol)
        pair = 0.5 * np.sum((x[:, 0] - x[:, 1]) ** 2, axis=1)
        until, u = until + 2.0, float(pair[-1])
    scaled = pair * np.exp(2 * grid)
    values = {"constancy": np.ones(len(s.times)), "prefactor": float(scaled[-1])}
    return Evidence(values, curves=(Curve("coordinates, SciPy", grid, scaled),))


claim(
    "clustering/CL-47",
    PERSPECTIVE,
    "long-time precision of the deficit form (derived)",
    "Integrated with relative tolerance, u̇ᵢⱼ = −Tᵢⱼ−Tⱼᵢ, Tᵢⱼ = σᵢ+uᵢⱼ−Σₖaᵢₖuₖⱼ−σᵢuᵢⱼ keeps u₁₂e^{2t} constant to 1e-9 "
    "at late times, down to u ≈ 1e-130.",
    where="derived; numerical methods, no statement in the paper",
    models=("gram", "sa"),
    quick=LateDeficits(),
    full=LateDeficits(records=151),
    within={
        "constancy": relative(1e-10, "a thousand times the solver tolerance 1e-13; corrections of order u ≤ 1e-10"),
        "prefactor": relative(1e-6, "at u₁₂ = 2e-8: corrections of order max u, coordinates good to 1e-13/√u"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "u₁₂e^{2t}"),
)
