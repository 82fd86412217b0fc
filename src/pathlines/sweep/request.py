"""From a request, on the command line or of a page, to a stored run."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import jax
import msgspec
import numpy as np
import xarray as xr

from pathlines.domain.start import given, starting
from pathlines.foundation.bounds import affordable
from pathlines.foundation.errors import ArgumentError, PathlinesWarning, StoreError
from pathlines.foundation.setting import changed
from pathlines.integrate import Run, chain, ensemble, flow, layers
from pathlines.integrate.observe import checked_observables
from pathlines.integrate.run import describe
from pathlines.model import MODELS, Model
from pathlines.model.capability import HasEnergy, HasRandomLayers
from pathlines.observable.linkage import CELL_DIMENSIONS
from pathlines.store.address import address
from pathlines.store.code import fingerprint
from pathlines.store.results import Store
from pathlines.store.runs import dataset_to_run, run_to_dataset

COMPARED = 20_000
"""Tokens all pairs of which are compared at every record without being asked to."""
STATES = 30.0
"""Copies of the tokens that a flow holds at least: 80 were measured for 10⁵ tokens on S², records included."""
FEWEST_DRIFTS = 100.0
"""Drifts, and recorded times, of a flow."""
SPECTRAL_PAIRS = 1e4
"""Pairs a token that sums over harmonics on S¹ and S² cost."""
DRAWN = 2000
"""Tokens up to which a picture shows their paths without being asked to."""
UNCOUNTED = ("seed", "d", "value")
"""Whole numbers that are no sizes, or are one already counted."""
WEIGHTS = ("value", "query", "key")
MAX_STEPS = 200_000
"""Where a flow that gets nowhere is stopped."""


class Request(msgspec.Struct, frozen=True):
    """Everything that decides a run; its canonical JSON is the address of the result.

    ``tokens`` are a person's own start, in place of the law ``start``.
    """

    model: str
    parameters: dict[str, Any]
    n: int
    d: int
    until: float
    start: str
    record: tuple[str, ...]
    runs: int
    depth: int | None
    step: float | None
    method: str
    rtol: float
    form: str
    seed: int
    dtype: str
    tokens: Any = None


def dimension(request_d: int | None, tokens: Any, model: str, parameters: dict[str, Any]) -> int:
    """That of --d, else of the tokens, else of the weights, else the model's own, else 3."""
    if request_d is not None:
        return request_d
    if tokens is not None:
        return int(np.shape(tokens)[-1])
    matrices = [parameters[name] for name in WEIGHTS if np.ndim(parameters.get(name, 0)) > 1]
    return int(np.shape(matrices[0])[-1]) if matrices else int(getattr(MODELS[model].parameters(), "d", 3))


def check_size(request: Request, force: bool) -> None:
    """Refuse what no machine can do: lower bounds of memory (a few states, the records) and of work.

    What a model counts itself (heads, nodes, cells, modes) is held once for each state, and walked at each drift.
    """
    n, d, runs, depth = (float(max(x or 0, 0)) for x in (request.n, request.d, request.runs, request.depth))
    pairs = n * min(n, SPECTRAL_PAIRS) if d <= 3 else n * n
    drifts = depth if request.depth is not None else FEWEST_DRIFTS
    what = f"{request.runs} × {request.n} tokens of dimension {request.d}" + (
        f" through {request.depth} layers" if request.depth is not None else ""
    )
    own = {name: x for name, x in request.parameters.items() if type(x) is int and name not in UNCOUNTED}
    what += "".join(f", {name} = {x}" for name, x in own.items())
    counted = math.prod(max(float(x), 1.0) for x in own.values())
    memory = 8 * (STATES * max(n * d, counted) + runs * drifts)
    affordable(what, memory=memory, operations=runs * drifts * max(pairs * d, counted), force=force)


def execute(
    request: Request,
    *,
    fresh: bool = False,
    paths: bool = False,
    files: tuple[str, ...] = (),
    store: Store | None = None,
    show: Callable[[Run, str], None] = lambda run, how: None,
) -> tuple[Run, str]:
    """(run, "computed", "resumed" or "stored"). Unfinished single flows leave a checkpoint and continue from it.

    ``show`` is called with both before the result is stored: a full disk does not take it away. ``paths`` says that the
    tokens will be drawn, where they can be, ``files`` which ones of a person's own count as code of the result.
    """
    model = build(request)
    if not request.record:
        usual = usual_record(model, request)
        request = msgspec.structs.replace(
            request, record=(*usual, "tokens") if paths and can_draw(model, request) else usual
        )
    law = law_of(request)
    checked_observables(request.record)
    store = Store() if store is None else store
    code = fingerprint(__name__, files=files)
    name = address(f"run/{request.model}", msgspec.to_builtins(request, enc_hook=describe), code)
    partial_name = f"{name}-partial"
    kept = None if fresh else store.get(name)
    if kept is not None:
        found = dataset_to_run(kept)
        with suppress(OSError):  # its writer may have been killed before, and the store may be read-only
            store.remove(partial_name)
        show(found, "stored")
        return found, "stored"
    saved = None if fresh else store.get(partial_name)
    resume = None if saved is None else {str(k): v.values for k, v in saved.data_vars.items()}
    seconds = float(os.environ.get("PATHLINES_CHECKPOINT_SECONDS", "10"))
    result = compute(request, model, law, resume, partial(_keep, store, partial_name), seconds)
    how = "computed" if resume is None else "resumed"
    show(result, how)
    if not result.outcome.startswith("interrupted"):
        store.put(name, run_to_dataset(result))
        store.remove(partial_name)
    return result, how


def _keep(store: Store, name: str, arrays: dict[str, np.ndarray]) -> None:
    """A checkpoint; a run goes on without one."""
    try:
        store.put(name, _packed(arrays))
    except StoreError as error:
        warnings.warn(f"No checkpoint was written: {error}", PathlinesWarning, stacklevel=2)


def build(request: Request) -> Model:
    """The model with its parameters; those with a ``d`` or a ``step`` get the request's."""
    entry = MODELS[request.model]
    own = {"d": request.d} | ({} if request.step is None else {"step": request.step})
    record = entry.parameters()
    taken = {name: value for name, value in own.items() if hasattr(record, name)}
    setting = changed(f"model `{request.model}`", record, {**taken, **request.parameters})
    return entry.build(**msgspec.structs.asdict(setting))


def can_draw(model: Model, request: Request) -> bool:
    """Whether the paths of the tokens make a picture: one run of not too many, in two or three dimensions."""
    few = request.runs == 1 and request.n <= DRAWN
    return few and request.d in (2, 3) and model.has_tokens and request.form in ("auto", "tokens")


def usual_record(model: Model, request: Request) -> tuple[str, ...]:
    """What is recorded when nothing was asked for, but what would take minutes."""
    return _affordable(_usual(model, request.n), request)


def _usual(model: Model, n: int) -> tuple[str, ...]:
    """What is recorded when nothing was asked for; overlaps need two tokens."""
    pairs = ("mean_overlap",) if n > 1 else ()
    if isinstance(model, HasRandomLayers):
        return (*pairs, "mean_square", "effective_rank") if model.on_sphere else ()
    if not model.on_sphere:
        return ("cluster_count", "diameter")
    return (*(("energy_fraction",) if isinstance(model, HasEnergy) else ()), "cluster_count", *pairs)


def _affordable(names: tuple[str, ...], request: Request) -> tuple[str, ...]:
    """Those that need not compare all pairs of very many tokens; a warning names the others."""
    slow = {"diameter", *(("cluster_count",) if request.d > CELL_DIMENSIONS else ())} & set(names)
    if not slow or request.n <= COMPARED:
        return names
    text = f"left out, since comparing all pairs of n = {request.n} tokens takes minutes a record; --record insists"
    warnings.warn(f"{', '.join(sorted(slow))}: {text}.", PathlinesWarning, stacklevel=2)
    return tuple(name for name in names if name not in slow)


def law_of(request: Request) -> Callable[[Any], Any]:
    """From a random key to the tokens of the start."""
    if request.tokens is None:
        return starting(request.start, request.n, request.d, request.dtype, request.model)
    if request.runs > 1 and not isinstance(build(request), HasRandomLayers):
        raise ArgumentError(
            "Option --tokens is one start, and this model has no randomness of its own: leave --runs out."
        )
    return given(request.tokens, request.dtype)


def compute(
    request: Request,
    model: Model,
    law: Any,
    resume: Any = None,
    checkpoint: Any = None,
    seconds: float = 10.0,
    max_steps: int = MAX_STEPS,
    times: Any = None,
    progress: bool | None = None,
) -> Run:
    """The run itself, with the function of JAX's engine that the request is for; single flows leave a checkpoint
    every so many seconds, take at most so many steps, and may record other times than 101 even ones.
    """
    key = jax.random.key(request.seed)
    if isinstance(model, HasRandomLayers):
        clock = next(iter(model.clocks.values()), 1.0)
        depth = math.ceil(request.until / clock) if request.depth is None else request.depth
        runs = request.runs if request.runs > 1 else None
        return chain(
            model, law, depth=depth, key=key, runs=runs, record=request.record, sampler=request.form, progress=progress
        )
    if request.depth is not None:
        step = 1.0 if request.step is None else request.step
        return layers(model, law(key), depth=request.depth, step=step, record=request.record)
    if request.runs > 1:
        return ensemble(
            model,
            law,
            runs=request.runs,
            key=key,
            until=request.until,
            record=request.record,
            method=request.method,
            rtol=request.rtol,
            step=request.step,
        )
    return flow(
        model,
        law(key),
        until=request.until if times is None else None,
        times=times,
        record=request.record,
        method=request.method,
        rtol=request.rtol,
        step=request.step,
        form=request.form,
        resume=resume,
        checkpoint=checkpoint,
        checkpoint_seconds=seconds,
        max_steps=max_steps,
        progress=progress,
    )


def _packed(arrays: dict[str, np.ndarray]) -> xr.Dataset:
    named = {
        k: ([f"{k}_{i}" for i in range(v.ndim)], v.astype("int8") if v.dtype == bool else v) for k, v in arrays.items()
    }
    return xr.Dataset(named)
