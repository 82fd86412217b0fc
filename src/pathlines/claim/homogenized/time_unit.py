"""The time unit of the Gaussian SDE: α contains ς² = (d-1)/d, and the printed noise √α B is not divided by ς."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting
from pathlines.integrate.chain import chain
from pathlines.model.homogenized.random_transformer import RandomTransformer


class TimeUnit(Setting):
    """One layer in several dimensions."""

    dims: of.Dimensions = (2, 4, 8)
    heads: of.Heads = 2
    step: of.Step = 0.1
    b: of.LogitScale = 1.0
    runs: of.Runs = 20000
    seed: of.Seed = 20


def simulate(s: TimeUnit) -> Evidence:
    """|x' - x|² of one token in one layer, over the time η²/H that the layer lasts on the clock η t/H."""
    found = []
    for d in s.dims:
        model = RandomTransformer(d, heads=s.heads, step=s.step, logit_scale=s.b, update="tangent")
        run = chain(model, np.eye(1, d), depth=1, key=jax.random.key(s.seed), runs=s.runs, sampler="naive")
        x = run["tokens"].values[:, :, 0]
        # the sine of the angle turned, over its cosine, is the length of the tangent step before it is normalised
        cosine = np.sum(x[:, 1] * x[:, 0], axis=-1)
        found.append(mean_and_error((1 / cosine**2 - 1) * s.heads / s.step**2))
    sizes, errors = np.array(found).T
    return Evidence({"size": sizes}, {"size": errors}, (Curve("layers", s.dims, sizes, errors),))


def predict(s: TimeUnit, power: int = 1) -> Evidence:
    """((d-1)/d)^power: one factor is the dimension of the tangent space, a second one that of α."""
    d = np.asarray(s.dims, float)
    sizes = ((d - 1) / d) ** power
    return Evidence({"size": sizes}, curves=(Curve("theory", d, sizes),))


_WITHIN = {"size": relative(1e-6, "exact for every step; standard errors over heads", errors=4.5)}
_AXES = Axes("d", "E|P Δx|²/(η²/H)")

ER_20B = claim(
    "homogenized/ER-20b",
    HOMOGENIZED,
    "time unit of the Gaussian SDE (derived)",
    "With Gaussian weights a token alone diffuses by (η/H)(d−1)/d per unit of t: the noise is √α/ς = √(η/H) times P B.",
    where="§2.3.3, SDE of the Gaussian case, time unit corrected",
    models=("random",),
    quick=TimeUnit(),
    full=TimeUnit(runs=200_000),
    within=_WITHIN,
    simulate=simulate,
    predict=predict,
    axes=_AXES,
)

ER_20B.printed_as(
    "homogenized/ER-20",
    "time unit of the Gaussian SDE, as printed",
    "With Gaussian weights the tokens follow dx = √α ∫ P B W(dθ,dt) − …, α = (η/H)(d−1)/d, with B as it is "
    "(not divided by ς): a token alone diffuses by (η/H)((d−1)/d)² per unit of t.",
    where="§2.3.3, SDE of the Gaussian case as printed",
    predict=partial(predict, power=2),
    note="The general SDE has √α/ς, which is right; read literally the Gaussian one is slow by ς² = (d−1)/d. The "
    "diffusive time τ = ηt/H (σ_V² = 1/d) has no such factor.",
)
