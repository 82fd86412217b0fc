"""The chain from orthogonal tokens against its scalar reductions: layer map, differential equation, fluctuations.

With K = (1-γ)I + γ11ᵀ kept in the mean, γ obeys a layer map, γ' = (γ+vS)/(1+vP), and for small v a differential
equation; in d dimensions the overlaps deviate from it by O(d^{-1/2}) (Homogenized Transformers, arXiv:2604.01978).
"""

from __future__ import annotations

import math
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.homogenized import direct
from pathlines.claim.slopes import log_slope
from pathlines.claim.tolerance import absolute, at_most, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.overlap_curve import layer_map_curve, overlap_curve
from pathlines.model.homogenized.random_transformer import RandomTransformer

ERRORS = 5.0
FEW = 2
"""Heads of the chain in NumPy, of the same v: at the smallest d the noise of their scores does not show."""


class Chain(Setting):
    """A chain of Gaussian heads from orthogonal tokens."""

    n: of.Tokens = 8
    b: of.LogitScale = 2.0
    heads: of.Heads = 2
    depth: of.Depth = 66
    runs: of.Runs = 64
    wide_heads: Annotated[bool, means("whether query-key factors are infinitely wide (else p = d)")] = True
    eta: of.Step = 0.5
    seed: of.Seed = 6


def _run(s: Chain, d: int, seed: int) -> Run:
    """All overlaps after every layer; the Gram sampler's program is the same for every d."""
    net = RandomTransformer(d, heads=s.heads, step=s.eta, logit_scale=s.b, qk_dim=_width(s, d))
    key = jax.random.key(seed)
    return chain(net, np.eye(s.n), depth=s.depth, key=key, runs=s.runs, record="overlaps", sampler="gram")


def _width(s: Chain, d: int) -> float:
    """p = d, or infinite (logits exactly Gaussian)."""
    return math.inf if s.wide_heads else d


Layers = Annotated[tuple[of.Whole, ...], means("layers at which the overlaps are compared", "ℓ")]
Advantage = Annotated[of.Positive, means("how much nearer the layer map must be than the differential equation")]


class LayerCurve(Chain):
    """One chain and the layers at which it is compared."""

    d: of.Dimension = 256
    layers: Layers = (11, 22, 33, 44, 55, 66)
    advantage: Advantage = 0.5


def _curves(s: LayerCurve) -> tuple[np.ndarray, np.ndarray]:
    """Layer map and differential equation after every layer, both with their first correction in 1/d."""
    v, p = s.eta**2 / s.heads, _width(s, s.d)
    mapped = layer_map_curve(s.depth, s.n, s.b, v, p=p, d=s.d).overlap
    return mapped, overlap_curve(v * np.arange(s.depth + 1), s.n, s.b, d=s.d, p=p)


def _off_diagonal(run: Run, n: int) -> np.ndarray:
    """K_ij of the pairs i < j: (run, layer, pair)."""
    return run["overlaps"].values[:, :, *np.triu_indices(n, 1)]


def simulate_mean(s: LayerCurve) -> Evidence:
    """The mean overlap at the given layers; its mean over all layers less five standard errors, a lower bound."""
    require(min(s.layers) >= 0 and max(s.layers) <= s.depth, "layers", f"be at most depth = {s.depth}", s.layers)
    run = _run(s, s.d, s.seed)
    each = _off_diagonal(run, s.n).mean(axis=-1)
    mean, error = mean_and_error(each)
    level, spread = mean_and_error(each.mean(axis=1))
    return Evidence(
        {"overlap": mean[list(s.layers)], "level": level - 5 * spread},
        {"overlap": error[list(s.layers)]},
        curves=(Curve("chain", run.data["tau"].values, mean, error),),
        runs=(run,),
    )


def predict_mean(s: LayerCurve) -> Evidence:
    """The layer map with its first correction in 1/d; and, below the differential equation, the level that is
    ``advantage`` times as far from the map as from the equation.
    """
    v = s.eta**2 / s.heads
    tau = v * np.arange(s.depth + 1)
    mapped, smooth = _curves(s)
    share = s.advantage / (1 + s.advantage)
    return Evidence(
        {"overlap": mapped[list(s.layers)], "level": np.mean(mapped + share * (smooth - mapped))},
        {"overlap": (3 / s.d + v / (20 * s.heads)) / ERRORS},
        curves=(
            Curve("layer map", tau, mapped),
            Curve("differential equation", tau, smooth),
        ),
    )


class Fluctuations(Chain):
    """Chains in several dimensions."""

    heads: of.Heads = 8
    runs: of.Runs = 128
    eta: of.Step = 0.6
    seed: of.Seed = 8
    dimensions: of.Dimensions = (64, 256, 1024)
    check_runs: of.CheckRuns = 64


def _sup_deviation(s: Fluctuations, overlaps: np.ndarray) -> np.ndarray:
    """max_{i<j} |K_ij - γ| at every layer of every run, γ the layer map of infinite d and p (pairs: last axis)."""
    gamma = layer_map_curve(s.depth, s.n, s.b, s.eta**2 / s.heads).overlap
    return np.abs(overlaps - gamma[:, None]).max(axis=-1)


def simulate_spread(s: Fluctuations) -> Evidence:
    """√d times sup_τ max_{i<j} |K_ij - γ|, mean over runs."""
    means, errors, curves, runs = [], [], [], []
    for k, d in enumerate(s.dimensions):
        run = _run(s, d, s.seed + k)
        apart = np.sqrt(d) * _sup_deviation(s, _off_diagonal(run, s.n))
        mean, error = mean_and_error(apart.max(axis=1))
        means.append(mean)
        errors.append(error)
        curves.append(Curve(f"d={d}", run.data["tau"].values, *mean_and_error(apart)))
        runs.append(run)
    sizes = np.sqrt(np.asarray(s.dimensions, float))
    exponent, spread = log_slope(s.dimensions, means / sizes, errors / sizes)
    return Evidence(
        {"scaled_deviation": means, "exponent": exponent},
        {"scaled_deviation": errors, "exponent": spread},
        curves=tuple(curves),
        runs=tuple(runs),
    )


def predict_spread(s: Fluctuations) -> Evidence:
    """√(c² + dφ²): c from a chain in NumPy at the smallest d, every matrix drawn, and φ, what the noise of the scores
    alone leaves at d = ∞, from the layer map with drawn scores; the exponent is -1/2 as far as φ is negligible.
    """
    d = min(s.dimensions)
    few = min(s.heads, FEW)
    eta = s.eta * math.sqrt(few / s.heads)
    grams = direct.random_layers(np.eye(s.n, d), s.b, eta, few, s.depth, s.check_runs, s.seed, _width(s, d))
    apart = np.sqrt(d) * _sup_deviation(s, grams[:, :, *np.triu_indices(s.n, 1)])
    mean, error = mean_and_error(apart.max(axis=1))
    wide = direct.wide_layers(np.eye(s.n), s.b, s.eta, s.heads, s.depth, s.check_runs, s.seed)
    floor = _sup_deviation(s, wide[:, :, *np.triu_indices(s.n, 1)]).max(axis=1).mean()
    dims = np.asarray(s.dimensions, float)
    scaled = np.sqrt(mean**2 + (dims - d) * floor**2)
    exponent, _ = log_slope(dims, scaled / np.sqrt(dims))
    tau = s.eta**2 / s.heads * np.arange(s.depth + 1)
    return Evidence(
        {"scaled_deviation": scaled, "exponent": exponent},
        {"scaled_deviation": error},
        curves=(Curve(f"d={d}, NumPy", tau, *mean_and_error(apart)),),
        source="exponent; NumPy Monte Carlo",
    )


claim(
    "homogenized/C06",
    HOMOGENIZED,
    "layer map (derived)",
    "From orthogonal tokens the mean overlap of the chain follows the layer map γ' = (γ+vS)/(1+vP), with its first "
    "correction in 1/d, and the differential equation in τ only up to O(v): the map is several times closer.",
    where="§2.3.4, theorem on the simplex, in its discrete form (derived)",
    models=("random",),
    quick=LayerCurve(),
    full=LayerCurve(
        n=16, d=1024, heads=4, depth=55, runs=800, wide_heads=False, eta=0.6, layers=(6, 11, 17, 22, 28, 33, 39, 44)
    ),
    within={
        "overlap": standard_errors(
            ERRORS,
            "standard errors over runs, 3/d for the curvature of the layer in the fluctuations (1.6/d seen at d = 32 "
            "to 256), and v/(20H) for the noise of the scores",
        ),
        "level": at_most("the map is closer by this factor; five standard errors are in the measured number"),
    },
    simulate=simulate_mean,
    predict=predict_mean,
    axes=Axes("diffusive time τ = vℓ", "mean overlap γ̄"),
)

claim(
    "homogenized/C08",
    HOMOGENIZED,
    "fluctuations of the overlaps in d dimensions",
    "The largest deviation of an overlap from the simplex curve, over pairs and times, decreases like d^{−1/2}: "
    "√d times its mean is the same number for all d (about 2.7 at n=8, b=2, v=0.045, H=2, τ≤3) until the noise of the "
    "scores, of order √(v/H) at any d, shows.",
    where="§2.3.4, fluctuation in the theorem on the simplex",
    models=("random",),
    quick=Fluctuations(),
    full=Fluctuations(runs=1000, wide_heads=False, check_runs=256),
    within={
        "scaled_deviation": relative(
            0.08, "corrections of 3/d at d = 64; suprema add in squares only roughly; standard errors", errors=ERRORS
        ),
        "exponent": absolute(0.03, "the same over the logarithm of the range of d", errors=ERRORS),
    },
    simulate=simulate_spread,
    predict=predict_spread,
    axes=Axes("diffusive time τ = vℓ", "mean of √d · max |Kᵢⱼ − γ|"),
    blind={
        "scaled_deviation": "the constant is that of the smallest d, drawn, and known up to 1/d there",
        "exponent": "the same 1/d, over the logarithm of the range of d, is 5 % of one half",
    },
    note="At fixed v and H noise of the query-key matrices leaves a floor as d → ∞, which the prediction includes: "
    "take v/H below 1e-3 to see the power −1/2 at large d.",
)
