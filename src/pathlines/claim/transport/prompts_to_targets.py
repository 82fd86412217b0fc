"""N prompts to N targets with one transformer (arXiv:2411.04551): with attention, and what fails without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_most
from pathlines.claim.transport.integrated import SOLVER, integrated, unit
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.limit.transport.on_sphere import least_without_attention
from pathlines.transport.sphere.gate import Gate
from pathlines.transport.sphere.interpolate import MeasureInterpolator
from pathlines.transport.sphere.match import Matched, match
from pathlines.transport.sphere.schedule import SphereSchedule
from pathlines.transport.verifier import verify_schedule

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
    """W₂ of the worst draw of each dimension beyond what the integrator leaves open; the most pieces a point needed."""
    worst, errors, most = [], [], []
    for d in s.dimensions:
        w2, known, pieces = [], [], []
        for k in range(s.draws):
            rng = np.random.default_rng([9, abs(s.seed), k, d])
            sides = [
                [np.vstack([common, unit(rng, s.n - s.shared, d)]) for _ in range(s.prompts)]
                for common in (unit(rng, s.shared, d), unit(rng, s.shared, d))
            ]
            fitted = MeasureInterpolator(seed=k).fit(*sides)
            seen = verify_schedule(fitted.schedule_, *sides, rtol=1e-12)
            w2 += seen.w2 or []
            known += seen.w2_error or []
            pieces.append(fitted.schedule_.count)
        far = int(np.argmax(np.subtract(w2, known)))
        worst.append(w2[far])
        errors.append(known[far])
        most.append(max(pieces) / (s.prompts * s.n))
    return Evidence({"W2": worst, "pieces a point": most}, {"W2": errors})


def predict_sharing(s: Sharing) -> Evidence:
    """Exact, with at most five pieces a point and two layers of attention."""
    bound = 5 + 2 / (s.prompts * s.n)
    return Evidence({"W2": np.zeros(len(s.dimensions)), "pieces a point": np.full(len(s.dimensions), bound)})


def _with_gates(right: Any, change: Callable[[Gate], list[Gate]]) -> Any:
    """The matching with other gates."""

    def wrong(*arguments: Any, **named: Any) -> Matched:
        found = right(*arguments, **named)
        return found._replace(pieces=[new for gate in found.pieces for new in change(gate)])

    return wrong


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
        "W2": at_most(
            "rounding, amplified by the layers; what ten times the integrator's tolerance of 1e-12 changes",
            slack=1e-10,
            errors=1.0,
        ),
        "pieces a point": at_most("the corridor has five pieces"),
    },
    simulate=simulate_sharing,
    predict=predict_sharing,
    mistakes=(
        Mistake(
            "pathlines.transport.sphere.plan.match",
            "gates {:.0e} too long",
            lambda right, size: _with_gates(right, lambda p: [p._replace(duration=p.duration * (1 + size))]),
            (1e-8, 1e-6),
        ),
        Mistake(
            "pathlines.transport.sphere.plan.match",
            "every gate cut into {:.0f} pieces",
            lambda right, size: _with_gates(right, lambda p: [p._replace(duration=p.duration / size)] * int(size)),
            (2, 4),
        ),
    ),
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
    shared, frame = unit(rng, 1, s.d), np.linalg.qr(rng.standard_normal((s.d, 2)))[0].T
    near = [np.cos(v) * frame[0] + np.sin(v) * frame[1] for v in (0.0, s.angle, s.angle / 2)]
    own, far = ([unit(rng, s.n - 1, s.d) for _ in range(2)] for _ in range(2))
    found = match(np.vstack([shared, *own]), np.vstack([near[2][None], *far]), rng)
    records = SphereSchedule(s.d, found.pieces).records()
    prompts = [np.vstack([shared, x]) for x in own]
    targets = [np.vstack([y[None], rest]) for y, rest in zip(near[:2], far, strict=True)]
    return Evidence({"largest W2": max(integrated(s.d, records, prompts, targets).w2 or [])})


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
