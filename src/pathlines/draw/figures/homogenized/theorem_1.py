"""Chain, SDE and ODE on the same noise, and the order of chain − SDE (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from pathlines.claim.homogenized.finite_heads import Case, chain_mean, sde_mean
from pathlines.claim.homogenized.matrix_noise import start
from pathlines.claim.slopes import log_slope
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, MUTED, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.coupling import coupled_chains
from pathlines.model.homogenized.drift import HomogenizedODE
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.sde import HomogenizedSDE
from pathlines.weights import GaussianHeads

DRIFTS = {
    "none": (MUTED, "s", r"$b$"),
    "paper": (COLOURS[1], "o", r"$b-\frac{\eta}{2}\nabla_b b$ (printed)"),
    "full": (COLOURS[0], "D", r"all of $D$"),
}
PANELS = ((0, "mean overlap"), (1, r"$\langle x_1, e_1\rangle$"))


class Theorem1(Setting):
    """Paths on the left, orders on the right."""

    n: of.Tokens = 5
    beta: of.Beta = 1.0
    step: of.Step = 0.1
    spread: Annotated[of.Positive, means("standard deviation of the value around its mean")] = 0.5
    parts: Annotated[of.Count, means("steps of the SDE per layer")] = 2
    until: of.Until = 3.0
    paths: of.ShownPaths = 3
    seed: of.Seed = 1
    probability: of.Probability = 0.5
    horizon: Annotated[of.Positive, means("where the orders are read off", unit="depth-time")] = 1.2
    layers: Annotated[of.Counts, means("numbers of layers of the orders", "L")] = (6, 8, 12, 16)


def _paths(axes: Axes, s: Theorem1) -> None:
    """The mean overlap of a few runs, chain and SDE by one matrix Brownian motion each; the ODE has none."""
    law = GaussianHeads(4, s.spread, 0.0, None, 1.0, 1.0)
    deep = RandomTransformer(law=law, beta=s.beta, step=s.step)
    limit = HomogenizedSDE(law, s.beta, step=s.step, time_step=s.step / s.parts)
    begin, depth = start(s.n, 4), round(s.until / s.step)
    options = {"depth": depth, "key": jax.random.key(s.seed), "runs": s.paths, "record": "mean_overlap"}
    chains, sdes = coupled_chains([deep, limit], [begin, begin], **options)
    times = s.step * np.arange(depth + 1)
    for k in range(s.paths):
        colour = COLOURS[k]
        axes.plot(
            times, sdes["mean_overlap"].values[k], color=colour, lw=1.2, label="SDE, same noise" if not k else None
        )
        axes.plot(times, chains["mean_overlap"].values[k], "o", ms=3.2, mfc="white", mew=0.9, color=colour,
                  label=f"chain, η = {s.step:g}" if not k else None)  # fmt: skip
    run = flow(HomogenizedODE(law, s.beta, step=s.step), begin, times=times, record="mean_overlap")
    theory_line(axes, times, run["mean_overlap"].values, "ODE, no noise")
    axes.set(xlabel=r"time $t = \eta\ell$", ylabel="mean overlap", title=f"paths, n = {s.n}, d = 4, H = 1")
    axes.legend(loc="upper left", handlelength=1.6)


def _orders(axes: Axes, observed: int, name: str, s: Theorem1) -> None:
    """|chain − SDE| at T against η for three drifts, without sampling."""
    case = Case(4, 1.5, s.horizon, "ambient", 1, s.probability, 0.0, 0.0)
    eta = s.horizon / np.asarray(s.layers, float)
    for corrector, (ink, mark, label) in DRIFTS.items():
        steps = zip(eta.tolist(), s.layers, strict=True)
        gap = [abs(chain_mean(case, k)[observed] - sde_mean(case, h, corrector).value[observed]) for h, k in steps]
        slope = log_slope(eta[-2:], gap[-2:])[0]
        axes.loglog(eta, gap, color=ink, marker=mark, ms=4.5, mfc="white", label=f"{label}, slope {slope:.2f}")
    axes.set(xlabel=r"step $\eta$", ylabel=r"$|\mathbf{E}\,$chain$\,-\,\mathbf{E}\,$SDE$|$", title=name)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(eta, [f"{h:.3g}" for h in eta])
    axes.minorticks_off()
    axes.margins(y=0.12)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))


@picture(
    "homogenized/theorem-1",
    HOMOGENIZED,
    "Theorem 1 with drift and noise. Left: mean overlap of a chain with Gaussian values V = I + σN (circles), of its "
    "SDE driven by the same matrix Brownian motion (lines), and of the ODE without noise (dashed). Middle and right: "
    "distance of the chain's mean from the SDE's at T for two heads drawn at random, summed over all heads and by "
    "cubature, no sampling: with all of D it is of second order in η, with the printed drift or b alone of first. "
    "Slopes between the two smallest steps.",
    quick=Theorem1(),
    full=Theorem1(parts=4, layers=(6, 8, 12, 16, 20)),
)
def theorem_1(s: Theorem1) -> Figure:
    """Paths, and the order for two observables."""
    figure, (panels,) = new_figure(1, 3, width=3.4, height=3.6)
    _paths(panels[0], s)
    panels[2].sharey(panels[1])
    for axes, (observed, name) in zip(panels[1:], PANELS, strict=True):
        _orders(axes, observed, name, s)
    return figure
