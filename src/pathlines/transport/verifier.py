"""An independent look at a schedule: integrate its pieces and say how far the measures are from their targets.

It reads the exchange format, whoever wrote it, and shares no code with the constructions (import contract): on the
sphere the velocity P_x(V A_B[μ](x) + W(Ux + b)₊) of arXiv:2411.04551 is written out and integrated in coordinates by
an adaptive method of order 8; in R^d the piece ẋ = w(a·x + b)₊ of arXiv:2412.19366 is solved by its exponential and
some points are integrated beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import (
    ArgumentError,
    StoreError,
    finite_array,
    finite_number,
    positive_integer,
    require,
)
from pathlines.foundation.progress import Progress
from pathlines.observable.distances import cloud_distance

MOST = 1_000_000
"""Pieces that are looked at; 10⁷ would take hours."""
SPOT = 16
"""Points of a cloud in R^d that are integrated beside the closed form."""
FIELDS = {"V": 2, "B": 2, "W": 2, "U": 2, "b": 1}


class Verified(msgspec.Struct, frozen=True):
    """What was seen. Lists run over the prompts; ``w2`` is exact, with chords, and on the sphere known up to
    ``w2_error``, by how much ends move (√Σ w|δx|²) when the integrator's tolerance is ten times larger: layers that
    spread points amplify its error. ``off_sphere`` is the largest | |x| - 1 | before it was put right; ``spot_error``
    the largest difference of closed form and integration in R^d.
    """

    kind: str
    d: int
    pieces: int
    switches: int
    total_time: float
    longest: float
    w2: list[float] | None
    w2_error: list[float] | None
    round_trip: float
    off_sphere: float | None
    spot_error: float | None
    ends: list[np.ndarray]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, without the points."""
        return {f: getattr(self, f) for f in self.__struct_fields__ if f != "ends"}


def verify_schedule(schedule: Any, inputs: Any, targets: Any = None, *, rtol: float = 1e-11) -> Verified:
    """Integrate a schedule on measures and compare where they end with their targets.

    Args:
        schedule: a schedule, a file of the exchange format, or the dictionary in it; trained elsewhere or built here.
        inputs: measures, each an (n, d) array or a pair (points, weights); unit vectors on the sphere.
        targets: as many measures, to which exact W₂ is reported; None: only where the inputs end.
        rtol: tolerance of the integrator. The smaller, the slower, and the further down W₂ is trusted.
    """
    kind, d, pieces = _document(schedule)
    tolerance = finite_number("rtol", rtol, 1e-13, 1e-3)
    starts = _clouds("inputs", inputs, d, kind)
    goals = None if targets is None else _clouds("targets", targets, d, kind)
    if goals is not None:
        require(len(goals) == len(starts), "targets", f"be as many as inputs ({len(starts)})", len(goals))
    mover: Any = _Sphere(d, tolerance) if kind == "transformer-sphere" else _Euclid(d, tolerance)
    rough = _Sphere(d, 10 * tolerance) if kind == "transformer-sphere" else None
    ends, back, errors = [], 0.0, []
    with Progress("pieces", (2 if rough is None else 3) * len(starts) * len(pieces)) as bar:
        for points, weights in starts:
            end = mover.through(pieces, points, weights, bar)
            again = mover.through([mover.backwards(p) for p in reversed(pieces)], end, weights, bar)
            back = max(back, float(np.abs(again - points).max(initial=0.0)))
            ends.append(end)
            if rough is not None:
                gap = rough.through(pieces, points, weights, bar) - end
                errors.append(float(np.sqrt(weights @ np.sum(gap**2, axis=1))))
    w2 = None
    if goals is not None:
        w2 = [_distance(x, w, y, v) for x, (_, w), (y, v) in zip(ends, starts, goals, strict=True)]
    durations = [float(p["t"]) for p in pieces]
    return Verified(
        kind=kind,
        d=d,
        pieces=len(pieces),
        switches=sum(_parameters(p) != _parameters(q) for p, q in pairwise(pieces)),
        total_time=float(sum(durations)),
        longest=max(durations, default=0.0),
        w2=w2,
        w2_error=None if rough is None else errors,
        round_trip=back,
        off_sphere=mover.off if kind == "transformer-sphere" else None,
        spot_error=mover.off if kind == "relu-euclid" else None,
        ends=ends,
    )


def _distance(x: np.ndarray, w: np.ndarray, y: np.ndarray, v: np.ndarray) -> float:
    """Exact W₂ by straight lines."""
    even = len(x) == len(y) and np.ptp(w) == 0 and np.ptp(v) == 0
    masses: dict[str, Any] = {} if even else {"masses": w, "other_masses": v}
    found = cloud_distance(x, y, 2, **masses)
    if not found.exact:
        raise ArgumentError(f"Exact W₂ is computed for up to 2000 points, but there are {max(len(x), len(y))}.")
    return float(found.value)


class _Sphere:
    """Tokens of one prompt, integrated together piece by piece and scaled to length one at the ends."""

    def __init__(self, d: int, rtol: float) -> None:
        self.d, self.rtol, self.off = d, rtol, 0.0

    def through(
        self, pieces: list[dict[str, Any]], points: np.ndarray, weights: np.ndarray, bar: Progress
    ) -> np.ndarray:
        x = points
        for k, piece in enumerate(pieces):
            x = self._piece(piece, x, weights)
            bar.update(k)
        return x

    def _piece(self, piece: dict[str, Any], x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        field, alone = self._field(piece, weights)
        moving = np.ones(len(x), bool)
        if alone:  # without attention a token that has no velocity never gets one
            moving = (field(x) != 0).any(axis=1)
        if piece["t"] == 0 or not moving.any():
            return x
        new = _integrated(field, x[moving], float(piece["t"]), self.rtol)
        lengths = np.linalg.norm(new, axis=1, keepdims=True)
        self.off = max(self.off, float(np.abs(lengths - 1).max()))
        moved = x.copy()
        moved[moving] = new / lengths
        return moved

    def _field(self, piece: dict[str, Any], weights: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
        if "gate" in piece:
            a, tau, omega = (np.asarray(piece["gate"][name], float) for name in ("a", "tau", "omega"))
            return lambda x: _tangent(x, np.maximum(x @ a + tau, 0.0)[:, None] * omega), True
        zero = {1: np.zeros(self.d), 2: np.zeros((self.d, self.d))}
        V, B, W, U, b = (np.asarray(piece.get(name, zero[rank]), float) for name, rank in FIELDS.items())

        def field(x: np.ndarray) -> np.ndarray:
            total = np.maximum(np.einsum("ij,nj->ni", U, x) + b, 0.0) @ W.T
            if V.any():
                logits = (x @ B.T) @ x.T  # ⟨Bx, y⟩, row: who listens
                kernel = weights * np.exp(logits - logits.max(axis=1)[:, None])
                total = total + (kernel @ x / kernel.sum(axis=1)[:, None]) @ V.T
            return _tangent(x, total)

        return field, not V.any()

    def backwards(self, piece: dict[str, Any]) -> dict[str, Any]:
        if "gate" in piece:
            gate = piece["gate"]
            return {**piece, "gate": {**gate, "omega": [-v for v in gate["omega"]]}}
        return {**piece, **{m: (-np.asarray(piece[m], float)).tolist() for m in ("V", "W") if m in piece}}


def _tangent(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    # divided by |x|², so that an error of the length does not turn into one of the direction
    return v - (np.sum(x * v, axis=1) / np.sum(x * x, axis=1))[:, None] * x


class _Euclid:
    """ẋ = w(a·x + b)₊: s = a·x + b grows like e^{(a·w)t} where it is positive; some points are integrated as well."""

    def __init__(self, d: int, rtol: float) -> None:
        self.d, self.rtol, self.off = d, rtol, 0.0

    def through(
        self, pieces: list[dict[str, Any]], points: np.ndarray, weights: np.ndarray, bar: Progress
    ) -> np.ndarray:
        x = points.copy()
        looked = max(1, len(pieces) // 64)
        for k, piece in enumerate(pieces):
            w, a, b, t = (np.asarray(piece[name], float) for name in ("w", "a", "b", "t"))
            level, rate = np.maximum(x @ a + b, 0.0), float(a @ w)
            growth = float(t) if rate == 0 else float(np.expm1(rate * t) / rate)
            new = x + growth * level[:, None] * w
            if k % looked == 0 and len(x):
                few = slice(None, None, max(1, len(x) // SPOT))
                seen = _integrated(partial(_neuron, w, a, b), x[few], float(t), self.rtol)
                self.off = max(self.off, float(np.abs((seen - new[few]) / np.maximum(np.abs(seen), 1.0)).max()))
            x = new
            bar.update(k)
        return x

    def backwards(self, piece: dict[str, Any]) -> dict[str, Any]:
        return {**piece, "w": [-v for v in piece["w"]]}


def _neuron(w: np.ndarray, a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.maximum(x @ a + b, 0.0)[:, None] * w


def _integrated(field: Callable[[np.ndarray], np.ndarray], x: np.ndarray, time: float, rtol: float) -> np.ndarray:
    shape = x.shape
    found = solve_ivp(lambda _, y: field(y.reshape(shape)).ravel(), (0.0, time), x.ravel(), "DOP853", rtol=rtol,
                      atol=rtol / 100)  # fmt: skip
    if not found.success:
        raise ArgumentError(f"A piece of duration {time:g} cannot be integrated: {found.message}")
    return found.y[:, -1].reshape(shape)


def _document(schedule: Any) -> tuple[str, int, list[dict[str, Any]]]:
    """Kind, dimension and checked pieces of a schedule, a file or a dictionary."""
    if isinstance(schedule, str | Path):
        schedule = _read(Path(schedule))
    if hasattr(schedule, "records"):
        schedule = {"kind": schedule.kind, "d": schedule.d, "pieces": schedule.records()}
    require(isinstance(schedule, Mapping), "schedule", "be a schedule, a file of one, or its dictionary", schedule)
    missing = [name for name in ("kind", "d", "pieces") if name not in schedule]
    if missing:
        raise ArgumentError(f"The schedule has no `{missing[0]}`; it must have kind, d and pieces.")
    kind, d, pieces = schedule["kind"], schedule["d"], schedule["pieces"]
    if kind not in ("relu-euclid", "transformer-sphere"):
        raise ArgumentError(f"The kind of a schedule must be relu-euclid or transformer-sphere, but is {kind!r}.")
    require(isinstance(d, int) and not isinstance(d, bool) and d >= 1, "d", "be an integer ≥ 1", d)
    require(isinstance(pieces, Sequence) and not isinstance(pieces, str), "pieces", "be a list of pieces", pieces)
    if len(pieces) > MOST:
        raise ArgumentError(f"The schedule has {len(pieces)} pieces; at most {MOST} are looked at.")
    for number, piece in enumerate(pieces):
        _check_piece(kind, d, number, piece)
    return kind, d, list(pieces)


def _read(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise StoreError(f"The schedule {path} cannot be read ({error.strerror}).") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The schedule {path} is no JSON with finite numbers: {error}.") from None


def _check_piece(kind: str, d: int, number: int, piece: Any) -> None:
    """Every field there, of its shape, finite; no others."""
    if not isinstance(piece, Mapping):
        raise ArgumentError(f"Piece {number} must be an object with fields, but is {str(piece)[:60]}.")
    if kind == "relu-euclid":
        shapes: dict[str, tuple[Any, ...]] = {"w": (d,), "a": (d,), "b": (), "t": ()}
        needed: tuple[str, ...] = tuple(shapes)
    elif "gate" in piece:
        _check_fields(f"the gate of piece {number}", piece["gate"], {"a": (d,), "tau": (), "omega": (d,)}, None)
        piece = {k: v for k, v in piece.items() if k != "gate"}
        shapes, needed = {"t": ()}, ("t",)
    else:
        shapes, needed = {"t": (), **{name: (d,) * rank for name, rank in FIELDS.items()}}, ("t",)
    _check_fields(f"piece {number}", piece, shapes, needed)
    if piece["t"] < 0:
        raise ArgumentError(f"Field `t` of piece {number} must be ≥ 0, but is {piece['t']:g}.")


def _check_fields(where: str, record: Any, shapes: dict[str, tuple[Any, ...]], needed: tuple[str, ...] | None) -> None:
    if not isinstance(record, Mapping):
        raise ArgumentError(f"{where.capitalize()} must be an object with {', '.join(shapes)}.")
    missing = [name for name in (shapes if needed is None else needed) if name not in record]
    unknown = [name for name in record if name not in shapes]
    if missing or unknown:
        what = f"has no `{missing[0]}`" if missing else f"has an unknown field `{unknown[0]}`"
        raise ArgumentError(f"{where.capitalize()} {what}; its fields are {', '.join(shapes)}.")
    for name, value in record.items():
        try:
            array = np.asarray(value)
            good = array.dtype.kind in "iuf" and array.shape == shapes[name] and bool(np.isfinite(array).all())
        except ValueError:
            good = False
        if not good:
            shape = " × ".join(map(str, shapes[name])) + " finite numbers" if shapes[name] else "a finite number"
            raise ArgumentError(f"Field `{name}` of {where} must be {shape}, but is {str(value)[:60]}.")


def _parameters(piece: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in piece.items() if k != "t"}


def _clouds(name: str, value: Any, d: int, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(points, weights) of each measure."""
    one = isinstance(value, np.ndarray) and value.ndim == 2
    given = [value] if one else value
    ok = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) > 0
    require(ok, name, f"be a list of (n, {d}) arrays", value)
    return [_cloud(f"{name}[{k}]", v, d, kind) for k, v in enumerate(given)]


def _cloud(name: str, value: Any, d: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    given, weights = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    points = finite_array(name, given, ("n", d)).astype(float)
    require(len(points) > 0, name, "hold at least one point", given)
    shares = np.full(len(points), 1 / len(points))
    if weights is not None:
        shares = finite_array(f"{name} weights", weights, (len(points),)).astype(float)
        good = bool((shares >= 0).all()) and abs(shares.sum() - 1) < 1e-6
        require(good, f"{name} weights", "be nonnegative and sum to 1", shares)
    if kind == "transformer-sphere":
        lengths = np.linalg.norm(points, axis=1)
        require(bool(np.abs(lengths - 1).max() < 1e-6), name, "hold unit vectors", points)
        points = points / lengths[:, None]
    return points, shares / shares.sum()


def random_points(schedule: Any, seed: int = 0, count: int = 100) -> list[np.ndarray]:
    """Normal points of the schedule's dimension, of length one on the sphere."""
    kind, d, _ = _document(schedule)
    drawn = np.random.default_rng(positive_integer("seed", seed, 0)).standard_normal((count, d))
    return [drawn / np.linalg.norm(drawn, axis=1, keepdims=True) if kind == "transformer-sphere" else drawn]
