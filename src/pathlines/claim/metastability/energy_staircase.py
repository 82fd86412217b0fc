"""The energy staircase of Dynamic metastability in the self-attention model (arXiv:2410.06833)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.integrate.staircase import Staircase
from pathlines.limit.metastability.slow_laws import jump_time
from pathlines.limit.metastability.staircase import staircase

# --- M4: when clusters merge


class Clusters(Setting):
    """Clusters on the circle."""

    angles: of.Angles = (0.0, 0.5, 1.1, 2.4)
    masses: Annotated[tuple[of.NonNegative, ...], means("masses of the clusters", "m")] = (0.25, 0.25, 0.25, 0.25)
    delta: Annotated[of.Positive, means("clusters this near merge", "δ", unit="radians")] = 0.01
    kinds: of.Kinds = ("usa", "sa")


def _flow(s: Clusters, beta: float, kind: str) -> Staircase:
    return cluster_flow(s.angles, beta, masses=np.divide(s.masses, sum(s.masses)), kind=kind, delta=s.delta)


class Staircases(Clusters):
    """Staircases over β."""

    betas: of.Betas = (20.0, 100.0, 1000.0)


def _cases(s: Staircases) -> list[tuple[float, str]]:
    return [(beta, kind) for beta in s.betas for kind in s.kinds]


def _direction(angle: float) -> list[float]:
    return [float(np.cos(angle)), float(np.sin(angle))]


def _all(values: np.ndarray, count: int) -> np.ndarray:
    """With NaN for mergers that did not happen, from balanced starts."""
    return np.pad(values, (0, count - len(values)), constant_values=np.nan)


def simulate(s: Staircases) -> Evidence:
    """Clusters in logarithmic time, all influences included."""
    found = [_flow(s, beta, kind) for beta, kind in _cases(s)]
    clusters = len(s.angles)
    curves = tuple(
        Curve(kind.upper(), f.log_time[1:] / beta, f.energy[1:], panel=f"β = {beta:g}")
        for f, (beta, kind) in zip(found, _cases(s), strict=True)
    )
    values = {
        "log_time": np.concatenate([_all(f.log_times, clusters - 1) for f in found]),
        "level": np.concatenate([_all(f.levels, clusters) for f in found]),
        "direction": np.concatenate([_direction(f.final[0]) for f in found]),
        "largest_decrease": [float(np.max(-np.diff(f.energy), initial=0.0)) for f in found],
    }
    return Evidence(values, curves=curves)


def predict(s: Staircases) -> Evidence:
    """Quadrature over the closing gap, merger by merger."""
    found = [staircase(s.angles, beta, s.masses, kind, s.delta) for beta, kind in _cases(s)]
    curves = tuple(
        Curve(f"Σ m², {kind.upper()}", np.repeat(f.log_times, 2) / beta, np.repeat(f.levels, 2)[1:-1],
              panel=f"β = {beta:g}")
        for f, (beta, kind) in zip(found, _cases(s), strict=True)
    )  # fmt: skip
    values = {
        "log_time": np.concatenate([f.log_times for f in found]),
        "level": np.concatenate([f.levels for f in found]),
        "direction": np.concatenate([_direction(f.final) for f in found]),
        "largest_decrease": np.zeros(len(found)),
    }
    return Evidence(values, curves=curves, source="quadrature over the closing gap")


claim(
    "metastability/M4",
    METASTABILITY,
    "energy staircase",
    "Clusters merge one pair after another at times exponential in β; in between E = Σ m_p m_q e^{β(⟨x_p,x_q⟩−1)} "
    "rests at Σ m_q², jumps by 2m_p m_q at each merger, never decreases, and ends at one. This includes SA, for "
    "which it is not proved.",
    where="§6, theorem on the staircase of the energy",
    models=("sa", "usa"),
    quick=Staircases(),
    full=Staircases(betas=(10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 400.0, 1000.0)),
    within={
        "log_time": relative(2e-9, "two solvers at tolerance 1e-10 on angles, so β·1e-10 of ln t ~ β"),
        "level": absolute(1e-12, "sums of squares of masses"),
        "direction": absolute(2e-9, "the same, in the last angle"),
        "largest_decrease": at_most("rounding of E", slack=1e-12),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("ln t / β", "energy E"),
    note="The staircase is proved for USA with enforced collisions; for SA itself it is an open problem.",
    mistakes=(
        Mistake(
            "pathlines.integrate.cluster_flow.energy_of",
            "a power of the masses in E too small by {:g}",
            lambda right, size: lambda x, masses, beta: right(x, masses ** (1 - size), beta),
            (1e-9, 1e-6, 0.01),
        ),
    ),
)


# --- ER-05: the scale of the energy


PLATEAU = 1e-5
"""How flat a plateau is: 2m_p m_q e^{-βw} of the nearest clusters."""


def _plateaus(found: Staircase) -> np.ndarray:
    """E in the middle of each plateau on the scale of ln t, and after the last merger."""
    times = found.log_times
    middle = np.concatenate([[times[0] / 2], (times[1:] + times[:-1]) / 2, [times[-1] + 1]])
    return found.energy_at(middle)


class OneStaircase(Clusters):
    """The staircase at one β."""

    beta: of.Beta = 200.0


def simulate_scale(s: OneStaircase) -> Evidence:
    """Plateaus on both scales."""
    found = [_flow(s, s.beta, kind) for kind in s.kinds]
    heights = np.concatenate([_plateaus(f) for f in found])
    curves = tuple(
        Curve(f"{f.kind.upper()}, {name}", f.log_time[1:], f.energy[1:] * scale)
        for f in found
        for name, scale in (("2βE_β", 1.0), ("E_β as printed", 0.5 / s.beta))
    )
    return Evidence({"printed": heights / (2 * s.beta), "plateau": heights}, curves=curves)


def predict_scale(s: OneStaircase) -> Evidence:
    """Σ m² between mergers, where clusters do not feel each other at the start: else there is no plateau yet."""
    levels = np.concatenate([staircase(s.angles, s.beta, s.masses, kind, s.delta).levels for kind in s.kinds])
    turn, m = np.subtract.outer(s.angles, s.angles), np.asarray(s.masses, float) / np.sum(s.masses)
    pairs = np.outer(m, m) * np.exp(-2 * s.beta * np.sin(turn / 2) ** 2)
    at_rest = pairs.sum() - np.trace(pairs) < PLATEAU
    felt = {} if at_rest else {"plateau": "clusters feel each other at the start, there is no plateau: raise `beta`"}
    return Evidence({"printed": levels, "plateau": levels}, undecided=felt)


_SCALE_AXES = Axes("ln t", "energy")
ER_05B = claim(
    "metastability/ER-05b",
    METASTABILITY,
    "scale of the energy (derived)",
    "2βE_β = n⁻² Σ e^{β(⟨xᵢ,xⱼ⟩−1)} rests at Σ m_q² between mergers, and its last step is at one.",
    where="§1, interaction energy, rescaled for the staircase of §6",
    models=("sa", "usa"),
    quick=OneStaircase(),
    full=OneStaircase(beta=1000.0),
    within={"plateau": absolute(PLATEAU, "2m_p m_q e^{−βw} of the nearest clusters and of pairs at the merging gap")},
    simulate=simulate_scale,
    predict=predict_scale,
    axes=_SCALE_AXES,
)

ER_05B.printed_as(
    "metastability/ER-05",
    "scale of the energy, as printed",
    "With E_β = (2βe^βn²)⁻¹ Σ e^{β⟨xᵢ,xⱼ⟩} the staircase rests at Σ m_q² and its last step is at one.",
    where="§1, interaction energy, in the scale of the staircase of §6",
    within={"printed": absolute(1e-3, "plateaus differ by at least 1/8")},
    predict=predict_scale,
    note="E_β ≤ 1/(2β): as β → ∞ the printed staircase is identically zero.",
)


# --- ER-06: the time of one jump


class JumpTime(Setting):
    """Two clusters over β."""

    betas: of.Betas = (100.0, 1000.0, 10000.0, 1000000.0)
    start: Annotated[of.Positive, means("angle at the start", "u₀", unit="radians")] = 1.0


def simulate_jump(s: JumpTime) -> Evidence:
    """Two clusters of total mass one (c = 1) in the rescaled time of the cluster flow."""
    ends = np.sqrt(np.log(s.betas) / np.asarray(s.betas))
    times = [
        float(cluster_flow([0.0, s.start], beta, delta=float(end)).rescaled_times[0])
        for beta, end in zip(s.betas, ends, strict=True)
    ]
    return Evidence({"time": times}, curves=(Curve("clusters", s.betas, times),))


def predict_jump(s: JumpTime) -> Evidence:
    """[ln tan(u₀/2) − ln tan(u₁/2)]/ln β."""
    betas = np.geomspace(min(s.betas), max(s.betas), 80)
    times = [jump_time(beta, s.start) for beta in s.betas]
    lines = (
        Curve("exact", betas, [jump_time(b, s.start) for b in betas]),
        Curve("limit 1/(2c)", betas[[0, -1]], [0.5, 0.5]),
    )
    return Evidence({"time": times}, curves=lines)


def predict_printed_jump(s: JumpTime) -> Evidence:
    """2/c."""
    return Evidence({"time": np.full(len(s.betas), 2.0)}, curves=(Curve("2/c", [min(s.betas), max(s.betas)], [2, 2]),))


_JUMP_AXES = Axes("inverse temperature β", "rescaled time of the jump", x_scale="log")
claim(
    "metastability/ER-06",
    METASTABILITY,
    "lemma on the jump time, as printed",
    "In rescaled time, u′ = −c ln(β) sin u reaches √(ln β/β) at a time that tends to 2/c.",
    where="§6, lemma on the time scale of clustering, as printed",
    models=("usa",),
    quick=JumpTime(),
    within={"time": relative(0.5, "the approach to a limit like ln ln β/ln β; at β = 10⁶ it is 20 % for the true one")},
    simulate=simulate_jump,
    predict=predict_printed_jump,
    expected="refuted",
    corrected_by="metastability/ER-06b",
    axes=_JUMP_AXES,
    note="Also false from u = 0, which does not move.",
)
claim(
    "metastability/ER-06b",
    METASTABILITY,
    "lemma on the jump time (derived)",
    "In rescaled time, u′ = −c ln(β) sin u reaches √(ln β/β) at [ln tan(u₀/2) − ln tan(½√(ln β/β))]/(c ln β), which "
    "tends to 1/(2c).",
    where="§6, lemma on the time scale of clustering, corrected",
    models=("usa",),
    quick=JumpTime(),
    full=JumpTime(betas=(100.0, 1000.0, 10000.0, 100000.0, 1000000.0, 100000000.0)),
    within={"time": relative(1e-7, "a thousand times the solver tolerance 1e-10")},
    simulate=simulate_jump,
    predict=predict_jump,
    axes=_JUMP_AXES,
)
