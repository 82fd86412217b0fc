"""How many clusters attention with random neurons leaves, and how heavy the heaviest is (arXiv:2601.21366)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, MUTED, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.metastability.perceptron_closed_forms import HEAVIEST
from pathlines.limit.metastability.perceptron_landscape import perceptron_landscape
from pathlines.limit.metastability.perceptron_minimiser import perceptron_minimiser
from pathlines.limit.metastability.perceptron_potential import perceptron_potential
from pathlines.model.metastability.perceptron_landscape import PerceptronLandscape
from pathlines.observable.clusters import linked

CASES = (("usa", "ascent"), ("sa", "ascent"), ("usa", "descent"), ("sa", "descent"))


def random_neurons(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """d unit directions and strengths N(0, 1)."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((d, d))
    return a / np.linalg.norm(a, axis=1, keepdims=True), rng.standard_normal(d)


def clusters(x: np.ndarray, beta: float, least: float = 0.01) -> tuple[int, float]:
    """Clusters by single linkage at 1/(2√β), at most π/(2d), with a share of at least ``least``; the largest share."""
    reach = min(0.5 / np.sqrt(beta), np.pi / (2 * x.shape[1]))
    shares = np.bincount(np.asarray(linked(jnp.asarray(x), reach))) / len(x)
    return int(np.sum(shares >= least)), float(shares.max())


class RandomNeurons(Setting):
    """Random neurons, tokens and inverse temperatures."""

    d: of.Dimension = 2
    n: of.Tokens = 60
    betas: of.Betas = (0.1, 0.5, 1.0, 3.0, 7.0, 15.0, 35.0)
    draws: Annotated[of.Count, means("draws of the neurons")] = 3
    seed: of.Seed = 0
    activation: of.Activation = "relu"
    until: of.Until = 100.0
    rtol: of.Rtol = 1e-05


def _measured(s: RandomNeurons, kind: str, direction: str, beta: float, seed: int) -> tuple[int, float]:
    a, omega = random_neurons(s.d, seed)
    model = PerceptronLandscape(beta, a, omega, activation=s.activation, flow=direction, kind=kind)
    start = Sphere(s.d).uniform(jax.random.key(seed), s.n)
    run = flow(model, start, times=[s.until], record=positions, rtol=s.rtol)
    return clusters(run["tokens"].values[-1], beta)


@picture(
    "metastability/perceptron-clusters",
    PERCEPTRON_LANDSCAPE,
    "Clusters (single linkage at 1/(2√β), shares of at least one per cent) that attention with d random neurons, "
    "strengths N(0,1), leaves after a long time, and the share of the heaviest, against √β; means over draws of the "
    "neurons. Ascent gathers everything while β is small and keeps long-lived clusters beyond; descent leaves more of "
    "them. The broken line is the certified minimiser of each draw, which descent of equal masses need not reach. The "
    "bound 0.5742 on the heaviest mass is for β large against the weights, and a neuron of strength below −1 holds all "
    "the mass at the scaled kernel.",
    quick=RandomNeurons(),
    full=RandomNeurons(
        n=500, draws=10, until=300.0, betas=(0.01, 0.05, 0.1, 0.5, 1.0, 3.0, 5.0, 7.0, 10.0, 15.0, 25.0, 35.0, 50.0)
    ),
)
def perceptron_clusters(s: RandomNeurons) -> Figure:
    """Counts on the left, heaviest shares on the right."""
    require(s.d in (2, 3), "d", "be 2 or 3", s.d)
    seeds = s.seed + np.arange(s.draws)
    roots = np.sqrt(s.betas)
    figure, ((left, right),) = new_figure(1, 2, width=4.0, height=3.0)
    for (kind, direction), colour in zip(CASES, (COLOURS[0], COLOURS[5], COLOURS[1], COLOURS[3]), strict=True):
        found = np.array([[_measured(s, kind, direction, b, int(k)) for k in seeds] for b in s.betas]).mean(axis=1)
        mark, label = "o" if kind == "usa" else "s", f"{kind.upper()}, {direction}"
        for axes, column in ((left, 0), (right, 1)):
            axes.plot(roots, found[:, column], marker=mark, ms=4, mfc="white", color=colour, label=label)
    drawn = [perceptron_potential(*random_neurons(s.d, int(k)), activation=s.activation) for k in seeds]
    shown = [[clusters_of(perceptron_minimiser(perceptron_landscape(v, b)), b) for v in drawn] for b in s.betas]
    for axes, column in ((left, 0), (right, 1)):
        theory_line(
            axes, roots, np.mean([[c[column] for c in row] for row in shown], axis=1), label="certified minimiser"
        )
        axes.set(xlabel=r"$\sqrt{\beta}$")
    right.axhline(HEAVIEST, color=MUTED, lw=1.0, ls=":", label="0.5742")
    left.set(ylabel="clusters", title=f"number of clusters, d = {s.d}", ylim=(0, None))
    right.set(ylabel="share of the heaviest", title="heaviest cluster", ylim=(0, 1.05))
    legend_below(figure, [right], columns=3)
    return figure


def clusters_of(found: Any, beta: float) -> tuple[int, float]:
    """The same count for atoms: each is repeated in proportion to its mass."""
    copies = np.maximum(1, np.rint(found.masses * 400).astype(int))
    return clusters(np.repeat(found.atoms, copies, axis=0), beta)
