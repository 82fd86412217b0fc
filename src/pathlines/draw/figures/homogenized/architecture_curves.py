"""Normalisation and perceptron against collapse (after Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.limit.homogenized.overlap_curve import simplex_layer
from pathlines.limit.homogenized.perceptron_collapse import resting_overlap
from pathlines.limit.homogenized.perceptron_kernel import ends, perceptron_kernel
from pathlines.limit.homogenized.simplex import simplex_table
from pathlines.model.architecture.random_encoder import RandomEncoder
from pathlines.observable.pairs import mean_overlap

INKS = {"post": COLOURS[0], "pre": COLOURS[2]}


class Encoder(Setting):
    """A random encoder and its runs."""

    n: of.Tokens = 48
    d: of.Dimension = 128
    heads: of.Heads = 8
    b: of.LogitScale = 1.0
    residual: Annotated[of.Positive, means("multiplier of the attention block", "s")] = 0.4
    width: Annotated[of.Count, means("neurons of the perceptron")] = 256
    activation: of.Activation = "erf"
    sigma_w: of.PreactivationSize = 3.0
    perceptron_residual: Annotated[of.Positive, means("multiplier of the perceptron block", "s_m")] = 0.8
    depth: of.Depth = 35
    every: of.Every = 5
    reach: Annotated[of.Count, means("layers of the prediction", "L")] = 100
    runs: of.Runs = 5
    narrow_map: Annotated[bool, means("also the layer map of narrow heads")] = False
    seed: of.Seed = 0


def encoder(placement: str, perceptron: bool, s: Encoder) -> RandomEncoder:
    """The simulated architecture, logit scale b by σ_Q = σ_K = √(b/d)."""
    size = float(np.sqrt(s.b / s.d))
    return RandomEncoder(
        s.d, s.heads, placement=placement, residual=s.residual, sigma_q=size, sigma_k=size,
        width=s.width if perceptron else 0, activation=s.activation, sigma_1=s.sigma_w / np.sqrt(s.d),
        perceptron_residual=s.perceptron_residual,
    )  # fmt: skip


def predicted(model: RandomEncoder, n: int, depth: int, p: float) -> np.ndarray:
    """γ after 0 … ``depth`` layers by the maps of attention and perceptron, heads of width p.

    Attention: γ' = (r²γ + aS)/(r² + aP), r'² = r² + aP; perceptron: the same with a_mκ(γ) and a_mκ(1). Post: r = 1.
    """
    numbers = model.derived
    table = simplex_table(n, numbers["logit_scale"], p)
    a, a_m, sigma_w = (numbers[k] for k in ("attention_power", "perceptron_power", "sigma_w"))
    top = ends(model.activation, sigma_w)[0]
    gamma, power, found = 0.0, 1.0, [0.0]
    for _ in range(depth):
        gamma, grown = simplex_layer(table, gamma, power, a)
        power = grown if model.placement == "pre" else 1.0
        if a_m > 0:
            kernel = float(perceptron_kernel(gamma, model.activation, sigma_w))
            grown = power + a_m * top
            gamma = (power * gamma + a_m * kernel) / grown
            power = grown if model.placement == "pre" else 1.0
        found.append(gamma)
    return np.array(found)


def _panel(axes: Axes, perceptron: bool, s: Encoder) -> None:
    for placement, ink in INKS.items():
        model = encoder(placement, perceptron, s)
        run = chain(
            model, Sphere(s.d).simplex(s.n), depth=s.depth, every=s.every, runs=s.runs, record=mean_overlap,
            key=jax.random.key(s.seed),
        )  # fmt: skip
        values = run["mean_overlap"].values
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(s.runs)
        if s.narrow_map:
            axes.plot(predicted(model, s.n, s.reach, model.derived["qk_dim"]), color=ink, ls=(0, (4, 2.2)), lw=1.2)
        axes.plot(predicted(model, s.n, s.reach, np.inf), color=ink)
        axes.errorbar(run.data["layer"], mean, 2 * error, fmt="o", ms=3.4, mfc="white", color=ink, lw=1, zorder=6)
        axes.plot([], [], color=ink, lw=3, label=f"{placement}-norm")
    axes.set(xlabel=r"layer $\ell$", ylabel="mean cosine similarity", xlim=(0, s.reach), ylim=(-0.02, 1.02))


def _resting(axes: Axes, s: Encoder) -> None:
    """The overlap at which the post-norm map with a perceptron rests."""
    numbers, table = encoder("post", True, s).derived, simplex_table(s.n, s.b)
    own, cross = (lambda gamma, k=k: float(table.attended(gamma)[k]) for k in (0, 1))
    powers = numbers["attention_power"], numbers["perceptron_power"]
    level = resting_overlap(*powers, cross, own, s.activation, s.sigma_w, points=100)
    axes.axhline(level, color=INKS["post"], ls=":", lw=1.2)
    axes.annotate(f"post-norm rests at {level:.3f}", (0.02 * s.reach, level), (0, 3), textcoords="offset points",
                  fontsize=8)  # fmt: skip


@picture(
    "homogenized/architecture-curves",
    HOMOGENIZED,
    "Mean cosine similarity of the hidden states of a random encoder (RMS norms, heads of width d/H, all matrices "
    "drawn afresh in every layer) against the layer map, with wide heads (solid) and, at the full size, the true head "
    "width (dashed), from orthogonal tokens; simulation: mean ± 2 standard errors. Attention alone on the left: "
    "pre-normalisation collapses slowly because the residual stream grows. With a saturating perceptron on the right "
    "collapse is undone.",
    quick=Encoder(),
    full=Encoder(runs=48, width=512, depth=100, narrow_map=True),
)
def architecture_curves(s: Encoder) -> Figure:
    """Attention alone, and with a perceptron."""
    figure, ((left, right),) = new_figure(1, 2, width=4.2, height=3.1)
    _panel(left, False, s)
    _panel(right, True, s)
    _resting(right, s)
    left.plot([], [], color=THEORY, label="layer map, p = ∞")
    if s.narrow_map:
        left.plot([], [], color=THEORY, ls=(0, (4, 2.2)), lw=1.2, label=f"layer map, p = {s.d // s.heads}")
    left.plot([], [], "o", ms=3.4, mfc="white", color=MUTED, label=f"random encoder, {s.runs} runs")
    left.set_title(f"attention, n = {s.n}, d = {s.d}, H = {s.heads}, s = {s.residual:g}, b = {s.b:g}")
    right.set_title(f"with {s.activation} perceptron, $\\sigma_w$ = {s.sigma_w:g}, $s_m$ = {s.perceptron_residual:g}")
    legend_below(figure, [left])
    return figure
