"""Points steered one by one (arXiv:2411.04551, Section 4), what it costs, and why the circle is too narrow for it."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_most, exactly
from pathlines.claim.transport.integrated import SOLVER, integrated, unit
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.match import match
from pathlines.transport.sphere.schedule import SphereSchedule
from pathlines.transport.sphere.steer import corridor_along, one_gate

Points = Annotated[of.Count, means("points", "M")]

# --- S07


class Corridor(Setting):
    """One of M random points goes to a random place, the others are parked."""

    points: Points = 12
    draws: of.Draws = 3
    seed: of.Seed = 0


Journey = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _journeys(s: Corridor, lean: float = 0.0) -> list[tuple[Journey, list[Gate]]]:
    """(x, y, parked, γ) on S² and the gates; γ ⟂ x, y, or leaning towards x + y, orthogonal to x - y alone."""
    rng, found = np.random.default_rng([7, abs(s.seed)]), []
    for _ in range(100 * s.draws):
        x, y, *others = unit(rng, s.points + 1, 3)
        gamma, parked = np.cross(x, y), np.array(others)
        gamma = gamma / np.linalg.norm(gamma) + (x + y) / np.linalg.norm(x + y) * lean
        gamma /= np.linalg.norm(gamma)
        gates = corridor_along(gamma, x, y, parked)
        if gates is not None:
            found.append(((x, y, parked, gamma), gates))
        if len(found) == s.draws:
            return found
    raise ArgumentError(f"Setting `points` must leave a corridor free, but {s.points} of them are in the way.")


def _ends(journeys: list[tuple[Journey, list[Gate]]]) -> np.ndarray:
    return np.array(
        [
            integrated(3, SphereSchedule(3, gates).records(), [np.vstack([x, parked])]).ends[0]
            for (x, _, parked, _), gates in journeys
        ]
    )


def simulate_corridor(s: Corridor) -> Evidence:
    """All points integrated through the gates."""
    journeys = _journeys(s)
    return Evidence({"points": _ends(journeys), "pieces": [len(gates) for _, gates in journeys]})


def predict_corridor(s: Corridor) -> Evidence:
    """One arrives, the others are back; one piece, and two for each side of the slab that has points."""
    journeys = [journey for journey, _ in _journeys(s)]
    sides = [len(set(np.sign(parked @ gamma))) for _, _, parked, gamma in journeys]
    return Evidence(
        {"points": [np.vstack([y, parked]) for _, y, parked, _ in journeys], "pieces": 1 + 2 * np.array(sides)}
    )


S07 = claim(
    "transport/S07",
    MEASURE_TO_MEASURE,
    "one point passes all others",
    "Two gates gather the parked points, one sends x to y past them, two restore them: five pieces move one point and "
    "no other, if γ is orthogonal to x and y both.",
    where="Propositions 4.1 and 4.2, corrected; five pieces instead of six derived",
    models=(),
    quick=Corridor(),
    full=Corridor(points=40, draws=20),
    within={
        "points": absolute(1e-8, f"{SOLVER}; restoring stretches errors up to 1e5 times"),
        "pieces": exactly("a count"),
    },
    simulate=simulate_corridor,
    predict=predict_corridor,
)
S07.printed_as(
    "transport/ER-S07",
    "a slab that x and y need not lie in",
    "A direction γ with ⟨γ, x − y⟩ = 0 and |⟨γ, q⟩| ≥ ε at the parked points is enough: gates |⟨γ, ·⟩| > ε/2 gather "
    "the parked points and leave x and y.",
    where="Propositions 4.1 and 4.2",
    predict=predict_corridor,
    simulate=lambda s: Evidence({"points": _ends(_journeys(s, lean=0.25))}),
    within={"points": absolute(1e-8, SOLVER)},
    note="x and y must lie in the slab |⟨γ, ·⟩| ≤ ε/2 themselves, or the gathering gates move them; γ ⟂ x, y does.",
)

# --- S08


class Crowd(Setting):
    """Random points to random places."""

    d: of.Dimension = 16
    low: Annotated[of.Dimension, means("a dimension in which some points need a detour")] = 8
    points: Points = 24
    seed: of.Seed = 0


def _crowd(s: Crowd, d: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng([8, d, abs(s.seed)])
    return unit(rng, s.points, d), unit(rng, s.points, d), rng


def simulate_crowd(s: Crowd) -> Evidence:
    """Gates found by linear programs, integrated."""
    x, y, rng = _crowd(s, s.d)
    found = match(x, y, rng)
    ends = integrated(s.d, SphereSchedule(s.d, found.pieces).records(), [x]).ends[0]
    low = len(match(*_crowd(s, s.low)).pieces) / s.points
    return Evidence({"points": ends, "pieces": len(found.pieces), "pieces a point, low dimension": low})


def predict_crowd(s: Crowd) -> Evidence:
    """Every point at its place after one gate of its own."""
    values = {"points": _crowd(s, s.d)[1], "pieces": s.points, "pieces a point, low dimension": 1.25}
    few = (
        {"pieces": f"d above {s.points / 2:g}: fewer dimensions leave points in the way"} if s.points > 2 * s.d else {}
    )
    return Evidence(values, undecided=few)


claim(
    "transport/S08",
    MEASURE_TO_MEASURE,
    "one piece a point",
    "Where a hyperplane separates the arc x → y from all others, one gate moves x to y and nothing else: M random "
    "points on a sphere of 16 dimensions take M pieces, in 8 dimensions a few more.",
    where="derived; five pieces a point in Section 4",
    models=(),
    quick=Crowd(),
    full=Crowd(d=32, low=16, points=48),
    within={
        "points": absolute(1e-9, SOLVER),
        "pieces": exactly("a count"),
        "pieces a point, low dimension": at_most("one step in four past a waypoint, which has two pieces"),
    },
    simulate=simulate_crowd,
    predict=predict_crowd,
    mistakes=(
        Mistake(
            "pathlines.transport.sphere.match.one_gate",
            "gates asked for a margin of {:.0e}",
            lambda right, size: lambda x, y, parked: right(x, y, parked, size),
            (0.03, 0.1, 0.3),
        ),
    ),
)

# --- S17


class Horizon(Setting):
    """One gate, run in longer and longer time."""

    d: of.Dimension = 4
    points: Points = 6
    horizons: Annotated[of.Positives, means("time there is", "T")] = (1.0, 10.0, 100.0)
    seed: of.Seed = 0


def _steered(s: Horizon) -> tuple[np.ndarray, np.ndarray, Gate]:
    """x and the parked points, where they end, and a gate of duration one that takes them there."""
    rng = np.random.default_rng([17, abs(s.seed)])
    while True:
        x, y, *others = unit(rng, s.points + 1, s.d)
        gate = one_gate(x, y, np.array(others))
        if gate is not None:
            fast = gate._replace(omega=gate.omega * gate.duration, duration=1.0)
            return np.vstack([x, *others]), np.vstack([y, *others]), fast


def _perceptron(gate: Gate, horizon: float, inner: float) -> dict[str, Any]:
    """W = ω1ᵀ/(dT), and U = 1aᵀ, b = τ1 times a factor."""
    d, one = len(gate.a), np.ones(len(gate.a))
    layer = {
        "W": np.outer(gate.omega, one) / (d * horizon),
        "U": inner * np.outer(one, gate.a),
        "b": inner * gate.tau * one,
    }
    return {"t": horizon, **{name: m.tolist() for name, m in layer.items()}}


def simulate_horizon(s: Horizon) -> Evidence:
    """W shrinks like 1/T, U and b stay."""
    x, _, gate = _steered(s)
    return Evidence({"points": [integrated(s.d, [_perceptron(gate, t, 1.0)], [x]).ends[0] for t in s.horizons]})


def predict_horizon(s: Horizon) -> Evidence:
    """The same end for all horizons."""
    return Evidence({"points": [_steered(s)[1]] * len(s.horizons)})


S17 = claim(
    "transport/S17",
    MEASURE_TO_MEASURE,
    "time costs the size of W alone",
    "A perceptron with W/T for a time T ends where W does in time 1; U and b keep their size.",
    where="Propositions 4.1 and 4.2, the bounds of the norms corrected",
    models=(),
    quick=Horizon(),
    full=Horizon(points=20, horizons=(0.1, 1.0, 10.0, 100.0)),
    within={"points": absolute(1e-9, SOLVER)},
    simulate=simulate_horizon,
    predict=predict_horizon,
)


def simulate_small(s: Horizon) -> Evidence:
    """All three shrink like 1/T."""
    x, _, gate = _steered(s)
    return Evidence({"points": [integrated(s.d, [_perceptron(gate, t, 1 / t)], [x]).ends[0] for t in s.horizons]})


S17.printed_as(
    "transport/ER-S17",
    "all parameters shrink with time",
    "Parameters (W, U, b) with ‖(W, U, b)‖ ≤ C/(Tε) steer a point in time T.",
    where="Propositions 4.1 and 4.2, CM/(T min ε) in their corollary",
    predict=predict_horizon,
    simulate=simulate_small,
    note="With all norms ≤ K the speed is at most 2K², so that K = C/T leaves 2C²/T, which vanishes.",
)

# --- S19


class Circle(Setting):
    """Diracs on the circle under random layers."""

    points: Points = 5
    layers: Annotated[of.Count, means("random layers")] = 4
    draws: of.Draws = 4
    seed: of.Seed = 0


def _orientations(x: np.ndarray) -> np.ndarray:
    """+1 or -1 for each triple: the sense in which it goes round."""
    angle = np.arctan2(x[:, 1], x[:, 0])
    turns = [np.mod(angle[[j, k]] - angle[i], 2 * np.pi) for i, j, k in combinations(range(len(x)), 3)]
    return np.array([1.0 if first < second else -1.0 for first, second in turns])


def _circles(s: Circle) -> list[tuple[np.ndarray, list[dict[str, Any]]]]:
    rng = np.random.default_rng([19, abs(s.seed)])

    def layer() -> dict[str, Any]:
        return {
            "t": 0.5,
            "b": rng.standard_normal(2).tolist(),
            **{m: rng.standard_normal((2, 2)).tolist() for m in "VBWU"},
        }

    return [(unit(rng, s.points, 2), [layer() for _ in range(s.layers)]) for _ in range(s.draws)]


def simulate_circle(s: Circle) -> Evidence:
    """Each point a prompt of its own, and all of them one prompt."""
    alone, together = [], []
    for x, records in _circles(s):
        alone.append(_orientations(np.vstack(integrated(2, records, list(x[:, None])).ends)))
        together.append(_orientations(integrated(2, records, [x]).ends[0]))
    return Evidence({"order of Diracs": alone, "order of tokens": together})


def predict_circle(s: Circle) -> Evidence:
    """As at the start."""
    order = [_orientations(x) for x, _ in _circles(s)]
    return Evidence({"order of Diracs": order, "order of tokens": order})


S19 = claim(
    "transport/S19",
    MEASURE_TO_MEASURE,
    "on the circle the order stays",
    "For d = 2 every layer keeps the cyclic order of the tokens of a prompt, and of prompts of one token each: there "
    "is no way past. Interpolation needs d ≥ 3.",
    where="derived; Theorems 1.1 and 1.2 assume d ≥ 3",
    models=(),
    quick=Circle(),
    full=Circle(draws=20),
    within=dict.fromkeys(("order of Diracs", "order of tokens"), exactly("flows of a line do not cross")),
    simulate=simulate_circle,
    predict=predict_circle,
)
S19.printed_as(
    "transport/ER-S19",
    "interpolation on the circle",
    "Some list of layers reverses the cyclic order of N Dirac masses on the circle.",
    where="Theorem 1.1 read without its hypothesis d ≥ 3",
    predict=lambda s: Evidence({"order of Diracs": [-_orientations(x) for x, _ in _circles(s)]}),
    within={"order of Diracs": exactly("flows of a line do not cross")},
    note="A layer acts on Dirac masses as one flow of the circle, which keeps their order.",
)
