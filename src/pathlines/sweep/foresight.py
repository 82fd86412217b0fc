"""What a study will take, before it starts: runs, seconds, memory; and how many points go into one chunk."""

from __future__ import annotations

import math
import os
from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.bounds import HOURS, machine_memory, within
from pathlines.integrate.observe import OBSERVABLES
from pathlines.model.capability import HasEnergy, HasRandomLayers
from pathlines.sweep.axes import Axis
from pathlines.sweep.chunks import ChunkStore
from pathlines.sweep.model_runs import ModelRuns, lane_width
from pathlines.sweep.plan import StudyPlan
from pathlines.sweep.subject import Known, Recorded

CHUNK_SECONDS = 2.0
"""Predicted work of a chunk: what a kill may cost, and far above what keeping it costs (10 ms)."""
FEWEST_CHUNKS = 8
"""Chunks of a program at least, where there are enough runs, so that several workers have some."""
MANY_CHUNKS = 500
"""Chunks of a study of functions or claims at most, where points are more."""
CHUNK_BYTES = 2e8
COMPILE = 1.2
"""Seconds to compile one program."""
PAIR = 5e-10
"""Seconds for one pair of tokens in one drift, and for each of their components."""
COMPONENT = 1e-10
OVERHEAD = 4e-5
"""Seconds that a run takes besides."""
DRIFTS_AT_LEAST, DRIFTS_A_TIME = 48.0, 4.0
"""Drifts of an adaptive flow at rtol = 1e-6, and how many more for each unit of depth-time."""
QUICKLY_ASKED = 10**6
"""Numbers of a start up to which a model is asked, before anything runs, whether it has what is recorded."""
BASE_MEMORY = 4e8
"""Bytes of a process that has imported everything."""


class Forecast(msgspec.Struct, frozen=True):
    """Runs, those that the store has already, programs, chunks, seconds of one core (None: nobody knows), bytes."""

    runs: int
    stored: int
    programs: int
    chunks: int
    seconds: float | None
    memory: float
    cores: int

    def of_runs(self, runs: int) -> Forecast:
        """The same for another number of runs, none of which is stored."""
        seconds = None if self.seconds is None else self.seconds * runs / max(self.runs - self.stored, 1)
        return msgspec.structs.replace(self, runs=runs, stored=0, seconds=seconds)


def seconds_a_run(known: Known, row: dict[str, Any]) -> float | None:
    """Predicted seconds of one core for one setting; None where nobody has measured."""
    if known.subject.kind == "claim":
        cost = known.thing.cost(known.subject.size)
        return None if cost is None else cost.seconds
    if known.subject.kind == "function":
        return None
    n, d = row["n"], row["d"]
    drift = n * n * (PAIR + COMPONENT * d)
    if row["layers"] is not None:
        return drift * row["layers"] + 1e-3
    tighter = max(1.0, (1e-6 / row["rtol"]) ** 0.2)
    return OVERHEAD + drift * (DRIFTS_AT_LEAST + DRIFTS_A_TIME * row["until"]) * tighter


def corners(fixed: dict[str, Any], axes: tuple[Axis, ...], within: frozenset[str]) -> list[dict[str, Any]]:
    """One setting of each program."""
    outer = [axis for axis in axes if not set(axis.names) <= within]
    first = {**fixed, **{n: v[0] for a in axes for n, v in zip(a.names, a.values, strict=True)}}
    rows = [first]
    for axis in outer:
        rows = [
            {**row, **{n: v[k] for n, v in zip(axis.names, axis.values, strict=True)}}
            for row in rows
            for k in range(len(axis))
        ]
        if len(rows) > 10_000:
            return rows[:10_000]
    return rows


def chunk_size(known: Known, fixed: dict[str, Any], axes: tuple[Axis, ...], plan: StudyPlan) -> int:
    """Points of a chunk: decided by the study alone, so that every driver of it has the same chunks."""
    if known.subject.kind != "model":
        return max(1, math.ceil(plan.count / MANY_CHUNKS))
    rows = corners(fixed, axes, known.within_program)
    longest = max(seconds_a_run(known, row) or 1.0 for row in rows)
    width = max(lane_width(row["n"], row["d"]) for row in rows)
    share = plan.count // max(plan.programs, 1)
    by_time = CHUNK_SECONDS / longest
    by_number = share / FEWEST_CHUNKS
    numbers = max(len(known.subject.times), 1) * 64.0 * max(row["n"] for row in rows)
    wanted = min(max(by_time, 1.0), max(by_number, width), CHUNK_BYTES / numbers)
    return max(1, math.ceil(wanted / width) * width)


def foreseen(
    known: Known, fixed: dict[str, Any], axes: tuple[Axis, ...], plan: StudyPlan, chunks: ChunkStore
) -> Forecast:
    """The cost of a study; of functions by what their finished chunks took."""
    there = chunks.names()
    stored = sum(len(c.where) for c in plan.chunks() if c.name in there) if there else 0
    rows = corners(fixed, axes, known.within_program)
    each = (
        [seconds_a_run(known, row) for row in rows] if known.subject.kind != "function" else [_measured(chunks, there)]
    )
    mean = None if any(s is None for s in each) else float(np.mean([s for s in each if s is not None]))
    compiling = COMPILE * plan.programs if known.subject.kind == "model" else 0.0
    seconds = None if mean is None else mean * (plan.count - stored) + (compiling if stored < plan.count else 0.0)
    variables = 3 * max(len(known.subject.record), 1) * max(len(known.subject.times), 1)
    memory = BASE_MEMORY + 8.0 * plan.count * (variables + 4)
    return Forecast(plan.count, stored, plan.programs, plan.chunk_count, seconds, memory, os.cpu_count() or 1)


def _measured(chunks: ChunkStore, there: set[str]) -> float | None:
    """Seconds a point of up to five finished chunks."""
    kept = [k for k in (chunks.get(name) for name in sorted(there)[:5]) if k is not None]
    points = sum(len(k.keys) for k in kept)
    return sum(k.seconds for k in kept) / points if points else None


def check_forecast(title: str, forecast: Forecast, force: bool = False) -> None:
    """Refuse a study whose answer does not fit this machine, or whose average run takes more than a day."""
    memory = machine_memory() / 1e9
    within(f"A study of {forecast.runs} runs of {title}", forecast.memory / 1e9, memory, "GB of memory", force=force)
    if forecast.seconds is not None and forecast.runs > forecast.stored:
        hours = forecast.seconds / (forecast.runs - forecast.stored) / 3600
        within(f"One run of {title} at these settings", hours, HOURS, "hours", force=force)


def with_record(known: Known, first: dict[str, Any], record: tuple[Recorded, ...], times: tuple[float, ...]) -> Known:
    """The subject with what it records, which is asked of the first setting without running it."""
    if not record:
        model = ModelRuns(known.thing, known.subject.name, (), ()).model_at(first)
        pairs = ("mean_overlap",) if first["n"] > 1 else ()
        if isinstance(model, HasRandomLayers):
            names: tuple[str, ...] = (*pairs, "mean_square", "effective_rank") if model.on_sphere else ()
        elif not model.on_sphere:
            names = ("cluster_count", "diameter")
        else:
            names = (*(("energy_fraction",) if isinstance(model, HasEnergy) else ()), "cluster_count", *pairs)
        record = tuple((name, ()) for name in names)
    chosen = tuple(OBSERVABLES[n].at(**dict(p)) if p else OBSERVABLES[n] for n, p in record)
    if first["n"] * first["d"] <= QUICKLY_ASKED:
        ModelRuns(known.thing, known.subject.name, chosen, times).shapes(first)
    subject = msgspec.structs.replace(known.subject, record=record, times=times)
    return msgspec.structs.replace(known, subject=subject)
