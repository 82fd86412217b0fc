"""Pieces on the sphere (arXiv:2411.04551): gates and attention in closed form, volumes, the uniform arc.

Every simulation integrates the pieces in coordinates by the verifier, which shares no code with what is claimed.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.claim.transport.integrated import SOLVER, integrated, unit
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.transport.on_sphere import arc_edge, arc_mean, arc_rapidity
from pathlines.transport.sphere.attention import integrated_layer
from pathlines.transport.sphere.gate import Gate, gate_flow
from pathlines.transport.sphere.layer import layer
from pathlines.transport.sphere.mean_attention import apply_lorentz, boosted, latitudes, lorentz_matrix, rapidity
from pathlines.transport.sphere.schedule import SphereSchedule

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
        for x in (unit(rng, 3, s.d) for _ in range(s.gates))
    ]


def simulate_gates(s: Gates) -> Evidence:
    """Points integrated in coordinates."""
    ends = [integrated(s.d, SphereSchedule(s.d, [gate]).records(), [x]).ends[0] for gate, x in _gates(s)]
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
    return rng.standard_normal((s.d, s.d)) / np.sqrt(s.d), unit(rng, s.n, s.d)


def simulate_mean(s: MeanAttention) -> Evidence:
    """Tokens integrated together."""
    value, x = _prompt(s)
    return Evidence({"tokens": integrated(s.d, [{"t": s.until, "V": value.tolist()}], [x]).ends[0]})


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

# --- S03


class RankOne(MeanAttention):
    """One prompt under V = ααᵀ, B = 0."""

    until: of.Until = 2.0


def _line(s: RankOne) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([3, abs(s.seed)])
    return unit(rng, 1, s.d)[0], unit(rng, s.n, s.d)


def simulate_rank_one(s: RankOne) -> Evidence:
    """Tokens integrated together."""
    axis, x = _line(s)
    return Evidence({"tokens": integrated(s.d, [{"t": s.until, "V": np.outer(axis, axis).tolist()}], [x]).ends[0]})


def predict_rank_one(s: RankOne) -> Evidence:
    """A boost along α whose rapidity solves one scalar equation."""
    axis, x = _line(s)
    tau = rapidity(1.0, latitudes(x, axis), np.full(s.n, 1 / s.n), s.until)
    return Evidence({"tokens": boosted(x, axis, tau)[0]})


claim(
    "transport/S03",
    MEASURE_TO_MEASURE,
    "values of rank one leave one scalar",
    "With V = ααᵀ, B = 0 the flow is a boost along α of rapidity τ, τ' = mean tanh(artanh⟨xⱼ, α⟩ + τ), τ(0) = 0.",
    where="derived; the layer is that of Lemma 3.3",
    models=(),
    quick=RankOne(),
    full=RankOne(n=60, until=4.0),
    within={"tokens": absolute(1e-9, SOLVER)},
    simulate=simulate_rank_one,
    predict=predict_rank_one,
)

# --- S04


class Volumes(Setting):
    """Probe points that feel a prompt, under a layer with all its parameters."""

    d: of.Dimension = 4
    n: of.Tokens = 6
    probes: Annotated[of.Count, means("probe points")] = 4
    until: of.Until = 0.5
    difference: Annotated[of.Positive, means("step of the central difference", "h")] = 1e-4
    seed: of.Seed = 0


def _volumes(s: Volumes) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng([4, abs(s.seed)])
    matrices = {name: rng.standard_normal((s.d, s.d)) / np.sqrt(s.d) for name in "VB"}
    return matrices, unit(rng, s.n, s.d), unit(rng, s.probes, s.d)


def simulate_volumes(s: Volumes) -> Evidence:
    """Determinants of central differences of integrated tokens without weight."""
    matrices, tokens, probes = _volumes(s)
    frames = [np.linalg.svd(x[None])[2][1:] for x in probes]
    near = [x + sign * s.difference * e for x, frame in zip(probes, frames) for e in frame for sign in (1, -1)]
    around = np.array([*probes, *(x / np.linalg.norm(x) for x in near)])
    weights = np.append(np.full(s.n, 1 / s.n), np.zeros(len(around)))
    record = {"t": s.until, **{name: m.tolist() for name, m in matrices.items()}}
    ends = integrated(s.d, [record], [(np.vstack([tokens, around]), weights)]).ends[0][s.n :]
    pairs = ends[s.probes :].reshape(s.probes, s.d - 1, 2, s.d)
    columns = (pairs[:, :, 0] - pairs[:, :, 1]) / (2 * s.difference)
    bases = [np.linalg.svd(x[None])[2][1:] for x in ends[: s.probes]]
    areas = [abs(np.linalg.det(c @ basis.T)) for c, basis in zip(columns, bases, strict=True)]
    return Evidence({"log-Jacobian": np.log(areas)})


def predict_volumes(s: Volumes) -> Evidence:
    """The integral of tr(P_x V C(x) B) - (d-1)⟨x, V A_B(x)⟩, C the covariance of the tokens under their shares."""
    matrices, tokens, probes = _volumes(s)
    piece = layer(s.d, s.until, **matrices)
    found = integrated_layer(piece, tokens, np.full(s.n, 1 / s.n), probes)[2]
    coarse = not 1e-5 <= s.difference <= 3e-4
    steps = {"log-Jacobian": "a step between 1e-5 and 3e-4: its square and rounding over it show"} if coarse else {}
    return Evidence({"log-Jacobian": found}, undecided=steps)


claim(
    "transport/S04",
    MEASURE_TO_MEASURE,
    "attention changes volumes by a covariance",
    "On the sphere div v(x) = tr(P_x V C(x) B) − (d−1)⟨x, V A_B(x)⟩, C(x) the covariance of the tokens as x sees them.",
    where="derived; the layer is eq. (1.2)",
    models=(),
    quick=Volumes(),
    full=Volumes(n=60, probes=20),
    within={"log-Jacobian": absolute(1e-6, "central differences, h², and the integrator over the step, 1e-12/h")},
    simulate=simulate_volumes,
    predict=predict_volumes,
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
    ends = [integrated(2, [{"t": t, "V": np.eye(2).tolist()}], [(tokens, weights)]).ends[0] for t in s.times]
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
