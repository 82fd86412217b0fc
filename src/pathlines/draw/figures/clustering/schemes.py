"""One picture at six speeds: normalisation schemes (Normalization in Attention Dynamics, arXiv:2510.22026)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, band, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import NORMALIZATION
from pathlines.foundation.setting import Setting
from pathlines.integrate.side_by_side import side_by_side
from pathlines.limit.clustering.schemes import reduced_trajectory, terminal_constant
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.schemes import NGPT, MixLN, OneOf, PeriLN, PostLN, PreLN, SqrtScaling
from pathlines.observable.pairs import u_mean

LABELS = {"post": "Post-LN", "pre": "Pre-LN", "mix": "Mix-LN", "peri": "Peri-LN", "ngpt": "nGPT", "sqrt": "√-scaling"}


class Schemes(Setting):
    """Uniform starts, and parameters of the schemes."""

    n: of.Tokens = 32
    d: of.Dimension = 512
    beta: of.Beta = 3.0
    alpha: of.NgptStep = 1.0
    switch: of.MixSwitch = 2.0
    until: of.Until = 30.0
    frames: of.Records = 61
    runs: of.Runs = 12
    rtol: of.Rtol = 1e-06
    seed: of.Seed = 0


def _deficits(times: np.ndarray, s: Schemes) -> np.ndarray:
    """Mean pair deficit of each (scheme, run) at each time, the same starts for all schemes."""
    choices = (PostLN(), PreLN(), MixLN(s.switch), PeriLN(), NGPT(s.alpha), SqrtScaling())
    keys = jax.random.split(jax.random.key(s.seed), s.runs)
    starts = jax.vmap(lambda key: Sphere(s.d).uniform_span(key, s.n))(keys)
    models = [NormalisedAttention(s.beta, OneOf(choices, jnp.asarray(k))) for k in range(len(choices))]
    batch = [m for m in models for _ in range(s.runs)]
    data = side_by_side(batch, jnp.tile(starts, (len(models), 1, 1)), times=times, record=u_mean, rtol=s.rtol)
    return data["u_mean"].values.reshape(len(models), s.runs, -1)


@picture(
    "clustering/schemes",
    NORMALIZATION,
    "Mean cosine similarity of n tokens against depth under six normalisation schemes, same starts, mean ± 2 standard "
    "errors (coloured) and the equiangular reduction from ρ = 0 (dashed). Right: one minus it, both scales "
    "logarithmic: Post-LN, nGPT and √-scaling collapse exponentially, Pre-, Mix- and Peri-LN only like t⁻².",
    quick=Schemes(),
    full=Schemes(n=64, frames=241, runs=64),
)
def schemes(s: Schemes) -> Figure:
    """Similarity, and its deficit."""
    times = np.unique(np.concatenate([np.linspace(0, s.until, s.frames), np.geomspace(0.1, s.until, s.frames)]))
    u = _deficits(times, s)
    figure, ((left, right),) = new_figure(1, 2, width=4.4, height=3.2)
    for k, (name, label) in enumerate(LABELS.items()):
        mean, error = u[k].mean(axis=0), u[k].std(axis=0, ddof=1) / np.sqrt(s.runs)
        exact, _ = reduced_trajectory(name, times, s.n, s.beta, alpha=s.alpha, switch=s.switch)
        band(left, times, 1 - mean, error, COLOURS[k], label=label)
        band(right, times[1:], mean[1:], error[1:], COLOURS[k])
        for axes in (left, right):
            axes.lines[-1].set(linewidth=2.8, alpha=0.85)
        last = k == len(LABELS) - 1
        theory_line(left, times, 1 - exact, label="equiangular reduction" if last else None, lw=0.9)
        theory_line(right, times[1:], exact[1:], label=None, lw=0.9)
    late = np.array([0.3, 1.0]) * s.until
    above = 3 * float(terminal_constant(s.n, s.beta))
    right.plot(late, above / late**2, color=MUTED, lw=1.1, label=r"slope of $t^{-2}$")
    left.set(xlabel="depth-time $t$", ylabel=r"mean cosine similarity $\langle\theta_i,\theta_j\rangle$")
    left.set(title=f"n = {s.n}, d = {s.d}, β = {s.beta:g}", ylim=(-0.03, 1.03), xlim=(0, 0.5 * s.until))
    right.set(xscale="log", yscale="log", xlabel="depth-time $t$", ylabel="one minus mean similarity")
    right.set(title=f"terminal laws, τ = {s.switch:g}, α = {s.alpha:g}", ylim=(1e-8, 2))
    legend_below(figure, [left, right], columns=4)
    return figure
