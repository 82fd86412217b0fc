"""The layer map is not an integrator of SA (erratum to A mathematical perspective, arXiv:2312.10794)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import quad

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import layers
from pathlines.limit.clustering.equiangular import phase_curve
from pathlines.limit.clustering.layers import layers_to_deficit
from pathlines.limit.clustering.reduction import attention_numbers
from pathlines.model import SelfAttention
from pathlines.observable.analysis import crossing_time
from pathlines.observable.pairs import u_mean

INKS = (COLOURS[2], COLOURS[3], COLOURS[1], COLOURS[4])


def first_order_delay(n: int, beta: float, delta: float) -> float:
    """c in t_layers = Γ + cη + O(η²), from the modified equation of the layer map in L = ln(1 - ρ) (derived).

    A layer changes L by ηf + η²g + O(η³), f = 2(o - h), g = 2h² - o² - m² with o = a - b, h = ⟨x,A⟩, m = |A|; hence
    c = ∫ g/f² dL over L from ln δ to 0, plus ½ ln of f at the end over f at the start.
    """

    def rates(log_deficit: float) -> tuple[float, float]:
        y = np.exp(log_deficit)
        own, _, h, m = (float(v) for v in attention_numbers(y, 1 - y + 1 / (n - 1), n, beta))
        return 2 * (own - h), 2 * h * h - own * own - m * m

    def integrand(log_deficit: float) -> float:
        f, g = rates(log_deficit)
        return g / f**2

    end = np.log(delta)
    return float(quad(integrand, end, 0.0, limit=400)[0] + 0.5 * np.log(rates(end)[0] / rates(0.0)[0]))


def token_boundary(n: int, beta: float, delta: float, step: float, depth: int) -> float:
    """Depth-time at which n orthonormal tokens, moved by Post-LN layers x ← N(x + ηA), come within u ≤ δ."""
    run = layers(SelfAttention(beta), Sphere(n).simplex(n), depth=depth, step=step, record=u_mean)
    return crossing_time(run.time, run["u_mean"].values, delta)


class Stacks(Setting):
    """Steps of the layers and the axis of β."""

    n: of.Tokens = 32
    delta: of.Nearness = 0.001
    steps: of.Steps = (0.05, 0.1, 0.2, 0.5)
    beta_max: of.HighestBeta = 9.0
    betas: of.BetaPoints = 28
    token_betas: Annotated[of.NonNegatives, means("of the circles", "β")] = (1.0, 4.0, 7.0)


@picture(
    "clustering/layer-vs-flow",
    PERSPECTIVE,
    "Boundary of the phase diagram in high dimension: exact Γ of the flow (dashed) against stacks of Post-LN layers "
    "x ← N(x + ηA) at depth-time ηℓ. A layer moves a token by η/(1 + ηh), h = ⟨x, A⟩, so a diagram drawn with η = 0.1 "
    "is late by 5–10 %. Right: the delay, its exact value to first order in η (dotted), and tokens (circles).",
    quick=Stacks(),
    full=Stacks(betas=90, token_betas=(1.0, 2.0, 4.0, 6.0, 7.0, 8.0, 9.0)),
)
def layer_vs_flow(s: Stacks) -> Figure:
    """The boundary, and how late the layers are."""
    betas = np.linspace(0.1, s.beta_max, s.betas)
    exact = phase_curve(betas, s.n, s.delta)
    first = np.array([first_order_delay(s.n, float(b), s.delta) for b in betas]) / exact
    at = np.array(s.token_betas)
    gamma = phase_curve(at, s.n, s.delta)
    depth = int(1.7 * gamma.max() / min(s.steps)) + 20  # one depth for all, so that the layers compile once
    figure, ((left, right),) = new_figure(1, 2, width=4.4, height=3.2)
    for eta, ink in zip(s.steps, INKS):
        late = np.array([layers_to_deficit("post", s.n, b, eta, s.delta).time for b in betas])
        left.plot(late, betas, color=ink, label=f"layers, η = {eta:g}")
        right.plot(betas, 100 * (late / exact - 1), color=ink)
        right.plot(betas, 100 * eta * first, color=ink, ls=(0, (1, 1.6)), lw=1.2)
        tokens = [token_boundary(s.n, float(b), s.delta, eta, depth) for b in at]
        right.plot(at, 100 * (np.array(tokens) / gamma - 1), "o", ms=4.5, mfc="white", color=ink)
    right.plot([], [], "o", ms=4.5, mfc="white", color="#59636e", label="layers on tokens")
    right.plot([], [], color="#59636e", ls=(0, (1, 1.6)), lw=1.2, label="first order in η")
    theory_line(left, exact, betas, label="flow, exact Γ")
    left.set(xscale="log", xlabel="depth-time $t$", ylabel=r"inverse temperature $\beta$", ylim=(0, s.beta_max))
    left.set_title(f"n = {s.n}, d ≥ n, δ = {s.delta:g}")
    right.set(xlabel=r"inverse temperature $\beta$", ylabel="layers are late by, %", ylim=(0, None))
    right.set_title("delay of the layer map")
    legend_below(figure, (left, right), columns=4)
    return figure
