"""A4 and A5: a map of the unit square and the measure it pushes, approximated together by explicit pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment

from pathlines.foundation.errors import ArgumentError, a_function, positive_integer, require
from pathlines.transport.estimator import FlowEstimator, checked_goal
from pathlines.transport.euclid.cells import permutation_schedule
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.maurey import kronecker
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.stack import conditional_schedule, dyadic
from pathlines.transport.schedule import checked_size

LARGEST_GRID = 45
"""m: the assignment of m² cells to m² places is dense."""
PUSHED = 1_000_000
"""Points that φ pushes, from which D is computed: a Kronecker sequence, because a grid has ties in its quantiles."""
TESTED = 40_000


class DiffeoReport(msgspec.Struct, frozen=True):
    """Pieces of both factors, the L² error of the map, TV and KL of the pushed measure (None without its density), each
    from 40 000 points, the largest |log-determinant| of the incompressible factor, and seconds.
    """

    pieces: int
    compressible: int
    incompressible: int
    map_error: float
    map_error_error: float
    largest_log_det: float
    seconds: float
    kl: float | None = None
    kl_error: float | None = None
    tv: float | None = None
    tv_error: float | None = None


class DiffeoFlow(FlowEstimator):
    """φ = D ∘ s on the unit square: s permutes m² cells (shears, volume preserved), D is triangular with D_#Leb =
    φ_#Leb.

    L²(φ - flow) ~ c/m, and the error of the pushed measure is that of D alone [derived; the programme of Constructive
    conditional normalizing flows, arXiv:2602.08606]. You will see cells carried whole. Good values: grid = 16 (some
    3800 pieces). Cost: an assignment O(m⁶), then O(m²). ``transform`` is the map, ``sample`` pushes uniform points.

    Args:
        phi: the map, a function of points (n, 2) of the unit square.
        grid: m, cells along a side, at most 45; D has 2m bins and knots. The more, the smaller the error, and the more
            pieces.
        volume: whether φ preserves area, so that D is not needed.
        pieces: largest number of pieces, instead of ``grid``. The more, the finer the grid.
        error: largest L² error of the map, instead of ``grid``. The smaller, the more pieces.
    """

    def __init__(
        self,
        phi: Callable[[np.ndarray], Any],
        grid: int = 16,
        volume: bool = False,
        pieces: int | None = None,
        error: float | None = None,
    ) -> None:
        self.phi = phi
        self.grid = grid
        self.volume = volume
        self.pieces = pieces
        self.error = error

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Build both factors; there is nothing to learn from, so X is ignored."""
        began = time.perf_counter()
        pieces, error = checked_goal(self.pieces, self.error, 16)
        m = positive_integer("grid", self.grid, 2)
        require(isinstance(self.volume, bool), "volume", "be True or False", self.volume)
        if pieces is not None:
            sizes = {k: 16 * k * k + (0 if self.volume else _triangular(k)) for k in range(2, LARGEST_GRID + 1)}
            if sizes[2] > pieces:
                raise ArgumentError(f"Argument `pieces` must be at least {sizes[2]}, but is {pieces}.")
            m = max(k for k, size in sizes.items() if size <= pieces)
        if error is not None:
            m = 8
        while True:
            if m > LARGEST_GRID:
                raise ArgumentError(f"A grid of {m} cells a side would be needed; at most {LARGEST_GRID} are allowed.")
            stretched, permuted = self._factors(m)
            self.parts_ = (permuted, stretched)
            self.schedule_, self.n_features_in_ = permuted.compose(stretched), 2
            self.report_ = self._report(began)
            if error is None or self.report_.map_error <= error:
                return self
            m = max(m + 1, int(np.ceil(1.02 * m * self.report_.map_error / error)))

    def transform(self, X: Any) -> np.ndarray:
        """The approximation of φ."""
        return self._fitted().forward(self._data(X))[0]

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Its exact inverse."""
        return self._fitted().backward(self._data(Z))[0]

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """Uniform points of the square, pushed."""
        rng = np.random.default_rng(positive_integer("seed", seed, 0))
        return self._fitted().forward(rng.random((checked_size(n, 2), 2)))[0]

    def log_prob(self, X: Any) -> np.ndarray:
        """Log-density of the pushed uniform law; s preserves it, so that of D alone."""
        x, logs = self.parts_[1].backward(self._data(X))
        return np.where(((x >= 0) & (x <= 1)).all(1), logs, -np.inf)

    def _factors(self, m: int) -> tuple[EuclideanSchedule, EuclideanSchedule]:
        points = kronecker(PUSHED, 2)
        pushed = self._phi(points)
        stretched = EuclideanSchedule.empty(2) if self.volume else pushed_schedule(pushed, 2 * m)
        back = stretched.backward(pushed)[0] if stretched.count else pushed
        cell = np.minimum((points * m).astype(int), m - 1) @ np.array([1, m])
        counts = np.bincount(cell, minlength=m * m)
        means = np.stack([np.bincount(cell, back[:, k], m * m) / counts for k in (0, 1)], 1)
        number = np.arange(m * m)
        centres = (np.stack([number % m, number // m], 1) + 0.5) / m
        costs = ((means[:, None] - centres) ** 2).sum(2)
        return stretched, permutation_schedule(linear_sum_assignment(costs)[1])

    def _phi(self, points: np.ndarray) -> np.ndarray:
        values = np.asarray(a_function("phi", self.phi)(points), float)
        if values.shape != points.shape or not np.isfinite(values).all():
            raise ArgumentError(f"Argument `phi` must send points {points.shape} to finite points of that shape.")
        return values

    def _report(self, began: float) -> DiffeoReport:
        x = np.random.default_rng(1).random((TESTED, 2))
        y = self._phi(x)
        squares = np.sum((self.schedule_.forward(x)[0] - y) ** 2, axis=1)
        size = float(np.sqrt(squares.mean()))
        permuted, stretched = self.parts_
        logs = float(np.abs(permuted.forward(x)[1]).max()) if permuted.count else 0.0
        laws = {} if self.volume else self._laws(x, y)
        spread = float(squares.std() / np.sqrt(TESTED) / (2 * size)) if size > 0 else 0.0
        return DiffeoReport(
            self.schedule_.count,
            stretched.count,
            permuted.count,
            size,
            spread,
            logs,
            time.perf_counter() - began,
            **laws,
        )

    def _laws(self, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
        """KL = E[-log|det Dφ| - log q(φ(x))] and TV = E|1 - q/p|/2 of the pushed laws; central differences for Dφ."""
        step = 1e-5
        inside = step + (1 - 2 * step) * x
        jacobian = [(self._phi(inside + step * e) - self._phi(inside - step * e)) / (2 * step) for e in np.eye(2)]
        area = np.abs(jacobian[0][:, 0] * jacobian[1][:, 1] - jacobian[0][:, 1] * jacobian[1][:, 0])
        gap = -np.log(area) - self.parts_[1].backward(y)[1]
        half = np.abs(-np.expm1(-gap)) / 2
        gap = gap + np.expm1(-gap)  # whose mean is KL too, since q/p has mean one, and whose terms are all ≥ 0
        root = np.sqrt(len(x))
        names = ("kl", "kl_error", "tv", "tv_error")
        return dict(zip(names, (float(v) for v in (gap.mean(), gap.std() / root, half.mean(), half.std() / root))))


def _triangular(m: int) -> int:
    """Pieces of D for a grid of m cells."""
    n = 2 * m
    return n + 3 + 4 * (n - 1) + n * (n + 1) + 2


def pushed_schedule(pushed: np.ndarray, bins: int) -> EuclideanSchedule:
    """D: uniform knots k/bins to the quantiles of the points, the second coordinate in bins of the first."""
    levels = np.linspace(0, 1, bins + 1)
    first = increasing_schedule(levels, _quantiles(pushed[:, 0], levels), 1.0, 1.0, np.eye(2)[0])
    edges = dyadic(np.quantile(pushed[:, 0], levels[1:-1]))
    if len(edges) < bins - 1:
        raise ArgumentError("Argument `phi` must spread the square over the plane, but sends it to a line or a point.")
    places = np.searchsorted(edges, pushed[:, 0])
    order = np.argsort(places, kind="stable")
    groups = np.split(pushed[order, 1], np.searchsorted(places[order], np.arange(1, len(edges) + 1)))
    second = conditional_schedule(2, [edges], lambda cell: (levels, _quantiles(groups[cell[0]], levels)))
    return first.compose(second)


def _quantiles(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles, strictly increasing; the ends of the law are extrapolated, since no sample reaches them."""
    found = np.quantile(values, levels)
    near = np.quantile(values, [0.005, 0.01, 0.99, 0.995])
    found[0], found[-1] = min(found[0], 2 * near[0] - near[1]), max(found[-1], 2 * near[3] - near[2])
    return np.maximum.accumulate(found) + 1e-12 * np.arange(len(found))
