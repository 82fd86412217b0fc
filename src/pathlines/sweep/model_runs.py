"""Runs of a model at many settings: those that share a compiled program are its lanes, side by side.

A setting is the parameters of the model and the fields of ``RunSetting``. Flows of one program differ in numbers of the
model and in the seed of the start; a group of lanes has a width that the problem alone decides, and one lane knows
nothing of another: the numbers of a setting are the same whatever it is grouped with.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array

from pathlines.domain.start import starting
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import PathlinesError
from pathlines.foundation.parameters import REQUIRED, joined_record, record_of
from pathlines.foundation.programs import make_room_for_programs, times_forgotten
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain, layers
from pathlines.integrate.advance import DIVERGED, OK, STALLED
from pathlines.integrate.batched import Lanes, lane, shared_settings
from pathlines.integrate.checked import cast, checked_start
from pathlines.integrate.native_many import Job, jobs_of, natively, run_jobs
from pathlines.integrate.observe import Observable, checked_observables
from pathlines.model import Model
from pathlines.model.base import Snapshot
from pathlines.model.capability import HasRandomLayers, horizon_of
from pathlines.sweep.points import Layout, Points, Results, as_floats, concatenated, gathered, numbered, one_line

LANE_WORK = 1 << 13
"""Pairs × width of a group of lanes: enough to fill vector units, few enough that lanes do not wait for one another."""
MOST_LANES = 64
MAX_STEPS = 100_000
FIRST_LOOK = 0.0
"""Depth-time at which shapes are asked for."""


class RunSetting(Setting):
    """What every run of a model has besides the parameters of the model."""

    n: of.Tokens = 64
    d: of.Dimension = 3
    until: of.Until = 15.0
    start: Annotated[str, means("law of the tokens at the start")] = "uniform"
    layers: Annotated[of.Count | None, means("layers, instead of a flow", "L")] = None
    step: Annotated[of.Positive | None, means("residual step of a layer, or a method's own", "η")] = None
    method: Annotated[str, means("method of the integrator")] = "rk45"
    rtol: of.Rtol = 1e-6
    seed: of.Seed = 0
    dtype: Annotated[Literal["float64", "float32"], means("precision")] = "float64"


RUN_FIELDS = tuple(f.name for f in msgspec.structs.fields(RunSetting))


def record_of_runs(parameters: type[Setting]) -> type[Setting]:
    """The fields of a model and of its runs in one record; what both have (d, step) is one number for both."""
    own = {f.name: (f.type, f.default) for f in msgspec.structs.fields(parameters)}
    joined = [(name, kind, REQUIRED if value is msgspec.NODEFAULT else value) for name, (kind, value) in own.items()]
    for f in msgspec.structs.fields(RunSetting):
        if f.name not in own:
            joined.append((f.name, f.type, f.default))
    ours = {f.name: f for f in msgspec.structs.fields(RunSetting)}
    merged = [
        (n, ours[n].type if n in ("d", "step") else k, ours[n].default if n == "step" else v) for n, k, v in joined
    ]
    return joined_record(merged)


class ModelRuns:
    """Evaluates settings of one model: ``record`` at ``times``, or at the end."""

    def __init__(
        self, build: Callable[..., Model], name: str, record: tuple[Observable, ...], times: tuple[float, ...]
    ) -> None:
        self.build, self.name, self.record, self.times = build, name, record, times
        self.parameters = tuple(f.name for f in msgspec.structs.fields(record_of(build)))

    def evaluate(self, points: Points) -> Results:
        """One row for each setting; what fails, fails alone."""
        rows = list(points.rows())
        if not set(points.columns) & (set(RUN_FIELDS) - {"seed"}):
            return self._of_one_kind(rows)
        programs: dict[Hashable, list[int]] = {}
        for k, row in enumerate(rows):
            programs.setdefault(_hashable({f: row[f] for f in RUN_FIELDS if f in row and f != "seed"}), []).append(k)
        order = [k for ks in programs.values() for k in ks]
        parts = [self._of_one_kind([rows[k] for k in ks]) for ks in programs.values()]
        whole = concatenated(parts)
        back = np.argsort(order)
        return Results({n: v[back] for n, v in whole.values.items()}, whole.status[back], whole.errors, whole.layout)

    def model_at(self, row: dict[str, Any]) -> Model:
        """The model of a setting; a step that is not given is the model's own."""
        given = {name: row[name] for name in self.parameters if name in row}
        return self.build(**({n: v for n, v in given.items() if n != "step"} if row["step"] is None else given))

    def layout(self) -> Layout:
        """Dimensions and attributes of what is recorded."""
        leading = ("time",) if self.times else ()
        dims = {o.name: (*leading, *o.dims) for o in self.record}
        coords: dict[str, list[Any]] = {"time": list(self.times)} if self.times else {}
        return Layout(dims, {o.name: o.attributes for o in self.record}, coords)

    def shapes(self, row: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        """Shapes of what one setting records, asked of the model without running it; errors say what does not fit."""
        model = self.model_at(row)
        tokens = checked_start(model, self._law(row)(jax.random.key(0)))
        exact = cast(model, tokens.dtype)
        checked_observables(self.record, [model], tokens.dtype)
        if isinstance(model, HasRandomLayers):
            return {}

        def look(x: Array) -> tuple[Array, ...]:
            state, now = exact.initial(x), jnp.asarray(FIRST_LOOK, x.dtype)
            return tuple(o(Snapshot(exact, state, now, state)) for o in self.record)

        leading = (len(self.times),) if self.times else ()
        found = jax.eval_shape(look, tokens)
        return {o.name: (*leading, *f.shape) for o, f in zip(self.record, found, strict=True)}

    def _of_one_kind(self, rows: list[dict[str, Any]]) -> Results:
        """Settings with the same fields of ``RunSetting`` but the seed."""
        try:
            models, which, errors = self._models(rows)
        except PathlinesError as error:
            return gathered([one_line(error)] * len(rows), self.layout())
        first = next((m for m in models if m is not None), None)
        if first is None:
            return gathered([errors[w] for w in which], self.layout())
        if isinstance(first, HasRandomLayers) or rows[0]["layers"] is not None:
            found = [errors[w] or self._alone(models[w], row) for w, row in zip(which, rows, strict=True)]
            return gathered(found, self.layout())
        return self._side_by_side(models, which, errors, rows)

    def _models(self, rows: list[dict[str, Any]]) -> tuple[list[Any], list[int], list[str]]:
        """Each model once, which one each row has, and for each model why there is none."""
        start = self._law(rows[0])(jax.random.key(0))
        first = rows[0]
        varied = [n for n in self.parameters if n in first and any(row[n] is not first[n] for row in rows)]
        fine: dict[Hashable, Any] = {}
        place: dict[Hashable, int] = {}
        models: list[Any] = []
        errors: list[str] = []
        which = []
        for row in rows:
            key = _hashable({name: row[name] for name in varied})
            if key not in place:
                place[key] = len(models)
                model, error = self._admitted(row, start, fine)
                models.append(model)
                errors.append(error)
            which.append(place[key])
        return models, which, errors

    def _admitted(self, row: dict[str, Any], start: Any, fine: dict[Hashable, Any]) -> tuple[Any, str]:
        """The model of a setting cast to its precision, or why there is none; of one structure the first is asked
        whether such tokens are ``fine``.
        """
        try:
            model = self.model_at(row)
            kind = (jax.tree.structure(model), _shapes(model))
            if kind not in fine:
                fine[kind] = checked_start(model, start)
            tokens = fine[kind]
            checked_observables(self.record, [model], tokens.dtype)
            limit, why = horizon_of(model, tokens)
            last = self.times[-1] if self.times else row["until"]
            if limit < last and not isinstance(model, HasRandomLayers):
                return None, f"its flow ends at t = {limit:.4g} ({why})"
            return cast(model, tokens.dtype), ""
        except (PathlinesError, ArithmeticError, ValueError, TypeError) as error:
            return None, one_line(error)

    def _alone(self, model: Any, row: dict[str, Any]) -> dict[str, np.ndarray] | str:
        """A stack of layers or a chain: the records at its end."""
        try:
            key = jax.random.key(row["seed"])
            make_room_for_programs()
            if isinstance(model, HasRandomLayers):
                clock = next(iter(model.clocks.values()), 1.0)
                depth = row["layers"] or math.ceil(row["until"] / clock)
                run = chain(
                    model, self._law(row), depth=depth, key=key, record=self.record, every=depth, progress=False
                )
            else:
                depth, step = row["layers"], row["step"] or 1.0
                run = layers(model, self._law(row)(key), depth=depth, step=step, record=self.record, every=depth)
        except (PathlinesError, ArithmeticError, ValueError, TypeError) as error:
            return one_line(error)
        found = {o.name: as_floats(run.data[o.name].values[-1]) for o in self.record}
        finite = all(np.isfinite(v).all() for v in found.values())
        return found if finite else "a recorded number is not finite"

    def _side_by_side(
        self, models: list[Any], which: list[int], errors: list[str], rows: list[dict[str, Any]]
    ) -> Results:
        """Flows: models of one structure are stacked, and their runs are lanes of one program."""
        tokens = checked_start(next(m for m in models if m is not None), self._law(rows[0])(jax.random.key(0)))
        grid = np.array(self.times or (rows[0]["until"],), float)
        families: dict[Hashable, _Family] = {}
        kept: dict[Hashable, Lanes] = {}
        for number, model in enumerate(models):
            if model is None:
                continue
            key = (jax.tree.structure(model), _shapes(model), model.breakpoints)
            try:
                lanes = kept[key] if key in kept else self._lanes(model, tokens, grid, rows[0])
            except PathlinesError as error:
                errors[number] = one_line(error)
                continue
            kept[key] = lanes
            families.setdefault(key, _Family(lanes, [])).members.append(number)
        outcomes: list[Any] = [errors[w] or None for w in which]
        columns: dict[str, np.ndarray] = {}
        for family in families.values():
            mine = set(family.members)
            chosen = [k for k, w in enumerate(which) if w in mine and outcomes[k] is None]
            found = _run_family(
                family, self._law(rows[0]), models, [which[k] for k in chosen], [rows[k] for k in chosen]
            )
            self._take(found, chosen, outcomes, columns, len(rows))
        status, lines = numbered(outcomes)
        return Results(columns, status, lines, self.layout())

    def _law(self, row: dict[str, Any]) -> Callable[[Any], Any]:
        return _kept_law(row["start"], row["n"], row["d"], row["dtype"], self.name)

    def _lanes(self, model: Any, tokens: Any, grid: np.ndarray, row: dict[str, Any]) -> Lanes:
        chosen, method, rtol, step = self.record, row["method"], row["rtol"], row["step"]
        return shared_settings(model, tokens, grid, chosen, method, rtol, None, step, MAX_STEPS)

    def _take(
        self, found: _Found, chosen: list[int], outcomes: list[Any], columns: dict[str, np.ndarray], count: int
    ) -> None:
        """Sort the numbers of a family in among those of all settings."""
        for observable, record in zip(self.record, found.records, strict=True):
            values = as_floats(record if self.times else record[:, 0])
            blank = np.full((count, *values.shape[1:]), np.nan, values.dtype)
            columns.setdefault(observable.name, blank)[chosen] = values
        for k, status, t in zip(chosen, found.status, found.ends, strict=True):
            outcomes[k] = _outcome(int(status), float(t))


class _Family(NamedTuple):
    """Models of one structure, by number, and what their runs share."""

    lanes: Lanes
    members: list[int]


class _Found(NamedTuple):
    """Records, how each run ended and when."""

    records: tuple[np.ndarray, ...]
    status: np.ndarray
    ends: np.ndarray


UNFINISHED = -1
"""Status of a run that used up its steps."""


def _outcome(status: int, t: float) -> str | None:
    """``None`` for a run that arrived."""
    if status == STALLED:
        return f"stalled at t = {t:.4g}: the step size fell below rounding"
    if status == DIVERGED:
        return f"diverged at t = {t:.4g}: the velocity is no longer finite or the state left its domain"
    return None if status == OK else f"stopped at t = {t:.4g}: {MAX_STEPS} steps are used up"


def lane_width(n: int, d: int) -> int:
    """Runs side by side: decided by the problem alone."""
    return int(np.clip(LANE_WORK // (n * max(n, d)), 1, MOST_LANES))


def _run_family(
    family: _Family, law: Callable[[Any], Any], models: list[Any], which: list[int], rows: list[dict[str, Any]]
) -> _Found:
    """All runs of a family, a group of lanes at a time, on all cores; the last group is filled up."""
    make_room_for_programs()
    if (found := _in_native_code(family, law, models, which, rows)) is not None:
        return found
    place = {number: k for k, number in enumerate(family.members)}
    stacked = jax.tree.map(lambda *leaves: _stacked(leaves), *(models[m] for m in family.members))
    index, seeds = np.array([place[w] for w in which]), np.array([row["seed"] for row in rows], np.int64)
    width, count = lane_width(rows[0]["n"], rows[0]["d"]), len(rows)
    begin, begun = _first_call(jax.tree.structure((family.lanes, models[family.members[0]])), times_forgotten())

    def block(start: int) -> Any:
        lanes = np.minimum(np.arange(start, start + width), count - 1)
        mine = jax.tree.map(lambda leaf: leaf[index[lanes]], stacked)
        found = _lane_group(family.lanes, law, mine, seeds[lanes])
        return jax.tree.map(lambda x: np.asarray(x)[: count - start], found)

    def started(start: int) -> Any:
        if begun.is_set():
            return block(start)
        with begin:
            result = block(start)
            begun.set()
            return result

    with ThreadPoolExecutor(cores()) as pool:
        parts = list(pool.map(started, range(0, count, width)))
    records, status, ends = jax.tree.map(lambda *blocks: np.concatenate(blocks), *parts)
    return _Found(records, status, ends)


def _in_native_code(
    family: _Family, law: Callable[[Any], Any], models: list[Any], which: list[int], rows: list[dict[str, Any]]
) -> _Found | None:
    """The same runs by native code, where it knows every model: each on its own, on all cores."""
    lanes = family.lanes
    start = jax.eval_shape(law, jax.random.key(0))
    dtype = lanes.grid.dtype
    if any(natively(lanes, models[m], start.shape, dtype) is None for m in family.members):
        return None
    starts = np.asarray(_native_starts(law, np.array([row["seed"] for row in rows], np.int64), dtype))
    number = np.array(which)
    jobs: list[Job] = []
    for m in family.members:
        mine = np.flatnonzero(number == m)
        jobs += jobs_of(models[m], mine, starts[mine], len(lanes.grid)) if len(mine) else []
    status, ends = np.empty(len(rows), np.int64), np.empty(len(rows), dtype)
    records: list[np.ndarray] = []
    for job, found in run_jobs(lanes, jobs, cores()):
        records = records or [np.empty((len(rows), *r.shape[1:]), r.dtype) for r in found.records]
        for column, record in zip(records, found.records, strict=True):
            column[job.numbers] = record
        status[job.numbers] = np.where(found.finished | (found.status != OK), found.status, UNFINISHED)
        ends[job.numbers] = found.ends
    return _Found(tuple(records), status, ends)


@eqx.filter_jit
def _native_starts(law: Callable[[Any], Any], seeds: Any, dtype: Any) -> Array:
    return jax.vmap(lambda seed: law(jax.random.key(seed)).astype(dtype))(seeds)


def cores() -> int:
    """Threads that runs may take: all cores, or what a worker process was given."""
    given = os.environ.get("NPROC", "") if multiprocessing.parent_process() is not None else ""
    return int(given) if given.isdigit() and int(given) > 0 else os.cpu_count() or 1


@eqx.filter_jit
def _lane_group(
    lanes: Lanes, law: Callable[[Any], Any], models: Model, seeds: Any
) -> tuple[tuple[Array, ...], Array, Array]:
    def one(model: Model, seed: Array) -> tuple[tuple[Array, ...], Array, Array]:
        tokens = law(jax.random.key(seed)).astype(lanes.grid.dtype)
        carry, finished, records = lane(lanes, model, tokens)
        return records, jnp.where(finished | (carry.status != OK), carry.status, UNFINISHED), carry.t

    return jax.vmap(one)(models, seeds)


@lru_cache(maxsize=1024)
def _first_call(program: Hashable, forgotten: int) -> tuple[threading.Lock, threading.Event]:
    """Who may call a program first: two threads that meet it for the first time would both compile it."""
    return threading.Lock(), threading.Event()


def _stacked(leaves: tuple[Any, ...]) -> Any:
    try:
        return np.stack([np.asarray(leaf) for leaf in leaves])
    except TypeError:  # random keys are no numbers
        return jnp.stack(leaves)


def _shapes(model: Model) -> Hashable:
    return tuple((jnp.shape(leaf), str(getattr(leaf, "dtype", type(leaf)))) for leaf in jax.tree.leaves(model))


@lru_cache(maxsize=1024)
def _kept_law(text: str, n: int, d: int, dtype: str, model: str) -> Callable[[Any], Any]:
    """One function for one law, so that it is compiled once."""
    return starting(text, n, d, dtype, model)


def _hashable(row: dict[str, Any]) -> Hashable:
    return msgspec.json.encode(row, order="sorted", enc_hook=_plain)


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist()
