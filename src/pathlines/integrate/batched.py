"""Many runs in one compiled program: lanes side by side, groups of lanes in chunks, chunks on all cores."""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Callable, Hashable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError, PathlinesWarning, finite_number, positive_integer, require
from pathlines.foundation.module import Module
from pathlines.foundation.programs import times_forgotten
from pathlines.foundation.progress import Progress
from pathlines.foundation.traceable import is_traced
from pathlines.integrate.advance import OK, Carry, Controls, Program, advance, fresh_carry
from pathlines.integrate.checked import chosen_method
from pathlines.integrate.observe import Observable
from pathlines.model.base import Model
from pathlines.model.capability import horizon_of

LANE_WORK = 1 << 15
"""Pairs × width a lane group holds: enough to fill vector units, small enough to stay in cache."""


class Lanes(Module):
    """What all runs of a batch share."""

    program: Program = eqx.field(static=True)
    pieces: tuple[tuple[int, int, float], ...] = eqx.field(static=True)
    grid: Array
    rtol: Array
    atol: Array
    step: Array
    max_steps: Array


def shared_settings(
    model: Model,
    tokens: Array,
    grid: np.ndarray | Array,
    chosen: tuple[Observable, ...],
    method: str,
    rtol: float,
    atol: float | None,
    step: float | Array | None,
    max_steps: int,
    **program: Any,
) -> Lanes:
    """Check the numbers of a batch against one example of its models and starts; ``program`` says what else it does."""
    number = lambda x: jnp.asarray(x, tokens.dtype)  # noqa: E731
    rtol = finite_number("rtol", rtol, low=1e-15, high=0.1)
    work = Program(chosen_method(method, step, model), chosen, adaptive=step is None, **program)
    steps = jnp.asarray(positive_integer("max_steps", max_steps))
    floor = rtol if atol is None else finite_number("atol", atol, low=0.0)
    pieces = _pieces(model, tokens, grid)
    first = number(-1.0 if step is None else step)
    return Lanes(work, pieces, number(grid), number(rtol), number(floor), first, steps)


def _pieces(model: Model, tokens: Array, grid: np.ndarray | Array) -> tuple[tuple[int, int, float], ...]:
    """(first, last, end) index ranges of the recorded times between the jumps of the drift."""
    if is_traced(grid):
        require(not model.breakpoints, "times", "be known numbers when the weights jump", grid)
        return ((0, len(grid), math.inf),)
    limit, why = (math.inf, "") if is_traced(model, tokens) else horizon_of(model, tokens)
    if limit < grid[-1]:
        raise ArgumentError(f"Argument `until` must be below {limit:.4g} in an ensemble ({why}); use flow().")
    ends = sorted({b for b in model.breakpoints if 0 < b < grid[-1]} | {float(grid[-1])})
    cuts = [0, *(int(np.searchsorted(grid, e, side="right")) for e in ends)]
    return tuple(zip(cuts[:-1], cuts[1:], ends, strict=True))


def one_run(lanes: Lanes, model: Model, tokens: Array) -> tuple[Array, tuple[Array, ...]]:
    """(finished, records) of one lane; records that were not reached are NaN."""
    return lane(lanes, model, tokens)[1:]


def lane(lanes: Lanes, model: Model, tokens: Array) -> tuple[Carry, Array, tuple[Array, ...]]:
    """``one_run``, and where it ended."""
    state = model.initial(tokens)
    carry = fresh_carry(lanes.program, state, 0.0, 0.0)._replace(h=lanes.step)
    parts = []
    for low, high, end in lanes.pieces:
        last = jnp.asarray(end, lanes.grid.dtype)
        controls = Controls(lanes.rtol, lanes.atol, last, lanes.max_steps, jnp.asarray(True))
        times = jnp.append(lanes.grid[low:high], last)
        carry, reached, records = advance(lanes.program, model, state, carry, times, controls)
        parts.append([x[:-1] for x in (reached, *records)])
    reached, *columns = (jnp.concatenate(x) for x in zip(*parts, strict=True))
    blank = tuple(jnp.where(reached.reshape(-1, *(1,) * (c.ndim - 1)), _real(c), jnp.nan) for c in columns)
    return carry, (carry.status == OK) & jnp.all(reached), blank


def _real(column: Array) -> Array:
    """Counts as numbers, which may be missing."""
    return column if jnp.issubdtype(column.dtype, jnp.inexact) else column.astype(float)


def lane_count(n: int, d: int) -> int:
    """Runs a lane group: fixed by the problem alone, so that chunking changes no bit of a result."""
    return int(np.clip(LANE_WORK // (n * max(n, d)), 1, 256))


@lru_cache(maxsize=1024)
def _first_call(program: Hashable, size: int, forgotten: int) -> tuple[threading.Lock, threading.Event]:
    """For each program, who may call it first and whether that has happened since all were forgotten."""
    return threading.Lock(), threading.Event()


def in_chunks(
    work: Callable[[np.ndarray], tuple[Any, tuple[Any, ...]]],
    program: Any,
    count: int,
    lanes: int,
    groups: int,
    show: bool | None,
) -> list[np.ndarray]:
    """Run jobs 0..count-1 as (groups, lanes) index blocks, the last one padded; records of all jobs in order.

    At least one block per core, where there are enough lanes. ``program`` is what ``work`` compiles for: two threads
    that meet it for the first time would both compile it, so the first block of a new one goes ahead alone.
    """
    cores = os.cpu_count() or 1
    size = lanes * min(groups, -(-count // (lanes * cores)))
    columns: list[np.ndarray] = []
    failed = 0
    begin, begun = _first_call(jax.tree.structure(program), size, times_forgotten())

    def started(indices: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        if begun.is_set():
            return work(indices)
        with begin:
            result = work(indices)
            begun.set()
            return result

    def block(start: int) -> tuple[int, np.ndarray, list[np.ndarray]]:
        indices = np.minimum(np.arange(start, start + size), count - 1).reshape(-1, lanes)
        ok, records = started(indices)
        mine = min(size, count - start)
        return (
            start,
            np.asarray(ok).reshape(-1)[:mine],
            [np.asarray(r).reshape(size, *r.shape[2:])[:mine] for r in records],
        )

    with Progress(f"{count} runs", count, show=show) as bar, ThreadPoolExecutor(cores) as pool:
        for start, ok, records in pool.map(block, range(0, count, size)):
            columns = columns or [np.empty((count, *r.shape[1:]), r.dtype) for r in records]
            for column, record in zip(columns, records, strict=True):
                column[start : start + len(ok)] = record
            failed += int(np.sum(~ok))
            bar.update(start + len(ok))
    warn_of_failed(failed, count)
    return columns


def warn_of_failed(failed: int, count: int) -> None:
    """Says how many runs did not go through."""
    if failed:
        text = f"{failed} of {count} runs stalled or diverged; their later records are NaN."
        warnings.warn(text, PathlinesWarning, stacklevel=5)


def in_turns(work: Callable[[np.ndarray], np.ndarray], jobs: np.ndarray, lanes: int, show: bool | None) -> None:
    """Run ``jobs`` until ``work`` returns none of them, a group of ``lanes`` at a time, on all cores.

    ``work`` takes a group some steps further and returns those that are not done, which wait for another turn: jobs of
    very different length do not wait for each other. The last job fills a group that is not full.
    """
    waiting, running = [int(k) for k in jobs], set[Future[np.ndarray]]()
    cores = 1  # the first turn compiles, alone
    with Progress(f"{len(jobs)} runs", len(jobs), show=show) as bar, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while waiting or running:
            while waiting and len(running) < cores:
                group, waiting = waiting[:lanes], waiting[lanes:]
                running.add(pool.submit(work, np.array(group)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            waiting += [int(k) for job in done for k in job.result()]
            cores = os.cpu_count() or 1
            bar.update(len(jobs) - len(waiting) - lanes * len(running))
