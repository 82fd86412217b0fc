"""Proximal sampling: five particles, the bias of a regularisation, and a bent target (arXiv:2509.01685)."""

from __future__ import annotations

from typing import Annotated

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, HEAT, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import PROXIMAL
from pathlines.foundation.setting import Setting, means
from pathlines.limit.followups.proximal import covariances, limit_covariance, quadratic, ring
from pathlines.model.followups.potentials import QuadraticPotential
from pathlines.transport.proximal_sampler import ProximalSampler


class Proximal(Setting):
    """Five particles, four regularisations, a bent target."""

    regularisation: Annotated[of.Positive, means("regularisation of the five particles", "T")] = 0.2
    regularisations: Annotated[of.Positives, means("regularisations, below 1", "T")] = (0.1, 0.3, 0.5, 0.7)
    steps: Annotated[of.Positives, means("steps", "η")] = (0.1, 0.4)
    n: of.Tokens = 300
    count: Annotated[of.Count, means("steps on the bent target")] = 400
    side: of.MapSide = 120
    seed: of.Seed = 0


def bent(x: jnp.ndarray) -> jnp.ndarray:
    """A Gaussian on a parabola: y | x ~ N(x²/2, 1/4), x ~ N(0, 1)."""
    return 0.5 * x[0] ** 2 + 2 * (x[1] - 0.5 * x[0] ** 2) ** 2


@picture(
    "followups/proximal",
    PROXIMAL,
    "Sampling without noise. Left: five particles that came to rest for a standard Gaussian; shading and solid lines "
    "are their proximal density, dashed circles the Gaussian at the same levels. Middle: variance over steps times η "
    "for several regularisations T; two steps (solid, dotted) end at the same S_∞ = 1 − T² (dashed). Right: particles "
    "on a bent target, whose lines hold 50 and 95 % of the mass of a Gaussian.",
    quick=Proximal(),
)
def proximal(s: Proximal) -> Figure:
    """Five particles, bias, bent target."""
    figure, ((first, middle, last),) = new_figure(1, 3, width=3.3, height=3.0)
    _five(first, s)
    _bias(middle, s)
    _bent(last, s)
    return figure


def _grid(low: tuple[float, float], high: tuple[float, float], side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = (np.linspace(low[k], high[k], side) for k in (0, 1))
    points = np.stack(np.meshgrid(x, y), axis=-1)
    return x, y, points.reshape(-1, 2)


def _five(axes: Axes, s: Proximal) -> None:
    """Pentagon, proximal density and the Gaussian."""
    particles = ring(5, False, s.regularisation)
    x, y, points = _grid((-2.8, -2.8), (2.8, 2.8), s.side)
    sampler = ProximalSampler(QuadraticPotential(np.eye(2)), 2, s.regularisation, 0.1)
    density = np.exp(sampler.log_density(particles, points)).reshape(len(y), len(x))
    normal = np.exp(-np.sum(points**2, axis=1) / 2).reshape(len(y), len(x)) / (2 * np.pi)
    axes.contourf(x, y, density, levels=12, cmap=HEAT)
    levels = np.array([0.02, 0.06, 0.1])
    axes.contour(x, y, density, levels=levels, colors=COLOURS[1], linewidths=1.1)
    axes.contour(x, y, normal, levels=levels, colors=THEORY, linewidths=1.1, linestyles=[(0, (4, 2.2))])
    axes.plot(*particles.T, "o", color="white", mec=THEORY, ms=6)
    axes.grid(visible=False)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", title="five particles", aspect="equal")


def _bias(axes: Axes, s: Proximal) -> None:
    """Variances of Gaussian laws."""
    for k, pull in enumerate(s.regularisations):
        q = quadratic([[1.0]], 1.0, pull)
        for step, style in zip(s.steps, ("-", ":", "-."), strict=False):
            count = max(2, int(12 / step))
            path = covariances(q, [[0.1]], step, count)[:, 0, 0]
            label = f"T = {pull:g}" if style == "-" else f"η = {step:g}" if k == 0 else None
            axes.plot(step * np.arange(1, count + 1), path, style, color=COLOURS[k], label=label)
        axes.axhline(float(limit_covariance(q)[0, 0]), color=THEORY, ls=(0, (4, 2.2)), lw=1.0)
    axes.set(xlabel="steps × η", ylabel="variance", title="the bias is that of T", ylim=(0, 1.05))
    axes.legend(loc="lower right")


def _bent(axes: Axes, s: Proximal) -> None:
    """Particles over the lines of the target."""
    found = ProximalSampler(bent, 2, 0.04, 0.06).sample(s.n, s.count, s.seed, progress=False)
    x, y, points = _grid((-3.2, -1.8), (3.2, 5.2), s.side)
    values = np.asarray(0.5 * points[:, 0] ** 2 + 2 * (points[:, 1] - 0.5 * points[:, 0] ** 2) ** 2)
    levels = -np.log(1 - np.array([0.5, 0.95]))  # V of the plane is exponential with mean 1
    axes.contour(x, y, values.reshape(len(y), len(x)), levels=levels, colors=MUTED, linewidths=1.0)
    axes.plot(*found.particles.T, "o", color=COLOURS[0], ms=2.2, mew=0, alpha=0.8)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", title=f"bent target, n = {s.n}", ylim=(-1.8, 5.2), xlim=(-3.2, 3.2))
