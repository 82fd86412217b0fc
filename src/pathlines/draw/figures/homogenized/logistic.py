"""The logistic law of the mean token at high temperature (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit, logit

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, chain
from pathlines.limit.homogenized.logistic import log_mass_std, logistic_mass
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.observable.sphere import mean_norm


@dataclass(frozen=True)
class UniformTokens:
    """The law of n independent uniform tokens in R^d."""

    n: int
    d: int

    def __call__(self, key: PRNGKeyArray) -> Array:
        """Drawn anew for every run."""
        return Sphere(self.d).uniform(key, self.n)


class LowTemperature(Setting):
    """Chains at low and high temperature."""

    cases: Annotated[
        tuple[tuple[of.Count, of.Count, of.NonNegative, str], ...], means("each column, with its sampler", "n, d, β")
    ] = ((200, 512, 0.05, "auto"), (500, 256, 0.001, "linear"))
    step: of.Step = 0.4
    heads: of.Heads = 1
    until: of.Tau = 9.6
    runs: of.Runs = 3
    seed: of.Seed = 0


def _runs(n: int, d: int, beta: float, sampler: str, s: LowTemperature) -> Run:
    """Independent chains up to diffusive time ``until``, about 40 records each."""
    model = RandomTransformer(d, step=s.step, heads=s.heads, beta=beta, sigma_a=1.0)
    every = max(1, round(s.until / model.clocks["tau"] / 40))
    depth = every * int(np.ceil(s.until / model.clocks["tau"] / every))
    return chain(
        model, UniformTokens(n, d), depth=depth, every=every, runs=s.runs, record=mean_norm, sampler=sampler,
        key=jax.random.key(s.seed),
    )  # fmt: skip


def typical_mass(layers: int, mass0: float, v: float, d: int) -> np.ndarray:
    """m of the mean logit after 0 … ``layers`` layers at β = 0 from the simplex: logit m grows by log(1+v) - v(4-3m)/d.

    Derived: one layer multiplies the odds m/(1-m) by 1+v as d → ∞; the rest is the drift of m to first order in 1/d and
    the Itô term of the logit, whose variance grows by 4/d per unit of τ while tokens form a simplex.
    """
    found = [float(logit(mass0))]
    for _ in range(layers):
        found.append(found[-1] + np.log1p(v) - v * (4 - 3 * expit(found[-1])) / d)
    return expit(np.array(found))


def _draw(axes: Axes, run: Run, d: int, until: float) -> None:
    """The runs, the logistic curve from their mean start, and what one run of such layers should do."""
    tau, m = run.time, run["mean_norm"].values ** 2
    for k, path in enumerate(m):
        axes.plot(tau, path, color=COLOURS[0], lw=0.9, alpha=0.75, label="one run of the chain" if k == 0 else None)
    fine, start = np.linspace(0, until, 201), float(m[:, 0].mean())
    depth = int(run.data["layer"][-1])
    v = float(tau[-1]) / depth
    typical, clock = typical_mass(depth, start, v, d), v * np.arange(depth + 1)
    low, high = (expit(logit(typical) + sign * log_mass_std(clock, d)) for sign in (-1, 1))
    axes.fill_between(clock, low, high, color=COLOURS[3], alpha=0.3, lw=0, label=r"$\pm 2\sqrt{\tau/d}$ on logit $m$")
    axes.plot(clock, typical, color=COLOURS[3], lw=1.4, label="typical run, finite $v$ and $d$")
    theory_line(axes, fine, logistic_mass(fine, start), label=r"$\dot u = u(1-u)$, $u(0)$ = mean of $m(0)$")
    axes.set(xlabel=r"diffusive time $\tau$", xlim=(0, until))


@picture(
    "homogenized/logistic",
    HOMOGENIZED,
    "Squared length m = |x̄|² of the mean token at high temperature, independent chains from uniform tokens against "
    "the logistic law (dashed), a straight line on the logit scale (below). Orange: the typical run of layers of size "
    "v in this dimension, with its standard deviation 2√(τ/d) on logit m. σ_A = 1, so b = β√d: 1.13 (left, exact "
    "sampler) and 0.016 (right, attention to second order in b).",
    quick=LowTemperature(),
    full=LowTemperature(cases=((200, 512, 0.05, "auto"), (5000, 256, 0.001, "linear")), step=0.2, until=13.0, runs=10),
)
def logistic(s: LowTemperature) -> Figure:
    """One column per case: m, and m on the logit scale."""
    figure, (above, below) = new_figure(2, len(s.cases), width=4.1, height=2.5)
    for top, bottom, (n, d, beta, sampler) in zip(above, below, s.cases):
        run = _runs(n, d, beta, sampler, s)
        for axes in (top, bottom):
            _draw(axes, run, d, s.until)
        top.set(ylabel=r"$m = |\bar x|^2$", ylim=(-0.02, 1.02))
        bottom.set(yscale="logit", ylabel=r"$m$, logit scale", ylim=(0.5 / n, 1 - 1e-3))
        sampled = ", linear" if sampler == "linear" else ""
        top.set_title(f"n = {n}, d = {d}, β = {beta:g}, b = {beta * np.sqrt(d):.3g}{sampled}")
    legend_below(figure, [above[0]])
    return figure
