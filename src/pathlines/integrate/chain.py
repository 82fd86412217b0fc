"""chain: random layers one after the other, many independent runs, the same numbers whatever the chunks."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, FormError, finite_array, finite_number, of_kind, positive_integer
from pathlines.foundation.keys import random_key
from pathlines.foundation.module import Module
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.traceable import is_traced, traceable_array
from pathlines.integrate.batched import LANE_WORK, in_chunks
from pathlines.integrate.checked import Recorded, cast
from pathlines.integrate.forms import Form
from pathlines.integrate.loops import frugal_repeat, frugal_scan
from pathlines.integrate.observe import Observable, checked_observables, positions
from pathlines.integrate.run import Certificate, Final, Run, describe, provenance
from pathlines.integrate.traced import TracedRun, traced_run
from pathlines.model.base import Model, Snapshot
from pathlines.model.capability import HasRandomLayers
from pathlines.numerics.draws import folded

COLLAPSED = 1e-12
"""Runs count as collapsed once 1 - <x_i, x_j> is below this for every pair."""


Carry = tuple[Any, Array, Array, Array]
"""State, layers done, layer of collapse, (number, first) of broken layers."""


class _Start(Module):
    """The law of a start that is not random."""

    state: Any

    def __call__(self, key: PRNGKeyArray) -> Any:
        return self.state


class _Plan(Module):
    """What all runs of a chain share; ``counts`` are the layers after each record, so that depths share a program."""

    model: HasRandomLayers
    law: Callable[[PRNGKeyArray], Any]
    key: PRNGKeyArray
    tick: Array
    counts: Array
    common: Array
    chosen: tuple[Observable, ...] = eqx.field(static=True)
    keep: bool = eqx.field(static=True)


def chain(
    model: Model,
    start: Any,
    *,
    depth: int,
    key: PRNGKeyArray,
    runs: int | None = None,
    record: Recorded = (),
    every: int = 1,
    sampler: str = "auto",
    memory: float = 1e9,
    progress: bool | None = None,
    common: bool = False,
) -> Run:
    """Apply ``depth`` random layers to ``start``, ``runs`` times with independent weights.

    Args:
        model: one that has random layers.
        start: what it starts from (for a random transformer unit tokens (n, d), or a Gram matrix (n, n)), or a law
            ``key -> start`` that is drawn anew for each run. Give a module-level function or a frozen dataclass as
            law: a new lambda each time compiles each time.
        depth: L ≥ 1, the number of layers. The more, the nearer tokens come to one direction; cost grows in proportion.
        key: a JAX key. Run r has the key k_r = fold_in(key, r), its start fold_in(k_r, 0), its layer ℓ = 1, 2, …
            fold_in(k_r, ℓ).
        runs: how many independent ones; standard errors over ``run`` fall like runs^{-1/2}. None is one without axis.
        record: observables or their names, by default the tokens.
        every: they are recorded at layers 0, ``every``, 2·``every``, …. The larger, the fewer records.
        sampler: one of the model's samplers; "auto" is the cheapest exact one, and ``run.forms`` has the choice.
        memory: bytes, 10⁹ by default. Runs are grouped in lanes of a size fixed by the problem and lanes in chunks of
            at most that, on all cores: chunks change no bit of the result. The larger, the fewer chunks.
        progress: whether to show a bar.
        common: all runs have the weights of run 0 and differ in their starts only (common noise).

    Records have dims (run,) time, …. Coordinates: ``layer``, and the clocks of the model (diffusive time ``tau``,
    macroscopic time ``t``), the first of which is ``time``.

    The coordinate ``collapse_layer`` is the layer after which 1 - <x_i, x_j> < 1e-12 for all pairs (NaN: never). Where
    the model watches its layers (``CircleMeasure``: folds) a coordinate and a certificate count those that broke its
    promise, and the certificate says in which layer that happened first.

    Inside ``jax.grad``, ``jvp``, ``jit`` or ``vmap`` the run is a ``TracedRun`` of arrays, as ``flow`` has it: layers
    are drawn in full ("direct"), whose paths have a derivative in every number; reverse mode keeps about 2√(``depth``)
    states of each run.
    """
    began = clock.perf_counter()
    make_room_for_programs()
    of_kind("model", model, Model, "a model")
    if not isinstance(model, HasRandomLayers):
        raise FormError(f"{type(model).__name__} has no random layers; use flow() or layers().")
    random_key("key", key)
    memory = finite_number("memory", memory, 0.0, open_low=True)
    depth, every = positive_integer("depth", depth, least=0), positive_integer("every", every)
    if depth % every:
        raise ArgumentError(f"Argument `depth` must be a multiple of `every` = {every}, but is {depth}.")
    count = 1 if runs is None else positive_integer("runs", runs)
    law, example = _starts(model, start, key)
    first = jax.tree.leaves(example)[0]
    given = not isinstance(record, tuple) or bool(record)
    chosen = checked_observables(record, [model], first.dtype) if given else ()
    ambient = any(o.ambient for o in chosen) or not chosen
    posed: HasRandomLayers
    traced = is_traced(model, start, key)
    if traced and sampler == "auto":
        posed, name, reason = model, "direct", "traced: the layer map itself, whose derivative is that of its matrices"
    else:
        posed, name, reason = model.sampler_for(first.shape, ambient, sampler)
    chosen = chosen or (positions if posed.has_tokens else _whole_state(jax.eval_shape(posed.initial, example)),)
    clocks = model.clocks
    tick = jnp.asarray(next(iter(clocks.values()), 1.0), first.dtype)
    counts = jnp.asarray([every] * (depth // every) + [0], jnp.int32)
    plan = _Plan(cast(posed, first.dtype), law, key, tick, counts, jnp.asarray(common), chosen, runs is None)
    if traced:
        return _traced_chain(plan, model, example, runs, depth, every, Form(name, 0.0, reason))
    width, groups = _sizes(plan, example, count, memory)
    columns = in_chunks(lambda indices: _groups(plan, jnp.asarray(indices)), plan, count, width, groups, progress)
    columns, (collapse, broken), final = columns[: len(chosen)], columns[len(chosen) :][:2], columns[len(chosen) + 2 :]
    data = _dataset(chosen, columns, np.arange(0, depth + 1, every), clocks, runs is None)
    state = None
    if runs is None:
        shape = jax.eval_shape(plan.model.initial, example)
        leaves = [jnp.asarray(leaf[0]) for leaf in final]
        state = Final(plan.model, jax.tree.unflatten(jax.tree.structure(shape), leaves), float(tick) * depth, example)
    found = _certificates(plan, example, data, chosen, collapse, runs is None) + _broken(posed, data, broken)
    setting = {
        "model": describe(model),
        "derived": model.derived,
        "papers": [p.key for p in model.papers],
        "start": describe(start),
        "key": describe(np.asarray(jax.random.key_data(key))),
        "depth": depth,
        "runs": runs,
        "sampler": name,
        "common": common,
        "versions": provenance(),
    }
    form = Form(name, 0.0, reason)
    return Run(data, found, (form,), "completed", setting, clock.perf_counter() - began, model, state)


def _traced_chain(
    plan: _Plan, model: HasRandomLayers, example: Any, runs: int | None, depth: int, every: int, form: Form
) -> TracedRun:
    """The same layers, in loops that have a reverse mode: records with the axis ``run`` first unless it is one run."""
    width = _sizes(plan, example, runs or 1, 1e9)[0]
    final, columns = _frugal_runs(plan, runs, depth // every, every, width)
    layers = np.arange(0, depth + 1, every)
    clocks = {name: per_layer * layers for name, per_layer in model.clocks.items()}
    data = {"time": plan.tick * layers, "layer": layers, **clocks}
    data |= {o.name: c for o, c in zip(plan.chosen, columns, strict=True)}
    return traced_run(data, (form,), model, Final(plan.model, final, plan.tick * depth, example), True)


@eqx.filter_jit
def _frugal_runs(plan: _Plan, runs: int | None, rows: int, every: int, width: int) -> tuple[Any, tuple[Array, ...]]:
    """(last states, records) of all runs, ``width`` of them side by side."""
    one = jax.checkpoint(lambda run: _frugal_run(plan, run, rows, every))
    if runs is None:
        return one(jnp.zeros((), jnp.int32))
    return jax.lax.map(one, jnp.arange(runs, dtype=jnp.int32), batch_size=width)


def _frugal_run(plan: _Plan, run: Array, rows: int, every: int) -> tuple[Any, tuple[Array, ...]]:
    """(last state, records) of one run."""
    model, weights, start = _begun(plan, run)

    def look(carry: tuple[Any, Array]) -> tuple[Array, ...]:
        return tuple(
            o(Snapshot(model, carry[0], carry[1].astype(plan.tick.dtype) * plan.tick, start)) for o in plan.chosen
        )

    def one(carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, number = carry
        return model.random_layer(state, number, folded(weights, number + 1)), number + 1

    begin = (start, jnp.zeros((), jnp.int32))
    last, records = frugal_scan(lambda c, _: (frugal_repeat(one, c, every), look(c)), begin, None, rows)
    return last[0], tuple(jnp.concatenate([r, final[None]]) for r, final in zip(records, look(last), strict=True))


def _begun(plan: _Plan, run: Array) -> tuple[HasRandomLayers, PRNGKeyArray, Any]:
    """The model, the key of its weights, and the first state of a run."""
    mine, weights = folded(plan.key, run), folded(plan.key, jnp.where(plan.common, 0, run))
    drawn = jax.tree.map(lambda x: x.astype(plan.tick.dtype), plan.law(folded(mine, 0)))
    return plan.model, weights, plan.model.initial(drawn)


def _starts(model: HasRandomLayers, start: Any, key: PRNGKeyArray) -> tuple[Callable[[PRNGKeyArray], Any], Any]:
    """The law of the starts and one example, checked by the model and in one floating dtype."""
    if callable(start):
        example = start(jax.random.fold_in(jax.random.fold_in(key, 0), 0))
        model.check(example)
        return start, example
    if isinstance(start, list):
        start = finite_array("start", start)
    arrays = jax.tree.map(lambda x: traceable_array("start", x), model.as_tokens(start))
    model.check(arrays)
    leaves = jax.tree.leaves(arrays)
    single = all(x.dtype == np.float32 for x in leaves)
    dtype = resolve_dtype("float32" if single else "float64", "pass a start of float32 numbers")
    example = jax.tree.map(lambda x: jnp.asarray(x, dtype), arrays)
    return _Start(example), example


def _whole_state(state: Any) -> Observable:
    """Record the state itself, for models without tokens."""
    if not isinstance(state, jax.ShapeDtypeStruct):
        raise ArgumentError("Argument `record` must name observables for a model whose state is not one array.")
    dims = tuple(f"component_{i}" for i in range(state.ndim)) if state.ndim > 1 else ("component",) * state.ndim
    return Observable("state", "state", "x", _state_of, dims)


def _state_of(snapshot: Snapshot) -> Array:
    return snapshot.state


def _sizes(plan: _Plan, example: Any, count: int, memory: float) -> tuple[int, int]:
    """Runs per lane group, fixed by the problem, and groups per chunk, within the memory budget and for all cores."""
    state = jax.eval_shape(plan.model.initial, example)
    work = max(plan.model.layer_work(state), 1.0)
    width = min(int(np.clip(LANE_WORK // work, 1, 256)), count)
    look = lambda s: tuple(o(Snapshot(plan.model, s, plan.tick, s)) for o in plan.chosen)  # noqa: E731
    kept = sum(np.prod(o.shape, initial=1) for o in jax.eval_shape(look, state)) * plan.counts.shape[0]
    cores = os.cpu_count() or 1
    budget = finite_number("memory", memory, low=0.0, open_low=True)
    groups = np.clip(budget / (8.0 * (kept + 4 * work) * width * cores), 1, 64)
    return width, int(max(1, min(groups, -(-count // (width * cores)))))


@eqx.filter_jit
def _groups(plan: _Plan, runs: Array) -> tuple[Array, tuple[Array, ...]]:
    """(groups, lanes) runs: lanes side by side, groups one after the other."""
    return jax.lax.map(jax.vmap(lambda run: _one_run(plan, run)), runs)


def _one_run(plan: _Plan, run: Array) -> tuple[Array, tuple[Array, ...]]:
    """(finished, records, layer of collapse, count and first of broken layers; for a single run, the last state)."""
    model, weights, start = _begun(plan, run)

    def look(state: Any, number: Array) -> tuple[Array, ...]:
        snapshot = Snapshot(model, state, number.astype(plan.tick.dtype) * plan.tick, start)
        return tuple(o(snapshot) for o in plan.chosen)

    def one(_: Any, carry: Carry) -> Carry:
        state, number, collapse, broken = carry
        state, broke = model.watched_layer(state, number, folded(weights, number + 1))
        number = number + 1
        return state, number, _first_collapse(model, state, number, collapse), _counted(broken, number, broke)

    def row(carry: Carry, count: Array) -> tuple[Carry, tuple[Array, ...]]:
        return jax.lax.fori_loop(0, count, one, carry), look(carry[0], carry[1])

    zero = jnp.zeros((), jnp.int32)
    begin = (start, zero, _first_collapse(model, start, zero, jnp.asarray(-1, jnp.int32)), jnp.stack([zero, zero]))
    (final, _, collapse, broken), records = jax.lax.scan(row, begin, plan.counts)
    leaves = jax.tree.leaves(final)
    ok = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))
    return ok, (*records, collapse, broken, *(leaves if plan.keep else ()))


def _first_collapse(model: HasRandomLayers, state: Any, number: Array, before: Array) -> Array:
    spread = model.spread(state)
    if spread is None:
        return before
    return jnp.where((before < 0) & (spread < COLLAPSED), number, before)


def _counted(broken: Array, number: Array, broke: Array | None) -> Array:
    """(layers that broke a promise, the first of them) after layer ``number``."""
    if broke is None:
        return broken
    return jnp.stack([broken[0] + broke.astype(broken.dtype), jnp.where(broke & (broken[0] == 0), number, broken[1])])


def _dataset(
    chosen: tuple[Observable, ...],
    columns: list[np.ndarray],
    layers: np.ndarray,
    clocks: dict[str, float],
    single: bool,
) -> xr.Dataset:
    times = {name: ("time", per_layer * layers) for name, per_layer in clocks.items()}
    main = next(iter(clocks.values()), 1.0) * layers
    data = xr.Dataset(coords={"time": main, "layer": ("time", layers), **times})
    for observable, column in zip(chosen, columns, strict=True):
        values, dims = (column[0], ()) if single else (column, ("run",))
        data[observable.name] = xr.DataArray(
            values, dims=(*dims, "time", *observable.dims), attrs=observable.attributes
        )
    return data


def _certificates(
    plan: _Plan, example: Any, data: xr.Dataset, chosen: tuple[Observable, ...], collapse: np.ndarray, single: bool
) -> tuple[Certificate, ...]:
    """Finite records, and which runs collapsed (added as the coordinate ``collapse_layer``)."""
    bad = int(sum(np.sum(~np.isfinite(data[o.name].values)) for o in chosen))
    found = [Certificate("finite", bad, 0.0, bad == 0, "non-finite recorded numbers")]
    if jax.eval_shape(lambda x: plan.model.spread(plan.model.initial(x)), example) is not None:
        when = np.where(collapse < 0, np.nan, collapse)
        data.coords["collapse_layer"] = xr.DataArray(
            when[0] if single else when, dims=() if single else ("run",), attrs={"long_name": "layer of collapse"}
        )
        number = int(np.sum(collapse >= 0))
        since = f", the first after layer {int(np.nanmin(when))}" if number else ""
        text = f"of {len(collapse)} runs with every 1 - <x_i, x_j> below {COLLAPSED:g}{since}"
        found.append(Certificate("collapsed", number, None, None, text))
    return tuple(found)


def _broken(model: HasRandomLayers, data: xr.Dataset, broken: np.ndarray) -> tuple[Certificate, ...]:
    """How many layers of each run broke what the model promises (a coordinate), and whether any did."""
    name, meaning = model.watched
    if not name:
        return ()
    count, hurt = broken[:, 0], int(np.sum(broken[:, 0] > 0))
    single = "run" not in data.dims
    data.coords[name] = xr.DataArray(
        count[0] if single else count, dims=() if single else ("run",), attrs={"long_name": meaning}
    )
    total = int(count.sum())
    first = f", the first in layer {int(broken[count > 0, 1].min())}" if hurt else ""
    text = f"{meaning}; in {hurt} of {len(count)} runs{first}"
    return (Certificate(name, total, 0.0, total == 0, text),)
