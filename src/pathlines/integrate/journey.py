"""The driver of one run: pieces of smooth weights, blocks of recorded times, hand-overs between forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from pathlines.foundation.module import written_for
from pathlines.integrate.advance import (
    DIVERGED,
    STALLED,
    Carry,
    Controls,
    Program,
    compiled_advance,
    constant,
    fresh_carry,
)
from pathlines.integrate.forms import Form, Posed
from pathlines.integrate.looking import look_at_states
from pathlines.integrate.native_path import move, native_run
from pathlines.integrate.observe import Observable
from pathlines.model.base import Model, Snapshot
from pathlines.model.capability import Decays, HandsOver, HasDomain, HasEnergy, HasFlowMap, Pauses, horizon_of

BLOCKS = (32, 128)
"""Recorded times per call: two compiled programs serve any number of them."""

PAIRS_A_CALL = 3e8
"""Work a call, so that progress and Ctrl-C answer within about a second."""


def _energy_deficit(snapshot: Snapshot) -> Any:
    assert isinstance(snapshot.model, HasEnergy)
    return snapshot.model.energy_deficit(snapshot.state, snapshot.time)


@eqx.filter_jit
def _look_at_all(
    record: tuple[Observable, ...], model: Model, states: Any, times: Array, start: Any
) -> tuple[Array, ...]:
    return jax.vmap(lambda state, t: tuple(o(Snapshot(model, state, t, start)) for o in record))(states, times)


@eqx.filter_jit
def _ripe(model: Model, state: Any) -> Any:
    return model.should_pause(state) if isinstance(model, Pauses) else None


ENERGY_DEFICIT = Observable("energy_deficit", "scaled energy deficit", "e^{-β}(E - E_max)", _energy_deficit)


class Journey:
    """Moves one posed problem through its recorded times; all of its state is in ``carry`` and ``rows``.

    An energy is compared with that of the start, so time 0 is recorded ``before`` the others where there is one.
    """

    def __init__(
        self,
        posed: Posed,
        program: Program,
        grid: np.ndarray,
        h: float,
        tolerances: tuple[float, float | None],
        max_steps: int,
        hand_over: bool,
    ) -> None:
        hand_over = hand_over and isinstance(posed.model, HandsOver) and written_for(posed.model, "handover")
        watch = hand_over and not any(o.needs_tokens for o in (*program.record, *program.accumulate))
        self.before = int(program.power and grid[0] > 0)
        self.grid = np.append(0.0, grid) if self.before else grid
        self.posed, self.program = posed, replace(program, watch=watch)
        self.tolerances, self.max_steps, self.hand_over = tolerances, max_steps, hand_over
        self.model: Model = posed.model
        self.start = posed.model.initial(posed.tokens)
        self.forms: list[Form] = [posed.form]
        self.carry: Carry = fresh_carry(program, self.start, 0.0, h)
        self.rows: list[tuple[np.ndarray, ...]] = []
        self.trail: list[tuple[float, bool, Any]] = []
        self.fresh = True
        self.watching = watch
        self.native = native_run(self.model, self.program, self.start)
        if self.native is not None:
            self._seen(np.asarray(self.start)[None][:0], np.zeros(0), np.zeros(0, self.start.dtype))

    def travel(self, report: Callable[[Journey], None]) -> str:
        """Go through all recorded times; return "completed" or at which time it stopped and why."""
        limit, why = horizon_of(self.model, self.posed.tokens)
        if limit <= 0 and not self.consider_handover(True):
            return f"stopped at t = 0: {why}"
        try:
            for inside, end in self._pieces(limit):
                problem = self._through(inside, end, report)
                if problem is not None:
                    return problem
                self.fresh = True
                beyond = len(self.rows) < len(self.grid) and not isinstance(self.model, HasFlowMap)
                if end == limit and beyond and not self.consider_handover(True):
                    return f"stopped at t = {limit:.6g}: {why}"
        except KeyboardInterrupt:
            return f"interrupted at t = {float(self.carry.t):.6g}"
        return "completed"

    def _pieces(self, limit: float) -> list[tuple[np.ndarray, float]]:
        """Recorded times, split where the drift jumps and at the horizon; each piece goes on to its end."""
        last = float(self.grid[-1])
        ends = sorted({b for b in (*self.model.breakpoints, limit) if 0 < b < last} | {last})
        cuts = [0, *np.searchsorted(self.grid, ends, side="right").tolist()]
        return [(self.grid[a:b], end) for a, b, end in zip(cuts, cuts[1:], ends)]

    def _through(self, inside: np.ndarray, end: float, report: Callable[[Journey], None]) -> str | None:
        if float(self.carry.t) >= end and self.rows:
            return None
        targets = inside if end in inside[-1:] else np.append(inside, end)
        at = int(np.sum(targets <= float(self.carry.t))) if self.rows else 0
        asked_between = self.hand_over and isinstance(self.model, HandsOver) and not isinstance(self.model, Pauses)
        size = (
            self.native.room()
            if self.native is not None
            else BLOCKS[0]
            if len(targets) <= BLOCKS[0] or asked_between
            else BLOCKS[1]
        )
        while at < len(targets):
            if not self.consider_handover(False):
                self.watching = self.watching and not self._ripe()
            block = targets[at : at + size]
            reached, records = self._advance(block, size, end)
            done = int(np.count_nonzero(reached[: len(block)]))
            self.rows += [tuple(r[i] for r in records) for i in range(min(done, len(inside) - at))]
            at += done
            report(self)
            problem = self._problem()
            if problem is not None and at < len(targets):
                return problem
        return None

    def _advance(self, block: np.ndarray, size: int, end: float) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Through a block of times, filled up to ``size`` because each length is a program of its own."""
        if self.native is not None:
            return self._natively(block)
        if isinstance(self.model, HasFlowMap):
            return self._exactly(np.pad(block, (0, size - len(block)), mode="edge"))
        dtype, rest = self.carry.t.dtype, np.full(size - len(block), np.nan)
        rtol, atol = self._tolerances()
        rate, floor, last, times = (constant(x, dtype) for x in (rtol, atol, end, np.append(block, rest)))
        flags = (constant(self.fresh, bool), constant(self.watching, bool))
        controls = Controls(rate, floor, last, constant(self._budget(), self.carry.accepted.dtype), *flags)
        carry, reached, records = compiled_advance(self.program, self.model, self.start, self.carry, times, controls)
        numbers = jax.tree.map(np.asarray, carry._replace(state=None, slope=None))
        self.carry = numbers._replace(state=carry.state, slope=carry.slope)
        self.fresh = False
        return np.asarray(reached), tuple(np.asarray(r) for r in records)

    def _tolerances(self) -> tuple[float, float]:
        rtol, atol = self.tolerances
        return rtol, atol if atol is not None else 0.0 if isinstance(self.model, Decays) else rtol

    def _ripe(self) -> bool:
        return bool(_ripe(self.model, self.carry.state)) if self.native is None else self.native.ripe(self.carry.state)

    def _natively(self, block: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Through a block of times in native code; what was recorded there is looked at afterwards."""
        assert self.native is not None
        times = block.astype(self.carry.t.dtype)
        steps = min(self.native.budget(), self._steps_left())
        self.carry, done, trails = move(
            self.native, self.carry, times, *self._tolerances(), steps, self.fresh, self.watching
        )
        self.fresh = False
        sums = (trails.works[0, :done],) if self.program.power else ()
        seen = self._seen(trails.rows[0, :done], times[:done], trails.energies[0, :done])
        return np.arange(len(block)) < done, (*seen, *sums)

    def _seen(self, states: np.ndarray, times: np.ndarray, energies: np.ndarray) -> tuple[np.ndarray, ...]:
        """What is recorded of states that native code has made."""
        assert self.native is not None
        known = self.native.energy
        rest = self.program.record[:-1] if self.program.power and known else self.program.record
        columns = look_at_states(rest, self.model, states, times, self.start, energies if known else None)
        return (*columns, *((energies,) if len(rest) < len(self.program.record) else ()))

    def _exactly(self, times: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Follow the model's own solution from record to record, then look at all of them at once."""
        assert isinstance(self.model, HasFlowMap)
        state, t, dtype = jax.tree.map(np.asarray, self.carry.state), float(self.carry.t), self.carry.t.dtype
        states = []
        for target in times:
            state = state if target <= t else self.model.flow_map(state, t, float(target))
            t = max(t, float(target))
            states.append(state)
        stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *states)
        records = _look_at_all(self.program.record, self.model, stacked, jnp.asarray(times, dtype), self.start)
        self.carry = self.carry._replace(state=jax.tree.map(jnp.asarray, state), t=jnp.asarray(times[-1], dtype))
        integrals = tuple(np.full(len(times), np.asarray(i)) for i in self.carry.integrals)
        integrals = integrals[:-1] if self.program.shared else integrals
        return np.ones(len(times), bool), (*(np.asarray(r) for r in records), *integrals)

    def _budget(self) -> int:
        leaf = max(jax.tree.leaves(self.carry.state), key=lambda x: x.size)
        work = float(leaf.shape[0]) ** 2 * (leaf.shape[1] if leaf.ndim > 1 else 8) * 10
        return min(self._steps_left(), int(PAIRS_A_CALL / work) + 8)

    def _steps_left(self) -> int:
        return max(1, self.max_steps - int(self.carry.accepted) - int(self.carry.rejected))

    def _problem(self) -> str | None:
        t, status = float(self.carry.t), int(self.carry.status)
        if status == STALLED:
            return f"stalled at t = {t:.6g}: the step size fell below rounding"
        if status == DIVERGED:
            left = self.model.inadmissible if isinstance(self.model, HasDomain) else "the state left the model's domain"
            return f"diverged at t = {t:.6g}: the velocity is no longer finite or {left}"
        if int(self.carry.accepted) + int(self.carry.rejected) >= self.max_steps:
            return f"stalled at t = {t:.6g}: max_steps = {self.max_steps} steps are used up"
        return None

    def consider_handover(self, at_horizon: bool) -> bool:
        """Continue with a model that keeps more digits, when one is offered that serves every observable."""
        if not self.hand_over or not isinstance(self.model, HandsOver):
            return False
        offer = self.model.handover(self.carry.state, float(self.carry.t), float(self.grid[-1]), at_horizon)
        if offer is None:
            return False
        model, state, reason = offer
        if isinstance(model, HasFlowMap) and self.program.accumulate:
            return False
        if not model.has_tokens and any(o.needs_tokens for o in (*self.program.record, *self.program.accumulate)):
            return False
        self.trail.append((float(self.carry.t), at_horizon, self.carry.state))
        self.forms.append(Form(type(model).__name__, float(self.carry.t), reason))
        if self.model.has_tokens and not model.has_tokens:
            self.start = self.model.deficits(self.start, self.carry.t)
        blank = fresh_carry(self.program, state, 0.0, 0.0)
        self.carry = self.carry._replace(state=state, slope=blank.slope)
        self.model, self.fresh, self.native = model, True, None
        return True

    def dataset(self) -> xr.Dataset:
        """The rows as labelled arrays over the times that were reached."""
        before, times = self.before, self.grid[self.before : len(self.rows)]
        names = [o.name for o in self.program.record] + [f"integral_{o.name}" for o in self.program.accumulate]
        columns = [np.stack(c) for c in zip(*self.rows, strict=True)] if len(times) else []
        variables = {}
        for name, observable, column in zip(names, (*self.program.record, *self.program.accumulate), columns):
            if name == "tokens" and self.posed.lift is not None:
                column = np.asarray(self.posed.lift(jnp.asarray(column)))
            dims = ("time", *(observable.dims if not name.startswith("integral_") else ()))
            variables[name] = (dims, column[before:], observable.attributes)
        if self.program.power and columns:
            energy, work = columns[len(self.program.record) - 1], columns[-1]
            del variables[ENERGY_DEFICIT.name]
            attributes = {"long_name": "dissipation residual over E_max", "symbol": "ΔE - ∫D"}
            variables["dissipation_residual"] = (("time",), self._residual(energy, work)[before:], attributes)
        return xr.Dataset(variables, {"time": ("time", times, {"long_name": "depth-time", "symbol": "t"})})

    def _residual(self, energy: np.ndarray, work: np.ndarray) -> np.ndarray:
        """(E(t) - E(0) - ∫D)/E_max; relative to one half at β = 0, where E is ½|mean|²."""
        beta = float(self.posed.model.beta)
        return (energy - energy[0] - work) * (2 * beta if beta > 0 else 2.0)
