"""Rates of convergence to a point mass: what a finite sample shows instead, and what regularity does to them.

Quantitative Clustering in Mean-Field Transformer Models, arXiv:2504.14697; The Mean-Field Dynamics of Transformers,
arXiv:2512.01868. Rates derived.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.mean_field import W2_SQUARED, weighted_tokens
from pathlines.claim.tolerance import absolute, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS, QUANTITATIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.clustering.mean_field import late_rate
from pathlines.model import SelfAttention
from pathlines.observable.analysis import decay_rate
from pathlines.observable.pairs import u_mean

# --- ER-10: a finite sample does not show the mean-field rate


class FiniteSample(Setting):
    """A finite sample on the circle."""

    n: of.Tokens = 64
    beta: of.Beta = 1.0
    tilt: of.Tilt = 0.5
    seed: of.Seed = 0
    until: of.Until = 30.0
    records: of.Records = 61
    lowest: Annotated[of.Positive, means("smallest W₂² that the rate is read from")] = 1e-16
    highest: Annotated[of.Positive, means("largest W₂² that the rate is read from")] = 1e-6
    rtol: of.Rtol = 1e-11


def _sample(s: FiniteSample) -> Array:
    """n i.i.d. angles of density ∝ 1 + tilt·cos θ, by inverting the distribution function θ + tilt·sin θ = 2πU."""
    grid = np.linspace(-np.pi, np.pi, 100_001)
    levels = np.asarray(jax.random.uniform(jax.random.key(s.seed), (s.n,))) * 2 * np.pi - np.pi
    theta = np.interp(levels, grid + s.tilt * np.sin(grid), grid)
    return Sphere(2).normalise(np.stack([np.cos(theta), np.sin(theta)], axis=1))


def simulate_sample(s: FiniteSample) -> Evidence:
    """Late decay rate of the mean pair deficit of n tokens."""
    times = np.linspace(0.0, s.until, s.records)
    run = flow(SelfAttention(s.beta), _sample(s), times=times, record=u_mean, method="dop853", rtol=s.rtol)
    values = run["u_mean"].values
    rate = decay_rate(run.time, values, s.lowest, s.highest) if values[-1] < s.lowest else float("nan")
    return Evidence({"rate": rate}, curves=(Curve(f"{s.n} tokens", run.time, values),), runs=(run,))


def predict_sample(s: FiniteSample) -> Evidence:
    """The rate of the mean field."""
    rate = late_rate(2, s.beta, "sa")
    grid = np.linspace(0.0, s.until, 61)
    return Evidence({"rate": rate}, curves=(Curve(f"e^{{−{rate:g}t}}, mean field", grid, np.exp(-rate * grid)),))


claim(
    "clustering/ER-10",
    MEAN_FIELD_DYNAMICS,
    "mean-field rate read off a finite sample",
    "The late decay rate of a finite sample on the circle under SA is that of the mean field, 1.",
    where="exponential rates of the mean field, read at finite n",
    models=("sa",),
    quick=FiniteSample(),
    full=FiniteSample(n=400, until=40.0, records=161),
    within={"rate": relative(0.05, "five percent; the two rates differ by a factor of two")},
    simulate=simulate_sample,
    predict=predict_sample,
    expected="refuted",
    corrected_by="clustering/CL-14",
    axes=Axes("depth-time t", "mean uᵢⱼ", y_scale="log"),
    note="The limits do not commute: n tokens end at rate 2 (CL-14), a density at rate 1 on the circle (CL-26), "
    "because only a density has mass arbitrarily close to the antipode.",
)


# --- OP-04: what regularity and β do to the rate


def _singular(power: float, tilt: float) -> Any:
    """(1 + tilt·cos θ)·φ^{-a}, φ the distance to the antipode: square integrable on the circle iff a < 1/2."""
    return lambda theta: (1 + tilt * np.cos(theta)) * (np.pi - np.abs(theta)) ** -power


class Singular(Setting):
    """Densities with a power at the antipode, as weighted tokens."""

    betas: of.Betas = (0.1, 1.0)
    powers: Annotated[of.Vector, means("exponents of the singularity φ^{−a}", "a")] = (0.0, 0.2, 0.4)
    tilt: of.Tilt = 0.9
    window: of.RateWindow = (14.0, 17.0)
    records: of.Records = 5
    panels: of.Panels = 24
    points: of.PanelNodes = 4
    near: of.LateDistance = 0.01
    settled: of.Settled = 0.001
    rtol: of.Rtol = 1e-8
    atol: of.Atol = 1e-14


def simulate_regularity(s: Singular) -> Evidence:
    """Late rates of W₂² for every singularity a and every β."""
    edges = np.linspace(s.window[0], s.window[1], 3)
    times = np.union1d(np.linspace(0.0, s.window[1], s.records), edges)
    at = np.searchsorted(times, edges)
    rates, curves, runs = [], [], []
    for power in s.powers:
        tokens, weights = weighted_tokens(_singular(power, s.tilt), 2, s.panels, s.points, 2)
        found = []
        for beta in s.betas:
            model = SelfAttention(beta, multiplicities=weights)
            options: dict[str, Any] = {
                "record": W2_SQUARED,
                "method": "dop853",
                "rtol": s.rtol,
                "atol": s.atol,
                "form": "tokens",
            }
            run = flow(model, tokens, times=times, **options)
            w2 = run["w2_squared"].values
            complete = len(w2) == len(times) and w2[-1] <= s.near
            halves = -np.diff(np.log(w2[at])) / np.diff(times[at]) if complete else np.full(2, np.nan)
            found.append(float(halves.mean()) if abs(halves[1] - halves[0]) <= s.settled else np.nan)
            runs.append(run)
        rates += found
        curves.append(Curve(f"a = {power:g}", s.betas, found))
    return Evidence({"rate": rates}, curves=tuple(curves), runs=tuple(runs))


def predict_regularity(s: Singular) -> Evidence:
    """1 - a: mass φ^{1-a} sits within φ of the antipode, and φ grows like e^t, whatever β."""
    rates = np.repeat(1 - np.asarray(s.powers, float), len(s.betas))
    lines = tuple(Curve(f"1 − a = {1 - p:g}", s.betas, np.full(len(s.betas), 1.0 - p)) for p in s.powers)
    return Evidence({"rate": rates}, curves=lines)


claim(
    "clustering/OP-04",
    QUANTITATIVE,
    "exponential convergence for small β and square-integrable densities",
    "On the circle, SA from a density like φ^{−a}, a < ½, at the antipode (square integrable) converges to a point "
    "mass with W₂² ≍ e^{−(1−a)t}: exponentially, at a rate above ½ that is set by the regularity and not by β.",
    where="theorem on exponential convergence for small β and square-integrable densities",
    models=("sa",),
    quick=Singular(),
    full=Singular(betas=(0.05, 0.1, 0.2, 0.5, 1.0), powers=(0.0, 0.1, 0.2, 0.3, 0.4, 0.45), points=6),
    within={
        "rate": absolute(2e-3, "remaining transient: inconclusive while the rate changes by half of this in the window")
    },
    simulate=simulate_regularity,
    predict=predict_regularity,
    axes=Axes("β", "decay rate of W₂²"),
    note="The hypotheses and constants of the paper's theorem are not tested: this measures what happens.",
)
