"""Particles and the points that replace tight clusters tell one story (derived).

The hand-over from particles to clusters of Dynamic metastability in the self-attention model (arXiv:2410.06833).
"""

from __future__ import annotations

from typing import Annotated

import jax
import msgspec
import numpy as np
from scipy import interpolate
from scipy.integrate import solve_ivp

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.metastability.slow_phase import attention_model
from pathlines.claim.tolerance import absolute, exactly
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run
from pathlines.integrate.coarsen import Coarsening, coarsen


class HandOver(Setting):
    """Loose clusters that tighten and merge."""

    centres: Annotated[of.Vector, means("angles of the clusters", unit="radians")] = (0.0, 1.5, 3.0)
    sizes: Annotated[tuple[of.Count, ...], means("tokens of each cluster")] = (3, 2, 3)
    spread: Annotated[of.Positive, means("deviation of the tokens from their centre")] = 0.05
    d: of.Dimension = 3
    beta: of.Beta = 9.0
    seed: of.Seed = 11
    delta: Annotated[of.Positive, means("clusters this tight are replaced by points", "δ")] = 0.0001
    times: of.Times = (20.0, 60.0, 150.0, 400.0, 2000.0)
    kinds: of.Kinds = ("sa", "usa")


def _start(s: HandOver) -> np.ndarray:
    centres = np.stack([np.cos(s.centres), np.sin(s.centres), *([np.zeros(len(s.centres))] * (s.d - 2))], axis=1)
    return np.asarray(Sphere(s.d).clusters(jax.random.key(s.seed), centres, s.sizes, s.spread))


def simulate(s: HandOver) -> Evidence:
    """Particles until clusters are tight, then points with masses."""
    require(bool(np.all(np.diff(s.times) > 0)), "times", "increase", s.times)
    energies, errors, counts, curves = [], [], [], []
    runs: list[Run] = []
    log_times = np.log(s.times)
    for kind in s.kinds:
        found = coarsen(attention_model(kind, s.beta), _start(s), delta=s.delta)
        if found.staircase is None:
            return Evidence(dict.fromkeys(("energy", "clusters"), np.nan), runs=found.runs)
        log_t, heights = found.profile
        energies.append(_energies_at(found, log_times))
        errors.append(_remainder(s, found, log_times))
        counts.append(len(found.staircase.masses))
        shown = log_t <= np.log(1.5 * max(s.times))
        curves.append(Curve(f"{kind.upper()}, handed over", log_t[shown], heights[shown]))
        runs += found.runs
    early = "groups of the start merge before they are tight: move `centres` apart or lower `spread`"
    return Evidence(
        {"energy": np.concatenate(energies), "clusters": counts},
        {"energy": np.concatenate(errors)},
        curves=tuple(curves),
        runs=tuple(runs),
        undecided={"clusters": early} if min(counts) < len(s.sizes) else {},
    )


def _energies_at(found: Coarsening, log_times: np.ndarray, every: int = 1, first: int = 0) -> np.ndarray:
    """E at given ln t, from whichever phase they fall into, between every so many records."""
    assert found.staircase is not None
    slow = found.staircase
    kept = np.unique([0, *range(first, len(slow.log_time), every), len(slow.log_time) - 1])
    thin = msgspec.structs.replace(slow, log_time=slow.log_time[kept], energy=slow.energy[kept])
    early = interpolate.CubicSpline(*(column[::-every][::-1] for column in found.formation))
    return np.where(log_times < found.log_handover, early(np.exp(log_times)), thin.energy_at(log_times))


STEP = 1e-3
"""Of ln t, for the slope of E."""


def _remainder(s: HandOver, found: Coarsening, log_times: np.ndarray) -> np.ndarray:
    """What interpolation may err by, seen with a half and a third of the records; and what points in place of clusters
    of that diameter change: β·diameter² of every force, so of E and of the time, which moves E by its slope in ln t.
    """
    slope = (_energies_at(found, log_times + STEP) - _energies_at(found, log_times - STEP)) / (2 * STEP)
    thinned = [_energies_at(found, log_times, every, first) for every in (2, 3) for first in range(every)]
    coarse = np.abs(thinned - _energies_at(found, log_times)).max(axis=0)
    return coarse + s.beta * found.certificate("cluster_diameter").value ** 2 * (1 + np.abs(slope))


def predict(s: HandOver) -> Evidence:
    """All particles to the end, in NumPy and SciPy, pair by pair."""
    start = _start(s)
    energies, curves = [], []
    for kind in s.kinds:
        heights = _particle_energies(start, s.beta, kind, np.asarray(s.times, float))
        energies.append(heights)
        curves.append(Curve(f"{kind.upper()} particles", np.log(s.times), heights))
    values = {"energy": np.concatenate(energies), "clusters": len(s.sizes)}
    return Evidence(values, curves=tuple(curves), source="particles by SciPy")


def _particle_energies(x: np.ndarray, beta: float, kind: str, times: np.ndarray) -> np.ndarray:
    n, d = x.shape

    def field(t: float, y: np.ndarray) -> np.ndarray:
        z = y.reshape(n, d)
        w = np.exp(beta * (z @ z.T - 1))
        w = w / w.sum(axis=1, keepdims=True) if kind == "sa" else w / n
        out = w @ z
        return (out - np.sum(out * z, axis=1, keepdims=True) * z).ravel()

    solved = solve_ivp(field, (0, times[-1]), x.ravel(), "LSODA", t_eval=times, rtol=1e-10, atol=1e-12)
    tokens = solved.y.T.reshape(-1, n, d)
    tokens = tokens / np.linalg.norm(tokens, axis=2, keepdims=True)
    return np.exp(beta * (np.einsum("tid,tjd->tij", tokens, tokens) - 1)).mean(axis=(1, 2))


claim(
    "metastability/M9",
    METASTABILITY,
    "particles and clusters agree across the hand-over (derived)",
    "Replacing tight clusters by points with their masses changes nothing that can be seen: the energy before, between "
    "and after mergers is that of all particles.",
    where="derived; numerical methods, no statement in the paper",
    models=("sa", "usa"),
    quick=HandOver(),
    within={
        "energy": absolute(1e-9, "solver tolerances; interpolation, and β·diameter² of clusters as points", errors=2.0),
        "clusters": exactly("groups of the start"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("ln t", "energy E"),
)  # fmt: skip
