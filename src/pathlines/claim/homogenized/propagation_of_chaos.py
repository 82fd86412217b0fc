"""Quantile nodes against infinitely many tokens, under the same noise (Homogenized Transformers, arXiv:2604.01978)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.slopes import several
from pathlines.claim.tolerance import at_least, at_most
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.coupling import coupled_chains
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.transported_measure import TransportedMeasure, von_mises_nodes

ROUNDING, UNRESOLVED = 1e-13, 0.1
"""Typical distances below which digits are lost, and above which the nodes do not stand for the law at all."""


class QuantileNodes(Setting):
    """Quantile nodes of several numbers under the same heads."""

    ns: of.Sizes = (64, 128, 256)
    reference: Annotated[of.Count, means("nodes that stand for the mean field")] = 1024
    concentration: Annotated[of.NonNegative, means("concentration of the von Mises law at the start")] = 0.8
    b: of.LogitScale = 2.0
    v: of.LayerTime = 0.05
    layers: of.Depth = 40
    runs: of.Runs = 12
    seed: of.Seed = 17


def simulate(s: QuantileNodes) -> Evidence:
    """sup_ℓ |x̄_n - x̄| of every run: nodes of a von Mises law carried by the same heads, for each n and a reference."""
    several("ns", s.ns, least=3)
    model = TransportedMeasure(RandomTransformer(2, step=math.sqrt(s.v), logit_scale=s.b))
    sizes = [*s.ns, s.reference]
    starts = [von_mises_nodes(n, s.concentration) for n in sizes]
    runs = coupled_chains([model] * len(sizes), starts, depth=s.layers, key=jax.random.key(s.seed), runs=s.runs)
    means = [run["tokens"].values.mean(axis=-2) for run in runs]
    gaps = np.array([np.linalg.norm(m - means[-1], axis=-1).max(axis=-1) for m in means[:-1]])
    typical = np.median(gaps, axis=1)
    local = -np.diff(np.log(np.maximum(typical, 1e-17))) / np.diff(np.log(s.ns))
    square = np.sqrt(np.mean(gaps**2, axis=1))
    order = math.log(typical[-1] / typical[0]) / math.log(s.ns[-1] / s.ns[0])
    curves = (Curve("median of the noises", s.ns, typical), Curve("root mean square", s.ns, square))
    return Evidence(
        {"order": order, "acceleration": local[-1] / local[0]},
        curves=curves,
        runs=tuple(runs),
        undecided=_advice(typical),
    )


def _advice(typical: np.ndarray) -> dict[str, str]:
    if typical[-1] < ROUNDING:
        return dict.fromkeys(("order", "acceleration"), "the nodes agree to rounding: take smaller `ns`")
    if typical[0] > UNRESOLVED:
        return dict.fromkeys(("order", "acceleration"), "the nodes do not resolve the law: take larger `ns`")
    return {}


def _turned(right: Any, size: float) -> Any:
    """The nodes that stand for the mean field start elsewhere: turned by an angle."""
    turn = np.array([[math.cos(size), math.sin(size)], [-math.sin(size), math.cos(size)]])
    return lambda models, starts, **options: right(models, [*starts[:-1], starts[-1] @ turn], **options)


def _start_distance(n: int, concentration: float) -> float:
    """W₂ between a von Mises law and its n quantiles of equal mass: the law cumulated on a grid, inverted."""
    angles = np.linspace(-np.pi, np.pi, 2**16 + 1)
    density = np.exp(concentration * (np.cos(angles) - 1))
    total = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    quantile = lambda levels: np.interp(levels, total / total[-1], angles)  # noqa: E731
    own = quantile((np.arange(n) + 0.5) / n)
    return float(np.sqrt(np.mean((quantile((np.arange(64 * n) + 0.5) / (64 * n)) - np.repeat(own, 64)) ** 2)))


def predict(s: QuantileNodes) -> Evidence:
    """The power of n in W₂(μ₀ⁿ, μ₀) (-1, less in thin tails); a power law would have an acceleration of one."""
    starts = np.array([_start_distance(n, s.concentration) for n in s.ns])
    order = np.log(starts[-1] / starts[0]) / np.log(s.ns[-1] / s.ns[0])
    curves = (Curve("W₂(μ₀ⁿ, μ₀)", s.ns, starts),)
    return Evidence({"order": order, "acceleration": 1.0}, curves=curves, source="bounds; order by the theorem")


claim(
    "homogenized/C17",
    HOMOGENIZED,
    "quantile nodes and the mean field with common noise",
    "Driven by the same heads, the mean of n quantile nodes of a smooth law on the circle approaches that of the mean "
    "field, in a typical run, faster than the theorem's W₂(μ₀ⁿ, μ₀) and than any power of n: the order between 2n and "
    "4n nodes is higher than between n and 2n.",
    where="mean field with common noise: theorem on propagation of chaos, for quantile nodes",
    models=("transported-measure",),
    quick=QuantileNodes(),
    full=QuantileNodes(ns=(32, 64, 128, 256), runs=48),
    within={
        "order": at_most("the bound of the theorem decreases like W₂"),
        "acceleration": at_least("exponential convergence would give two for doubled n, a power law one"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("nodes n", "sup |x̄ₙ − x̄|", x_scale="log", y_scale="log"),
    note="How close n nodes come depends on the noise by orders of magnitude, so no bound of one size holds in every "
    "run, and the mean square is that of the worst noise. Random tokens, the subject of the theorem, are in C27a.",
    mistakes=(Mistake("coupled_chains", "a mean field turned by {:g} rad", _turned, (1e-6, 1e-5, 1e-4, 1e-3, 0.01)),),
)
