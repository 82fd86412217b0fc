"""How much context resolves a query (arXiv:2605.16747; derived)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, MUTED, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import CONTEXTUAL
from pathlines.foundation.setting import Setting, means
from pathlines.limit.followups.finite_context import context_error, error_constant, law_holds_from


class Resolved(Setting):
    """Queries of one dimension."""

    norms: Annotated[of.NonNegatives, means("norms of the queries", "|q|")] = (0.6, 1.2, 2.0)
    d: of.Dimension = 4
    longest: Annotated[of.Positive, means("largest context shown", "n")] = 1e5
    draws: Annotated[of.Whole, means("contexts that are drawn at each of five lengths; 0: theory only")] = 300
    marked: Annotated[float, means("context that is marked; 0: none", "n")] = 0.0
    seed: of.Seed = 1


@picture(
    "followups/context",
    CONTEXTUAL,
    "Root mean square error of softmax attention to n Gaussian keys, against infinitely many, over n: exact (lines), "
    "drawn (points), and the Gaussian law (e^{|q|²}(d+|q|²)/n)^½ (dashed), which is within 5 % of it from the vertical "
    "ticks on. Sharper queries take exponentially more context, and before that the law overstates the error.",
    quick=Resolved(),
    full=Resolved(draws=3000),
)
def context(s: Resolved) -> Figure:
    """A curve for each query."""
    figure, ((axes,),) = new_figure(1, 1, width=5.4, height=3.6)
    lengths = np.geomspace(1, s.longest, 41)
    rng = np.random.default_rng(s.seed)
    low = min(context_error(r, s.longest, s.d) for r in s.norms)
    for k, r in enumerate(s.norms):
        colour = COLOURS[k % len(COLOURS)]
        axes.loglog(lengths, [context_error(r, n, s.d) for n in lengths], color=colour, label=f"|q| = {r:g}")
        law = np.sqrt(error_constant(r, s.d) / lengths)
        theory_line(axes, lengths, law, "Gaussian law" if k == 0 else None)
        begins = law_holds_from(r, s.d)
        if begins < s.longest:
            axes.plot(begins, context_error(r, begins, s.d), "|", ms=14, mew=2, color=colour)
        if s.draws:
            for n in (2, 10, 50, 250, 1250):
                axes.plot(n, _drawn(rng, r, s.d, n, s.draws), "o", ms=3.5, color=colour)
    axes.plot([], [], "|", ms=10, mew=2, color=MUTED, label="law within 5 %")
    if s.marked >= 1:
        axes.axvline(s.marked, color=MUTED, lw=1, label=f"n = {s.marked:,.7g}")
    axes.set(xlabel="context $n$", ylabel="rms error", ylim=(0.7 * low, 30), title=f"d = {s.d}")
    axes.legend()
    return figure


def _drawn(rng: np.random.Generator, r: float, d: int, n: int, draws: int) -> float:
    """Rms error of independent contexts."""
    keys = rng.standard_normal((draws, n, d))
    scores = r * keys[..., 0]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    said = np.einsum("kn,knd->kd", weights, keys) / weights.sum(axis=1)[:, None]
    said[:, 0] -= r
    return float(np.sqrt(np.mean(np.sum(said**2, axis=1))))
