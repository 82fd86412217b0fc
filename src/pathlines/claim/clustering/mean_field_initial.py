"""What attention does to i.i.d. uniform tokens before anything has moved (derived; arXiv:2512.01868 for the model)."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import relative
from pathlines.domain import Sphere
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS
from pathlines.limit.energy_range import initial_alignment, initial_tangential_square
from pathlines.model import SelfAttention, Snapshot
from pathlines.observable.sphere import alignment, attention_length


@eqx.filter_jit
def _first_moments(model: SelfAttention, keys: PRNGKeyArray, n: int, d: int) -> tuple[Array, Array]:
    """Token means of h_i and of |P A_i|² = m_i² - h_i² for each key."""

    def one(key: PRNGKeyArray) -> tuple[Array, Array]:
        x = Sphere(d).uniform(key, n)
        snapshot = Snapshot(model, x, jnp.zeros(()), x)
        h, m = alignment(snapshot), attention_length(snapshot)
        return jnp.mean(h), jnp.mean(m**2 - h**2)

    return jax.lax.map(one, keys)


def _mean(values: Array) -> tuple[float, float]:
    """Mean and its standard error over draws."""
    array = np.asarray(values)
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array)))


def simulate(s: Any) -> Evidence:
    """Attention vectors of the engine on independent draws."""
    first, second = jax.random.split(jax.random.key(s.seed))
    model = SelfAttention(s.beta)
    h, h_error = _mean(_first_moments(model, jax.random.split(first, s.draws), s.n, s.d)[0])
    keys = jax.random.split(second, s.tangential_draws)
    square, square_error = _mean(_first_moments(model, keys, s.tangential_n, s.tangential_d)[1])
    sizes = np.asarray(s.sizes)
    small = [_mean(_first_moments(model, jax.random.split(first, s.tangential_draws), int(k), s.d)[0]) for k in sizes]
    curve = Curve("draws", sizes, [m for m, _ in small], [e for _, e in small])
    return Evidence(
        {"alignment": h, "tangential_square": square},
        {"alignment": h_error, "tangential_square": square_error},
        curves=(curve,),
    )


def predict(s: Any) -> Evidence:
    """Bessel ratios, with the terms of order 1/n."""
    grid = np.unique(np.round(np.geomspace(min(s.sizes), max(s.sizes), 60)))
    limit = float(initial_alignment(s.d, s.beta))
    curves = (
        Curve("with the 1/n terms", grid, initial_alignment(s.d, s.beta, grid)),
        Curve("n → ∞", grid, np.full(len(grid), limit)),
    )
    values = {
        "alignment": float(initial_alignment(s.d, s.beta, s.n)),
        "tangential_square": float(initial_tangential_square(s.tangential_n, s.tangential_d, s.beta)),
    }
    return Evidence(values, curves=curves)


claim(
    "clustering/CL-41",
    MEAN_FIELD_DYNAMICS,
    "attention of a uniform start (derived)",
    "For n i.i.d. uniform tokens hᵢ = ⟨xᵢ,Aᵢ⟩ → I_{d/2}(β)/I_{d/2−1}(β), with corrections of order 1/n, and "
    "E|PAᵢ|² ≈ (d−1)·I_{d/2}(2β)·M_d(2β) / (2βn·I_{d/2−1}(2β)·M_d(β)²).",
    models=("sa",),
    quick={
        "n": 2000,
        "d": 16,
        "beta": 1.0,
        "draws": 4,
        "tangential_n": 500,
        "tangential_d": 32,
        "tangential_draws": 20,
        "sizes": [50, 100, 200],
        "seed": 0,
    },
    full={"draws": 40, "tangential_draws": 60, "sizes": [50, 100, 200, 400, 800]},
    within={
        "alignment": relative(0.01, "one percent, several standard errors over draws"),
        "tangential_square": relative(0.1, "ten percent: the prediction is the leading order in 1/n"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("tokens n", "mean ⟨xᵢ,Aᵢ⟩", x_scale="log"),
)
