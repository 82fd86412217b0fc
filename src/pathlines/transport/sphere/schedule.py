"""Schedules on the sphere: gates and layers of a transformer, held one after another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_number, of_kind, positive_integer, require
from pathlines.transport.schedule import PieceSchedule, check_count, piece_field
from pathlines.transport.sphere.attention import integrated_layer
from pathlines.transport.sphere.gate import Gate, gate_flow_and_jacobian
from pathlines.transport.sphere.layer import Layer
from pathlines.transport.sphere.mean_attention import (
    LONGEST,
    apply_lorentz,
    boosted,
    latitudes,
    lorentz_matrix,
    rank_one,
    rapidity,
)
from pathlines.transport.sphere.measure import Measure, measure, measures

Piece = Gate | Layer
MATRICES = ("V", "B", "W", "U")


class Pushed(NamedTuple):
    """A prompt after a schedule: its measure, and probe points with the log-Jacobian of the flow there."""

    measure: Measure
    probes: np.ndarray
    log_jacobian: np.ndarray


class SphereSchedule(PieceSchedule):
    """Φ_θ on S^{d-1}: every prompt moves under the same pieces, each by its own measure.

    ẋ = P_x(V A_B[μ](x) + W(Ux + b)₊), θ = (V, B, W, U, b) constant on each piece (arXiv:2411.04551). Gates are moved
    along great circles in closed form, mean attention by one matrix of SO⁺(d, 1), rank-one values by one scalar;
    other layers are integrated with a tolerance of 1e-12 (kinks of a perceptron cost up to three digits). Immutable.

    Args:
        d: dimension of the space, ≥ 2.
        pieces: gates and layers, in the order in which they act.
    """

    kind: ClassVar[str] = "transformer-sphere"

    def __init__(self, d: int, pieces: Iterable[Piece] = ()) -> None:
        self.d = positive_integer("d", d, 2)
        self.pieces = tuple(pieces)
        check_count(len(self.pieces))
        for k, piece in enumerate(self.pieces):
            of_kind(f"pieces[{k}]", piece, (Gate, Layer), "a gate or a layer")
            size = len(piece.a if isinstance(piece, Gate) else piece.b)
            require(size == self.d, f"pieces[{k}]", f"have dimension {self.d}", size)

    @property
    def count(self) -> int:
        """P, the number of pieces."""
        return len(self.pieces)

    @property
    def switches(self) -> int:
        """Jumps of the control: pieces less one, after consecutive pieces with equal parameters are merged."""
        jumps = (not _same(p, q) for p, q in pairwise(self.pieces))
        return sum(jumps)

    @property
    def total_time(self) -> float:
        """The sum of all durations."""
        return float(sum(p.duration for p in self.pieces))

    def compose(self, after: Self) -> Self:
        """This schedule first, then ``after``."""
        of_kind("after", after, SphereSchedule, "a schedule on the sphere")
        require(after.d == self.d, "after", f"have dimension {self.d}", after.d)
        return type(self)(self.d, (*self.pieces, *after.pieces))

    def inverse(self) -> Self:
        """Reversed order, V → -V, W → -W (ω → -ω): each piece retraces the measure, so attention is undone exactly."""
        return type(self)(self.d, [_reversed(p) for p in reversed(self.pieces)])

    def canonical(self, horizon: float = 1.0) -> Self:
        """|a| = 1 (or a = 0, τ = 1) and equal durations; V and W carry the speed, which grows like P/horizon."""
        each = finite_number("horizon", horizon, 0.0, open_low=True) / max(self.count, 1)
        return type(self)(self.d, [_canonical(p, each) for p in self.pieces])

    def log_lipschitz(self) -> float:
        """Σ t(|V|(1 + |B|) + |W|(2|U| + |b|)), gates Σ t|ω|(|a| + (|a| + τ)₊): for points that feel a given measure.

        On the tangent space Dv = P Du P - ⟨x, u⟩P for v = P_x u, so that |Dv| ≤ |Du| + |u|.
        """
        return float(sum(p.duration * _slope(p) for p in self.pieces))

    def push(self, measures_: Any, *, inverse: bool = False) -> list[Measure]:
        """Every prompt after all pieces.

        Args:
            measures_: prompts, each an (n, d) array of unit vectors or a pair (points, weights).
            inverse: undo the schedule instead.
        """
        schedule = self.inverse() if inverse else self
        return [schedule.push_one(m).measure for m in measures("measures", measures_)]

    def push_one(self, prompt: Any, probes: Any = None) -> Pushed:
        """One prompt, and probe points that feel it with the log-Jacobian of the flow."""
        now = prompt if isinstance(prompt, Measure) else measure("prompt", prompt)
        self._check(now)
        points = np.empty((0, self.d)) if probes is None else measure("probes", probes).points
        logdet = np.zeros(len(points))
        for piece in self.pieces:
            now, points, change = _moved(piece, now, points)
            logdet += change
        return Pushed(now, points, logdet)

    def _check(self, prompt: Measure) -> None:
        if prompt.points.shape[1] != self.d:
            raise ArgumentError(f"The schedule has d = {self.d}, but the tokens have {prompt.points.shape[1]} entries.")

    def records(self) -> list[dict[str, Any]]:
        """The pieces as the dictionaries of the exchange format; zero matrices are left out."""
        return [_record(p) for p in self.pieces]

    @classmethod
    def from_records(cls, d: int, records: list[dict[str, Any]]) -> Self:
        """The schedule of such dictionaries, after checking each."""
        return cls(d, [_piece(d, k, r) for k, r in enumerate(records)])


def _moved(piece: Piece, prompt: Measure, probes: np.ndarray) -> tuple[Measure, np.ndarray, np.ndarray]:
    """The prompt and the probes after one piece, by the cheapest exact form."""
    x, w = prompt
    if isinstance(piece, Gate):
        both, logdet = gate_flow_and_jacobian(piece, np.vstack([x, probes]))
        return Measure(both[: len(x)], w), both[len(x) :], logdet[len(x) :]
    line = rank_one(piece.V)
    long = line is None and float(np.linalg.norm(piece.V, 2)) * piece.duration > LONGEST
    if piece.B.any() or piece.W.any() or not piece.V.any() or long:
        moved, seen, logdet = integrated_layer(piece, x, w, probes)
        return Measure(moved, w), seen, logdet
    if line is not None:
        strength, axis = line
        tau = rapidity(strength, latitudes(x, axis), w, piece.duration)
        (moved, _), (seen, logdet) = boosted(x, axis, tau), boosted(probes, axis, tau)
    else:
        matrix = lorentz_matrix(piece.V, x, w, piece.duration)
        (moved, _), (seen, logdet) = apply_lorentz(matrix, x), apply_lorentz(matrix, probes)
    return Measure(moved, w), seen, logdet


def _same(p: Piece, q: Piece) -> bool:
    """Equal parameters, whatever the durations."""
    pairs: Any = zip(p[:-1], q[:-1], strict=type(p) is type(q))
    return type(p) is type(q) and all(np.array_equal(u, v) for u, v in pairs)


def _reversed(piece: Piece) -> Piece:
    if isinstance(piece, Gate):
        return piece._replace(omega=-piece.omega)
    return piece._replace(V=-piece.V, W=-piece.W)


def _canonical(piece: Piece, each: float) -> Piece:
    faster = piece.duration / each
    if isinstance(piece, Layer):
        return piece._replace(V=faster * piece.V, W=faster * piece.W, duration=each)
    size = float(np.linalg.norm(piece.a)) or max(piece.tau, 0.0) or 1.0
    return Gate(piece.a / size, piece.tau / size, faster * size * piece.omega, each)


def _slope(piece: Piece) -> float:
    if isinstance(piece, Gate):
        size = float(np.linalg.norm(piece.a))
        return float(np.linalg.norm(piece.omega)) * (size + max(size + piece.tau, 0.0))
    V, B, W, U = (float(np.linalg.norm(m, 2)) for m in (piece.V, piece.B, piece.W, piece.U))
    return V * (1 + B) + W * (2 * U + float(np.linalg.norm(piece.b)))


def _record(piece: Piece) -> dict[str, Any]:
    if isinstance(piece, Gate):
        inside = {"a": piece.a.tolist(), "tau": float(piece.tau), "omega": piece.omega.tolist()}
        return {"t": float(piece.duration), "gate": inside}
    given = {name: m.tolist() for name in (*MATRICES, "b") if (m := getattr(piece, name)).any()}
    return {"t": float(piece.duration), **given}


def _piece(d: int, number: int, record: dict[str, Any]) -> Piece:
    allowed = ("t", "gate") if "gate" in record else ("t", *MATRICES, "b")
    _require_fields(number, record, allowed)
    duration = float(piece_field(number, record, "t", ()))
    if duration < 0:
        raise ArgumentError(f"Field `t` of piece {number} must be ≥ 0, but is {duration:g}.")
    if "gate" in record:
        inside = of_kind(f"gate of piece {number}", record["gate"], dict, "an object with a, tau and omega")
        _require_fields(number, inside, ("a", "tau", "omega"))
        a, omega = (piece_field(number, inside, name, (d,)) for name in ("a", "omega"))
        require(bool(omega.any()), f"omega of piece {number}", "have a direction (ω ≠ 0)", omega)
        return Gate(a, float(piece_field(number, inside, "tau", ())), omega, duration)
    zero = np.zeros((d, d))
    V, B, W, U = (piece_field(number, record, name, (d, d)) if name in record else zero for name in MATRICES)
    bias = piece_field(number, record, "b", (d,)) if "b" in record else np.zeros(d)
    return Layer(V, B, W, U, bias, duration)


def _require_fields(number: int, record: dict[str, Any], allowed: tuple[str, ...]) -> None:
    unknown = [name for name in record if name not in allowed]
    if unknown:
        raise ArgumentError(f"Piece {number} of the schedule has `{unknown[0]}`; allowed are {', '.join(allowed)}.")
