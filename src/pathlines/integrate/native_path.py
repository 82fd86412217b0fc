"""Runs of plain self-attention whose every step is native code: which those are, and how they are driven.

The steps, their control and the records are those of ``advance``; answers agree to rounding. Nothing is compiled for
another number of tokens, and threads are woken once for a call instead of once for a drift.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.foundation.module import exactly
from pathlines.foundation.schedule import unknown
from pathlines.integrate.advance import Carry, Program
from pathlines.integrate.methods import Method, RungeKutta
from pathlines.kernels.heads import WIDEST
from pathlines.kernels.native import SphereSystem, Steps, Trails, clock_type, native_serves, travel
from pathlines.model.base import Model
from pathlines.model.self_attention import RIPE_DEFICIT, SelfAttention
from pathlines.weights import FixedWeights, IdentityWeights

RANGE = {"float32": 60.0, "float64": 600.0}
"""Scores between which exponentials with one shift keep their digits."""

PAIRED = (2, 3, 4)
"""Dimensions in which each exponential serves both of its ends."""

SHARED_TOKENS = 128
"""From so many on a second thread pays."""

CALL_NANOSECONDS = 3e8
"""Work of one call, so that Ctrl-C, progress and checkpoints are answered within a second."""

WRITTEN = {name: vars(SelfAttention)[name] for name in ("attend", "drift", "retract", "power", "energy_deficit")}
"""What native code computes: a class whose methods were changed since is integrated as it stands."""

ROOM = 1 << 23
"""Numbers of recorded states that a call may hold."""


@dataclass(frozen=True)
class NativeRun:
    """One system that native code moves; ``energy``: whether F comes from the sums of its drift."""

    system: SphereSystem
    method: RungeKutta
    adaptive: bool
    energy: bool
    watch: bool

    def steps(self, rtol: float, atol: float) -> Steps:
        """The method with its tolerances."""
        return scheme_of(self.method, self.adaptive, rtol, atol)

    def room(self) -> int:
        """Recorded times of one call."""
        return max(1, min(4096, ROOM // (len(self.system.masses) * self.system.d)))

    def budget(self) -> int:
        """Steps of one call."""
        return max(1, int(CALL_NANOSECONDS / (len(self.method.b) * drift_nanoseconds(self.system))))

    def ripe(self, state: Any) -> bool:
        """Whether all pairs of rows are within ``RIPE_DEFICIT``."""
        rows = np.asarray(state)
        if np.max(np.sum((rows - rows[0]) ** 2, axis=-1)) > 2 * RIPE_DEFICIT:
            return False
        return all(np.max(np.sum((rows - row) ** 2, axis=-1)) <= 2 * RIPE_DEFICIT for row in rows)


def drift_nanoseconds(system: SphereSystem) -> float:
    """About what a drift costs, on one thread."""
    n, heads = len(system.masses), 1 if system.values is None else len(system.values)
    return 500.0 + heads * n * system.heard * (0.5 + 0.1 * system.d)


def scheme_of(method: RungeKutta, adaptive: bool, rtol: float, atol: float) -> Steps:
    """A method with its tolerances, as native code takes it."""
    estimates = np.asarray(method.estimates) if adaptive else np.zeros((0, len(method.b) + 1))
    orders = (method.order, method.error_order)
    return Steps(method.a, method.b, estimates, *orders, method.project_stages, adaptive, rtol, atol)


def native_run(model: Model, program: Program, state: Any) -> NativeRun | None:
    """The system of a run whose every step native code can take, if it is one."""
    if program.accumulate or program.bounded or program.shared or not native_method(program.method):
        return None
    if not isinstance(model, SelfAttention):
        return None
    system = native_system(model, state.shape, state.dtype)
    if system is None:
        return None
    own = model.energy_kind == "identity" or (model.energy_kind in ("matched", "opposed") and system.beta > 0)
    watch = program.watch and model.energy_kind == "identity" and system.value == 1
    return NativeRun(system, program.method, program.adaptive, own, watch)  # type: ignore[arg-type]


def native_method(method: Method) -> bool:
    """Explicit Runge-Kutta, of so many stages as the native code has room for."""
    return type(method) is RungeKutta and len(method.b) <= 15


def native_system(model: Model, shape: tuple[int, ...], dtype: Any) -> SphereSystem | None:
    """Self-attention on the sphere as native code takes it; none for anything that says more than that class does."""
    if not exactly(model, SelfAttention) or len(shape) != 2 or unknown(model):
        return None
    if any(vars(SelfAttention)[name] is not method for name, method in WRITTEN.items()):
        return None
    if model.space != "sphere" or model.perceptron is not None or model.mask is not None or model.fast is not None:
        return None
    weights, kind = model.weights, model.attention
    plain = exactly(weights, IdentityWeights)
    if not (plain or exactly(weights, FixedWeights)) or model.summation == "spectral" or not native_serves(dtype):
        return None
    if not (exactly(kind, SoftmaxAttention) or exactly(kind, UnnormalisedAttention)):
        return None
    n, d = shape
    masses = np.full(n, 1.0 / n) if model.multiplicities is None else np.asarray(model.multiplicities, float)
    masses = (masses / masses.sum()).astype(dtype)
    softmax, beta = isinstance(kind, SoftmaxAttention), float(model.beta)
    shift = 0.0 if softmax else float(kind.shift)  # type: ignore[union-attr]
    top = float(model.top)
    if plain and top != 1:
        return None
    if not softmax and abs(beta * max(top, 1.0)) + abs(shift) > RANGE[np.dtype(dtype).name]:
        return None
    fits = not softmax or bool((masses > 0).all()) or 2 * beta <= RANGE[np.dtype(dtype).name]
    heads = None if plain else _heads(weights)
    if heads is not None and max(d, *(m.shape[1] for m in heads if m is not None)) > WIDEST:
        return None
    return SphereSystem(
        masses=masses,
        heard=n if model.heard is None else model.heard,
        d=d,
        softmax=softmax,
        beta=beta,
        shift=shift,
        value=float(weights.value_sign),
        top=top,
        opposed=model.energy_kind == "opposed",
        frozen=model.frozen,
        paired=plain and d in PAIRED and fits,
        query=None if heads is None else heads[0],
        key=None if heads is None else heads[1],
        values=None if heads is None else heads[2],
    )


def _heads(weights: Any) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray]:
    given = (weights.query, weights.key)
    query, key = (None if m is None else np.asarray(m) for m in given)
    return query, key, np.asarray(weights.value)


def threads_for(n: int) -> int:
    """Threads of one run of n tokens: one where others keep the machine busy."""
    if n < SHARED_TOKENS or (hasattr(os, "getloadavg") and os.getloadavg()[0] > 1.5 * processors()):
        return 1
    return processors()


def processors() -> int:
    """Those this process may use; $NPROC, which JAX heeds too, says fewer."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("NPROC", "")
    return max(1, min(there, int(given))) if given.isdigit() else there


def move(
    run: NativeRun, carry: Carry, times: np.ndarray, rtol: float, atol: float, steps: int, fresh: bool, watch: bool
) -> tuple[Carry, int, Trails]:
    """Through ``times`` with at most ``steps`` attempts: (carry, how many times were reached, what was seen there)."""
    state = np.asarray(carry.state)
    dtype, power = state.dtype, bool(carry.integrals)
    clock = np.zeros(1, clock_type(dtype))
    for name in ("t", "h", "off_domain", "local_error", "accepted", "rejected", "status"):
        clock[name] = np.asarray(getattr(carry, name))
    velocity, rates = carry.slope
    if power:
        clock["work"], clock["power"] = np.asarray(carry.integrals[0]), np.asarray(rates[0])
    count = (1, len(times))
    trails = Trails(
        np.array(state[None], order="C"), np.array(np.asarray(velocity)[None], order="C"), clock,
        np.zeros(1, np.int64), np.empty((*count, *state.shape), dtype), np.empty(count, dtype), np.empty(count, dtype),
    )  # fmt: skip
    travel(
        run.system, run.steps(rtol, atol), trails, times, budget=steps, fresh=fresh,
        ripe=RIPE_DEFICIT if watch and run.watch else None, threads=threads_for(len(state)),
    )  # fmt: skip
    now: dict[str, Any] = {name: np.asarray(clock[name][0], np.asarray(getattr(carry, name)).dtype) for name in KEPT}
    sums: Any = (np.asarray(clock["work"][0]),) if power else ()
    slope = (trails.slope[0], (np.asarray(clock["power"][0]),) if power else ())
    moved = carry._replace(state=jax.device_put(trails.state[0]), slope=slope, integrals=sums, **now)
    return moved, int(trails.done[0]), trails


KEPT = ("t", "h", "accepted", "rejected", "off_domain", "local_error", "status")
