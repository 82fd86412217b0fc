"""Layers of finite size: the layer map against the ODE (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.limit.homogenized.overlap_curve import layer_map_curve, overlap_curve
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.observable.pairs import mean_overlap

COMPARED = ("layer map, d = ∞", "layer map, first order in 1/d", "ODE, printed drift", "chain, mean ± 2 s.e.")


class Chains(Setting):
    """Chains of two steps."""

    n: of.Tokens = 16
    d: of.Dimension = 256
    b: of.LogitScale = 2.0
    heads: of.Heads = 4
    steps: Annotated[of.Positives, means("residual step of each panel", "η")] = (0.4, 1.4)
    runs: Annotated[of.Counts, means("runs of each panel")] = (16, 100)
    until: of.Tau = 6.0
    points: Annotated[of.Count, means("records of the chain")] = 12
    seed: of.Seed = 0


def _panel(overlap: Axes, gap: Axes, step: float, runs: int, s: Chains) -> None:
    """γ̄(τ) of the chain and of the predictions, and each minus the layer map at d = ∞."""
    model = RandomTransformer(s.d, heads=s.heads, step=step, logit_scale=s.b)
    v = model.clocks["tau"]
    every = max(1, round(s.until / v / s.points))
    depth = every * round(s.until / v / every)
    tokens = Sphere(s.d).simplex(s.n)
    run = chain(model, tokens, depth=depth, every=every, key=jax.random.key(s.seed), runs=runs, record=mean_overlap)
    values = run["mean_overlap"].values
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(runs)
    tau = v * np.arange(depth + 1)
    plain, finite = (layer_map_curve(depth, s.n, s.b, v, d=d).overlap for d in (np.inf, s.d))
    ode = overlap_curve(tau, s.n, s.b)
    fine = np.linspace(0, tau[-1], 121)
    styles = ({"color": COLOURS[2]}, {"color": THEORY, "ls": (0, (4, 2.2)), "lw": 1.2}, {"color": COLOURS[1]})
    for curve, style, label in zip((plain, finite), styles, COMPARED):
        overlap.plot(tau, curve, label=label, **style)
    overlap.plot(fine, overlap_curve(fine, s.n, s.b), label=COMPARED[2], **styles[2])
    for curve, style in zip((plain, finite, ode), styles):
        gap.plot(tau, curve - plain, **style)
    points = {"fmt": "o", "ms": 3.6, "color": COLOURS[0], "lw": 1.1, "mfc": "white", "zorder": 6}
    overlap.errorbar(run.time, mean, 2 * error, label=COMPARED[-1], **points)
    gap.errorbar(run.time, mean - plain[::every], 2 * error, **points)
    overlap.set(ylabel=r"mean overlap $\bar\gamma$", ylim=(-0.02, 1.02), title=f"v = {v:.3g}, {depth} layers")
    gap.set(ylabel="minus layer map")
    for axes in (overlap, gap):
        axes.set(xlabel=r"diffusive time $\tau = v\ell$", xlim=(0, 1.02 * tau[-1]))


@picture(
    "homogenized/layer-map",
    HOMOGENIZED,
    "Mean overlap of n orthogonal tokens under random layers, mean ± 2 standard errors of the exact Gram sampler, "
    "against the ODE with the printed drift and the layer map γ' = (γ + vS)/(1 + vP), d = ∞ and to first order in "
    "1/d. Below, everything minus the layer map. Small layers (left) agree with both; large ones (right) with the map "
    "only.",
    quick=Chains(),
    full=Chains(runs=(1000, 4000), steps=(0.1, 1.4)),
)
def layer_map(s: Chains) -> Figure:
    """One column per step."""
    figure, (above, below) = new_figure(2, len(s.steps), width=4.0, height=2.5, height_ratios=[1.3, 1])
    for top, bottom, step, runs in zip(above, below, s.steps, s.runs):
        _panel(top, bottom, step, runs, s)
    figure.suptitle(f"n = {s.n}, d = {s.d}, b = {s.b:g}, H = {s.heads}", x=0.01, ha="left", fontsize=9)
    legend_below(figure, [above[0]])
    return figure
