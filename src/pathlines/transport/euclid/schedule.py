"""Schedules of ReLU pieces in R^d: a normalizing flow without an ODE solver and without training.

    x'(s) = w (a·x(s) + b)₊,  0 ≤ s ≤ t,          log ρ_T(y) = log ρ_B(x) - Σ log|det|,  x the inverse image of y.

Only w·t matters for given (a, b), and (w, a, b) ~ (w/r, ra, rb) for r > 0. Constructive approximate transport maps
with normalizing flows, arXiv:2412.19366; Constructive conditional normalizing flows, arXiv:2602.08606.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer, require
from pathlines.transport.euclid.fuse import RidgeMap, evaluate_runs, fused_runs
from pathlines.transport.euclid.piece import relu_piece
from pathlines.transport.schedule import PieceSchedule, check_count, checked_size, piece_field

LARGEST_RATE = 700.0
"""|a·w|t of a piece: e^700 is the largest factor that a double holds."""


class EuclideanSchedule(PieceSchedule):
    """P ReLU pieces (w_k, a_k, b_k, t_k) in R^d; a = 0 with b > 0 is the translation by w b t.

    You will see no solver: maps, inverses and log-determinants are exact. Runs with common directions are evaluated
    as one piecewise linear map (``fuse.py``), in O(n log K); steep ramps lose fewer digits so, too. Building the
    fused form costs O(P log P), once.

    Args:
        w: where points are moved to, (P, d).
        a: which half-space is moved, (P, d).
        b: biases, (P,).
        t: durations ≥ 0, (P,).
    """

    kind = "relu-euclid"

    def __init__(self, w: Any, a: Any, b: Any, t: Any) -> None:
        self.w = finite_array("w", w, ("P", "d")).astype(float)
        self.a = finite_array("a", a, self.w.shape).astype(float)
        self.b = finite_array("b", b, self.w.shape[:1]).astype(float)
        self.t = finite_array("t", t, self.w.shape[:1]).astype(float)
        self.d = self.w.shape[1]
        require(self.d >= 1, "w", "have at least one column", self.w)
        require(bool((self.t >= 0).all()), "t", "be at least 0", self.t)
        check_count(len(self.w))
        rates = np.abs(np.sum(self.a * self.w, axis=1)) * self.t
        if (rates > LARGEST_RATE).any():
            k = int(rates.argmax())
            raise ArgumentError(f"Piece {k} dilates by e^{rates[k]:.4g}; at most e^{LARGEST_RATE:g} can be computed.")
        for array in (self.w, self.a, self.b, self.t):
            array.setflags(write=False)

    @classmethod
    def empty(cls, d: int) -> Self:
        """The identity of R^d, without pieces."""
        d = positive_integer("d", d)
        return cls(np.zeros((0, d)), np.zeros((0, d)), np.zeros(0), np.zeros(0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EuclideanSchedule):
            return NotImplemented
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in "wabt")

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, n).tobytes() for n in "wabt"))

    def __repr__(self) -> str:
        return f"EuclideanSchedule(d={self.d}, pieces={self.count})"

    @property
    def count(self) -> int:
        """P, the number of pieces."""
        return len(self.w)

    @property
    def switches(self) -> int:
        """Pieces less one, after consecutive ones with equal (w, a, b) are merged."""
        if self.count == 0:
            return 0
        rows = np.column_stack([self.w, self.a, self.b])
        return int((rows[1:] != rows[:-1]).any(1).sum())

    @property
    def cost(self) -> float:
        """Σ|w||a|t."""
        return float(np.sum(np.linalg.norm(self.w, axis=1) * np.linalg.norm(self.a, axis=1) * self.t))

    def log_lipschitz(self) -> float:
        """Σ|w||a|t: both the map and its inverse have Lipschitz constants of at most its exponential."""
        return self.cost

    def compose(self, after: Self) -> Self:
        """This schedule first, then ``after``."""
        require(isinstance(after, EuclideanSchedule), "after", "be a EuclideanSchedule", after)
        require(after.d == self.d, "after", f"have dimension {self.d}", after)
        return type(self)(*(np.concatenate([getattr(self, n), getattr(after, n)]) for n in "wabt"))

    def inverse(self) -> Self:
        """The pieces in reversed order with -w."""
        return type(self)(-self.w[::-1], self.a[::-1], self.b[::-1], self.t[::-1])

    def canonical(self, horizon: float = 1.0) -> Self:
        """|a| = 1 (or a = 0, b = 1) and all durations horizon/P: w carries the amplitude, of order P/horizon."""
        horizon = finite_number("horizon", horizon, 0.0, open_low=True)
        length = np.linalg.norm(self.a, axis=1)
        scale = np.where(length > 0, length, np.maximum(self.b, 0.0))
        safe = np.where(scale > 0, scale, 1.0)
        each = horizon / max(self.count, 1)
        b = np.where(length > 0, self.b / safe, np.where(self.b > 0, 1.0, 0.0))
        return type(self)(
            self.w * (safe * self.t / each)[:, None], self.a / safe[:, None], b, np.full(self.count, each)
        )

    def conditional(self, first: int) -> Self:
        """The pieces that move coordinates after the first ones alone: the flow of those given the first, held fixed.

        Pieces of the first coordinates must come before all others, and none may move both.
        """
        early, late = (self.w[:, :first] != 0).any(1), (self.w[:, first:] != 0).any(1)
        if (early & late).any() or (early.any() and late.any() and np.flatnonzero(early)[-1] > np.flatnonzero(late)[0]):
            raise ArgumentError(
                f"The schedule is not triangular: it cannot be conditioned on its first {first} coordinates."
            )
        return type(self)(self.w[late], self.a[late], self.b[late], self.t[late])

    def records(self) -> list[dict[str, Any]]:
        """The pieces as dictionaries."""
        columns = (getattr(self, n).tolist() for n in "wabt")
        return [{"w": w, "a": a, "b": b, "t": t} for w, a, b, t in zip(*columns)]

    @classmethod
    def from_records(cls, d: int, records: list[dict[str, Any]]) -> Self:
        """The schedule of such dictionaries, after checking each."""
        shapes = {"w": (d,), "a": (d,), "b": (), "t": ()}
        for k, record in enumerate(records):
            if len(record) > len(shapes) and (more := [n for n in record if n not in shapes]):
                raise ArgumentError(f"Piece {k} of the schedule has `{more[0]}`; allowed are {', '.join(shapes)}.")
        fields = {n: [piece_field(k, r, n, s) for k, r in enumerate(records)] for n, s in shapes.items()}
        arrays = (np.array(fields[n], float).reshape(len(records), *shapes[n]) for n in "wabt")
        return cls(*arrays)

    @cached_property
    def _runs(self) -> list[RidgeMap]:
        return fused_runs(self.w, self.a, self.b, self.t)

    @cached_property
    def _inverse_runs(self) -> list[RidgeMap]:
        return [run.inverse() for run in reversed(self._runs)]

    @property
    def runs(self) -> int:
        """How many piecewise linear maps the fused form has."""
        return len(self._runs)

    def forward(self, x: Any, *, fused: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Points moved by the schedule and log|det| of the map there; ``fused=False`` applies piece after piece."""
        points = self._points("x", x)
        return evaluate_runs(self._runs, points) if fused else self._one_by_one(points)

    def backward(self, y: Any, *, fused: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Points moved back and log|det| of the inverse map there."""
        points = self._points("y", y)
        return evaluate_runs(self._inverse_runs, points) if fused else self.inverse()._one_by_one(points)

    def _one_by_one(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logs = np.zeros(len(points))
        for w, a, b, t in zip(self.w, self.a, self.b, self.t):
            points, more = relu_piece(points, w, a, float(b), float(t))
            logs = logs + more
        return points, logs

    def log_prob(self, y: Any) -> np.ndarray:
        """Log-density at y of N(0, I) moved by the schedule."""
        x, logs = self.backward(y)
        return logs - 0.5 * np.sum(x**2, axis=1) - 0.5 * self.d * np.log(2 * np.pi)

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """n points of N(0, I) moved by the schedule."""
        draws = np.random.default_rng(positive_integer("seed", seed, 0)).standard_normal(
            (checked_size(n, self.d), self.d)
        )
        return self.forward(draws)[0]

    def _points(self, name: str, points: Any) -> np.ndarray:
        return finite_array(name, points, ("n", self.d)).astype(float)
