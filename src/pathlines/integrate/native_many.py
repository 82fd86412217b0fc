"""Many runs in native code: each on its own, spread over threads, so that bits do not depend on its company."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from pathlines.integrate.advance import OK, STALLED
from pathlines.integrate.batched import Lanes
from pathlines.integrate.looking import look_at_states
from pathlines.integrate.native_path import (
    CALL_NANOSECONDS,
    ROOM,
    drift_nanoseconds,
    native_method,
    native_system,
    scheme_of,
)
from pathlines.kernels.native import SphereSystem, Trails, fresh_trails, travel
from pathlines.model.base import Model

TOGETHER = 16
"""Runs of one call at most: few enough to keep all threads busy to the end."""


class Job(NamedTuple):
    """Runs of one model: their numbers, and where they start (k, n, d)."""

    model: Model
    numbers: np.ndarray
    starts: np.ndarray


class Arrived(NamedTuple):
    """Records of runs (NaN where not reached), whether each went through, how it ended and when."""

    records: tuple[np.ndarray, ...]
    finished: np.ndarray
    status: np.ndarray
    ends: np.ndarray


def natively(lanes: Lanes, model: Model, shape: tuple[int, ...], dtype: Any) -> SphereSystem | None:
    """The system of such runs, if native code can take their every step."""
    program = lanes.program
    special = program.accumulate or program.power or program.watch or program.bounded or len(lanes.pieces) != 1
    return None if special or not native_method(program.method) else native_system(model, shape, dtype)


def jobs_of(model: Model, numbers: np.ndarray, starts: np.ndarray, count: int) -> list[Job]:
    """Runs of one model in calls of ``TOGETHER`` or, with ``count`` long records, fewer."""
    size = int(np.clip(ROOM // (count * starts[0].size), 1, TOGETHER))
    cuts = range(0, len(numbers), size)
    return [Job(model, numbers[a : a + size], starts[a : a + size]) for a in cuts]


def run_jobs(lanes: Lanes, jobs: Sequence[Job], threads: int | None = None) -> Iterable[tuple[Job, Arrived]]:
    """Each job with what came of it, in order."""
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        yield from zip(jobs, pool.map(lambda job: _arrived(lanes, job), jobs), strict=True)


def _arrived(lanes: Lanes, job: Job) -> Arrived:
    grid = np.asarray(lanes.grid)
    system = natively(lanes, job.model, job.starts.shape[1:], job.starts.dtype)
    assert system is not None
    trails = _travelled(lanes, system, job.starts, grid)
    reached = np.arange(len(grid)) < trails.done[:, None]
    rows = np.where(reached[:, :, None, None], trails.rows, job.starts[:, None])
    flat = lambda x: x.reshape(-1, *x.shape[2:])  # noqa: E731
    shared = np.repeat(job.starts, len(grid), axis=0)
    energies = np.where(reached, trails.energies, 0) if _own_energy(job.model) else None
    times = np.tile(grid, len(rows))
    seen = None if energies is None else flat(energies)
    columns = look_at_states(lanes.program.record, job.model, flat(rows), times, shared, seen)
    records = tuple(_blank(c.reshape(*reached.shape, *c.shape[1:]), reached) for c in columns)
    finished = (trails.clocks["status"] == OK) & (trails.done == len(grid))
    return Arrived(records, finished, trails.clocks["status"], trails.clocks["t"])


def _own_energy(model: Model) -> bool:
    return getattr(model, "energy_kind", "") == "identity"


def _travelled(lanes: Lanes, system: SphereSystem, starts: np.ndarray, grid: np.ndarray) -> Trails:
    trails = fresh_trails(starts, len(grid))
    trails.clocks["h"] = float(lanes.step)
    method = lanes.program.method
    scheme = scheme_of(method, lanes.program.adaptive, float(lanes.rtol), float(lanes.atol))  # type: ignore[arg-type]
    most = int(lanes.max_steps)
    budget = max(1, int(CALL_NANOSECONDS / (len(starts) * len(method.b) * drift_nanoseconds(system))))  # type: ignore[attr-defined]
    fresh, taken = True, 0
    while taken < most:
        travel(system, scheme, trails, grid, budget=min(budget, most - taken), fresh=fresh)
        fresh, taken = False, taken + budget
        if np.all((trails.done == len(grid)) | (trails.clocks["status"] >= STALLED)):
            break
    return trails


def _blank(column: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Numbers where a time was reached, else NaN; whole numbers become real ones, which have it."""
    real = column if np.issubdtype(column.dtype, np.inexact) else column.astype(jnp.result_type(float))
    return np.where(reached.reshape(*reached.shape, *(1,) * (column.ndim - 2)), real, np.asarray(np.nan, real.dtype))
