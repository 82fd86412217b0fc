"""n tokens against infinitely many, under the same noise, from random starts (arXiv:2604.01978)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.fitting import Mistake
from pathlines.claim.slopes import log_slope, several
from pathlines.claim.tolerance import absolute, at_most, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.coupling import coupled_chains, synchronous_coupling
from pathlines.limit.homogenized import mean_field as theory
from pathlines.limit.homogenized.chaos import response
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.transported_measure import TransportedMeasure, VonMisesTokens, von_mises_nodes
from pathlines.numerics.few_samples import student
from pathlines.numerics.quadrature import WeightedNodes
from pathlines.observable.distances import circle_distance

NONLINEAR = 0.2
"""Squared distance of token and copy beyond which their linear response says little."""
LONGEST = 2.5
"""Diffusive time up to which some hundred tokens still fill the transported density."""


class OnTheCircle(Setting):
    """Tokens of a von Mises law under random layers on the circle."""

    concentration: Annotated[of.NonNegative, means("concentration of the law at the start")] = 0.8
    b: of.LogitScale = 2.0
    v: of.LayerTime = 0.05
    runs: of.Runs = 100
    seed: of.Seed = 27


def circle_chain(s: OnTheCircle, multiplicities: Any = None) -> RandomTransformer:
    """One head per layer on the circle, of logit scale b, p = ∞, and layer time v."""
    return RandomTransformer(2, step=math.sqrt(s.v), logit_scale=s.b, qk_dim=math.inf, multiplicities=multiplicities)


def angles_of(x: np.ndarray) -> np.ndarray:
    """Angles of points of the circle."""
    return np.arctan2(x[..., 1], x[..., 0])


class Samples(OnTheCircle):
    """Two samples of several sizes."""

    ns: of.Sizes = (32, 128)
    layers: of.Depth = 40


class Copies(Samples):
    """Tokens and their copies in the mean field."""

    runs: of.Runs = 300
    nodes: Annotated[of.Count, means("quantile nodes of the mean field")] = 64


def drawn_heads(s: Copies) -> tuple[np.ndarray, np.ndarray]:
    """V and A (runs, layers, 2, 2) that the chain draws in layer ℓ of run r, from the keys it documents."""
    law, key = circle_chain(s).law, jax.random.key(s.seed)
    layers = jnp.arange(1, s.layers + 1)

    def one(run: Any) -> Any:
        mine = jax.random.fold_in(key, run)
        return jax.vmap(lambda layer: law.heads(jax.random.fold_in(mine, layer), 1))(layers)

    heads = jax.jit(jax.vmap(one))(jnp.arange(s.runs))
    return np.asarray(heads.value)[:, :, 0], np.asarray(heads.query)[:, :, 0]


def simulate_chaos(s: Copies) -> Evidence:
    """sup_ℓ |x_i - x̄_i|² averaged over the tokens of each run, beside the linear response to the same start."""
    several("ns", s.ns)
    law = WeightedNodes(np.asarray(von_mises_nodes(s.nodes, s.concentration)), np.full(s.nodes, 1 / s.nodes))
    mean_field = lambda multiplicities: TransportedMeasure(circle_chain(s, multiplicities))  # noqa: E731
    heads, nodes, key = drawn_heads(s), theory.von_mises_nodes(s.nodes, s.concentration), jax.random.key(s.seed)
    sizes, linear, runs = [], [], []
    for n in s.ns:
        pair = synchronous_coupling(
            circle_chain(s), mean_field, law, VonMisesTokens(n, s.concentration), depth=s.layers, key=key, runs=s.runs
        )
        sizes.append(pair.squares.max(axis=1).mean(axis=-1))
        first = response(nodes, angles_of(pair.tokens[:, 0]), *heads, math.sqrt(s.v), s.b)
        linear.append((first**2).max(axis=1).mean(axis=-1))
        runs.append(pair.run)
    ratio, error = mean_and_error(np.log(sizes) - np.log(linear), axis=1)
    order, spread = _order(s.ns, np.log(sizes))
    means, errors = mean_and_error(np.asarray(s.ns)[:, None] * np.asarray(sizes), axis=1)
    far = float(np.exp(np.mean(np.log(linear[0]))))
    advice = f"tokens and copies are {far**0.5:.2g} apart at n = {s.ns[0]}: take larger `ns` or fewer `layers`"
    return Evidence(
        {"response": np.exp(ratio), "order": order},
        {"response": error, "order": spread},
        (Curve("n E sup|x − x̄|²", s.ns, means, errors),),
        tuple(runs),
        undecided={"response": advice} if far > NONLINEAR else {},
    )


def _order(ns: Any, logs: np.ndarray) -> tuple[float, float]:
    """Slope of the mean of log y in log n where all n share the noises, and its standard error over them."""
    slopes = [log_slope(ns, np.exp(column))[0] for column in logs.T]
    mean, error = mean_and_error(slopes)
    return float(mean), float(error)


def predict_chaos(s: Copies) -> Evidence:
    """The response to the start's fluctuation, up to a factor 1 + O(1/n); the rate 1/n."""
    n = np.asarray(s.ns, float)
    return Evidence({"response": np.ones(len(n)), "order": -1.0}, {"response": 1 / n}, source="linear response")


claim(
    "homogenized/C27a",
    HOMOGENIZED,
    "propagation of chaos, random starts",
    "n independent tokens and copies of them that the mean field moves by the same heads stay together: "
    "sup_ℓ|x_i − x̄_i|² is of order 1/n, and in the geometric mean over runs it is the first-order response to the "
    "fluctuation of the start (derived).",
    where="mean field with common noise: theorem on propagation of chaos",
    models=("random", "transported-measure"),
    quick=Copies(),
    full=Copies(runs=600, ns=(16, 32, 64, 128, 256), nodes=96),
    within={
        "response": standard_errors(4.5, "errors over noises; 1/n for the second order"),
        "order": absolute(0.05, "1/n for n → ∞; 0.05 for its second order at n = 16", errors=4.5),
    },
    simulate=simulate_chaos,
    predict=predict_chaos,
    axes=Axes("n", "n E sup|x − x̄|²", x_scale="log"),
    note="The constant n E sup is 3.1(1) at this setting, by the response to 1500 fluctuations; noise that is not "
    "shared leaves 1.9 at every n, order 0. The constant is measured only, for one density, b and v; its limit "
    "v → 0 is not known.",
    blind={
        "response": "second-order terms scatter by n^{-1/2} in each run: 2 % of the mean at n = 128 and 300 noises",
        "order": "the start's fluctuation scatters by a factor of two; noise that is not shared has order 0",
    },
)


def _squared_distances(one: np.ndarray, other: np.ndarray) -> list[float]:
    return [circle_distance(x, y) ** 2 for x, y in zip(one, other, strict=True)]


def _own_heads(right: Any, size: float) -> Any:
    """In a share of the runs the second sample is one that other heads have moved."""
    own = lambda x: np.where((np.arange(len(x)) < size * len(x))[:, None], np.roll(x, 2, axis=0), x)  # noqa: E731
    return lambda one, other: right(one, own(other))


def simulate_law(s: Samples) -> Evidence:
    """W₂² on the circle of two independent starts after the same heads, and after those of another run, for each n."""
    several("ns", s.ns)
    model, key = circle_chain(s), jax.random.key(s.seed)
    same, apart, runs = [], [], []
    for n in s.ns:
        starts = [VonMisesTokens(n, s.concentration, stream) for stream in range(2)]
        found = coupled_chains([model] * 2, starts, depth=s.layers, every=s.layers, key=key, runs=s.runs)
        one, two = (angles_of(run["tokens"].values[:, -1]) for run in found)
        same.append(_squared_distances(one, two))
        apart.append(_squared_distances(one, np.roll(two, 1, axis=0)))
        runs.append(found[0])
    means, errors = mean_and_error(same, axis=1)
    away, off = mean_and_error(apart, axis=1)
    order, spread = _order_of_means(s.ns, np.asarray(same))
    share = means[-1] / away[-1]
    return Evidence(
        {"order": order, "share": share},
        {"order": spread, "share": share * math.hypot(errors[-1] / means[-1], off[-1] / away[-1])},
        (Curve("the same heads", s.ns, means, errors), Curve("heads of its own", s.ns, away, off)),
        tuple(runs),
        undecided=_thin(s),
    )


def _thin(s: Samples) -> dict[str, str]:
    """Where these n do not show the rate: gaps in thin regions, or too little noise to tell laws apart."""
    time = s.v * s.layers
    if time > LONGEST:
        return {"order": f"thin regions of the density hold no token at τ = {time:g}: take v·layers ≤ {LONGEST:g}"}
    if time < 1 or max(s.ns) < 100:
        return {"share": f"noise moved the law too little for these n: take v·layers ≥ 1 and n ≥ 100 (τ = {time:g})"}
    return {}


def _order_of_means(ns: Any, values: np.ndarray) -> tuple[float, float]:
    """Slope of log E y in log n, its standard error by leaving out one noise at a time."""
    count = values.shape[1]
    rest = (values.sum(axis=1, keepdims=True) - values) / (count - 1)
    slopes = np.array([log_slope(ns, column)[0] for column in rest.T])
    return log_slope(ns, values.mean(axis=1))[0], student(count) * math.sqrt(count - 1) * float(slopes.std())


def predict_law(s: Samples) -> Evidence:
    """Bounds: a power of n, and a quarter of what noise of its own leaves."""
    return Evidence({"order": -0.5, "share": 0.25}, source="bounds; the theorem has -1 for n → ∞")


claim(
    "homogenized/C27b",
    HOMOGENIZED,
    "the conditional law given the noise",
    "Two independent samples of one law, moved by the same heads, come closer as n grows: E W₂² on the circle falls at "
    "least like n^{−1/2}, and at the largest n is below a quarter of what heads of their own leave.",
    where="mean field with common noise: theorem on propagation of chaos, conditional law",
    models=("random",),
    quick=Samples(),
    full=Samples(runs=300, ns=(16, 32, 64, 128, 256)),
    within={
        "order": at_most("between -1 (the theorem) and the -0.8 seen for n ≤ 256", errors=3.0),
        "share": at_most("measured 0.16-0.18 at n = 128; noise of its own keeps laws apart at every n", errors=3.0),
    },
    simulate=simulate_law,
    predict=predict_law,
    axes=Axes("n", "E W₂²(τ)", x_scale="log", y_scale="log"),
    note="The power −0.8 for n ≤ 256 at τ = 2 is measured only, for one density, b and v; that gaps in thin regions "
    "keep it from the theorem's −1 is a guess.",
    mistakes=(Mistake("_squared_distances", "heads of its own in {:.0%} of the runs", _own_heads, (0.2, 0.5, 1.0)),),
)
