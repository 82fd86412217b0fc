"""Low temperature: displaced separatrices, plateaus over β, and flows that go on below them (arXiv:2605.10931)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from pathlines.claim.followups.low_temperature import Concentrated, MeanAngle, Points, Values, matrix_of
from pathlines.draw.gallery import picture
from pathlines.draw.misassignment_figure import draw_start
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import LOW_TEMPERATURE
from pathlines.foundation.setting import Setting
from pathlines.integrate.concentration import concentrate
from pathlines.limit.followups.separatrix import distances, misassignment, von_mises


class Concentrating(Setting):
    """A von Mises start at several temperatures."""

    betas: of.Betas = (16.0, 64.0, 256.0)
    value: Values = (1.0, 0.3)
    kappa: Concentrated = 1.0
    mean_angle: MeanAngle = 45.0
    until: of.Until = 16.0
    n: Points = 1200


@picture(
    "followups/low-temperature",
    LOW_TEMPERATURE,
    "Concentration at low temperature on the circle. Left: the start over the angle from e₁; the red mass lies between "
    "the separatrix of zero temperature (90°) and the displaced one (smallest β) and goes to the wrong pole. Middle: "
    "distance to the projected start over depth, simulated, and its theory (dashed). Right: plateaus over β "
    "against 2√mis, with mis to "
    "first (dotted) and second order (dashed).",
    quick=Concentrating(),
)
def low_temperature(s: Concentrating) -> Figure:
    """Start, distances, plateaus."""
    figure, ((first, middle, last),) = new_figure(1, 3, width=3.4, height=3.0)
    rho, v = von_mises(s.kappa, np.deg2rad(s.mean_angle)), matrix_of(s.value)
    draw_start(first, rho, misassignment(rho, s.betas[0], v))
    times = np.linspace(0, s.until, 61)
    for k, beta in enumerate(s.betas):
        found = concentrate(rho, beta, v, times, s.n)
        middle.semilogy(times, found.distance, color=COLOURS[k % len(COLOURS)], label=f"β = {beta:g}")
        theory_line(middle, times, distances(rho, beta, v, times), "theory" if k == 0 else None)
        last.loglog(beta, found.distance[-1], "o", color=COLOURS[k % len(COLOURS)], ms=5)
    middle.set(xlabel="depth-time $t$", ylabel="distance to the projected start", title="approach and plateau")
    middle.legend()
    many = np.geomspace(0.6 * min(s.betas), 1.6 * max(s.betas), 60)
    known = [misassignment(rho, b, v) for b in many]
    last.loglog(many, [2 * np.sqrt(k.first) for k in known], ":", color=COLOURS[7], lw=1.2, label="first order")
    theory_line(last, many, [k.plateau for k in known], "second order")
    last.set(xlabel=r"inverse temperature $\beta$", ylabel="plateau", title="plateaus")
    last.legend()
    return figure
