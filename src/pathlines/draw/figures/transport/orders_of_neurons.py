"""Neurons run one after another: in random order, and in that of golden angles."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, band, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import CONDITIONAL_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.transport.euclid.maurey import MaureyFlow, rotation_neurons


class Orders(Setting):
    """The rotation of the plane by one radian, as an average of neurons."""

    pieces: Annotated[tuple[Annotated[int, Meta(ge=8)], ...], means("neurons", "M")] = (16, 64, 256, 1024, 4096)
    runs: Annotated[Annotated[int, Meta(ge=2)], means("random orders for each number")] = 8
    points: Annotated[of.Count, means("points of N(0, I) that are moved")] = 500


@picture(
    "transport/orders-of-neurons",
    CONDITIONAL_FLOWS,
    "Root mean square error of the rotation by one radian when M neurons are run for 1/M each. In random order it is "
    "√(6/M) (dashed; band: two standard errors); in the order of golden angles it is about 2.7/M (dotted; observed, "
    "not proved).",
    quick=Orders(),
    full=Orders(pieces=(16, 32, 64, 128, 256, 512, 1024, 2048, 4096), runs=20),
)
def orders_of_neurons(s: Orders) -> Figure:
    """Two decays."""
    figure, ((panel,),) = new_figure(1, 1, width=4.6, height=3.2)
    x = np.random.default_rng(0).standard_normal((s.points, 2))
    turned = x @ np.array([1, 1j]) * np.exp(1j)
    exact = np.column_stack([turned.real, turned.imag])

    def square(order: str, m: int, seed: int = 0) -> float:
        flow = MaureyFlow(rotation_neurons(2), 1, 1.0, order, m, seed=seed).fit()
        return float(np.mean(np.sum((flow.transform(x) - exact) ** 2, axis=1)))

    m = np.array(s.pieces)
    drawn = np.array([[square("random", k, seed) for seed in range(s.runs)] for k in s.pieces])
    mean = drawn.mean(1)
    error = drawn.std(1, ddof=1) / np.sqrt(s.runs) / (2 * np.sqrt(mean))
    panel.plot(m, np.sqrt(mean), "o-", color=COLOURS[1], label="random order")
    band(panel, m, np.sqrt(mean), error, COLOURS[1])
    theory_line(panel, m, np.sqrt(6 / m), label="$\\sqrt{6/M}$")
    panel.plot(m, [np.sqrt(square("golden", k)) for k in s.pieces], "s-", color=COLOURS[0], label="golden angles")
    panel.plot(m, 2.7 / m, ":", color=COLOURS[7], label="$2.7/M$")
    panel.set(xlabel="neurons $M$", ylabel="error", xscale="log", yscale="log")
    panel.legend()
    return figure
