"""ReLU pieces: closed form, log-determinant and inverse, increasing maps, rotations.

The pieces are those of Constructive approximate transport maps with normalizing flows, arXiv:2412.19366; what is
claimed of them here is derived.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from scipy.integrate import solve_ivp

from pathlines.claim.base import Evidence, claim
from pathlines.claim.tolerance import absolute, at_most, exactly
from pathlines.claim.transport.vocabulary import Pieces, Points
from pathlines.claim.transport.wrong_pieces import compressing, too_far_back
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import NORMALIZING_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.limit.transport.relu import relu_flow
from pathlines.transport.euclid.affine import rotation_schedule
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.schedule import EuclideanSchedule


class RandomPieces(Setting):
    """Gaussian weights, uniform durations."""

    d: of.Dimension = 3
    pieces: Pieces = 50
    rtol: of.Rtol = 1e-12
    seed: of.Seed = 0


def _drawn(d: int, pieces: int, seed: int, size: float = 1.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng([7, abs(seed)])
    w, a = (rng.standard_normal((pieces, d)) for _ in range(2))
    return size * w, a, rng.standard_normal(pieces), rng.random(pieces), rng.standard_normal((pieces, d))


def simulate_piece(s: RandomPieces) -> Evidence:
    """Each piece moves a point of its own."""
    w, a, b, t, x = _drawn(s.d, s.pieces, s.seed, s.d**-0.5)
    moved = [EuclideanSchedule(w[k : k + 1], a[k : k + 1], b[k : k + 1], t[k : k + 1]) for k in range(s.pieces)]
    return Evidence({"moved point": [m.forward(x[k : k + 1])[0][0] for k, m in enumerate(moved)]})


def predict_piece(s: RandomPieces) -> Evidence:
    """An adaptive solver of order eight."""
    w, a, b, t, x = _drawn(s.d, s.pieces, s.seed, s.d**-0.5)

    def end(k: int) -> np.ndarray:
        run = solve_ivp(
            lambda _, z: w[k] * max(a[k] @ z + b[k], 0.0), (0, t[k]), x[k], method="DOP853", rtol=s.rtol, atol=s.rtol
        )
        return run.y[:, -1]

    return Evidence({"moved point": [end(k) for k in range(s.pieces)]}, source="adaptive solver")


claim(
    "transport/R01",
    NORMALIZING_FLOWS,
    "one piece in closed form",
    "The flow of x' = w(a·x+b)₊ is x + w s t φ₁(ct) where s = a·x + b > 0, c = a·w, and the identity elsewhere.",
    where="derived; the neural ODE of the paper with one neuron",
    models=(),
    quick=RandomPieces(),
    full=RandomPieces(d=6, pieces=400),
    within={"moved point": absolute(1e-10, "solver tolerance 1e-12 with room for accumulation and e^{|ct|}")},
    simulate=simulate_piece,
    predict=predict_piece,
)


class RandomSchedule(Setting):
    """Several pieces in a row."""

    d: of.Dimension = 3
    pieces: Pieces = 20
    points: Points = 40
    seed: of.Seed = 0


def _schedule(s: RandomSchedule) -> tuple[np.ndarray, ...]:
    w, a, b, t, _ = _drawn(s.d, s.pieces, s.seed, (s.d * s.pieces) ** -0.5)
    return w, a, b, t, np.random.default_rng([8, abs(s.seed)]).standard_normal((s.points, s.d))


def simulate_schedule(s: RandomSchedule) -> Evidence:
    """Forth and back."""
    w, a, b, t, x = _schedule(s)
    flow = EuclideanSchedule(w, a, b, t)
    moved, logs = flow.forward(x)
    back = float(np.abs(flow.backward(moved)[0] - x).max())
    return Evidence({"log-determinant": logs, "moved point": moved, "round trip": back})


def predict_schedule(s: RandomSchedule) -> Evidence:
    """Products of matrix exponentials; errors grow by no more than the Lipschitz constant."""
    w, a, b, t, x = _schedule(s)
    found = [relu_flow(point, w, a, b, t) for point in x]
    cost = float(np.sum(np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1) * t))
    values = {"log-determinant": [f[1] for f in found], "moved point": [f[0] for f in found]}
    return Evidence({**values, "round trip": 1e-12 * np.exp(cost)}, source="matrix exponentials")


claim(
    "transport/R02",
    NORMALIZING_FLOWS,
    "log-determinant and inverse",
    "A schedule has log|det| = Σ c t over the pieces that are active, and its inverse is the reversed list with −w.",
    where="derived",
    models=(),
    quick=RandomSchedule(),
    full=RandomSchedule(d=6, pieces=60, points=200),
    within={
        "log-determinant": absolute(1e-10, "rounding of products of 20 to 60 matrix exponentials"),
        "moved point": absolute(1e-10, "rounding of products of 20 to 60 matrix exponentials"),
        "round trip": at_most("1e-12 times the Lipschitz bound exp Σ|w||a|t"),
    },
    simulate=simulate_schedule,
    predict=predict_schedule,
    mistakes=(too_far_back("EuclideanSchedule"),),
)


class RandomMap(Setting):
    """An increasing piecewise linear map with random knots."""

    knots: Annotated[of.Count, means("knots", "K")] = 20
    left: Annotated[of.Positive, means("slope of the left tail", "m_L")] = 0.4
    right: Annotated[of.Positive, means("slope of the right tail", "m_R")] = 1.7
    seed: of.Seed = 0


def _knots(s: RandomMap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([9, abs(s.seed)])
    gaps = rng.uniform(0.1, 1.0, (2, s.knots))
    x, y = np.cumsum(gaps, axis=1) - gaps.sum(1, keepdims=True) / 2
    return x, y, np.linspace(x[0] - 2, x[-1] + 2, 501)


def simulate_map(s: RandomMap) -> Evidence:
    """Translation, dilations to both sides, one dilation for each kink."""
    x, y, at = _knots(s)
    flow = increasing_schedule(x, y, s.left, s.right)
    return Evidence({"map": flow.forward(at[:, None])[0][:, 0], "pieces": flow.count})


def predict_map(s: RandomMap) -> Evidence:
    """Linear interpolation with straight tails."""
    x, y, at = _knots(s)
    tails = np.where(at < x[0], s.left * (at - x[0]), np.where(at > x[-1], s.right * (at - x[-1]), 0.0))
    rounding = s.knots * np.finfo(float).eps * float(np.abs(y).max())
    values = {"map": np.interp(at, x, y) + tails, "pieces": s.knots + 2}
    return Evidence(values, {"map": np.full(len(at), rounding)}, source="interpolation")


claim(
    "transport/R03",
    NORMALIZING_FLOWS,
    "increasing maps are exact",
    "Every increasing piecewise linear map of the line with K knots is K + 2 ReLU pieces, exactly.",
    where="derived",
    models=(),
    quick=RandomMap(),
    full=RandomMap(knots=200),
    within={
        "map": absolute(1e-13, "and eight roundings of each of K compositions, of size max|y|", errors=8.0),
        "pieces": exactly("a count"),
    },
    simulate=simulate_map,
    predict=predict_map,
)


class Turn(Setting):
    """A rotation of the plane."""

    angle: Annotated[float, means("angle of the rotation, in (−π, π)", "θ", unit="radians")] = 0.9
    points: Points = 50
    seed: of.Seed = 0


def simulate_rotation(s: Turn) -> Evidence:
    """Three linear shears."""
    flow = rotation_schedule(s.angle)
    moved, logs = flow.forward(np.random.default_rng([3, abs(s.seed)]).standard_normal((s.points, 2)))
    return Evidence({"rotated point": moved, "log-determinant": float(np.abs(logs).max()), "pieces": flow.count})


def predict_rotation(s: Turn) -> Evidence:
    """The matrix of the rotation."""
    x = np.random.default_rng([3, abs(s.seed)]).standard_normal((s.points, 2))
    turned = (x[:, 0] + 1j * x[:, 1]) * np.exp(1j * s.angle)
    return Evidence({"rotated point": np.column_stack([turned.real, turned.imag]), "log-determinant": 0.0, "pieces": 6})


claim(
    "transport/R13",
    NORMALIZING_FLOWS,
    "a rotation is six pieces",
    "The rotation of a plane by θ is three linear shears, by −tan(θ/2), sin θ, −tan(θ/2): six ReLU pieces.",
    where="derived",
    models=(),
    quick=Turn(),
    within={
        "rotated point": absolute(1e-13, "rounding of points of size 4 by shears of slope up to tan(θ/2)"),
        "log-determinant": exactly("shears have none"),
        "pieces": exactly("a count"),
    },
    simulate=simulate_rotation,
    predict=predict_rotation,
    mistakes=(compressing("rotation_schedule"),),
)
