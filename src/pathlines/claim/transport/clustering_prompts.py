"""Prompts that attention collapses, each to a point of its own (arXiv:2411.04551, Theorem 1.1 and Section 6)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_least, relative
from pathlines.claim.transport.integrated import SOLVER, integrated, unit
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.transport.on_sphere import cap_clustering
from pathlines.transport.sphere.collapse import centre, cluster_layer, first_order_radius
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.match import match
from pathlines.transport.sphere.mean_attention import apply_lorentz, lorentz_matrix
from pathlines.transport.sphere.schedule import SphereSchedule

Spread = Annotated[of.Positive, means("how far the tokens of a cloud are spread")]
LINEAR = 0.05
"""W₂ at which clusters are no longer small for the gates: their remainder is of this relative size."""


def _clouds(rng: np.random.Generator, prompts: int, n: int, spread: float) -> list[np.ndarray]:
    """Overlapping clouds on S² about nearby points."""
    about = unit(rng, 1, 3) + 0.6 * rng.standard_normal((prompts, 3))
    drawn = (c / np.linalg.norm(c) + spread * rng.standard_normal((n, 3)) for c in about)
    return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in drawn]


def _rms(x: np.ndarray, w: np.ndarray) -> float:
    mean = w @ x
    return float(np.sqrt(w @ np.sum((x - mean / np.linalg.norm(mean)) ** 2, axis=1)))


# --- S06


class Contracting(Setting):
    """A uniform cap and a random cloud under V = I, B = 0."""

    cap: Annotated[of.Positive, means("radius of the cap", "R", unit="radians")] = 1.0
    n: of.Tokens = 40
    spread: Spread = 0.4
    times: of.Times = (4.0, 6.0, 8.0, 10.0, 12.0)
    nodes: Annotated[of.Count, means("nodes in the height of the cap, and as many turns")] = 12
    seed: of.Seed = 0


def _cap(s: Contracting) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes in cos φ, evenly spaced turns."""
    x, w = np.polynomial.legendre.leggauss(s.nodes)
    c = 1 - (1 - np.cos(s.cap)) * (1 - x) / 2
    turn = 2 * np.pi * np.arange(s.nodes) / s.nodes
    rings = [
        np.column_stack([np.full(s.nodes, h), *(np.sqrt(1 - h * h) * f(turn) for f in (np.cos, np.sin))]) for h in c
    ]
    return np.vstack(rings), np.repeat(w / 2, s.nodes) / s.nodes


def _cloud(s: Contracting) -> tuple[np.ndarray, np.ndarray]:
    return _clouds(np.random.default_rng([6, abs(s.seed)]), 1, s.n, s.spread)[0], np.full(s.n, 1 / s.n)


def simulate_contracting(s: Contracting) -> Evidence:
    """e^t times the radius of both, integrated."""
    found = {"cap": [], "cloud": []}  # type: dict[str, list[float]]
    for t in s.times:
        ends = integrated(3, [{"t": t, "V": np.eye(3).tolist()}], [_cap(s), _cloud(s)]).ends
        for name, x, (_, w) in zip(found, ends, (_cap(s), _cloud(s)), strict=True):
            found[name].append(float(np.exp(t)) * _rms(x, w))
    return Evidence(found, curves=tuple(Curve(name, s.times, v) for name, v in found.items()))


def predict_contracting(s: Contracting) -> Evidence:
    """The cap in closed form; the cloud as it is at the first time, by its Lorentz matrix, for all later ones."""
    x, w = _cloud(s)
    first = _rms(apply_lorentz(lorentz_matrix(np.eye(3), x, w, s.times[0]), x)[0], w)
    late = {} if first**2 < 5e-3 else {"cloud": "a later first time: the cloud is not small there yet"}
    values = {
        "cap": np.exp(s.times) * cap_clustering(s.times, s.cap),
        "cloud": np.full(len(s.times), first * np.exp(s.times[0])),
    }
    return Evidence(values, undecided=late)


claim(
    "transport/S06",
    MEASURE_TO_MEASURE,
    "prompts collapse like e^{−t}",
    "With V = I, B = 0 the root mean square radius of a prompt in a hemisphere falls like C e^{−t}; for the uniform "
    "law on a cap of S² C is known.",
    where="Section 6: O(log 1/ε); the rate and the constant are derived",
    models=(),
    quick=Contracting(),
    full=Contracting(n=400, nodes=20),
    within={
        "cap": relative(1e-5, "nodes in height and turn resolve a smooth law; the integrator over e^{−12}"),
        "cloud": relative(0.01, "the remainder is of the size of the radius squared at the first time"),
    },
    simulate=simulate_contracting,
    predict=predict_contracting,
    axes=Axes("depth-time t", "e^t · radius"),
)

# --- S11


class Diracs(Setting):
    """Overlapping clouds sent to Dirac masses."""

    prompts: Annotated[of.Count, means("prompts", "N")] = 3
    n: of.Tokens = 40
    spread: Spread = 0.4
    times: Annotated[of.Times, means("duration of the layer", "T")] = (10.0, 12.0, 14.0)
    seed: of.Seed = 0


def _to_diracs(s: Diracs, time: float) -> tuple[list[np.ndarray], np.ndarray, list[Gate]]:
    """Clouds, where they should go, and the gates for their centres after a layer of that duration."""
    rng = np.random.default_rng([11, abs(s.seed)])
    clouds, goals = _clouds(rng, s.prompts, s.n, s.spread), unit(rng, s.prompts, 3)
    collapsed = SphereSchedule(3, [cluster_layer(3, time)]).push(clouds)
    return clouds, goals, match(np.vstack([centre(p) for p in collapsed]), goals, np.random.default_rng(0)).pieces


def simulate_diracs(s: Diracs) -> Evidence:
    """e^T · max W₂, one layer and the gates integrated."""
    worst = []
    for time in s.times:
        clouds, goals, gates = _to_diracs(s, time)
        records = SphereSchedule(3, [cluster_layer(3, time), *gates]).records()
        worst.append(max(integrated(3, records, clouds, list(goals[:, None])).w2 or []) * float(np.exp(time)))
    return Evidence({"scaled W2": worst})


def predict_diracs(s: Diracs) -> Evidence:
    """The clouds in the limit, stretched by the differential of the gates at their centres: one number for all T."""
    late = s.times[-1]
    clouds, _, gates = _to_diracs(s, late)
    worst = max(first_order_radius(gates, p) for p in SphereSchedule(3, [cluster_layer(3, late)]).push(clouds))
    scaled = worst * float(np.exp(late))
    longer = f"times from {np.log(scaled / LINEAR):.0f} on: the clusters are not small for the gates before"
    return Evidence(
        {"scaled W2": np.full(len(s.times), scaled)},
        undecided={"scaled W2": longer} if scaled * np.exp(-min(s.times)) > LINEAR else {},
    )


claim(
    "transport/S11",
    MEASURE_TO_MEASURE,
    "clouds reach Dirac masses like e^{−T}",
    "One layer V = I of duration T and gates for the N clusters send overlapping clouds to N Dirac masses with "
    "W₂ ~ C e^{−T}.",
    where="Theorem 1.1; O(log 1/ε) there, C derived",
    models=(),
    quick=Diracs(),
    full=Diracs(prompts=6, n=200, times=(10.0, 12.0, 14.0, 16.0)),
    within={"scaled W2": relative(LINEAR, "the gates are linear on the clusters up to their size, W₂")},
    simulate=simulate_diracs,
    predict=predict_diracs,
)

# --- S16


class Generic(Setting):
    """Prompts of uniform tokens under V = I, B = βI."""

    prompts: Annotated[of.Count, means("prompts", "N")] = 8
    n: of.Tokens = 6
    betas: of.Betas = (0.0, 1.0)
    until: of.Until = 30.0
    draws: of.Draws = 1
    seed: of.Seed = 0


def _generic(s: Generic, draw: int) -> list[np.ndarray]:
    rng = np.random.default_rng([16, draw, abs(s.seed)])
    return [unit(rng, s.n, 3) for _ in range(s.prompts)]


def simulate_generic(s: Generic) -> Evidence:
    """Means at the end, and the least distance of their directions."""
    lengths, gaps = [], []
    for beta in s.betas:
        record = {"t": s.until, "V": np.eye(3).tolist(), "B": (beta * np.eye(3)).tolist()}
        for draw in range(s.draws):
            means_ = np.array([x.mean(axis=0) for x in integrated(3, [record], _generic(s, draw)).ends])
            lengths.append(np.linalg.norm(means_, axis=1))
            ends = means_ / lengths[-1][:, None]
            apart = np.linalg.norm(ends[:, None] - ends[None], axis=2)
            gaps.append(apart[np.triu_indices(s.prompts, 1)].min())
    return Evidence({"mean": lengths, "least distance": gaps})


def predict_generic(s: Generic) -> Evidence:
    """One point for each prompt, no two the same."""
    runs = len(s.betas) * s.draws
    cold = {"mean": "β ≤ 2 or a longer time: prompts are metastable for e^{O(β)}"} if max(s.betas) > 2 else {}
    return Evidence({"mean": np.ones((runs, s.prompts)), "least distance": np.full(runs, 1e-3)}, undecided=cold)


def _all_equal(right: Any, size: float) -> Any:
    return lambda s, draw: right(s, draw)[:1] * s.prompts


claim(
    "transport/S16",
    MEASURE_TO_MEASURE,
    "one layer tells generic prompts apart",
    "Under V = I, B = βI generic prompts collapse each to a point of its own: O(1) layers disentangle N of them.",
    where="Proposition 6.2",
    models=(),
    quick=Generic(),
    full=Generic(draws=5),
    within={
        "mean": absolute(1e-6, SOLVER),
        "least distance": at_least("8 uniform points have two nearer than 1e-3 once in 10⁵ draws"),
    },
    simulate=simulate_generic,
    predict=predict_generic,
    mistakes=(Mistake("_generic", "equal prompts", _all_equal, (1.0,)),),
)
