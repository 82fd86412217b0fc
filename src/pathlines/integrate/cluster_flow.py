"""cluster_flow: tight clusters as points with masses, followed through times beyond e^1000.

Between mergers the clusters obey the particle equations with masses (Dynamic metastability in the self-attention model,
arXiv:2410.06833; scaled kernel, any dimension)

    x_q' = Σ_p m_p e^{β(<x_p,x_q>-1)} P_{x_q} x_p (USA),   divided by Σ_p m_p e^{β(<x_p,x_q>-1)} (SA).

The solver's variable is not the time: with e^L the largest weight of one cluster on another, dx/ds = x' e^{-L} is of
order one and t = ∫ e^{-L} ds is summed by its logarithm, so that nothing overflows, underflows or turns stiff. Written
in NumPy with SciPy's DOP853 and not in JAX, because the number of clusters changes at every merger: each would be
compiled anew.
Cost: O(k²) per drift, some milliseconds per merger at any β; memory O(steps · k).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, require
from pathlines.integrate.cluster_pulls import closest, energy_of, pulls
from pathlines.integrate.staircase import Merger, Staircase

KINDS = ("usa", "sa")
BALANCED = 1e-13
"""Net pull over the largest one below which a start is stationary up to rounding."""

REFINED = 4
"""Points of the profile a solver step, by the solver's own interpolant."""

LONGEST = 1e6
"""Solver distance without a merger that means standstill; a segment takes about ten."""


def cluster_flow(
    positions: Any,
    beta: float,
    *,
    masses: Any = None,
    kind: str = "usa",
    delta: float | str = 0.01,
    log_start: float = -np.inf,
    rtol: float = 1e-10,
) -> Staircase:
    """Follow clusters until one is left; a pair that meets is merged at its centre of mass.

    Args:
        positions: angles (k,) on the circle, or unit vectors (k, d).
        beta: β > 0. Waiting times grow like e^{β(1 - cos φ)}.
        masses: of the clusters, which sum to one; equal by default.
        kind: "usa" (scaled kernel) or "sa".
        delta: the angle at which two clusters are one; "kernel" takes 1/√(β ln β), the width at which the paper calls
            tokens merged. The larger, the sooner they merge.
        log_start: ln t of the start. The larger, the later all mergers.
        rtol: tolerance of a step. The larger, the cheaper and the less exact.

    The rescaled time r obeys dt/dr = ln β · min e^{β(1-<x_p,x_q>)} over unmerged pairs: the closest gap then
    closes like u' = -c ln(β) sin u and every step of the staircase takes O(1) (NaN for β ≤ 1). Under USA on the circle
    Σ m_q θ_q is conserved (up to 2πm when a pair meets across the end of the unwrapped angles).
    """
    beta = finite_number("beta", beta, 0.0, open_low=True)
    require(kind in KINDS, "kind", "be 'usa' or 'sa'", kind)
    rtol = finite_number("rtol", rtol, 1e-13, 1e-3)
    width = merging_gap(delta, beta)
    x, m = _checked(positions, masses, width)
    journey = _Journey(beta, kind, width, rtol, x, m, log_start)
    while len(journey.masses) > 1 and not journey.outcome:
        journey.merge_or_move()
    return journey.result()


def merging_gap(delta: float | str, beta: float) -> float:
    """The angle at which clusters are merged: a number, or 1/√(β ln β) for "kernel"."""
    if delta != "kernel":
        return finite_number("delta", delta, 0.0, np.pi, open_low=True)
    require(beta > 1.6, "beta", "exceed 1.6 for the merging gap 1/√(β ln β)", beta)
    return float(1 / np.sqrt(beta * np.log(beta)))


def _checked(positions: Any, masses: Any, width: float) -> tuple[np.ndarray, np.ndarray]:
    x = finite_array("positions", positions).astype(float)
    if x.ndim not in (1, 2) or len(x) == 0 or (x.ndim == 2 and x.shape[1] < 2):
        raise ArgumentError(
            f"Argument `positions` must be angles (k,) or unit vectors (k, d), but has shape {x.shape}."
        )
    if x.ndim == 2:
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        require(bool(np.all(np.abs(lengths - 1) < 1e-6)), "positions", "have rows of length 1", x)
        x = x / lengths
    m = np.full(len(x), 1 / len(x)) if masses is None else finite_array("masses", masses).astype(float)
    require(m.shape == (len(x),), "masses", f"have one entry for each of the {len(x)} clusters", masses)
    require(bool(np.all(m > 0)), "masses", "be positive", masses)
    if abs(m.sum() - 1) > 1e-9:
        raise ArgumentError(f"Argument `masses` must sum to 1, but sums to {m.sum():.9g}; divide by the sum.")
    if len(x) > 1:
        i, j, gap = closest(x)
        if gap <= width * (1 + 1e-9):
            raise ArgumentError(
                f"Argument `positions` must be farther apart than delta = {width:.3g}, but clusters {i} and {j} are at "
                f"an angle of {gap:.3g}: give them as one cluster with the sum of their masses, or a smaller delta."
            )
    return x, m / m.sum()


class _Journey:
    """The state between mergers and everything recorded so far."""

    def __init__(
        self, beta: float, kind: str, width: float, rtol: float, x: np.ndarray, masses: np.ndarray, log_start: float
    ) -> None:
        self.beta, self.kind, self.width, self.rtol = beta, kind, width, rtol
        self.x, self.masses, self.begun_with = x, masses, masses
        self.labels = np.arange(len(x))
        self.log_t, self.rescaled = float(log_start), 0.0 if beta > 1 else np.nan
        self.mergers: list[Merger] = []
        self.profile: list[tuple[float, float, float, np.ndarray]] = []
        self.outcome = ""
        self.note(self.x, self.log_t, self.rescaled)

    def note(self, x: np.ndarray, log_t: float, rescaled: float) -> None:
        """Add one point of the profile."""
        self.profile.append((log_t, rescaled, energy_of(x, self.masses, self.beta), x[self.labels]))

    def merge_or_move(self) -> None:
        """Merge a pair that is close enough, else move until one is."""
        i, j, gap = closest(self.x)
        if gap <= self.width * (1 + 1e-9):
            self.merge(i, j)
        else:
            self.move()

    def merge(self, i: int, j: int) -> None:
        """Put clusters i < j at their centre of mass."""
        pair = (float(self.masses[i]), float(self.masses[j]))
        share = pair[1] / sum(pair)
        x, m = self.x.copy(), self.masses.copy()
        step = x[j] - x[i]
        x[i] = x[i] + share * (np.arctan2(np.sin(step), np.cos(step)) if x.ndim == 1 else step)
        m[i] = sum(pair)
        self.x, self.masses = _on_sphere(np.delete(x, j, axis=0)), np.delete(m, j)
        self.labels = np.where(self.labels == j, i, self.labels)
        self.labels = self.labels - (self.labels > j)
        place = tuple(np.atleast_1d(self.x[i]).tolist())
        level = float(np.sum(self.masses**2))
        self.mergers.append(Merger(self.log_t, self.rescaled, pair, place, level, len(self.masses)))
        self.note(self.x, self.log_t, self.rescaled)

    def move(self) -> None:
        """Integrate to the next merger, with ∫ e^{L_0-L} ds and the rescaled time beside the clusters."""
        shape = self.x.shape
        begin = pulls(self.x, self.masses, self.beta, self.kind)
        if np.abs(begin.velocity).max() < BALANCED:
            self.outcome = "stationary to rounding: a balanced configuration; move one cluster slightly"
            return
        first = begin.log_scale
        field = self._field(shape, first)
        near: Callable[..., float] = lambda s, y: closest(y[:-2].reshape(shape))[2] - self.width  # noqa: E731
        near.terminal = True  # type: ignore[attr-defined]
        solved = solve_ivp(
            field, (0.0, LONGEST), self._packed(), "DOP853", events=near, dense_output=True, rtol=self.rtol, atol=1e-14
        )
        begun, start = self.log_t, self.rescaled
        inner = np.interp(np.arange(1, REFINED * (len(solved.t) - 1)) / REFINED, np.arange(len(solved.t)), solved.t)
        for y in (*solved.sol(inner).T, solved.y[:, -1]):
            self.x = _on_sphere(y[:-2].reshape(shape))
            # interpolants may fall short by rounding once the clock has all but stopped
            self.log_t = max(self.log_t, float(np.logaddexp(begun, np.log(y[-2]) - first)))
            self.rescaled = float(np.maximum(self.rescaled, start + y[-1]))
            self.note(self.x, self.log_t, self.rescaled)
        if solved.status != 1:
            self.outcome = f"no merger within solver distance {LONGEST:g}: {solved.message}"

    def _packed(self) -> np.ndarray:
        return np.concatenate([self.x.ravel(), [0.0, 0.0]])

    def _field(self, shape: tuple[int, ...], first: float) -> Callable[..., np.ndarray]:
        """d/ds of clusters, of t e^{L_0} and of the rescaled time."""
        clock = 1 / np.log(self.beta) if self.beta > 1 else 0.0

        def field(s: float, y: np.ndarray) -> np.ndarray:
            found = pulls(y[:-2].reshape(shape), self.masses, self.beta, self.kind)
            clocks = (np.exp(first - found.log_scale), clock * np.exp(found.log_nearest - found.log_scale))
            return np.concatenate([found.velocity.ravel(), clocks])

        return field

    def result(self) -> Staircase:
        """Everything recorded."""
        log_t, rescaled, energy, positions = (np.array(column) for column in zip(*self.profile))
        outcome = self.outcome or "one cluster"
        setting = (self.kind, self.beta, self.width, self.begun_with)
        return Staircase(*setting, tuple(self.mergers), log_t, rescaled, energy, positions, outcome)


def _on_sphere(x: np.ndarray) -> np.ndarray:
    return x if x.ndim == 1 else x / np.linalg.norm(x, axis=1, keepdims=True)
