"""The first instant: how fast two i.i.d. uniform tokens of USA start to approach each other.

d/dt E<x_1,x_2> at t = 0 is (2/n) E[e^{βg}(1-g²)] for USA (A mathematical perspective on Transformers, arXiv:2312.10794;
the closed form is derived).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.limit.clustering.energy_range import initial_pair_rate
from pathlines.model import MODELS, Model


@eqx.filter_jit
def _pair_rates(model: Model, samples: Float[Array, "r n d"]) -> Float[Array, " r"]:
    """Mean of d<x_i,x_j>/dt over the pairs of each sample, from the engine's drift: <v_i, x_i> = 0."""

    def one(x: Array) -> Array:
        v = model.drift(x, jnp.zeros((), x.dtype))
        return 2 * jnp.sum(v, axis=0) @ jnp.sum(x, axis=0) / (x.shape[0] * (x.shape[0] - 1))

    return jax.vmap(one)(samples)


class FirstSpeed(Setting):
    """Uniform tokens at time zero."""

    n: of.Tokens = 10
    d: of.Dimension = 5
    betas: of.Betas = (0.5, 1.0, 2.0, 3.0)
    draws: of.Draws = 20000
    seed: of.Seed = 14


def simulate_pair_rate(s: FirstSpeed) -> Evidence:
    """Independent samples of n tokens; the same samples at every β."""
    points = Sphere(s.d).uniform(jax.random.key(s.seed), s.draws * s.n)
    samples = points.reshape(s.draws, s.n, s.d)
    rates = [np.asarray(_pair_rates(MODELS["usa"].build(beta), samples)) for beta in s.betas]
    mean, error = mean_and_error(np.stack(rates), axis=1)
    curve = Curve(f"{s.draws} draws", s.betas, mean, error)
    return Evidence({"pair_rate": mean}, {"pair_rate": error}, curves=(curve,))


def predict_pair_rate(s: FirstSpeed) -> Evidence:
    """(2/n)(d-1)/d · M_{d+2}(β)."""
    betas = np.asarray(s.betas, float)
    fine = np.linspace(0.0, betas.max(), 100)
    curve = Curve("(2/n)·Γ(d/2)(2/β)^{d/2−1} I_{d/2}(β)(d−1)/β", fine, initial_pair_rate(s.n, s.d, fine))
    return Evidence({"pair_rate": initial_pair_rate(s.n, s.d, betas)}, curves=(curve,))


claim(
    "clustering/CL-42",
    PERSPECTIVE,
    "first pair speed of USA (derived)",
    "For n i.i.d. uniform tokens under USA, d/dt E⟨x₁,x₂⟩ at t=0 is (2/n)·Γ(d/2)(2/β)^{d/2−1}·I_{d/2}(β)·(d−1)/β.",
    where="derived; no statement in the paper",
    models=("usa",),
    quick=FirstSpeed(),
    full=FirstSpeed(draws=200_000),
    within={
        "pair_rate": standard_errors(5.0, "standard error over independent draws; all pairs of a draw are averaged")
    },
    simulate=simulate_pair_rate,
    predict=predict_pair_rate,
    axes=Axes("β", "d/dt E⟨x₁,x₂⟩ at t=0"),
)
