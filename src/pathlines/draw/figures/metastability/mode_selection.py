"""How surely the fastest mode wins (new; after arXiv:2410.23228)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.figure import Figure

from pathlines.domain.circle_law import QuietMoments, QuietTokens
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import ensemble
from pathlines.limit.metastability.growth import dominant_degree, growth_rates, selection_probabilities
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.patterns import potential_modes


class Selection(Setting):
    """Inverse temperatures, and quiet starts."""

    betas: of.Betas = (5.0, 7.0, 9.0, 25.0, 81.0)
    beta: of.Beta = 9.0
    sizes: of.TokenNumbers = (1000.0, 100000.0, 100000000.0, 1000000000000.0)
    runs: of.Runs = 40
    points: of.Carriers = 300
    noisy: of.NoisyModes = 18
    level: of.FormationLevel = 0.1
    seed: of.Seed = 0
    low: Annotated[of.Positive, means("fewest tokens", "N")] = 1000.0
    high: Annotated[of.Positive, means("most tokens", "N")] = 100000000000000.0


def _measured(s: Selection, tokens: float) -> tuple[float, float]:
    """Share of quiet starts with k* maxima of the potential at saturation, and its standard error."""
    k = dominant_degree(s.beta, 2)
    last = (0.5 * np.log(tokens) + 2) / growth_rates(s.beta, 2, k)[-1]
    law = QuietTokens(QuietMoments(tokens, s.noisy), s.points)
    key = jax.random.key(s.seed)
    run = ensemble(CircleAttention(s.beta), law, runs=s.runs, key=key, times=[last], record=potential_modes, rtol=1e-5)
    share = float((run["potential_modes"].values == k).mean())
    safe = (share * s.runs + 1) / (s.runs + 2)
    return share, float(np.sqrt(safe * (1 - safe) / s.runs))


@picture(
    "metastability/selection-probability",
    METASTABLE_EMERGENCE,
    "Lines: the probability that the fastest mode k* is the first to reach amplitude 0.1 out of N i.i.d. uniform "
    "tokens on the circle, in the linear phase. A slower mode k is suppressed only by a power of N with exponent "
    "(1 − λₖ/λ*)/2, which falls with β, so no number of tokens in use makes the choice certain. Points with two "
    "standard errors: the share of nonlinear mean-field runs that saturate with k* clusters, which the later "
    "competition raises.",
    quick=Selection(),
    full=Selection(runs=200, sizes=(1000.0, 10000.0, 100000.0, 1000000.0, 100000000.0, 10000000000.0, 1000000000000.0)),
)
def selection(s: Selection) -> Figure:
    """Lines of theory, points of runs."""
    figure, ((axes,),) = new_figure(1, 1, width=5.2, height=3.4)
    grid = np.geomspace(s.low, s.high, 40)
    for ink, beta in zip(COLOURS, s.betas):
        k = dominant_degree(beta, 2)
        chance = [selection_probabilities(beta, n, s.level)[k - 1] for n in grid]
        axes.plot(grid, chance, color=ink, label=f"β = {beta:g}, k* = {k}")
    share, error = np.transpose([_measured(s, n) for n in s.sizes])
    ink = COLOURS[list(s.betas).index(s.beta)] if s.beta in s.betas else COLOURS[-1]
    axes.errorbar(s.sizes, share, 2 * error, fmt="o", ms=4.5, lw=1.1, capsize=2.5, color=ink,
                  label=f"runs, β = {s.beta:g}")  # fmt: skip
    axes.set(
        xscale="log", xlabel="tokens $N$", ylabel="probability of $k^*$", ylim=(0, 1.02), xlim=(s.low / 1.5, s.high)
    )
    legend_below(figure, [axes], columns=3)
    return figure
