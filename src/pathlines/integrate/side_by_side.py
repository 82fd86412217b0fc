"""side_by_side: many different models of one kind, each with its own start, in one compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.programs import make_room_for_programs
from pathlines.integrate.batched import Lanes, in_chunks, lane_count, one_run, shared_settings
from pathlines.integrate.checked import Recorded, cast, checked_start, time_grid
from pathlines.integrate.observe import checked_observables, positions
from pathlines.model.base import Model
from pathlines.model.capability import horizon_of


def side_by_side(
    models: Sequence[Model],
    tokens: Any,
    *,
    times: Any,
    record: Recorded = (),
    method: str = "rk45",
    rtol: float = 1e-6,
    step: float | None = None,
    max_steps: int = 100_000,
    progress: bool | None = None,
) -> xr.Dataset:
    """Run ``models[r]`` from ``tokens[r]`` for every r, where ``ensemble`` has one model and draws the starts itself.

    The models differ in numbers only (weights of a sample, one β each): same class, same static fields, same array
    shapes. Records have dims run, time, … . One compilation; groups of runs on all cores.
    """
    make_room_for_programs()
    grid = time_grid(None, times)
    if len(models) == 0 or len(models) != len(tokens):
        raise ArgumentError(
            f"Argument `tokens` must hold one start per model ({len(models)}), but holds {len(tokens)}."
        )
    if len({jax.tree.structure(m) for m in models}) != 1:
        raise ArgumentError("Argument `models` must hold models that differ in numbers only.")
    starts = checked_start(models[0], tokens)
    chosen = checked_observables(record, models, starts.dtype) or (positions,)
    for model, start in zip(models, starts, strict=True):
        limit, why = horizon_of(model, start)
        if limit < grid[-1]:
            raise ArgumentError(f"Argument `times` must end below {limit:.4g} for one of the models ({why}).")
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(cast(m, starts.dtype) for m in models))
    lanes = shared_settings(models[0], starts[0], grid, chosen, method, rtol, None, step, max_steps)

    def work(indices: np.ndarray) -> tuple[Array, tuple[Array, ...]]:
        return _groups(lanes, jax.tree.map(lambda leaf: leaf[indices], stacked), starts[indices])

    width = min(lane_count(*starts.shape[1:]), -(-len(models) // 2))
    columns = in_chunks(work, (lanes, models[0]), len(models), width, 1, progress)
    data = xr.Dataset(coords={"time": grid})
    for observable, column in zip(chosen, columns, strict=True):
        dims = ("run", "time", *observable.dims)
        data[observable.name] = xr.DataArray(column, dims=dims, attrs=observable.attributes)
    return data


@eqx.filter_jit
def _groups(lanes: Lanes, models: Model, starts: Array) -> tuple[Array, tuple[Array, ...]]:
    group = jax.vmap(lambda model, tokens: one_run(lanes, model, tokens))
    return jax.lax.map(lambda item: group(*item), (models, starts))
