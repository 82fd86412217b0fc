"""Phase diagrams with random weights: p(β, t) when Q, K, V are drawn instead of being the identity."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.integrate.side_by_side import side_by_side
from pathlines.model import SelfAttention
from pathlines.observable.pairs import p_clustered
from pathlines.weights import FixedWeights, PiecewiseWeights, Weights, gaussian_product, goe, wishart

SCORES = {"goe": goe, "product": gaussian_product}
VALUES = ("+score", "-score", "wishart")
FROZEN = ("sample", "beta", "period")
BETAS_A_PART = 10

Pair = tuple[Float[Array, "d d"], Float[Array, "d d"]]


def draw_weights(key: PRNGKeyArray, d: int, score: str, value: str) -> Pair:
    """(M, V): M = QᵀK from ``SCORES``; V = ±M/√(d+1), or BBᵀ/√d with B standard Gaussian."""
    first, second = jax.random.split(key)
    M = SCORES[score](first, d)
    if value == "wishart":
        return M, wishart(second, d)
    return M, (1 if value == "+score" else -1) * M / jnp.sqrt(d + 1.0)


def general_weights_diagram(
    d: int,
    betas: Any,
    times: Any,
    samples: int,
    *,
    score: str = "goe",
    value: str = "+score",
    frozen: str = "sample",
    period: float = 1.0,
    n: int = 32,
    delta: float = 1e-3,
    seed: int = 0,
    dtype: str = "float32",
    rtol: float = 1e-4,
) -> xr.Dataset:
    """p(β, t) = P(u_12 ≤ δ) for n i.i.d. uniform tokens on S^{d-1} and random weights, with standard errors.

    The general-weights diagrams of *A mathematical perspective on Transformers* (arXiv:2312.10794). ``frozen`` says how
    long one draw of (M, V) holds: for a ``"sample"`` (at every β the same), for all samples of a ``"beta"``, or for one
    ``"period"`` of depth-time of one sample. Weights single out directions, so there is no span reduction.
    """
    d, n, samples = (positive_integer(k, v) for k, v in (("d", d), ("n", n), ("samples", samples)))
    betas, times = finite_array("betas", betas, ("b",)), finite_array("times", times, ("t",))
    for name, choice, known in (("score", score, SCORES), ("value", value, VALUES), ("frozen", frozen, FROZEN)):
        require(choice in known, name, f"be one of {', '.join(known)}", choice)
    pieces = 1
    if frozen == "period":
        pieces = int(np.ceil(times[-1] / finite_number("period", period, low=0.0, open_low=True)))
    tokens, weights = jax.random.split(jax.random.key(seed))
    starts = jax.vmap(lambda r: Sphere(d).uniform(jax.random.fold_in(tokens, r), n, dtype))(jnp.arange(samples))
    near, parts = p_clustered.at(delta=delta), []
    for at in range(0, len(betas), BETAS_A_PART):
        models = []
        for b in range(at, min(at + BETAS_A_PART, len(betas))):
            keys = jax.random.split(weights, samples * pieces)
            if frozen == "beta":
                keys = jnp.repeat(jax.random.fold_in(weights, b)[None], samples)
            M, V = jax.vmap(lambda key: draw_weights(key, d, score, value))(keys)
            models += _models(float(betas[b]), np.asarray(M), np.asarray(V), pieces, period)
        batch = jnp.tile(starts, (len(models) // samples, 1, 1))
        data = side_by_side(models, batch, times=times, record=near, rtol=rtol)
        parts.append(data[near.name].values.reshape(-1, samples, len(times)))
    p = np.concatenate(parts).astype(float)
    error = p.std(axis=1, ddof=1) / np.sqrt(samples)
    variables = {"p": (("beta", "time"), p.mean(axis=1)), "se": (("beta", "time"), error)}
    return xr.Dataset(variables, coords={"beta": betas, "time": times}, attrs={"n": n, "d": d, "delta": delta})


def _models(beta: float, M: np.ndarray, V: np.ndarray, pieces: int, period: float) -> list[SelfAttention]:
    """One model a sample: scores <Mᵀx_i, x_j>, values V x_j, in pieces of depth-time or constant."""
    query = np.swapaxes(M, -1, -2)
    if pieces == 1:
        held: list[Weights] = [FixedWeights(v, query=q) for v, q in zip(V, query, strict=True)]
    else:
        switches = period * np.arange(1, pieces)
        rows = np.arange(len(V)).reshape(-1, pieces)
        held = [PiecewiseWeights(switches, V[r], query=query[r]) for r in rows]
    return [SelfAttention(beta, weights=w) for w in held]
