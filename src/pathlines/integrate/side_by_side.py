"""side_by_side: many different models of one kind, each with its own start, in one compiled program."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError, PathlinesWarning, finite_number
from pathlines.integrate.advance import OK, Controls, Program, advance, fresh_carry
from pathlines.integrate.ensemble import LANE_WORK
from pathlines.integrate.flow import Recorded, cast, chosen_method, time_grid
from pathlines.integrate.observe import checked_observables, positions
from pathlines.model.base import Model


def side_by_side(
    models: Sequence[Model],
    tokens: Any,
    *,
    times: Any,
    record: Recorded = (),
    method: str = "rk45",
    rtol: float = 1e-6,
    step: float | None = None,
    interpolate: bool = False,
    max_steps: int = 100_000,
) -> xr.Dataset:
    """Run ``models[r]`` from ``tokens[r]`` for every r, where ``ensemble`` has one model and draws the starts itself.

    The models differ in numbers only (weights frozen a sample, one β each, one scheme each): same class, same static
    fields, same array shapes. Records have dims run, time, … . One compilation, groups of runs on all cores.
    """
    grid, chosen = time_grid(None, times), checked_observables(record) or (positions,)
    starts = jnp.asarray(tokens)
    if len(models) != len(starts):
        raise ArgumentError(f"Argument `tokens` must hold one start a model ({len(models)}), but holds {len(starts)}.")
    if len({jax.tree.structure(m) for m in models}) != 1:
        raise ArgumentError(
            "Argument `models` must hold models that differ in numbers only, but their structures differ."
        )
    program = Program(chosen_method(method, step, models[0]), chosen, (), False, step is None, interpolate)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(cast(m, starts.dtype) for m in models))
    number = lambda x: jnp.asarray(x, starts.dtype)  # noqa: E731
    rtol = finite_number("rtol", rtol, low=1e-15, high=0.1)
    controls = Controls(number(rtol), number(rtol), number(grid[-1]), jnp.asarray(max_steps), jnp.asarray(True))
    ok, columns = _all(program, stacked, starts, number(grid), controls, number(step or -1.0))
    if not ok.all():
        text = f"{int(np.sum(~ok))} of {len(ok)} runs stalled or diverged; their later records are NaN."
        warnings.warn(text, PathlinesWarning, stacklevel=2)
    data = xr.Dataset(coords={"time": grid})
    for observable, column in zip(chosen, columns, strict=True):
        data[observable.name] = xr.DataArray(
            column, dims=("run", "time", *observable.dims), attrs=observable.attributes
        )
    return data


def _all(
    program: Program, models: Model, starts: Array, grid: Array, controls: Controls, step: Array
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Groups of lanes of a size fixed by the problem, the last one padded, on all cores."""
    runs, n, d = starts.shape
    lanes = int(np.clip(LANE_WORK // (n * max(n, d)), 1, min(256, -(-runs // 2))))
    padded = np.minimum(np.arange(-(-runs // lanes) * lanes), runs - 1).reshape(-1, lanes)

    def work(group: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        chosen = jax.tree.map(lambda leaf: leaf[group], models)
        ok, records = _lanes(program, chosen, starts[group], grid, controls, step)
        return np.asarray(ok), tuple(np.asarray(r) for r in records)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(work, padded))
    ok = np.concatenate([r[0] for r in results])[:runs]
    return ok, [np.concatenate(c)[:runs] for c in zip(*(r[1] for r in results), strict=True)]


@eqx.filter_jit
def _lanes(
    program: Program, models: Model, starts: Array, grid: Array, controls: Controls, step: Array
) -> tuple[Array, tuple[Array, ...]]:
    def one(model: Model, tokens: Array) -> tuple[Array, tuple[Array, ...]]:
        state = model.initial(tokens)
        carry = fresh_carry(program, state, 0.0, 0.0)._replace(h=step)
        carry, reached, records = advance(program, model, state, carry, grid, controls)
        blank = tuple(jnp.where(reached.reshape(-1, *(1,) * (r.ndim - 1)), r, jnp.nan) for r in records)
        return (carry.status == OK) & jnp.all(reached), blank

    return jax.vmap(one)(models, starts)
