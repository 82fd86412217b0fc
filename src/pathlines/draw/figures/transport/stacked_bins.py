"""Stack, rearrange, unstack; and conditional densities."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from pathlines.claim.transport.triangular_flows import PLANE
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import CONDITIONAL_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.triangular import TriangularFlow, density_parts


class Bins(Setting):
    """Flows to target B."""

    shown: Annotated[Annotated[int, Meta(ge=2, le=6)], means("bins of the frames above")] = 3
    bins: Annotated[Annotated[int, Meta(ge=2, le=64)], means("bins of the densities below", "n")] = 16
    points: Annotated[of.Count, means("points of a frame")] = 1500
    given: Annotated[tuple[float, float, float], means("first coordinates below", "x")] = (-1.5, 0.0, 1.0)


def _cut(flow: EuclideanSchedule, first: int, last: int) -> EuclideanSchedule:
    return EuclideanSchedule(*(getattr(flow, n)[first:last] for n in "wabt"))


@picture(
    "transport/stack-rearrange-unstack",
    CONDITIONAL_FLOWS,
    "Above: the second coordinate is moved conditionally on the bin of the first (colours). Shears put every bin on a "
    "storey of its own, one increasing map rearranges all storeys, the shears are undone; the first coordinate never "
    "changes. Below: densities of the second coordinate given the first, of the flow and of the target (dashed).",
    quick=Bins(),
    full=Bins(bins=32, points=4000),
)
def stacked_bins(s: Bins) -> Figure:
    """Four frames over three conditional densities."""
    figure, (frames, below) = new_figure(2, 4, width=2.5, height=2.3)
    first, second = density_parts(PLANE, s.shown, 12, 24)
    ramps = 2 * (s.shown - 1)
    cuts = ((0, 0), (0, ramps), (ramps, second.count - ramps), (second.count - ramps, second.count))
    x = first.forward(np.random.default_rng(0).standard_normal((s.points, 2)))[0]
    edges = np.unique(-second.b[:ramps].reshape(-1, 2).mean(1))
    colours = [COLOURS[k] for k in np.searchsorted(edges, x[:, 0])]
    for panel, cut, title in zip(frames, cuts, ("start", "stack", "rearrange", "unstack")):
        x = _cut(second, *cut).forward(x)[0]
        panel.scatter(*x.T, c=colours, s=2, linewidths=0, rasterized=True)
        panel.set(xlabel="$x_1$", ylabel="$x_2$", title=title)
    flow = TriangularFlow(bins=s.bins, knots=s.bins).fit_density(PLANE)
    y = np.linspace(-4, 4, 900)
    for panel, given, colour in zip(below, s.given, COLOURS[3:]):
        panel.plot(y, np.exp(flow.log_prob(y[:, None], given=given)), color=colour)
        theory_line(panel, y, np.exp(PLANE.line([given]).logpdf(y)))
        panel.set(xlabel="$x_2$", ylabel="density", title=f"given $x_1 = {given:g}$", ylim=(0, None))
    last = below[3]
    last.plot([], [], color=COLOURS[7], label=f"flow, {flow.report_.pieces} pieces")
    theory_line(last, [], [], label="target")
    last.axis("off")
    last.legend(loc="center left", title=f"KL = {flow.report_.kl:.4f} ± {flow.report_.kl_error:.4f}")
    return figure
