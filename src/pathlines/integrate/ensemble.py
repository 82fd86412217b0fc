"""ensemble: many independent runs in memory-bounded chunks, the same numbers whatever the chunks."""

from __future__ import annotations

import os
import time as clock
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, PathlinesWarning, finite_array, finite_number, positive_integer
from pathlines.foundation.progress import Progress
from pathlines.integrate.advance import ABSORBED, OK, Controls, Program, advance, fresh_carry
from pathlines.integrate.flow import Recorded, admitted_tokens, cast, chosen_method, time_grid
from pathlines.integrate.forms import Form
from pathlines.integrate.observe import Observable, checked_observables, positions
from pathlines.integrate.run import Certificate, Run, describe, provenance
from pathlines.model.base import Model

LANE_WORK = 1 << 15
"""Pairs × width a lane group holds: enough to fill vector units, small enough to stay in cache."""


def ensemble(
    model: Model,
    law: Callable[[PRNGKeyArray], Array],
    *,
    runs: int,
    key: PRNGKeyArray,
    until: float | None = None,
    times: Any = None,
    record: Recorded = (),
    over: Mapping[str, Any] | None = None,
    method: str = "rk45",
    rtol: float = 1e-6,
    atol: float | None = None,
    step: float | None = None,
    memory: float = 1e9,
    interpolate: bool = False,
    absorbing: str = "",
    max_steps: int = 100_000,
    progress: bool | None = None,
) -> Run:
    """Run ``runs`` independent starts ``law(key)``, for each value of one model parameter in ``over`` if given.

    ``over={"beta": betas}`` adds a leading dimension ``beta``; start number r uses the key folded with r, so the same
    starts are seen at every β. Data has dims (parameter,) run, time, … . Runs are grouped in lanes of a size fixed by
    the problem, and lanes in chunks of at most ``memory`` bytes: chunks change no bit of the result. Chunks run on all
    cores. ``interpolate=True`` records Hermite interpolants between large steps, for long time grids; ``absorbing``
    names a record at whose value one a run is over (its later records repeat the last). Standard errors are over
    ``run``: samples are the unit of independence, not pairs.
    """
    began = clock.perf_counter()
    runs, grid = positive_integer("runs", runs), time_grid(until, times)
    chosen = checked_observables(record) or (positions,)
    program = Program(chosen_method(method, step, model), chosen, (), False, step is None, interpolate, absorbing)
    name, values = _parameter(model, over)
    example = admitted_tokens(model, law(key))
    exact = cast(model, example.dtype)
    number = lambda x: jnp.asarray(x, example.dtype)  # noqa: E731
    rtol = finite_number("rtol", rtol, low=1e-15, high=0.1)
    settings = _Settings(
        program,
        law,
        name,
        _pieces(model, example, grid),
        number(grid),
        number(rtol),
        number(rtol if atol is None else atol),
        number(step or -1.0),
        max_steps,
    )
    lanes, groups = _lanes(example.shape, chosen, exact, example, len(grid), memory)
    jobs = [(v, r) for v in range(len(values)) for r in range(runs)]
    columns, failed = _all(settings, exact, key, values, jobs, lanes, groups, progress)
    data = _dataset(chosen, columns, name, values, runs, grid)
    check = Certificate("unfinished_runs", failed, 0.0, failed == 0, f"of {len(jobs)} runs")
    if failed:
        warnings.warn(
            f"{failed} of {len(jobs)} runs stalled or diverged; their later records are NaN.",
            PathlinesWarning,
            stacklevel=2,
        )
    setting = {
        "model": describe(model),
        "papers": [p.key for p in model.papers],
        "over": {name: describe(values)} if name else None,
        "runs": runs,
        "key": describe(np.asarray(jax.random.key_data(key))),
        "times": describe(grid),
        "method": method,
        **({"rtol": rtol} if step is None else {"step": step}),
        "versions": provenance(),
    }
    form = Form("tokens", 0.0, f"{lanes} runs a lane group, {groups} groups a chunk")
    return Run(data, (check,), (form,), "completed", setting, clock.perf_counter() - began, model, None)


class _Settings(eqx.Module):
    """What every chunk shares."""

    program: Program = eqx.field(static=True)
    law: Callable[[PRNGKeyArray], Array] = eqx.field(static=True)
    name: str | None = eqx.field(static=True)
    pieces: tuple[tuple[int, int, float], ...] = eqx.field(static=True)
    grid: Array
    rtol: Array
    atol: Array
    step: Array
    max_steps: int


def _pieces(model: Model, tokens: Array, grid: np.ndarray) -> tuple[tuple[int, int, float], ...]:
    """(first, last, end) index ranges of the recorded times between the jumps of the drift."""
    limit, why = model.horizon(tokens)
    if limit < grid[-1]:
        raise ArgumentError(f"Argument `until` must be below {limit:.4g} in an ensemble ({why}); use flow().")
    ends = sorted({b for b in model.breakpoints if 0 < b < grid[-1]} | {float(grid[-1])})
    cuts = [0, *(int(np.searchsorted(grid, e, side="right")) for e in ends)]
    return tuple((low, high, end) for low, high, end in zip(cuts[:-1], cuts[1:], ends, strict=True))


def _parameter(model: Model, over: Mapping[str, Any] | None) -> tuple[str | None, np.ndarray]:
    if not over:
        return None, np.zeros(1)
    if len(over) != 1:
        raise ArgumentError(f"Argument `over` must name one model parameter, but names {sorted(over)}.")
    ((name, values),) = over.items()
    numbers = finite_array("over", values, ("values",)).astype(float)
    if not isinstance(getattr(model, name, None), jax.Array):
        raise ArgumentError(f"Argument `over` must name a numeric field of {type(model).__name__}, but names `{name}`.")
    return name, numbers


def _lanes(
    shape: tuple, chosen: tuple[Observable, ...], model: Model, tokens: Array, count: int, memory: float
) -> tuple[int, int]:
    """(runs a lane group, lane groups a chunk): the first depends on the problem only, so chunking is invisible."""
    n, d = shape[-2:]
    lanes = int(np.clip(LANE_WORK // (n * max(n, d)), 1, 256))
    record = sum(_record_size(o, model, tokens) for o in chosen) * count + 40 * n * max(n, d)
    groups = int(memory / (8 * record * lanes * (os.cpu_count() or 1)))
    return lanes, int(np.clip(groups, 1, 64))


def _record_size(observable: Observable, model: Model, tokens: Array) -> int:
    from pathlines.model.base import Snapshot

    look = lambda x: observable(Snapshot(model, model.initial(x), jnp.zeros((), x.dtype), model.initial(x)))  # noqa: E731
    return int(np.prod(jax.eval_shape(look, tokens).shape, initial=1))


def _one(settings: _Settings, model: Model, key: PRNGKeyArray, value: Array, index: Array) -> tuple[Array, tuple]:
    """One run: its own key, its own parameter."""
    tokens = settings.law(jax.random.fold_in(key, index)).astype(settings.grid.dtype)
    name = settings.name
    if name is not None:
        model = eqx.tree_at(lambda m: getattr(m, name), model, value)
    state = model.initial(tokens)
    carry = fresh_carry(settings.program, state, 0.0, 0.0)._replace(h=settings.step)
    parts = []
    for low, high, end in settings.pieces:
        last = jnp.asarray(end, settings.grid.dtype)
        controls = Controls(settings.rtol, settings.atol, last, jnp.asarray(settings.max_steps), jnp.asarray(True))
        times = jnp.append(settings.grid[low:high], last)
        carry, reached, records = advance(settings.program, model, state, carry, times, controls)
        parts.append([x[:-1] for x in (reached, *records)])
    reached, *columns = (jnp.concatenate(x) for x in zip(*parts, strict=True))
    blank = tuple(jnp.where(reached.reshape(-1, *(1,) * (r.ndim - 1)), r, jnp.nan) for r in columns)
    return ((carry.status == OK) | (carry.status == ABSORBED)) & jnp.all(reached), blank


@eqx.filter_jit
def _chunk(settings: _Settings, model: Model, key: PRNGKeyArray, values: Array, indices: Array) -> tuple[Array, tuple]:
    """(groups, lanes) runs: lanes side by side, groups one after the other."""
    lane = jax.vmap(lambda v, i: _one(settings, model, key, v, i))
    return jax.lax.map(lambda item: lane(*item), (values, indices))


def _all(
    settings: _Settings,
    model: Model,
    key: PRNGKeyArray,
    values: np.ndarray,
    jobs: list,
    lanes: int,
    groups: int,
    show: Any,
) -> tuple[list[np.ndarray], int]:
    size = lanes * min(groups, -(-len(jobs) // lanes))
    starts = range(0, len(jobs), size)

    def work(start: int) -> tuple[int, np.ndarray, tuple[np.ndarray, ...]]:
        mine = jobs[start : start + size]
        padded = mine + [mine[-1]] * (size - len(mine))
        chosen = jnp.asarray([values[v] for v, _ in padded], settings.grid.dtype).reshape(-1, lanes)
        indices = jnp.asarray([r for _, r in padded]).reshape(-1, lanes)
        ok, records = _chunk(settings, model, key, chosen, indices)
        flat = tuple(np.asarray(r).reshape(size, *r.shape[2:])[: len(mine)] for r in records)
        return start, np.asarray(ok).reshape(size)[: len(mine)], flat

    columns: list[np.ndarray] = []
    failed = done = 0
    with Progress(f"ensemble of {len(jobs)}", len(jobs), show=show) as bar:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for start, ok, records in pool.map(work, starts):
                columns = columns or [np.empty((len(jobs), *r.shape[1:]), r.dtype) for r in records]
                for column, r in zip(columns, records, strict=True):
                    column[start : start + len(ok)] = r
                failed, done = failed + int(np.sum(~ok)), done + len(ok)
                bar.update(done)
    return columns, failed


def _dataset(
    chosen: tuple[Observable, ...],
    columns: list[np.ndarray],
    name: str | None,
    values: np.ndarray,
    runs: int,
    grid: np.ndarray,
) -> xr.Dataset:
    leading = ((name, len(values)),) if name else ()
    data = xr.Dataset(coords={"time": grid, **({name: values} if name else {})})
    for observable, column in zip(chosen, columns, strict=True):
        shaped = column.reshape(*(s for _, s in leading), runs, *column.shape[1:])
        dims = (*(n for n, _ in leading), "run", "time", *observable.dims)
        data[observable.name] = xr.DataArray(shaped, dims=dims, attrs=observable.attributes)
    return data
