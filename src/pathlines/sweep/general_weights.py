"""Phase diagrams with random weights: p(β, t) when Q, K, V are drawn instead of being the identity."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.foundation.errors import PathlinesError, finite_array, finite_number, positive_integer, require
from pathlines.integrate.side_by_side import side_by_side
from pathlines.model import SelfAttention
from pathlines.observable.pairs import p_clustered
from pathlines.store.results import Store
from pathlines.sweep.study import study
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
    store: Store | None = None,
) -> xr.Dataset:
    """p(β, t) = P(u_12 ≤ δ) for n i.i.d. uniform tokens on S^{d-1} and random weights, with standard errors.

    The general-weights diagrams of *A mathematical perspective on Transformers* (arXiv:2312.10794). ``frozen`` says how
    long one draw of (M, V) holds: for a ``"sample"`` (at every β the same), for all samples of a ``"beta"``, or for one
    ``"period"`` of depth-time of one sample. Weights single out directions, so there is no span reduction.
    A study over β: with a ``store``, a killed diagram goes on from the blocks that it has.
    """
    d, n, samples = (positive_integer(k, v) for k, v in (("d", d), ("n", n), ("samples", samples)))
    betas, times = finite_array("betas", betas, ("b",)), finite_array("times", times, ("t",))
    for name, choice, known in (("score", score, SCORES), ("value", value, VALUES), ("frozen", frozen, FROZEN)):
        require(choice in known, name, f"be one of {', '.join(known)}", choice)
    finite_number("delta", delta, 0.0, open_low=True)
    finite_number("period", period, 0.0, open_low=True)
    same: dict[str, Any] = {"d": d, "n": n, "samples": samples, "score": score, "value": value, "frozen": frozen}
    same |= {"period": float(period), "delta": float(delta), "seed": int(seed), "dtype": dtype, "rtol": float(rtol)}
    axes = {"beta/number": (betas.tolist(), list(range(len(betas))))}  # weights of a β are drawn by its number
    along = ["beta", "number"]
    diagram = study(weighted_shares, axes, many=BETAS_A_PART, along=along, times=times.tolist(), **same)
    with ExitStack() as stack:
        found = diagram.run(store=stack.enter_context(TemporaryDirectory()) if store is None else store)
    if found.attrs["errors"]:
        raise PathlinesError(found.attrs["errors"])
    dim = next(iter(found["p"].dims))
    data = found[["p", "se"]].drop_vars(["beta", "number"], errors="ignore").rename({dim: "beta"}).drop_attrs()
    data = data.assign_coords(beta=betas, time=times)
    return data.assign_attrs({"n": n, "d": d, "delta": delta})


def weighted_shares(
    beta: float,
    number: int = 0,
    d: int = 3,
    n: int = 32,
    samples: int = 2,
    score: str = "goe",
    value: str = "+score",
    frozen: str = "sample",
    period: float = 1.0,
    delta: float = 1e-3,
    seed: int = 0,
    dtype: str = "float32",
    rtol: float = 1e-4,
    times: tuple[float, ...] = (),
) -> xr.Dataset:
    """p and its standard error over time at many β with their numbers: what the study of the diagram looks at."""
    betas, numbers = np.atleast_1d(beta), np.atleast_1d(number).astype(int)
    pieces = int(np.ceil(times[-1] / period)) if frozen == "period" else 1
    tokens, weights = jax.random.split(jax.random.key(seed))
    starts = jax.vmap(lambda r: Sphere(d).uniform(jax.random.fold_in(tokens, r), n, dtype))(jnp.arange(samples))
    near, models = p_clustered.at(delta=delta), []
    for b, which in zip(betas, numbers):
        keys = jax.random.split(weights, samples * pieces)
        if frozen == "beta":
            keys = jnp.repeat(jax.random.fold_in(weights, which)[None], samples)
        M, V = jax.vmap(lambda key: draw_weights(key, d, score, value))(keys)
        models += _models(float(b), np.asarray(M), np.asarray(V), pieces, period)
    batch = jnp.tile(starts, (len(betas), 1, 1))
    data = side_by_side(models, batch, times=np.asarray(times), record=near, rtol=rtol)
    p = data[near.name].values.reshape(len(betas), samples, len(times)).astype(float)
    error = p.std(axis=1, ddof=1) / np.sqrt(samples)
    shares = {"p": (("beta", "time"), p.mean(axis=1)), "se": (("beta", "time"), error)}
    return xr.Dataset(shares, coords={"time": list(times)})


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
