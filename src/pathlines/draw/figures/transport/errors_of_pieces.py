"""How errors fall with the number of pieces, on the line."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation.papers.transport import NORMALIZING_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.limit.transport.knots import interpolation_law
from pathlines.transport.euclid.transport1d import Transport1D
from pathlines.transport.targets import GaussianMixture

MIXTURE = ((0.3, 0.5, 0.2), (-2.0, 0.5, 3.0), (0.5, 0.8, 0.4))
"""Weights, means and standard deviations of target A."""


class Errors(Setting):
    """Flows to target A."""

    knots: Annotated[tuple[Annotated[int, Meta(ge=4)], ...], means("knots", "K")] = (8, 16, 32, 64, 128)
    shown: Annotated[Annotated[int, Meta(ge=4)], means("knots of the density that is shown", "K")] = 12


@picture(
    "transport/errors-of-pieces",
    NORMALIZING_FLOWS,
    "Left: the density of a flow with few pieces beside its target, three Gaussians; it jumps at every kink "
    "and has the right mass between them. Right: relative entropy and total variation over the number of pieces, with "
    "their laws KL ≈ C/K² and TV ≈ C'/K (dashed).",
    quick=Errors(),
    full=Errors(knots=(8, 16, 32, 64, 128, 256, 512)),
)
def errors_of_pieces(s: Errors) -> Figure:
    """A density; two decays."""
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.0)
    weights, centres, deviations = MIXTURE
    law = GaussianMixture(weights, np.array(centres)[:, None], np.array(deviations)[:, None, None] ** 2).line()
    few = Transport1D(s.shown + 2).fit_density(law.logpdf, law.cdf, law.sf)
    y = np.linspace(-4.5, 5, 1500)
    left.plot(y, np.exp(few.log_prob(y[:, None])), color=COLOURS[0], label=f"flow, {s.shown + 2} pieces")
    theory_line(left, y, np.exp(law.logpdf(y)), label="target")
    left.set(xlabel="$y$", ylabel="density")
    left.legend()
    found = [Transport1D(k + 2).fit_density(law.logpdf, law.cdf, law.sf).report_ for k in s.knots]
    laws = [interpolation_law(k, weights, centres, deviations) for k in s.knots]
    k = np.array(s.knots)
    curves = (
        ("KL", [r.kl for r in found], [v.kl for v in laws] / k**2, "o"),
        ("TV", [r.tv for r in found], [v.tv for v in laws] / k, "s"),
    )
    for colour, (name, measured, law_of, sign) in zip(COLOURS, curves):
        right.plot(k + 2, measured, sign, color=colour, label=name)
        theory_line(right, k + 2, law_of, label="law" if name == "TV" else None)
    right.set(xlabel="pieces $P = K + 2$", ylabel="error", xscale="log", yscale="log")
    right.legend()
    return figure
