"""Overlapping clouds to Dirac masses: how W₂ falls with the time of the one layer (arXiv:2411.04551, Theorem 1.1)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.orthographic import View, draw_on_sphere, draw_sphere
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import MEASURE_TO_MEASURE
from pathlines.foundation.setting import Setting, means
from pathlines.transport.sphere.collapse import centre, cluster_layer, first_order_radius, radius
from pathlines.transport.sphere.match import match
from pathlines.transport.sphere.measure import Measure
from pathlines.transport.sphere.schedule import SphereSchedule


class Clouds(Setting):
    """Clouds about nearby points of S²."""

    prompts: Annotated[of.Count, means("prompts", "N")] = 3
    n: of.Tokens = 80
    spread: Annotated[of.Positive, means("how far the tokens of a cloud are spread")] = 0.35
    times: Annotated[of.Times, means("duration of the layer of attention", "T")] = (
        2.0,
        4.0,
        6.0,
        8.0,
        10.0,
        12.0,
        14.0,
    )
    azimuth: of.Azimuth = -12.0
    elevation: of.Elevation = 25.0
    seed: of.Seed = 7


@picture(
    "transport/clouds-to-diracs",
    MEASURE_TO_MEASURE,
    "Left: three overlapping clouds (dots) and the Dirac masses they are sent to (crosses). Right: W₂ of each cloud to "
    "its Dirac mass over the duration T of the one layer of attention, after which gates steer the clusters; dashed: "
    "C e^{−T}, with C from the limit of the cloud and the differential of the gates.",
    quick=Clouds(),
    full=Clouds(prompts=5, n=400),
)
def clouds_to_diracs(s: Clouds) -> Figure:
    """A sphere and a decay."""
    rng = np.random.default_rng(s.seed)
    clouds, goals = _clouds(s, rng), _unit(rng.standard_normal((s.prompts, 3)))
    found, laws = [], np.zeros(s.prompts)
    for time in s.times:
        collapsed = SphereSchedule(3, [cluster_layer(3, time)]).push(clouds)
        gates = match(np.vstack([centre(p) for p in collapsed]), goals, np.random.default_rng(s.seed)).pieces
        ends = SphereSchedule(3, gates).push(collapsed)
        found.append([radius(p, goal) for p, goal in zip(ends, goals, strict=True)])
        laws = np.array([first_order_radius(gates, p) for p in collapsed]) * np.exp(time)
    figure, ((left, right),) = new_figure(1, 2, width=3.7, height=3.2)
    view = View(s.azimuth, s.elevation)
    draw_sphere(left, view)
    for k, (cloud, goal) in enumerate(zip(clouds, goals, strict=True)):
        draw_on_sphere(left, view, cloud.points, COLOURS[k], 12.0)
        flat, depth = view.project(goal)
        left.plot(*flat, "X", color=COLOURS[k], ms=10, mec="white", mew=0.8, alpha=1.0 if depth > 0 else 0.55, zorder=7)
        right.plot(s.times, np.array(found)[:, k], "osD^v<>ph"[k % 9], color=COLOURS[k], ms=5, label=f"cloud {k + 1}")
    for k, law in enumerate(laws):
        theory_line(right, s.times, law * np.exp(-np.array(s.times)), label=None if k else "$C e^{-T}$", lw=1.0)
    left.set_title("clouds and Dirac masses")
    right.set_title("one layer of attention, then gates")
    right.set(xlabel="duration $T$ of attention", ylabel="$W_2$ to the Dirac mass", yscale="log")
    right.legend()
    return figure


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _clouds(s: Clouds, rng: np.random.Generator) -> list[Measure]:
    about = _unit(np.array([1.0, 0.0, 0.3]) + 0.45 * rng.standard_normal((s.prompts, 3)))
    return [Measure(_unit(c + s.spread * rng.standard_normal((s.n, 3))), np.full(s.n, 1 / s.n)) for c in about]
