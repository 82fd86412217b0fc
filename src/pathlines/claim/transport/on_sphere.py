"""Measures on the sphere moved by one transformer (arXiv:2411.04551): pieces, interpolation, what needs attention.

Every simulation integrates the pieces in coordinates by the verifier, which shares no code with what is claimed.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Evidence, claim
from pathlines.claim.tolerance import absolute, at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.transport.on_sphere import (
    arc_edge,
    arc_mean,
    arc_rapidity,
    cap_distance,
    least_without_attention,
)
from pathlines.transport.sphere.gate import Gate, gate_flow
from pathlines.transport.sphere.interpolate import MeasureInterpolator
from pathlines.transport.sphere.match import match
from pathlines.transport.sphere.mean_attention import apply_lorentz, lorentz_matrix
from pathlines.transport.sphere.schedule import SphereSchedule
from pathlines.transport.verifier import verify_schedule

SOLVER = "integrated with relative tolerance 1e-12, with room for accumulation over the run"


def _unit(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _integrated(d: int, pieces: list[dict[str, Any]], prompts: list[Any], targets: Any = None) -> Any:
    document = {"kind": "transformer-sphere", "d": d, "pieces": pieces}
    return verify_schedule(document, prompts, targets, rtol=1e-12)


# --- S01


class Gates(Setting):
    """Random gates, each on points of its own."""

    d: of.Dimension = 4
    gates: Annotated[of.Count, means("random gates")] = 10
    seed: of.Seed = 0


def _gates(s: Gates) -> list[tuple[Gate, np.ndarray]]:
    rng = np.random.default_rng([1, abs(s.seed)])
    return [
        (Gate(rng.standard_normal(s.d), rng.uniform(-0.5, 1), rng.standard_normal(s.d), rng.uniform(0.3, 2)), x)
        for x in (_unit(rng, 3, s.d) for _ in range(s.gates))
    ]


def simulate_gates(s: Gates) -> Evidence:
    """Points integrated in coordinates."""
    ends = [_integrated(s.d, SphereSchedule(s.d, [gate]).records(), [x]).ends[0] for gate, x in _gates(s)]
    return Evidence({"points": np.array(ends)})


def predict_gates(s: Gates) -> Evidence:
    """Each point on its great circle, by the antiderivative F."""
    return Evidence({"points": np.array([gate_flow(gate, x) for gate, x in _gates(s)])})


claim(
    "transport/S01",
    MEASURE_TO_MEASURE,
    "a gate has an exact flow",
    "ẋ = (⟨a, x⟩ + τ)₊ P_x ω moves each point along its great circle through ω, at times given by one antiderivative.",
    where="derived; the gate is that of Lemma B.2",
    models=(),
    quick=Gates(),
    full=Gates(gates=60),
    within={"points": absolute(1e-9, SOLVER)},
    simulate=simulate_gates,
    predict=predict_gates,
)

# --- S02


class MeanAttention(Setting):
    """One prompt under V, B = 0."""

    d: of.Dimension = 4
    n: of.Tokens = 6
    until: of.Until = 1.7
    seed: of.Seed = 0


def _prompt(s: MeanAttention) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([2, abs(s.seed)])
    return rng.standard_normal((s.d, s.d)) / np.sqrt(s.d), _unit(rng, s.n, s.d)


def simulate_mean(s: MeanAttention) -> Evidence:
    """Tokens integrated together."""
    value, x = _prompt(s)
    return Evidence({"tokens": _integrated(s.d, [{"t": s.until, "V": value.tolist()}], [x]).ends[0]})


def predict_mean(s: MeanAttention) -> Evidence:
    """One matrix of SO⁺(d, 1)."""
    value, x = _prompt(s)
    return Evidence({"tokens": apply_lorentz(lorentz_matrix(value, x, np.full(s.n, 1 / s.n), s.until), x)[0]})


claim(
    "transport/S02",
    MEASURE_TO_MEASURE,
    "mean attention is linear in disguise",
    "With B = 0 the flow of all tokens is one matrix of SO⁺(d, 1) in homogeneous coordinates, for any V.",
    where="derived; no statement in the paper",
    models=(),
    quick=MeanAttention(),
    full=MeanAttention(n=60, until=3.0),
    within={"tokens": absolute(1e-9, SOLVER)},
    simulate=simulate_mean,
    predict=predict_mean,
)

# --- S05


class Arc(Setting):
    """A uniform arc on the circle under V = I, B = 0."""

    half_width: of.HalfWidth = 1.0
    times: of.Times = (1.0, 2.0, 3.0, 5.0)
    nodes: of.Nodes = 60


def simulate_arc(s: Arc) -> Evidence:
    """Gauss–Legendre nodes of the arc as tokens, and its end as a token without weight."""
    x, w = np.polynomial.legendre.leggauss(s.nodes)
    angles = s.half_width * np.append(x, 1.0)
    tokens, weights = np.column_stack([np.cos(angles), np.sin(angles)]), np.append(w / 2, 0.0)
    ends = [_integrated(2, [{"t": t, "V": np.eye(2).tolist()}], [(tokens, weights)]).ends[0] for t in s.times]
    edge = [np.arctan2(e[-1, 1], e[-1, 0]) for e in ends]
    return Evidence({"edge": edge, "mean": [np.linalg.norm(weights @ e) for e in ends]})


def predict_arc(s: Arc) -> Evidence:
    """τ' = α(τ), the edge 2 arctan(e^{-τ} tan(ℓ/2)), the mean α(τ)."""
    tau = arc_rapidity(s.times, s.half_width)
    return Evidence({"edge": arc_edge(tau, s.half_width), "mean": arc_mean(tau, s.half_width)})


claim(
    "transport/S05",
    MEASURE_TO_MEASURE,
    "the uniform arc contracts in closed form",
    "A uniform arc of half-width ℓ < π stays a boosted arc; its edge is 2 arctan(e^{−τ} tan(ℓ/2)), its mean α(τ) = τ'.",
    where="Example 6.1; the closed form is derived",
    models=(),
    quick=Arc(),
    within=dict.fromkeys(("edge", "mean"), absolute(1e-8, SOLVER)),
    simulate=simulate_arc,
    predict=predict_arc,
)

# --- S09


class Sharing(Setting):
    """Prompts and targets that share tokens."""

    dimensions: of.Dimensions = (3, 4, 8)
    prompts: Annotated[of.Count, means("prompts", "N")] = 3
    n: of.Tokens = 4
    shared: Annotated[of.Count, means("tokens that all prompts share, and atoms that all targets share")] = 3
    draws: of.Draws = 2
    seed: of.Seed = 0


def simulate_sharing(s: Sharing) -> Evidence:
    """Worst W₂ of each dimension, integrated; the most pieces a point needed."""
    worst, most = [], []
    for d in s.dimensions:
        w2, pieces = [], []
        for k in range(s.draws):
            rng = np.random.default_rng([9, abs(s.seed), k, d])
            sides = [
                [np.vstack([common, _unit(rng, s.n - s.shared, d)]) for _ in range(s.prompts)]
                for common in (_unit(rng, s.shared, d), _unit(rng, s.shared, d))
            ]
            fitted = MeasureInterpolator(seed=k).fit(*sides)
            w2 += verify_schedule(fitted.schedule_, *sides, rtol=1e-12).w2 or []
            pieces.append(fitted.schedule_.count)
        worst.append(max(w2))
        most.append(max(pieces) / (s.prompts * s.n))
    return Evidence({"W2": worst, "pieces a point": most})


def predict_sharing(s: Sharing) -> Evidence:
    """Exact, with at most five pieces a point and two layers of attention."""
    bound = 5 + 2 / (s.prompts * s.n)
    return Evidence({"W2": np.zeros(len(s.dimensions)), "pieces a point": np.full(len(s.dimensions), bound)})


claim(
    "transport/S09",
    MEASURE_TO_MEASURE,
    "prompts that share tokens reach targets that share atoms",
    "One list of layers sends N prompts of n atoms to N targets of n atoms exactly, also where both share atoms: "
    "attention, gates, reversed attention.",
    where="Theorem 1.2 for atoms; exactness and the number of pieces derived",
    models=(),
    quick=Sharing(),
    full=Sharing(draws=60),
    within={
        "W2": at_most("rounding, amplified by the layers; the integrator at 1e-12", slack=1e-9),
        "pieces a point": at_most("the corridor has five pieces"),
    },
    simulate=simulate_sharing,
    predict=predict_sharing,
)

# --- S10


class OneMap(Setting):
    """Two prompts with one shared token, moved without attention."""

    d: of.Dimension = 4
    n: of.Tokens = 4
    angle: Annotated[of.Positive, means("between the nearest atoms of the targets", "θ", unit="radians")] = 0.6
    seed: of.Seed = 0


def simulate_one_map(s: OneMap) -> Evidence:
    """The best that gates alone can do: the shared token goes half-way, all others to their targets."""
    rng = np.random.default_rng([10, abs(s.seed)])
    shared, frame = _unit(rng, 1, s.d), np.linalg.qr(rng.standard_normal((s.d, 2)))[0].T
    near = [np.cos(v) * frame[0] + np.sin(v) * frame[1] for v in (0.0, s.angle, s.angle / 2)]
    own, far = ([_unit(rng, s.n - 1, s.d) for _ in range(2)] for _ in range(2))
    found = match(np.vstack([shared, *own]), np.vstack([near[2][None], *far]), rng)
    records = SphereSchedule(s.d, found.pieces).records()
    prompts = [np.vstack([shared, x]) for x in own]
    targets = [np.vstack([y[None], rest]) for y, rest in zip(near[:2], far, strict=True)]
    return Evidence({"largest W2": max(_integrated(s.d, records, prompts, targets).w2)})


def predict_one_map(s: OneMap) -> Evidence:
    """2 sin(θ/4)/√n, attained half-way."""
    return Evidence({"largest W2": least_without_attention(s.angle, 1 / s.n)})


claim(
    "transport/S10",
    MEASURE_TO_MEASURE,
    "without attention a shared token is in the way",
    "With V = 0 one map moves all prompts; if two share an atom of mass 1/n, some W₂ stays at 2 sin(θ/4)/√n at least, "
    "θ the angle between the targets, and gates attain it.",
    where="derived; the idea is that of the introduction",
    models=(),
    quick=OneMap(),
    within={"largest W2": absolute(1e-8, SOLVER)},
    simulate=simulate_one_map,
    predict=predict_one_map,
)

# --- S14


class Cap(Setting):
    """The uniform law on a ball of S², as quadrature nodes."""

    radius: Annotated[of.Positive, means("radius of the ball", "R", unit="radians")] = 0.35
    times: of.Times = (20.0, 40.0)
    nodes: of.Nodes = 60


def _cap(s: Cap) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(s.nodes)
    c = np.cos(s.radius) + (1 - np.cos(s.radius)) * (x + 1) / 2
    return np.column_stack([c, np.sqrt(1 - c**2), np.zeros_like(c)]), w / 2


def _cap_distances(s: Cap, sign: float) -> np.ndarray:
    """W₂ to the centre after U = ±1zᵀ, b = ∓cos R 1, W = z1ᵀ/3."""
    x, w = _cap(s)
    z, one = np.eye(3)[0], np.ones(3)
    layer = {"U": sign * np.outer(one, z), "b": -sign * np.cos(s.radius) * one, "W": np.outer(z, one) / 3}
    pieces = {name: m.tolist() for name, m in layer.items()}
    ends = [_integrated(3, [{"t": t, **pieces}], [(x, w)]).ends[0] for t in s.times]
    return np.array([np.sqrt(w @ np.sum((e - z) ** 2, axis=1)) for e in ends])


def simulate_cap(s: Cap) -> Evidence:
    """The corrected signs."""
    return Evidence({"W2": _cap_distances(s, 1.0)})


def predict_cap(s: Cap) -> Evidence:
    """Closed form."""
    return Evidence({"W2": cap_distance(s.times, s.radius)})


S14 = claim(
    "transport/S14",
    MEASURE_TO_MEASURE,
    "a gate collapses a ball",
    "U = 1zᵀ, b = −cos R 1 is open inside B(z, R) only, and sends its uniform law to its centre "
    "at a rate in closed form.",
    where="Lemma B.2 with the sign corrected; the rate is derived",
    models=(),
    quick=Cap(),
    full=Cap(times=(20.0, 40.0, 80.0), nodes=200),
    within={"W2": relative(1e-3, "Gauss nodes in cos φ resolve the layer at the rim")},
    simulate=simulate_cap,
    predict=predict_cap,
)


def simulate_printed(s: Cap) -> Evidence:
    """The printed signs."""
    return Evidence({"W2": _cap_distances(s, -1.0)})


S14.printed_as(
    "transport/ER-S14",
    "the gate as printed",
    "U = −1zᵀ, b = cos R 1 collapses the ball B(z, R).",
    where="Lemma B.2, eq. (B.4)",
    predict=predict_cap,
    simulate=simulate_printed,
    note="The printed gate is open outside the ball: nothing inside moves.",
)
