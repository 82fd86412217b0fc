"""Retrieval profiles over depth, theory over simulation (arXiv:2605.09213)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, band, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.profile import retrieval_profile
from pathlines.model.causal.decoder import CausalDecoder


class Profiles(Setting):
    """Prompts of the left panel, slopes and depths of both."""

    beta: of.Beta = 1.0
    slope: Annotated[of.NonNegative, means("ALiBi slope of the left panel", "λ")] = 2.0
    steep: Annotated[of.NonNegative, means("ALiBi slope of the right panel", "λ")] = 4.0
    vocabulary: Annotated[of.Count, means("words of the vocabulary", "K")] = 8
    n: of.Tokens = 256
    prompts: Annotated[of.Count, means("prompts of the estimator")] = 2000
    depths: Annotated[of.Positives, means("depths of the left panel", "t")] = (0.3, 0.6, 1.0)
    shares: Annotated[of.Positives, means("depths of the right panel, over t_rec")] = (0.3, 0.7, 1.0, 1.2, 1.6)
    seed: of.Seed = 0


@picture(
    "causal/retrieval-profiles",
    KINETIC,
    "What the last token remembers of the token at σ₀. Left: theory (dashed) over simulation by the adjoint estimator, "
    "± 2 standard errors; dots mark the worst position. Right: the closed form at depths up to and beyond t_rec, over "
    "its value at the end: the U loses its right arm, a maximum is buried inside the prompt, only primacy is left.",
    quick=Profiles(),
    full=Profiles(prompts=20000, n=1024),
)
def retrieval_profiles(s: Profiles) -> Figure:
    """Simulation and theory; the family in depth."""
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.0)
    model, grid = CausalDecoder(s.beta, s.slope), np.linspace(0.004, 1, 400)
    for k, t in enumerate(s.depths):
        found = retrieval(model, s.n, t, key=jax.random.key(s.seed), prompts=s.prompts, vocabulary=s.vocabulary)
        value, error = found["profile"].values, found["error"].values
        band(left, np.arange(1, s.n) / s.n, value, error, COLOURS[k], label=f"t = {t:g}")
        profile = retrieval_profile(s.beta, s.slope, s.vocabulary, t)
        theory_line(left, grid, profile(grid), label="closed form" if k == 0 else None)
        left.plot([profile.worst], [profile(profile.worst)], "o", color=COLOURS[k], ms=4.5, zorder=6)
    left.set(
        xlabel=r"source position $\sigma_0$", ylabel="retrieval profile $S$", title=f"β = {s.beta:g}, λ = {s.slope:g}"
    )
    steep = retrieval_profile(s.beta, s.steep, s.vocabulary, 1.0)
    shades = np.linspace(0.15, 1, len(s.shares))
    for k, (share, shade) in enumerate(zip(s.shares, shades, strict=True)):
        profile = steep.at_depth(share * steep.recency_lost)
        right.plot(grid, profile(grid) / profile(1.0), color=COLOURS[0], alpha=shade, label=f"{share:g} $t_{{rec}}$")
        low, high = profile.extrema()
        for places, mark in ((low, "v"), (high, "^")):
            right.plot(places, profile(places) / profile(1.0), mark, color=COLOURS[1], ms=5, zorder=6 + k)
    right.axhline(1.0, color=MUTED, lw=0.7)
    right.set(
        xlabel=r"source position $\sigma_0$",
        ylabel=r"$S(\sigma_0)/S(1)$",
        ylim=(0, 2.2),
        title=f"λ = {s.steep:g}, deeper and deeper",
    )
    legend_below(figure, [left, right], columns=5)
    return figure
