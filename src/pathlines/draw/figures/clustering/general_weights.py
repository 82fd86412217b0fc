"""The phase diagram with random weights (A mathematical perspective on Transformers, arXiv:2312.10794)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.figures.clustering.phase_diagram import draw_phase
from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar
from pathlines.draw.style import new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.sweep.general_weights import general_weights_diagram

NAMES = {"goe": "QᵀK = GOE", "product": "QᵀK = GG′", "+score": "V ∝ QᵀK", "-score": "V ∝ −QᵀK", "wishart": "V = BBᵀ"}


class RandomWeights(Setting):
    """Laws of the weights, and the diagram."""

    cases: Annotated[tuple[tuple[str, str], ...], means("scores: goe, product; values: +score, -score, wishart")] = (
        ("goe", "+score"),
        ("goe", "-score"),
        ("product", "+score"),
        ("goe", "wishart"),
    )
    n: of.Tokens = 16
    d: of.Dimension = 8
    frozen: Annotated[str, means("weights are drawn anew for each: sample, …")] = "sample"
    period: Annotated[of.Positive, means("how long weights last where they change with depth", unit="depth-time")] = 1.0
    beta_min: of.LowestBeta = 0.1
    beta_max: of.HighestBeta = 9.0
    betas: of.BetaPoints = 10
    until: of.Until = 15.0
    times: of.TimePoints = 60
    samples: of.Samples = 16
    delta: of.Nearness = 0.001
    seed: of.Seed = 0


@picture(
    "clustering/general-weights",
    PERSPECTIVE,
    "The phase diagram with random weights, drawn anew for each sample and frozen in depth: QᵀK from the Gaussian "
    "orthogonal ensemble or a product of two Gaussian matrices, V = ±QᵀK/√(d+1) or positive definite. Tokens that end "
    "on both sides of an eigenvector merge in two groups, so p stops near one half or below.",
    quick=RandomWeights(),
    full=RandomWeights(n=32, until=30.0, betas=90, times=200, samples=256),
)
def general_weights(s: RandomWeights) -> Figure:
    """One panel a law of the weights."""
    figure, (panels,) = new_figure(1, len(s.cases), width=2.75, height=2.8)
    betas, times = np.linspace(s.beta_min, s.beta_max, s.betas), np.linspace(0, s.until, s.times)
    for axes, (score, value) in zip(panels, s.cases):
        data = general_weights_diagram(
            s.d, betas, times, s.samples, score=score, value=value, frozen=s.frozen, period=s.period, n=s.n,
            delta=s.delta, seed=s.seed,
        )  # fmt: skip
        shown = draw_phase(axes, data, half=False)
        axes.set_title(f"{NAMES[score]}, {NAMES[value]}")
    power = f"10^{{{np.log10(s.delta):.0f}}}".replace("-", "−")
    colour_bar(figure, shown, panels.tolist(), rf"$p = P(\langle x_1,x_2\rangle \geq 1 - {power})$")
    figure.suptitle(f"n = {s.n}, d = {s.d}, weights drawn for each {s.frozen}", x=0.01, ha="left", fontsize=9)
    return figure
