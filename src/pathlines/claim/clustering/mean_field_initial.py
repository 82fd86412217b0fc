"""What attention does to i.i.d. uniform tokens before anything has moved (derived; arXiv:2512.01868 for the model)."""

from __future__ import annotations

from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS
from pathlines.foundation.setting import Setting, means
from pathlines.limit.clustering.energy_range import initial_alignment
from pathlines.limit.clustering.initial_attention import mean_alignment, mean_tangential_square
from pathlines.model import SelfAttention, Snapshot
from pathlines.observable.sphere import alignment, attention_length


@eqx.filter_jit
def _first_moments(model: SelfAttention, keys: PRNGKeyArray, n: int, d: int) -> tuple[Array, Array]:
    """Token means of h_i and of |P A_i|² = m_i² - h_i² for each key, both without the part |x̄|² - 1/n.

    |x̄|² has mean 1/n and is nearly all of their noise: at β = 0, h_i has mean |x̄|² and P A_i = P x̄.
    """

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        x = Sphere(d).uniform(key, n)
        snapshot = Snapshot(model, x, jnp.zeros(()), x)
        h, m = alignment(snapshot), attention_length(snapshot)
        common = jnp.sum(jnp.mean(x, axis=0) ** 2) - 1 / n
        return jnp.mean(h) - common, jnp.mean(m**2 - h**2) - common

    return jax.lax.map(one, keys)


class UniformStart(Setting):
    """Uniform tokens before anything has moved."""

    n: of.Tokens = 1000
    d: of.Dimension = 16
    beta: of.Beta = 1.0
    draws: of.Draws = 16
    tangential_n: Annotated[of.Count, means("tokens in the draws of the tangential part")] = 500
    tangential_d: Annotated[of.Count, means("dimension in the draws of the tangential part")] = 32
    tangential_draws: Annotated[of.Count, means("draws of the tangential part")] = 48
    sizes: of.Sizes = (50, 100, 200)
    seed: of.Seed = 0


def _estimates(s: UniformStart, stream: int, draws: int, n: int, d: int, which: int) -> tuple[float, float]:
    """Mean and standard error over independent draws of one of the two moments."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(s.seed), stream), draws)
    mean, error = mean_and_error(_first_moments(SelfAttention(s.beta), keys, n, d)[which])
    return float(mean), float(error)


def simulate(s: UniformStart) -> Evidence:
    """Attention vectors of the engine on independent draws."""
    h, h_error = _estimates(s, 0, s.draws, s.n, s.d, 0)
    square, square_error = _estimates(s, 1, s.tangential_draws, s.tangential_n, s.tangential_d, 1)
    small = [_estimates(s, 2, s.tangential_draws, int(k), s.d, 0) for k in s.sizes]
    curve = Curve("draws", s.sizes, [m for m, _ in small], [e for _, e in small])
    return Evidence(
        {"alignment": h, "tangential_square": square, "small_alignment": [m for m, _ in small]},
        {"alignment": h_error, "tangential_square": square_error, "small_alignment": [e for _, e in small]},
        curves=(curve,),
    )


def predict(s: UniformStart) -> Evidence:
    """Exact expectations at finite n; drawn beside Bessel ratios with the terms of order 1/n."""
    grid = np.unique(np.round(np.geomspace(min(s.sizes), max(s.sizes), 60)))
    limit = float(initial_alignment(s.d, s.beta))
    curves = (
        Curve("with the 1/n terms", grid, initial_alignment(s.d, s.beta, grid)),
        Curve("n → ∞", grid, np.full(len(grid), limit)),
    )
    values = {
        "alignment": mean_alignment(s.n, s.d, s.beta),
        "tangential_square": mean_tangential_square(s.tangential_n, s.tangential_d, s.beta),
        "small_alignment": [mean_alignment(int(k), s.d, s.beta) for k in s.sizes],
    }
    return Evidence(values, curves=curves)


claim(
    "clustering/CL-41",
    MEAN_FIELD_DYNAMICS,
    "attention of a uniform start (derived)",
    "For n i.i.d. uniform tokens hᵢ = ⟨xᵢ,Aᵢ⟩ → I_{d/2}(β)/I_{d/2−1}(β), with corrections of order 1/n, and "
    "E|PAᵢ|² ≈ (d−1)·I_{d/2}(2β)·M_d(2β) / (2βn·I_{d/2−1}(2β)·M_d(β)²); at every n both are integrals over φ(s)ⁿ, "
    "φ(s) = E e^{−s·exp(β(g−1))}, g the overlap of two tokens.",
    where="derived; no statement in the paper",
    models=("sa",),
    quick=UniformStart(),
    full=UniformStart(n=2000, draws=40, tangential_draws=200, sizes=(50, 100, 200, 400, 800)),
    within=dict.fromkeys(
        ("alignment", "tangential_square", "small_alignment"),
        standard_errors(5.0, "standard errors over draws, without the noise of |x̄|²; the expectations are exact"),
    ),
    simulate=simulate,
    predict=predict,
    axes=Axes("tokens n", "mean ⟨xᵢ,Aᵢ⟩", x_scale="log"),
)
