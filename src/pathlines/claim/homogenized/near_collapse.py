"""The last stage: how fast the gap 1 - R of nearly parallel tokens closes, typically and on average.

Under attention alone (Homogenized Transformers, arXiv:2604.01978; derived) log(1-R) drifts at -(d-1)/d for any n and b,
and E(1-R), carried by rare late pairs, decays at (d-3)/d only. Under random perceptrons (arXiv:2604.26898; derived) the
drift is (σ²/d)[(d-3)κ'(1) - (d-1)κ(1)]: negative for relu, positive for strongly saturating odd functions.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import positive_integer
from pathlines.foundation.papers import HOMOGENIZED, SYNCHRONIZATION
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.limit.homogenized.collapse import layer_collapse_rates, near_collapse_rates
from pathlines.limit.homogenized.perceptron_collapse import (
    layer_separation_rates,
    mean_separation_rate,
    typical_separation_rate,
)
from pathlines.model.capability import HasRandomLayers
from pathlines.model.homogenized.random_perceptron import RandomPerceptron
from pathlines.model.homogenized.random_transformer import RandomTransformer

ERRORS = 5.0
ROWS = 10
TYPICAL, MEAN = "mean of log(1−R)", "log of mean(1−R)"


class Closeness(Setting):
    """Nearly parallel tokens, and how long they are followed."""

    gap: Annotated[of.Positive, means("1 − overlap at the start", "1 − R₀")] = 0.0001
    tau: of.Tau = 2.0
    runs: of.Runs = 20000
    seed: of.Seed = 16


def gaps(model: HasRandomLayers, n: int, d: int, s: Closeness) -> tuple[np.ndarray, np.ndarray, Any]:
    """(times, 1 - ⟨x_1, x_2⟩ of every run over its first value, run), from n tokens with 1 - ⟨x_i, x_j⟩ = s.gap."""
    positive_integer("n", n, least=2)
    tick = next(iter(model.clocks.values()))
    every = max(1, round(s.tau / (ROWS * tick)))
    tokens = Sphere(d).simplex(n, 1 - s.gap)
    key = jax.random.key(s.seed)
    run = chain(model, tokens, depth=ROWS * every, every=every, key=key, runs=s.runs, record="deficits")
    found = run["deficits"].values[:, :, 0, 1]
    return run.data["time"].values, found / found[:, :1], run


def rates(times: np.ndarray, ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(typical, mean) rate of the gap over the whole time, and their standard errors over runs."""
    last, span = ratio[:, -1], times[-1]
    logs, share = np.log(last), last / last.mean()
    spread = mean_and_error([logs, share], axis=1)[1] / span
    return np.array([logs.mean(), math.log(last.mean())]) / span, spread


def measured(cases: list[tuple[str, HasRandomLayers, int]], n: int, s: Closeness) -> Evidence:
    """Both rates for each (label, model, d)."""
    found, curves, runs = [], [], []
    for label, model, d in cases:
        times, ratio, run = gaps(model, n, d, s)
        found.append(rates(times, ratio))
        curves.append(Curve(f"{label}, {TYPICAL}", times, np.log(ratio).mean(axis=0)))
        curves.append(Curve(f"{label}, {MEAN}", times, np.log(ratio.mean(axis=0)), panel="mean gap"))
        runs.append(run)
    values, errors = np.moveaxis(np.array(found), 1, 0)
    return Evidence(
        {"typical_rate": values[:, 0], "mean_rate": values[:, 1]},
        {"typical_rate": errors[:, 0], "mean_rate": errors[:, 1]},
        tuple(curves),
        tuple(runs),
    )


def expected(labels: list[str], found: list[tuple[float, float]], tau: float) -> Evidence:
    """Straight lines of the predicted rates."""
    curves = []
    for label, (typical, mean) in zip(labels, found, strict=True):
        curves.append(Curve(f"limit, {label}", [0.0, tau], [0.0, typical * tau]))
        curves.append(Curve(f"limit, {label}", [0.0, tau], [0.0, mean * tau], panel="mean gap"))
    typical, mean = np.array(found).T
    return Evidence({"typical_rate": typical, "mean_rate": mean}, curves=tuple(curves))


def with_layers(found: Evidence) -> Evidence:
    """The same rates once more, to be compared with those of layers of finite length."""
    again = {f"layer_{name}": value for name, value in found.values.items()}
    errors = {f"layer_{name}": value for name, value in found.uncertainties.items()}
    return Evidence({**found.values, **again}, {**found.uncertainties, **errors}, found.curves, found.runs)


def beside_layers(limit: Evidence, layers: list[tuple[float, float]]) -> Evidence:
    """Rates of the diffusion, whose error is the known distance of layers from it, and rates of the layers."""
    typical, mean = np.array(layers).T
    values = {**limit.values, "layer_typical_rate": typical, "layer_mean_rate": mean}
    apart = {name: 1.5 * np.abs(values[f"layer_{name}"] - values[name]) / ERRORS for name in limit.values}
    return Evidence(values, apart, limit.curves, source="closed form; quadrature of a layer")


RATES = {
    "typical_rate": standard_errors(
        ERRORS, "standard errors over pairs, and 1.5 times what layers of this length differ by"
    ),
    "mean_rate": standard_errors(ERRORS, "the same"),
    "layer_typical_rate": standard_errors(ERRORS, "standard errors over pairs"),
    "layer_mean_rate": standard_errors(ERRORS, "standard errors over pairs"),
}


class Attention(Closeness):
    """Under attention alone."""

    dims: of.Dimensions = (5, 20)
    n: of.Tokens = 2
    b: of.LogitScale = 0.0
    v: of.LayerTime = 0.02


def simulate_attention(s: Attention) -> Evidence:
    """Layers of attention, a chain for each dimension."""
    models = [RandomTransformer(d, step=math.sqrt(s.v), logit_scale=s.b) for d in s.dims]
    return with_layers(measured([(f"d = {m.d}", m, m.d) for m in models], s.n, s))


def predict_attention(s: Attention) -> Evidence:
    """-(d-1)/d and -(d-3)/d of the diffusion; and what layers of this v do, by quadrature, which differs by O(v)."""
    limit = expected([f"d = {d}" for d in s.dims], [near_collapse_rates(d) for d in s.dims], s.tau)
    return beside_layers(limit, [layer_collapse_rates(d, s.v) for d in s.dims])


claim(
    "homogenized/C16",
    HOMOGENIZED,
    "near-collapse exponents (derived)",
    "Near collapse, for any n and logit scale, a typical gap obeys d log(1−R)/dτ = −(d−1)/d, while E(1−R) decays at "
    "the smaller rate (d−3)/d: collapse always attracts, and the mean gap is carried by rare late pairs.",
    where="derived; no statement in the paper",
    models=("random",),
    quick=Attention(),
    full=Attention(runs=100_000, dims=(4, 5, 10, 20), v=0.01),
    within=RATES,
    simulate=simulate_attention,
    predict=predict_attention,
    axes=Axes("diffusive time τ", "change of the logarithm"),
)


Cases = Annotated[tuple[tuple[str, of.Positive, of.Count], ...], means("activation, size and dimension", "σ, σ_w, d")]


class Perceptrons(Closeness):
    """Under random perceptrons alone."""

    gap: Annotated[of.Positive, means("1 − overlap at the start", "1 − R₀")] = 1e-8
    runs: of.Runs = 40000
    seed: of.Seed = 2
    cases: Cases = (("relu", 1.0, 4), ("erf", 3.0, 16))
    width: Annotated[of.Count | None, means("width of the perceptron; none for infinitely wide")] = None
    n: of.Tokens = 2
    time_step: Annotated[of.Positive, means("time of one layer", unit="diffusive time")] = 0.02


def _perceptron(name: str, sigma_w: float, s: Perceptrons) -> RandomPerceptron:
    return RandomPerceptron(name, sigma_w=sigma_w, width=s.width, time_step=s.time_step)


def _label(name: str, sigma_w: float, d: int) -> str:
    return f"{name}, σ_w = {sigma_w:g}, d = {d}"


def simulate_perceptron(s: Perceptrons) -> Evidence:
    """Perceptron noise alone, a chain for each (activation, σ_w, d)."""
    return with_layers(measured([(_label(f, w, d), _perceptron(f, w, s), d) for f, w, d in s.cases], s.n, s))


def predict_perceptron(s: Perceptrons) -> Evidence:
    """From κ(1) and κ'(1) of the kernel; and what layers of this δ do, by quadrature, which differs by O(δ)."""
    found = [(typical_separation_rate(d, f, w), mean_separation_rate(d, f, w)) for f, w, d in s.cases]
    limit = expected([_label(*case) for case in s.cases], found, s.tau)
    return beside_layers(limit, [layer_separation_rates(d, s.time_step, f, w) for f, w, d in s.cases])


claim(
    "homogenized/A2",
    SYNCHRONIZATION,
    "local synchronisation by perceptron noise (derived)",
    "Under random perceptron noise alone log(1−R) of nearby tokens drifts at [(d−3)κ′(1) − (d−1)κ(1)]/d and E(1−R) "
    "grows at [(d−1)(κ′(1)−κ(1)) + 2κ(1)]/d: relu synchronises typical pairs, a saturating odd activation drives "
    "them apart.",
    where="abstract: synchronisation by noise; constants derived",
    models=("random-perceptron",),
    quick=Perceptrons(),
    full=Perceptrons(
        runs=800_000, cases=(("relu", 1.0, 4), ("linear", 1.0, 4), ("erf", 1.0, 4), ("erf", 3.0, 16)), time_step=0.01
    ),
    within=RATES,
    simulate=simulate_perceptron,
    predict=predict_perceptron,
    axes=Axes("t", "change of the logarithm"),
    note="Layers of length δ differ from the diffusion by O(δ), by 1.7 % for erf, σ_w = 3, d = 16, δ = 0.02: computed, "
    "not allowed for. The condition of arXiv:2604.26898 itself was not available for comparison.",
)
