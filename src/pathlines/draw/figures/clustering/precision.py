"""How many digits survive: pair deficits at late time (A mathematical perspective, arXiv:2312.10794)."""

from __future__ import annotations

import jax
import numpy as np
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention
from pathlines.observable.pairs import deficits


class Collapse(Setting):
    """A start in a hemisphere."""

    n: of.Tokens = 6
    d: of.Dimension = 3
    beta: of.Beta = 2.0
    until: of.Until = 150.0
    frames: of.Records = 301
    rtol: of.Rtol = 1e-12
    seed: of.Seed = 1


@picture(
    "clustering/precision",
    PERSPECTIVE,
    "A start in a hemisphere collapses like u₁₂ = 1 − ⟨x₁,x₂⟩ ~ C e^{−2t}. One minus the inner product of the tokens "
    "is lost at 1e-16, half the squared distance of the same tokens at 1e-33, while the equation for the deficits "
    "themselves keeps its digits to the end (right: deviation from C, which must be constant).",
    quick=Collapse(),
    full=Collapse(frames=1501),
)
def precision(s: Collapse) -> Figure:
    """The deficit three ways, and how constant u e^{2t} is."""
    sphere = Sphere(s.d)
    anywhere = np.asarray(sphere.uniform(jax.random.key(s.seed), s.n))
    start = sphere.normalise(anywhere * np.sign(anywhere[:, :1]) + 0.2 * np.eye(s.d)[0])
    times = np.linspace(0, s.until, s.frames)
    model = SelfAttention(s.beta)
    tokens = flow(model, start, times=times, record=[positions, deficits], form="tokens", rtol=s.rtol)
    exact = flow(model, start, times=times, record=[deficits], form="gram-deficit", rtol=s.rtol)
    x = tokens["tokens"].values
    ways = (
        ("deficit form", exact["deficits"].values[:, 0, 1]),
        ("tokens, ½|x₁ − x₂|²", tokens["deficits"].values[:, 0, 1]),
        ("tokens, 1 − ⟨x₁, x₂⟩", np.abs(1 - np.sum(x[:, 0] * x[:, 1], axis=1))),
    )
    limit = ways[0][1][-1] * np.exp(2 * times[-1])
    figure, ((left, right),) = new_figure(1, 2, width=4.4, height=3.1)
    for (label, u), colour, order, width in zip(ways, COLOURS, (4, 3, 2), (1.8, 1.5, 1.2)):
        positive = np.where(u > 0, u, np.nan)
        left.semilogy(times, positive, color=colour, label=label, zorder=order, lw=width)
        with np.errstate(over="ignore"):
            off = np.abs(positive * np.exp(2 * times) / limit - 1)
        right.semilogy(times, np.where(off > 0, off, np.nan), color=colour, zorder=order, lw=width)
    theory_line(left, times, limit * np.exp(-2 * times), label=r"$C\,e^{-2t}$")
    for floor, note in ((1.1e-16, "rounding ε"), (1.2e-32, "ε²")):
        left.axhline(floor, color=MUTED, lw=0.8, ls=":")
        left.annotate(note, (s.until, floor), (0, 3), textcoords="offset points", ha="right", fontsize=8, color=MUTED)
    left.set(xlabel="depth-time $t$", ylabel="deficit $u_{12}(t)$", title=f"n = {s.n}, d = {s.d}, β = {s.beta:g}")
    left.set_ylim(bottom=float(ways[0][1][-1]) / 1e6)
    right.set(xlabel="depth-time $t$", ylabel=r"$|u_{12}\,e^{2t}/C - 1|$", title="digits kept", ylim=(1e-16, 1e8))
    legend_below(figure, [left])
    return figure
