"""coarsen: particles until clusters have formed, then the clusters until one is left, as one result.

The hand-over between models inside ``flow`` does not serve here: it continues in the same clock to a last time, and
clusters live for times like e^{2β} that no float holds. So this driver runs ``flow`` in stretches of doubling length,
asks after each whether clusters are tight, and goes on with ``cluster_flow`` in ln t.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pathlines.attention import UnnormalisedAttention
from pathlines.foundation.errors import ArgumentError, finite_number, require
from pathlines.integrate.checked import checked_start
from pathlines.integrate.cluster_flow import cluster_flow, merging_gap
from pathlines.integrate.cluster_pulls import energy_of, pulls
from pathlines.integrate.flow import flow
from pathlines.integrate.run import Certificate, Run
from pathlines.integrate.staircase import Staircase
from pathlines.model import SelfAttention

TIGHT, POINTS = 1e-3, 1e-6
"""Diameters √β·δ of clusters: ripe if motion between them is slow, ripe at any rate."""

SLOW = 1e-10
"""Speed below which motion between clusters drowns in the rounding of sums over tokens."""

RECORDS = 33
"""Recorded times a stretch."""

MOST_CLUSTERS = 400
"""More points than this are not yet clusters."""

TOKENS, ENERGY = "tokens", "energy_fraction"


class Coarsening(msgspec.Struct, frozen=True):
    """Formation (``runs``, one after another from t = 0), the hand-over at ``log_handover`` = ln t, and the staircase.

    ``labels`` gives the cluster of each token at the hand-over. ``staircase`` is ``None`` when the clusters were not
    tight in time, and ``outcome`` says so. ``certificates`` hold how tight and how slow the clusters were, and by how
    much the energy jumps where points replace them.
    """

    runs: tuple[Run, ...]
    log_handover: float
    labels: np.ndarray | None
    staircase: Staircase | None
    certificates: tuple[Certificate, ...]
    outcome: str

    @property
    def formation(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and energies E while the particles were followed."""
        begun = np.cumsum([0.0, *(run.time[-1] for run in self.runs[:-1])])
        times = np.concatenate([run.time[1:] + t for run, t in zip(self.runs, begun, strict=True)])
        return times, np.concatenate([run[ENERGY].values[1:] for run in self.runs])

    @property
    def profile(self) -> tuple[np.ndarray, np.ndarray]:
        """ln t and E over both phases."""
        times, energies = self.formation
        if self.staircase is None:
            return np.log(times), energies
        slow = self.staircase
        return np.concatenate([np.log(times), slow.log_time]), np.concatenate([energies, slow.energy])

    def certificate(self, name: str) -> Certificate:
        """The certificate of that name."""
        return next(c for c in self.certificates if c.name == name)


class Grouping(msgspec.Struct, frozen=True):
    """Tokens as clusters: label of each, masses, centres (unit vectors) and the largest diameter."""

    labels: np.ndarray
    masses: np.ndarray
    centres: np.ndarray
    diameter: float


def coarsen(
    model: SelfAttention, tokens: Any, *, until: float = 1e5, delta: float | str = 0.01, rtol: float = 1e-9
) -> Coarsening:
    """Run particles until they are clusters, replace the clusters by points, and follow those until one is left.

    Ripe: every diameter below 10⁻³/√β while clusters move slower than 10⁻¹⁰, or below 10⁻⁶/√β at any speed (points
    then change a force by a relative β·diameter² ≤ 10⁻¹²; waiting longer would cost a step per unit of time and bring
    nothing), and clusters farther apart than 1/(2√β). The cost is that of ``flow`` and some milliseconds per merger.

    Args:
        model: SA, or USA with the scaled kernel; Q = K = V = I, any dimension.
        tokens: where they start, (n, d).
        until: bounds the time of the particles, 10⁵ by default; clusters have no such bound. The longer, the more is
            left to particles.
        delta: the angle at which two clusters are one, or "kernel" for 1/√(β ln β). The larger, the sooner they merge.
        rtol: tolerance of a step of the particles. The larger, the cheaper and the less exact.
    """
    kind = _kind(model)
    beta = finite_number("beta", float(model.beta), 0.0, open_low=True)
    until = finite_number("until", until, 0.0, open_low=True)
    width = merging_gap(delta, beta)
    x = np.asarray(checked_start(model, tokens), float)
    masses = np.asarray(model.normalised_masses(len(x), x.dtype))
    stretch, now, runs = 8.0 * (1.0 if kind == "sa" else np.sqrt(1 + 2 * np.pi * beta)), 0.0, []
    while now < until:
        stretch = min(stretch, until - now)
        runs.append(flow(model, x, times=np.linspace(0, stretch, RECORDS), record=(TOKENS, ENERGY), rtol=rtol))
        now, stretch = now + stretch, 2 * stretch
        x = runs[-1][TOKENS].values[-1]
        found = grouped(x, masses, TIGHT / np.sqrt(beta), max(0.5 / np.sqrt(beta), 1.01 * width))
        if found is None:
            continue
        speed = _speed(found, beta, kind)
        if speed < SLOW or found.diameter < POINTS / np.sqrt(beta):
            return _continued(tuple(runs), now, found, speed, beta, kind, delta)
    checks = tuple(c for run in runs for c in run.certificates)
    return Coarsening(tuple(runs), np.log(now), None, None, checks, f"no tight clusters by t = {now:g}")


def grouped(x: np.ndarray, masses: np.ndarray, diameter: float, apart: float) -> Grouping | None:
    """Tokens within ``diameter`` of the first of their cluster; ``None`` unless clusters are ``apart`` and few."""
    labels = np.full(len(x), -1)
    first: list[int] = []
    while np.any(labels < 0):
        if len(first) > MOST_CLUSTERS:
            return None
        first.append(int(np.argmin(labels >= 0)))
        near = np.linalg.norm(x - x[first[-1]], axis=1) <= diameter
        labels[near & (labels < 0)] = len(first) - 1
    heads = x[first]
    if len(first) > 1:
        chords = np.linalg.norm(heads[:, None] - heads[None, :], axis=-1)
        if np.min(chords[~np.eye(len(first), dtype=bool)]) < apart:
            return None
    weights = np.zeros(len(first))
    np.add.at(weights, labels, masses)
    centres = np.zeros_like(heads)
    # from differences to the first token of each cluster: the mean of nearly equal numbers would lose digits
    np.add.at(centres, labels, masses[:, None] * (x - heads[labels]))
    centres = heads + centres / weights[:, None]
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    widest = 2 * float(np.max(np.linalg.norm(x - centres[labels], axis=1)))
    return Grouping(labels, weights, centres, widest)


def _speed(found: Grouping, beta: float, kind: str) -> float:
    """The largest weight of one cluster on another, which bounds speeds."""
    if len(found.masses) == 1:
        return 0.0
    return float(np.exp(pulls(found.centres, found.masses, beta, kind).log_scale))


def _continued(
    runs: tuple[Run, ...], now: float, found: Grouping, speed: float, beta: float, kind: str, delta: float | str
) -> Coarsening:
    places = found.centres
    if places.shape[1] == 2:
        places = np.arctan2(places[:, 1], places[:, 0])
    before, after = float(runs[-1][ENERGY].values[-1]), energy_of(places, found.masses, beta)
    allowed = beta * found.diameter**2 + 1e-12
    jump = abs(after - before)
    slow = cluster_flow(places, beta, masses=found.masses, kind=kind, delta=delta, log_start=np.log(now))
    limit = TIGHT / np.sqrt(beta)
    checks = (
        *(c for run in runs for c in run.certificates),
        Certificate("cluster_diameter", found.diameter, 2 * limit, found.diameter <= 2 * limit, "at the hand-over"),
        Certificate("cluster_speed", speed, None, None, "largest pull between clusters at the hand-over"),
        Certificate("energy_continuity", jump, allowed, jump <= allowed, "|ΔE| where points replace clusters"),
    )
    return Coarsening(runs, float(np.log(now)), found.labels, slow, checks, slow.outcome)


def _kind(model: Any) -> str:
    """ "sa" or "usa" for the models that clusters can continue."""
    if not isinstance(model, SelfAttention) or model.plain_obstacle() is not None:
        raise ArgumentError(
            "Argument `model` must be SA or USA on the sphere with Q = K = V = I, but is another model."
        )
    if not isinstance(model.attention, UnnormalisedAttention):
        return "sa"
    shift = float(model.attention.shift)
    require(
        shift == float(model.beta),
        "model",
        "use the scaled kernel for USA, attention=UnnormalisedAttention(shift=beta), whose clock clusters keep",
        f"shift = {shift:g}",
    )
    return "usa"
