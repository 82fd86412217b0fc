"""Phase diagrams: the probability that two tokens have merged, over (time, β)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from pathlines.attention import Attention, Softmax, Unnormalised
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer
from pathlines.foundation.progress import Progress
from pathlines.integrate import ensemble
from pathlines.integrate.observe import Observable
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.store.address import address
from pathlines.store.results import Store

KINDS: dict[str, Attention] = {"sa": Softmax(), "usa": Unnormalised()}
BETAS_A_PART = 10


def phase_diagram(
    d: int,
    betas: Any,
    times: Any,
    samples: int,
    *,
    n: int = 32,
    kind: str = "sa",
    delta: float = 1e-3,
    seed: int = 0,
    dtype: str = "float32",
    rtol: float = 1e-4,
    store: Store | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """p(β, t) = P(u_12 ≤ δ) for n i.i.d. uniform tokens on S^{d-1}, with standard errors over samples.

    The phase diagram of *A mathematical perspective on Transformers* (arXiv:2312.10794), from the true flow (adaptive
    fifth-order steps, fourth-order interpolation), not from layers. For d ≥ n the tokens are drawn and moved in their
    n-dimensional span (exact in law), at a cost independent of d. A sample whose pairs have all merged is finished.
    With a ``store``, each block of β is kept as it is done and a killed diagram resumes there.
    """
    d, n, samples = (positive_integer(k, v) for k, v in (("d", d), ("n", n), ("samples", samples)))
    betas, times = finite_array("betas", betas, ("b",)), finite_array("times", times, ("t",))
    if kind not in KINDS:
        raise ArgumentError(f"Argument `kind` must be one of {', '.join(KINDS)}, but is {kind!r}.")
    parts = []
    with Progress(f"phase diagram d = {d}", len(betas), show=progress) as bar:
        for start in range(0, len(betas), BETAS_A_PART):
            block = betas[start : start + BETAS_A_PART]
            parts.append(_part(d, n, block, times, samples, kind, delta, seed, dtype, rtol, store))
            bar.update(start + len(block))
    data = xr.concat(parts, "beta")
    data.attrs = {"n": n, "d": d, "samples": samples, "delta": delta, "kind": kind, "seed": seed, "dtype": dtype}
    return data


def _part(
    d: int,
    n: int,
    betas: np.ndarray,
    times: np.ndarray,
    samples: int,
    kind: str,
    delta: float,
    seed: int,
    dtype: str,
    rtol: float,
    store: Store | None,
) -> xr.Dataset:
    setting = [d, n, betas.tolist(), times.tolist(), samples, kind, delta, seed, dtype, rtol]
    name = address("phase", setting)
    kept = store.get(name) if store is not None else None
    if kept is not None:
        return kept
    law = partial(_start, d, n, dtype)
    model = SelfAttention(1.0, attention=KINDS[kind])
    run = ensemble(
        model, law, runs=samples, key=jax.random.key(seed), times=times, over={"beta": betas}, record=merged(delta),
        rtol=rtol, interpolate=True, absorbing="merged", progress=False,
    )  # fmt: skip
    fraction = run["merged"]
    part = xr.Dataset({"p": fraction.mean("run"), "se": fraction.std("run", ddof=1) / np.sqrt(samples)})
    part = part.astype("float64")
    if store is not None:
        store.put(name, part)
    return part


def _start(d: int, n: int, dtype: str, key: Array) -> Array:
    sphere = Sphere(d)
    return sphere.uniform_span(key, n, dtype) if d >= n else sphere.uniform(key, n, dtype)


def merged(delta: float) -> Observable:
    """Fraction of the pairs i < j with <x_i, x_j> ≥ 1 - δ, by one matrix product (enough for δ far above rounding)."""
    return Observable("merged", "merged pairs", "P(u ≤ δ)", _merged, parameters=(("delta", delta),))


def _merged(snapshot: Snapshot, delta: float) -> Array:
    x = snapshot.tokens
    n = x.shape[0]
    near = (x @ x.T >= 1 - delta).sum() - n
    return near.astype(x.dtype) / (n * (n - 1))
