"""The covariance of the common noise between all pairs of tokens (Homogenized Transformers, arXiv:2604.01978).

E[G_i G_jᵀ] of single heads, drawn by the engine, against a Hermite series without sampling; centred heads and heads
with means, where the spread of attention adds V̄ Cov_A(m_i, m_j) V̄ᵀ to the noise of the values.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.stats import norm

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.homogenized.finite_heads import VALUES, start
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting
from pathlines.limit.homogenized.noise_covariance import NoiseCovariance, noise_covariance
from pathlines.model.homogenized.sde import HomogenizedSDE
from pathlines.weights import GaussianHeads
from pathlines.weights.heads import Heads

BLOCK = 20_000
ENTRIES = 2 * 144
FALSE_ALARM = 1e-4
LINE = float(norm.isf(FALSE_ALARM / 2 / ENTRIES))
"""Standard errors that the largest of 288 independent normal numbers exceeds with a chance of 10⁻⁴."""

SIGMA = 3**-0.5
MEANS: tuple[tuple[Any, Any], ...] = ((0.0, 0.0), (VALUES[0], 0.8))
"""(V̄, Ā) of the two laws, a number c for c·I."""


@eqx.filter_jit
def _sums(model: HomogenizedSDE, x: Array, keys: Array) -> tuple[Array, Array]:
    """Means over ``BLOCK`` heads per key of G_i G_jᵀ (as one matrix) and of its squares, key by key."""

    def one(head: Heads) -> Array:
        return model.noise(x, jax.tree.map(lambda matrix: matrix[None], head), jnp.ones(1)).ravel()

    def block(key: Array) -> tuple[Array, Array]:
        heads = model.chain.law.heads(key, BLOCK)
        g = jax.vmap(one)(heads)
        return g.T @ g / BLOCK, (g * g).T @ (g * g) / BLOCK

    return jax.lax.map(block, keys)


class CommonNoise(Setting):
    """Single heads on a fixed cloud."""

    n: of.Tokens = 4
    beta: of.Beta = 1.5
    heads: of.DrawnHeads = 1_000_000
    seed: of.Seed = 26


def _measured(means: tuple[Any, Any], s: CommonNoise, key: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The covariance, the standard errors of its entries, and tr C of each block."""
    law = GaussianHeads(3, SIGMA, None, np.inf, *means)
    model = HomogenizedSDE(law, logit_scale=s.beta, tolerance=1e-4)
    blocks = positive_integer("heads", max(s.heads // BLOCK, 2))
    products, squares = (np.asarray(a) for a in _sums(model, jnp.asarray(start(s.n)), jax.random.split(key, blocks)))
    mean = products.mean(axis=0)
    error = np.sqrt((squares.mean(axis=0) - mean**2) / (blocks * BLOCK))
    return mean, error, np.einsum("kaa->k", products)


def simulate(s: CommonNoise) -> Evidence:
    """All entries for both laws, and the total traces."""
    keys = jax.random.split(jax.random.key(s.seed), len(MEANS))
    found = [_measured(means, s, key) for means, key in zip(MEANS, keys, strict=True)]
    traces, spread = mean_and_error([f[2] for f in found], axis=1)
    entries, errors = (np.concatenate([f[k].ravel() for f in found]) for k in (0, 1))
    flat = [f[0].ravel() for f in found]
    curves = tuple(Curve(name, e, m) for name, m, e in zip(("centred", "with means"), flat, _expected(s), strict=True))
    return Evidence({"covariance": entries, "trace": traces}, {"covariance": errors, "trace": spread}, curves=curves)


def _series(s: CommonNoise, **accuracy: int) -> list[NoiseCovariance]:
    return [noise_covariance(start(s.n), s.beta, SIGMA, *means, **accuracy) for means in MEANS]


def _expected(s: CommonNoise, **accuracy: int) -> list[np.ndarray]:
    return [np.moveaxis(c.covariance, 2, 1).ravel() for c in _series(s, **accuracy)]


def predict(s: CommonNoise) -> Evidence:
    """The Hermite series, and its distance from a shorter one."""
    found = _series(s)
    entries, shorter = np.concatenate(_expected(s)), np.concatenate(_expected(s, nodes=64, degree=40))
    traces = [float(np.trace(c.traces)) for c in found]
    line = [entries.min(), entries.max()]
    return Evidence(
        {"covariance": entries, "trace": traces},
        {"covariance": np.abs(entries - shorter)},
        curves=(Curve("equal", line, line),),
        source="Hermite series",
    )


claim(
    "homogenized/C26",
    HOMOGENIZED,
    "covariance of the common noise (derived)",
    "The noise of tokens i and j has covariance E[G_iG_jᵀ] = P_i(σ_V² s_ij I + V̄ Cov_A(m_i,m_j) V̄ᵀ)P_j: one head "
    "moves all tokens, through its values and, when V̄ ≠ 0, through what its attention picks.",
    where="noise of the SDE of Theorem 1 (§2.3.2); its covariance is derived",
    models=("homogenized-sde",),
    quick=CommonNoise(),
    full=CommonNoise(heads=20_000_000),
    within={
        "covariance": standard_errors(
            LINE, "the largest of 2 × 144 independent normal numbers exceeds it with a chance of 10⁻⁴"
        ),
        "trace": standard_errors(5.0, "standard errors over blocks of heads"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("entry of E[G_iG_jᵀ], Hermite series", "mean over heads"),
    note="Without V̄ Cov V̄ᵀ the noise of the first token with means would be 41 % too small. One configuration, "
    "p = ∞: chain and SDE with random scores and a mean are not compared along whole paths.",
)
