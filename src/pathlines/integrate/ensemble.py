"""ensemble: many independent runs in memory-bounded chunks, the same numbers whatever the chunks."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, of_kind, positive_integer, require
from pathlines.foundation.keys import random_key
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.progress import Progress
from pathlines.foundation.schedule import at_time
from pathlines.integrate.batched import Lanes, in_chunks, lane_count, one_run, shared_settings, warn_of_failed
from pathlines.integrate.checked import Recorded, cast, checked_start, time_grid
from pathlines.integrate.forms import Form
from pathlines.integrate.native_many import Job, jobs_of, natively, run_jobs
from pathlines.integrate.observe import Observable, checked_observables, positions
from pathlines.integrate.run import Certificate, Run, describe, provenance
from pathlines.model.base import Model, Snapshot

Law = Callable[[PRNGKeyArray], Array]


def ensemble(
    model: Model,
    law: Law,
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
    max_steps: int = 100_000,
    progress: bool | None = None,
) -> Run:
    """Run ``runs`` independent starts ``law(key)``, for each value of one model parameter in ``over`` if given.

    Args:
        model: what moves the tokens.
        law: ``key -> tokens``, a module-level function or a frozen dataclass: a new lambda compiles each time.
        runs: how many starts; standard errors over ``run`` fall like runs^{-1/2} (samples are the unit of
            independence, not pairs).
        key: a JAX key; start number r uses the key folded with r.
        until: the last depth-time T ≥ 0. The longer, the more steps.
        times: your own times to record instead.
        record: observables or their names, by default the tokens.
        over: one parameter of the model with its values: ``{"beta": betas}`` adds a leading dimension ``beta``, and the
            same starts are seen at every β.
        method: as for ``flow``.
        rtol: tolerance of a step relative to the state, 1e-6 by default. The larger, the cheaper and the less exact.
        atol: absolute tolerance, by default ``rtol``. The larger, the fewer digits small entries keep.
        step: the step of methods that have a fixed one. The larger, the cheaper and the less exact.
        memory: bytes, 10⁹ by default. Runs are grouped in lanes of a size fixed by the problem, and lanes in chunks of
            at most that, on all cores: chunks change no bit of the result. The larger, the fewer chunks.
        max_steps: where a run that gets nowhere is stopped. The more, the longer it may try.
        progress: whether to show a bar.

    Data has dims (parameter,) run, time, ….
    """
    began = clock.perf_counter()
    make_room_for_programs()
    of_kind("model", model, Model, "a model")
    random_key("key", key)
    require(callable(law), "law", "be a function key -> tokens", law)
    memory = finite_number("memory", memory, 0.0, open_low=True)
    runs, grid = positive_integer("runs", runs), time_grid(until, times)
    name, values = _parameter(model, over)
    example = checked_start(model, law(key))
    exact = cast(model, example.dtype)
    swept = (exact if name is None else _with(exact, name, value) for value in values)
    chosen = checked_observables(record, swept, example.dtype) or (positions,)
    lanes = shared_settings(exact, example, grid, chosen, method, rtol, atol, step, max_steps)
    number_of = np.repeat(np.arange(len(values)), runs)
    sample_of = np.tile(np.arange(runs), len(values))

    def work(indices: np.ndarray) -> tuple[Array, tuple[Array, ...]]:
        parameters = jnp.asarray(values[number_of[indices]], example.dtype)
        return _groups(lanes, law, name, exact, key, parameters, jnp.asarray(sample_of[indices]))

    width = lane_count(*example.shape[-2:])
    groups = _groups_within(memory, width, chosen, exact, example, len(grid))
    form = Form("tokens", 0.0, f"{width} runs per lane group, {groups} groups per chunk")
    swept = (exact if name is None else _with(exact, name, jnp.asarray(value, example.dtype)) for value in values)
    if natively(lanes, exact, example.shape, example.dtype) is not None:
        form = Form("tokens", 0.0, f"{form.reason}; each run in native code")
        columns = _in_native_code(lanes, list(swept), _starts(law, key, np.arange(runs), example.dtype), progress)
    else:
        columns = in_chunks(work, (lanes, exact), len(number_of), width, groups, progress)
    data = _dataset(chosen, columns, name, values, runs, grid)
    failed = int(np.isnan(columns[0].reshape(len(number_of), -1)).any(axis=1).sum())
    check = Certificate("unfinished_runs", failed, 0.0, failed == 0, f"of {len(number_of)} runs")
    setting = {
        "model": describe(model),
        "papers": [p.key for p in model.papers],
        "over": {name: describe(values)} if name else None,
        "runs": runs,
        "start": describe(law),
        "key": describe(np.asarray(jax.random.key_data(key))),
        "times": describe(grid),
        "method": method,
        **({"rtol": rtol} if step is None else {"step": step}),
        "versions": provenance(),
    }
    return Run(data, (check,), (form,), "completed", setting, clock.perf_counter() - began, model, None)


def _parameter(model: Model, over: Mapping[str, Any] | None) -> tuple[str | None, np.ndarray]:
    if not over:
        return None, np.zeros(1)
    of_kind("over", over, Mapping, "a dictionary of one parameter")
    if len(over) != 1:
        raise ArgumentError(f"Argument `over` must name one model parameter, but names {sorted(over)}.")
    ((name, values),) = over.items()
    numbers = finite_array("over", values, ("values",)).astype(float)
    if not isinstance(getattr(model, name, None), jax.Array):
        raise ArgumentError(f"Argument `over` must name a numeric field of {type(model).__name__}, but names `{name}`.")
    if name in model.not_swept:
        raise ArgumentError(
            f"Argument `over` cannot vary `{name}` of {type(model).__name__}; sweep SelfAttention instead."
        )
    return name, numbers


def _groups_within(
    memory: float, width: int, chosen: tuple[Observable, ...], model: Model, tokens: Array, count: int
) -> int:
    """Lane groups per chunk such that records and work space of all cores stay within the memory budget."""

    def look(observable: Observable, x: Array) -> Array:
        now = at_time(model, jnp.zeros((), x.dtype))
        return observable(Snapshot(now, model.initial(x), jnp.zeros((), x.dtype), model.initial(x)))

    sizes = (np.prod(jax.eval_shape(lambda x, o=o: look(o, x), tokens).shape, initial=1) for o in chosen)
    n, d = tokens.shape[-2:]
    numbers = float(sum(sizes)) * count + 40.0 * n * max(n, d)
    budget = finite_number("memory", memory, low=0.0, open_low=True)
    return int(np.clip(budget / (8 * numbers * width * (os.cpu_count() or 1)), 1, 64))


@eqx.filter_jit
def _groups(
    lanes: Lanes, law: Law, name: str | None, model: Model, key: PRNGKeyArray, values: Array, samples: Array
) -> tuple[Array, tuple[Array, ...]]:
    """(groups, lanes) runs: lanes side by side, groups one after the other."""

    def one(value: Array, sample: Array) -> tuple[Array, tuple[Array, ...]]:
        tokens = law(jax.random.fold_in(key, sample)).astype(lanes.grid.dtype)
        mine = model if name is None else _with(model, name, value)
        return one_run(lanes, mine, tokens)

    group = jax.vmap(one)
    return jax.lax.map(lambda item: group(*item), (values, samples))


@eqx.filter_jit
def _starts(law: Law, key: PRNGKeyArray, samples: Any, dtype: Any) -> Array:
    return jax.vmap(lambda sample: law(jax.random.fold_in(key, sample)).astype(dtype))(samples)


def _in_native_code(lanes: Lanes, models: list[Model], starts: Array, show: bool | None) -> list[np.ndarray]:
    """Records of all models from the same starts, model by model."""
    begin, runs = np.asarray(starts), len(starts)
    count, jobs = len(models) * runs, list[Job]()
    for k, model in enumerate(models):
        jobs += jobs_of(model, k * runs + np.arange(runs), begin, len(lanes.grid))
    columns: list[np.ndarray] = []
    failed = 0
    with Progress(f"{count} runs", count, show=show) as bar:
        for job, found in run_jobs(lanes, jobs):
            columns = columns or [np.empty((count, *r.shape[1:]), r.dtype) for r in found.records]
            for column, record in zip(columns, found.records, strict=True):
                column[job.numbers] = record
            failed += int(np.sum(~found.finished))
            bar.update(int(job.numbers[-1]) + 1)
    warn_of_failed(failed, count)
    return columns


def _with(model: Model, name: str, value: Any) -> Model:
    """The model with one of its numbers changed."""
    return eqx.tree_at(lambda m: getattr(m, name), model, jnp.asarray(value))


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
