"""layers: a discrete stack of layers, as a model of its own."""

from __future__ import annotations

import time as clock
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError, FormError, positive_integer
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.schedule import at_time
from pathlines.foundation.traceable import is_traced, traceable_number
from pathlines.integrate.checked import FIXED_STEP_ERROR, Recorded, cast, checked_start
from pathlines.integrate.forms import Form, fast_sums
from pathlines.integrate.loops import frugal_repeat, frugal_scan
from pathlines.integrate.observe import Observable, checked_observables, positions
from pathlines.integrate.run import Certificate, Final, Run, describe, provenance
from pathlines.integrate.traced import PORTABLE, TracedRun, traced_run
from pathlines.model.base import Model, Snapshot
from pathlines.model.capability import HasLayers


def layers(
    model: Model, tokens: Any, *, depth: int, step: float | Array = 1.0, record: Recorded = (), every: int = 1
) -> Run:
    """Apply ``depth`` layers x ← layer(x, t, η) of step η = ``step``, at depth-times t = ηℓ.

    Args:
        model: one that has a layer.
        tokens: where they start, (n, d).
        depth: L ≥ 1, the number of layers. The more, the nearer tokens come to their clusters; cost grows in
            proportion.
        step: η > 0, the residual step, 1 by default. The larger, the further from any flow.
        record: observables or their names, by default the tokens.
        every: they are recorded at layers 0, ``every``, 2·``every``, …; the coordinate ``layer`` counts them. The
            larger, the fewer records.

    This is the network itself, not an integrator: x ← N(x + ηA) moves each token by ηPA/(1 + η<x, A>), to first
    order the flow of another equation than SA (arXiv:2312.10794 writes the two as one).

    Inside ``jax.grad``, ``jvp``, ``jit`` or ``vmap`` the run is a ``TracedRun`` of arrays, as ``flow`` has it; reverse
    mode keeps about 2√(``depth``) states.
    """
    began = clock.perf_counter()
    make_room_for_programs()
    tokens = checked_start(model, tokens)
    if not isinstance(model, HasLayers):
        raise FormError(f"{type(model).__name__} has no layer map; use flow().")
    depth, every = positive_integer("depth", depth, least=0), positive_integer("every", every)
    if depth % every:
        raise ArgumentError(f"Argument `depth` must be a multiple of `every` = {every}, but is {depth}.")
    eta = traceable_number("step", step, low=0.0, open_low=True)
    chosen = checked_observables(record, [model], tokens.dtype) or (positions,)
    if is_traced(model, tokens, eta):
        return _traced_layers(model, tokens, eta, chosen, depth, every)
    exact, _, sums = fast_sums(cast(model, tokens.dtype), tokens, FIXED_STEP_ERROR)
    final, columns = _stack(exact, exact.initial(tokens), jnp.asarray(eta, tokens.dtype), chosen, depth // every, every)
    numbers = np.arange(0, depth + 1, every)
    data = xr.Dataset(coords={"time": eta * numbers, "layer": ("time", numbers)})
    for observable, column in zip(chosen, columns, strict=True):
        data[observable.name] = xr.DataArray(
            np.asarray(column), dims=("time", *observable.dims), attrs=observable.attributes
        )
    bad = int(sum(np.sum(~np.isfinite(data[o.name].values)) for o in chosen))
    check = Certificate("finite", bad, 0.0, bad == 0, "non-finite recorded numbers")
    setting = {
        "model": describe(model),
        "papers": [p.key for p in model.papers],
        "tokens": describe(np.asarray(tokens)),
        "depth": depth,
        "step": eta,
        "versions": provenance(),
    }
    form = Form("tokens", 0.0, f"layers act on coordinates{sums}")
    seconds = clock.perf_counter() - began
    return Run(data, (check,), (form,), "completed", setting, seconds, model, Final(exact, final, eta * depth, tokens))


def _traced_layers(
    model: HasLayers, tokens: Any, eta: Any, chosen: tuple[Observable, ...], depth: int, every: int
) -> TracedRun:
    """The same layers, in loops that have a reverse mode."""
    exact, _, sums = fast_sums(cast(model, tokens.dtype), tokens, FIXED_STEP_ERROR)
    step = jnp.asarray(eta, tokens.dtype)
    final, columns = _stack(exact, exact.initial(tokens), step, chosen, depth // every, every, frugal=True)
    numbers = np.arange(0, depth + 1, every)
    data = {"time": step * numbers, "layer": numbers, **{o.name: c for o, c in zip(chosen, columns, strict=True)}}
    forms = (Form("tokens", 0.0, f"traced: {PORTABLE}{sums}"),)
    return traced_run(data, forms, model, Final(exact, final, step * depth, tokens), True)


@eqx.filter_jit
def _stack(
    model: HasLayers,
    start: Any,
    step: Array,
    chosen: tuple[Observable, ...],
    rows: int,
    every: int,
    frugal: bool = False,
) -> tuple[Any, tuple[Array, ...]]:
    def look(state: Any, number: Array) -> tuple[Array, ...]:
        snapshot = Snapshot(at_time(model, number * step), state, number * step, start)
        return tuple(o(snapshot) for o in chosen)

    def one(item: tuple[Any, Array]) -> tuple[Any, Array]:
        state, number = item
        return at_time(model, number * step).layer(state, number * step, step), number + 1

    def row(item: tuple[Any, Array], _: None) -> tuple[tuple[Any, Array], tuple[Array, ...]]:
        item = frugal_repeat(one, item, every) if frugal else jax.lax.fori_loop(0, every, lambda i, c: one(c), item)
        return item, look(*item)

    zero = jnp.zeros((), step.dtype)
    scan = frugal_scan if frugal else jax.lax.scan
    (final, _), rest = scan(row, (start, zero), None, length=rows)
    first = look(start, zero)
    return final, tuple(jnp.concatenate([a[None], b]) for a, b in zip(first, rest, strict=True))
