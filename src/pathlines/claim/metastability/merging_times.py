"""How long two clusters live (Dynamic metastability in the self-attention model, arXiv:2410.06833)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.limit.metastability.merging import log_merging_time

NAMES = {"usa": "USA", "sa": "SA"}


Starts = Annotated[of.Vector, means("angles at the start, one for each β", "φ₀", unit="radians")]
Ends = Annotated[tuple[of.Positive, ...], means("angles at the end, one for each β", unit="radians")]
CurveBetas = Annotated[tuple[of.Positive, ...], means("inverse temperatures of the figure", "β")]


class Merging(Setting):
    """Two clusters that merge."""

    betas: of.Betas = (4.0, 9.0, 25.0, 81.0, 400.0)
    starts: Starts = (2.0, 1.5, 1.0, 1.2, 0.8)
    ends: Ends = (0.01, 0.01, 0.01, 0.01, 0.001)
    kinds: of.Kinds = ("usa", "sa")
    lighter: Annotated[tuple[of.Positive, ...], means("masses of the lighter cluster", "m")] = (0.5, 0.2)
    curve_betas: CurveBetas = (2.0, 5.0, 15.0, 50.0, 150.0, 400.0)
    curve_start: Annotated[float, means("angle at the start in the figure", "φ₀", unit="radians")] = 1.2


def _cases(s: Merging) -> list[tuple[str, float]]:
    return [(kind, mass) for kind in s.kinds for mass in s.lighter]


def simulate(s: Merging) -> Evidence:
    """Two clusters in logarithmic time."""

    def measured(beta: float, start: float, end: float, kind: str, mass: float) -> float:
        return float(cluster_flow([0.0, start], beta, masses=[mass, 1 - mass], kind=kind, delta=end).log_times[0])

    rows = list(zip(s.betas, s.starts, s.ends, strict=True))
    times = [measured(*row, *case) for case in _cases(s) for row in rows]
    curves = tuple(
        Curve(f"{NAMES[k]}, masses {m:g} | {1 - m:g}", s.curve_betas,
              [measured(b, s.curve_start, s.ends[0], k, m) for b in s.curve_betas])
        for k, m in _cases(s)
    )  # fmt: skip
    return Evidence({"log_time": times}, curves=curves)


def predict(s: Merging) -> Evidence:
    """Exponential integrals; a quadrature for SA with unequal masses."""
    rows = list(zip(s.betas, s.starts, s.ends, strict=True))
    times = [log_merging_time(*row, kind, (mass, 1 - mass)) for kind, mass in _cases(s) for row in rows]
    betas = np.geomspace(min(s.curve_betas), max(s.curve_betas), 80)
    curves = tuple(
        Curve(f"closed form, {NAMES[k]}, {m:g}", betas,
              [log_merging_time(b, s.curve_start, s.ends[0], k, (m, 1 - m)) for b in betas])
        for k, m in _cases(s)
    )  # fmt: skip
    return Evidence({"log_time": times}, curves=curves)


claim(
    "metastability/M1",
    METASTABILITY,
    "merging time of two clusters (derived)",
    "Two clusters of total mass one at angle φ₀ merge after T = ½[Ei(βw₀)−Ei(βw₁)] + ½e^{2β}[E₁(β(2−w₀))−E₁(β(2−w₁))], "
    "w = 1−cos φ, under USA at any masses, ~ e^{βw₀}/(β sin²φ₀); under SA after ½[T + ln(tan(φ₀/2)/tan(φ₁/2))] for "
    "equal masses, and sooner for unequal ones.",
    where="derived; no statement in the paper",
    models=("sa", "usa"),
    quick=Merging(),
    full=Merging(curve_betas=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)),
    within={"log_time": absolute(1e-8, "a hundred times the solver tolerance 1e-10 on t, hence on ln t")},
    simulate=simulate,
    predict=predict,
    axes=Axes("inverse temperature β", "ln T", x_scale="log"),
    note="lighter is the mass of the first cluster; the other one has the rest.",
)
