"""Which limit holds, and how random weights compare with identity weights (arXiv:2604.01978, arXiv:2312.10794)."""

from __future__ import annotations

import math
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import absolute, exactly
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED, PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.chain import chain
from pathlines.limit.clustering.equiangular import overlap_at
from pathlines.limit.homogenized.overlap_curve import overlap_curve
from pathlines.limit.homogenized.regimes import LABELS, asymptotic_regime
from pathlines.model import SelfAttention
from pathlines.model.homogenized.random_transformer import RandomTransformer

STEADY = 1e-6
"""A product whose exponent in L is below this in size counts as O(1)."""


def _products(a: float, c: float, depth: float, d: int) -> np.ndarray:
    """ηL, αηL, η²L, η³L as the model reports η and α; σ_V is chosen so that one head has noise L^{-c}."""
    eta, alpha = depth**-a, depth**-c
    numbers = RandomTransformer(d, step=eta, sigma_v=math.sqrt(alpha / (eta * (d - 1)))).parameters
    assert numbers.noise is not None
    return np.array([numbers.step, numbers.noise * numbers.step, numbers.step**2, numbers.step**3]) * depth


def trend_label(exponents: np.ndarray) -> str:
    """The smallest model for products growing like L^exponent: negative o(1), zero O(1), positive neither."""
    horizon, noise, square, cube = exponents
    if noise < -STEADY:
        for label, number in (("static", horizon), ("ode1", square), ("ode2", cube)):
            if number < -STEADY:
                return label
    return "sde" if abs(noise) <= STEADY and cube < -STEADY else "failure"


Exponents = Annotated[tuple[tuple[float, float], ...], means("η = L^{−a} and α = L^{−c}", "a, c")]


class Regimes(Setting):
    """Exponents of step and noise in the depth."""

    exponents: Exponents = ((1.2, 0.5), (0.6, 0.6), (0.45, 0.7), (0.5, 0.5), (0.4, 0.5), (0.3, 0.9))
    d: of.Dimension = 16
    shallow: Annotated[of.Positive, means("the smaller depth", "L")] = 10000.0
    deep: Annotated[of.Positive, means("the larger depth", "L")] = 100000000.0


def simulate_labels(s: Regimes) -> Evidence:
    """The four products at two depths, hence their powers of L, hence the label."""
    found = [
        np.log(_products(a, c, s.deep, s.d) / _products(a, c, s.shallow, s.d)) / math.log(s.deep / s.shallow)
        for a, c in s.exponents
    ]
    labels = [LABELS.index(trend_label(e)) for e in found]
    names = ("ηL", "αηL", "η²L", "η³L")
    curves = tuple(
        Curve(f"power of L in {name}", range(1, len(found) + 1), row)
        for name, row in zip(names, np.transpose(found), strict=True)
    )
    return Evidence({"label": labels}, curves=curves)


def predict_labels(s: Regimes) -> Evidence:
    """The phase diagram in the exponents (a, c)."""
    return Evidence({"label": [LABELS.index(asymptotic_regime(a, c)) for a, c in s.exponents]})


claim(
    "homogenized/C23",
    HOMOGENIZED,
    "regimes of depth (Figure 1)",
    "With η = L^{−a} and α = L^{−c} the limit is static for a > 1, ODE I for ½ < a ≤ 1, ODE II for ⅓ < a ≤ ½ (all with "
    "a+c > 1), the SDE on a+c = 1, and not covered for a ≤ ⅓ or a+c < 1.",
    where="Figure 1 and the corollaries of Theorem 1",
    models=("random",),
    quick=Regimes(),
    full=Regimes(
        exponents=(
            (1.2, 0.5),
            (0.6, 0.6),
            (0.45, 0.7),
            (0.5, 0.5),
            (0.4, 0.5),
            (0.3, 0.9),
            (0.7, 0.3),
            (1.0, 0.2),
            (2.0, -0.5),
            (0.34, 0.7),
            (0.9, 0.05),
        )
    ),
    within={"label": exactly("labels: static, ode1, ode2, sde, failure as 0 to 4")},
    simulate=simulate_labels,
    predict=predict_labels,
    axes=Axes("case", "power of L"),
    note="Labels from the growth of the four products with L, not from a simulation of each limit.",
)


class HalfSpeed(Setting):
    """Random weights beside identity weights at β = 0."""

    n: of.Tokens = 32
    times: of.Times = (0.5, 1.0, 2.0, 3.0)
    d: of.Dimension = 1_000_000
    v: of.LayerTime = 0.05
    runs: of.Runs = 4
    seed: of.Seed = 22


def simulate_half(s: HalfSpeed) -> Evidence:
    """The flow with identity weights at β = 0, and a chain of Gram matrices with uniform attention at 2t."""
    run = flow(SelfAttention(0.0), Sphere(s.n).simplex(s.n), times=s.times, record="mean_overlap", rtol=1e-12)
    model = RandomTransformer(s.d, step=math.sqrt(s.v), beta=0.0)
    depth = math.ceil(2 * max(s.times) / math.log1p(s.v))
    key = jax.random.key(s.seed)
    layers = chain(model, np.eye(s.n), depth=depth, key=key, runs=s.runs, record="mean_overlap", sampler="gram")
    # a layer of uniform attention multiplies the odds of m by exactly 1+v: its own clock is log(1+v)
    halved = layers.data["layer"].values * math.log1p(s.v) / 2
    mean, error = mean_and_error(layers["mean_overlap"].transpose("run", ...))
    return Evidence(
        {"identity": run["mean_overlap"].values, "random": np.interp(s.times, halved, mean)},
        {"random": np.interp(s.times, halved, error)},
        (Curve("identity weights", s.times, run["mean_overlap"]), Curve("random weights at 2t", halved, mean, error)),
        (run, layers),
    )


def predict_half(s: HalfSpeed) -> Evidence:
    """Identity weights from the random curve at 2t, random weights from the closed form of identity weights."""
    random, identity = overlap_curve(2 * np.array(s.times), s.n, 0.0), overlap_at(s.times, s.n, 0.0)
    fine = np.linspace(0, max(s.times), 60)
    return Evidence(
        {"identity": random, "random": identity},
        curves=(Curve("γ_random(2t)", fine, overlap_curve(2 * fine, s.n, 0.0)),),
    )


claim(
    "homogenized/C22",
    PERSPECTIVE,
    "random weights are half as fast",
    "From orthogonal tokens and at β = 0 the overlap with random weights in diffusive time is that with identity "
    "weights at half the time: γ_random(2t) = γ_identity(t).",
    where="Theorem 4.1 (β = 0) beside the random weights of Homogenized Transformers, Figure 2",
    models=("sa", "random"),
    quick=HalfSpeed(),
    full=HalfSpeed(v=0.01, runs=16),
    within={
        "identity": absolute(1e-9, "both are exact; rounding and the tolerance 1e-12 of the flow"),
        "random": absolute(0.02, "interpolation between layers and fluctuations 2√(τ/(d·runs)) of log m"),
    },
    simulate=simulate_half,
    predict=predict_half,
    axes=Axes("t", "overlap γ"),
)
