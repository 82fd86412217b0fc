"""One prompt collapsed, the others left alone (arXiv:2411.04551, Lemma 3.3), and how unstable its equilibrium is."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import at_least, at_most, relative
from pathlines.claim.transport.integrated import SOLVER, integrated, unit
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.transport.sphere.gate import gate_flow
from pathlines.transport.sphere.isolate import Isolated, isolate
from pathlines.transport.sphere.layer import layer
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.schedule import SphereSchedule

LayerTime = Annotated[of.Positive, means("duration of each layer", "T_k")]


class Orthant(Setting):
    """Prompts of random tokens in the positive orthant; the first is collapsed."""

    d: of.Dimension = 4
    prompts: Annotated[of.Count, means("prompts", "N")] = 3
    n: of.Tokens = 40
    time: LayerTime = 6.0
    gate_time: Annotated[of.Positive, means("duration of the gate")] = 10.0
    seed: of.Seed = 0


def _isolated(s: Orthant) -> tuple[list[Measure], Isolated]:
    rng = np.random.default_rng([12, abs(s.seed)])
    prompts = [Measure(np.abs(unit(rng, s.n, s.d)), np.full(s.n, 1 / s.n)) for _ in range(s.prompts)]
    return prompts, isolate(prompts, 0, time=s.time, gate_time=s.gate_time)


def _radius(x: np.ndarray) -> float:
    """About the own centre: the layers on the way back shift a collapsed prompt as a whole."""
    mean = x.mean(axis=0)
    return float(np.sqrt(np.mean(np.sum((x - mean / np.linalg.norm(mean)) ** 2, axis=1))))


def simulate_isolation(s: Orthant) -> Evidence:
    """Layers alone, then the whole schedule, integrated."""
    prompts, found = _isolated(s)
    flat = integrated(s.d, SphereSchedule(s.d, found.layers).records(), prompts[:1]).ends[0]
    ends = integrated(s.d, found.schedule.records(), [tuple(p) for p in prompts]).ends
    away = max(float(np.abs(x - p.points).max()) for x, p in zip(ends[1:], prompts[1:], strict=True))
    drift = float(np.abs(flat - prompts[0].points).max())
    return Evidence({"radius": _radius(ends[0]), "drift": drift, "return": away})


def predict_isolation(s: Orthant) -> Evidence:
    """The gate alone acts on the chosen prompt; errors of integration grow like e^{T_k} at most, forth or back."""
    prompts, found = _isolated(s)
    grown = 1e-13 * np.exp(s.time)
    moved = gate_flow(found.gate, prompts[0].points)
    return Evidence({"radius": _radius(moved), "drift": grown, "return": grown})


def _tilted(right: Any, size: float) -> Any:
    """Axes that are not quite orthogonal to m."""

    def axes(prompt: Measure) -> np.ndarray:
        tilted = right(prompt) + size * (prompt.weights @ prompt.points)
        return tilted / np.linalg.norm(tilted, axis=1, keepdims=True)

    return axes


GROWN = "rounding and errors of 1e-13 of the integrator grow like e^{T_k}"

claim(
    "transport/S12",
    MEASURE_TO_MEASURE,
    "one prompt is collapsed and no other moves",
    "2(d−1) layers V = ±α_kα_kᵀ and one gate about the barycentre m collapse one prompt and return all others to where "
    "they were; α_k is an orthonormal basis of m^⊥.",
    where="Lemma 3.3; the radius is derived",
    models=(),
    quick=Orthant(),
    full=Orthant(n=200, prompts=5, time=8.0),
    within={
        "radius": relative(1e-6, SOLVER),
        "drift": at_most(GROWN),
        "return": at_most(GROWN),
    },
    simulate=simulate_isolation,
    predict=predict_isolation,
    mistakes=(
        Mistake("pathlines.transport.sphere.isolate.principal_axes", "axes tilted by {:.0e}", _tilted, (1e-12, 1e-9)),
        Mistake(
            "pathlines.transport.sphere.isolate.CLEAR",
            "a rim {:.0%} too low",
            lambda right, size: right * (1 - size),
            (0.01, 0.1, 0.5),
        ),
    ),
)


class Unstable(Setting):
    """One prompt in the positive orthant under layers along m^⊥."""

    d: of.Dimension = 4
    n: of.Tokens = 40
    tilt: Annotated[of.Positive, means("⟨m, α⟩ at the start", "p")] = 1e-8
    times: of.Times = (2.0, 4.0, 6.0)
    time: LayerTime = 20.0
    bases: Annotated[of.Count, means("bases of m^⊥ drawn at random")] = 4
    seed: of.Seed = 0


def _equilibrium(s: Unstable) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """A prompt, the direction of its barycentre and orthonormal bases of what is orthogonal to it."""
    rng = np.random.default_rng([13, abs(s.seed)])
    x = np.abs(unit(rng, s.n, s.d))
    m = x.mean(axis=0)
    drawn = [np.column_stack([m, rng.standard_normal((s.d, s.d - 1))]) for _ in range(s.bases)]
    return x, m, [np.linalg.qr(columns)[0][:, 1:].T for columns in drawn]


def _tilted_axis(s: Unstable, m: np.ndarray, axis: np.ndarray) -> np.ndarray:
    tilted = axis + s.tilt / (m @ m) * m
    return tilted / np.linalg.norm(tilted)


def simulate_instability(s: Unstable) -> Evidence:
    """How far a tilted axis boosts the prompt; how far rounding alone moves it with axes that are not principal."""
    x, m, bases = _equilibrium(s)
    axis = _tilted_axis(s, m, bases[0][0])
    value = np.outer(axis, axis).tolist()
    ends = [integrated(s.d, [{"t": t, "V": value}], [x]).ends[0] for t in s.times]
    heights = [np.arctanh(e @ axis) - np.arctanh(x @ axis) for e in ends]
    drifts = []
    for basis in bases:
        layers = [layer(s.d, s.time, V=np.outer(a, a)) for a in basis]
        moved = integrated(s.d, SphereSchedule(s.d, layers).records(), [x]).ends[0]
        drifts.append(float(np.abs(moved - x).max()))
    return Evidence({"rapidity over tilt": [float(np.mean(h)) / s.tilt for h in heights], "drift": max(drifts)})


def predict_instability(s: Unstable) -> Evidence:
    """(e^{λt} - 1)/λ, λ = E(1 - ⟨x, α⟩²); and a drift that anyone would see."""
    x, m, bases = _equilibrium(s)
    rate = 1 - np.mean((x @ _tilted_axis(s, m, bases[0][0])) ** 2)
    grown = np.expm1(rate * np.asarray(s.times)) / rate
    late = f"times below {np.log(1e-3 / s.tilt):.2g}, where the growth is still linear"
    undecided = {"rapidity over tilt": late} if s.tilt * grown.max() > 1e-3 else {}
    return Evidence({"rapidity over tilt": grown, "drift": 0.1}, undecided=undecided)


def _principal(right: Any, size: float) -> Any:
    """Axes without couplings, by which rounding grows in one layer only."""

    def equilibrium(s: Unstable) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        x, m, bases = right(s)
        turned = [np.linalg.eigh((x @ basis.T).T @ (x @ basis.T))[1].T @ basis for basis in bases]
        return x, m, turned

    return equilibrium


S13 = claim(
    "transport/S13",
    MEASURE_TO_MEASURE,
    "the prompt that is not to move is an unstable equilibrium",
    "⟨m, α⟩ grows like e^{λt}, λ = E(1 − ⟨x, α⟩²), and from layer to layer unless the axes are principal: with "
    "T_k = 20 and a random basis in d ≥ 4, rounding alone moves the prompt by O(1).",
    where="derived; Lemma 3.3 in double precision",
    models=(),
    quick=Unstable(),
    within={
        "rapidity over tilt": relative(1e-3, "linear growth, the tilt so small that its square does not show"),
        "drift": at_least("a tenth of the sphere's radius is no rounding"),
    },
    simulate=simulate_instability,
    predict=predict_instability,
    mistakes=(Mistake("_equilibrium", "principal axes, which are stable", _principal, (1.0,)),),
)
S13.printed_as(
    "transport/ER-S13",
    "the chosen prompt stays for all times",
    "Layers V = α_kα_kᵀ, α_k ⟂ m, leave the chosen prompt where it is, however long they last.",
    where="Lemma 3.3, run in double precision",
    predict=lambda s: Evidence({"drift": 0.0}),
    within={"drift": at_most("rounding of 1e-16 and errors of 1e-12 of the integrator", slack=1e-6)},
    note="True in exact arithmetic. `isolate` takes principal axes, predicts the drift and warns where it shows.",
)
