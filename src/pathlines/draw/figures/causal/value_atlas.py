"""Where causally masked tokens end, by the eigenvalues of V (arXiv:2411.04990, the figure of trajectories on S²)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.orthographic import View, draw_on_sphere, draw_paths, draw_sphere
from pathlines.draw.style import COLOURS, INK, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import CAUSAL_CLUSTERING
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights


class Atlas(Setting):
    """Tokens and the diagonals of V."""

    n: of.Tokens = 32
    beta: of.Beta = 9.0
    until: of.Until = 5000.0
    samples: Annotated[of.Count, means("points on a path")] = 240
    values: Annotated[tuple[tuple[float, ...], ...], means("diagonals of V")] = (
        (1.0, 1.0, 1.0),
        (1.0, 0.5, -0.5),
        (1.0, 1.0, -0.5),
        (-0.5, -1.0, -1.0),
    )
    seed: of.Seed = 1


@picture(
    "causal/value-atlas",
    CAUSAL_CLUSTERING,
    "Trajectories of causally masked tokens on S², Q = K = I, for several diagonal V; final positions in red, the "
    "start of the first token as a black diamond in front. One leading eigenvalue makes two points, a leading plane "
    "clusters inside it, V = I one point in the end, after clusters that live long; a negative leading "
    "eigenvalue leaves clouds.",
    quick=Atlas(),
)
def value_atlas(s: Atlas) -> Figure:
    """One sphere for each V."""
    figure, (panels,) = new_figure(1, len(s.values), width=2.4, height=2.7)
    start = np.asarray(Sphere(3).uniform(jax.random.key(s.seed), n=s.n))
    view = View(azimuth=float(np.degrees(np.arctan2(start[0, 1], start[0, 0]))) + 30.0)
    # even at first, then even in log t: tokens move at once and then hardly
    times = np.append(0.0, np.geomspace(0.05, s.until, s.samples))
    for axes, diagonal in zip(panels, s.values, strict=True):
        model = SelfAttention(s.beta, weights=FixedWeights(np.diag(diagonal)), mask="causal")
        x = flow(model, start, times=times, record="tokens", rtol=1e-6)["tokens"].values
        draw_sphere(axes, view)
        draw_paths(axes, view, x, COLOURS[0], width=0.7, zorder=3)
        draw_on_sphere(axes, view, x[-1], COLOURS[1], size=26, zorder=5)
        draw_on_sphere(axes, view, start[:1], INK, size=22, marker="D", zorder=6)
        axes.set_title("V = diag(" + ", ".join(f"{v:g}".replace("-", "−") for v in diagonal) + ")", loc="center")
    return figure
