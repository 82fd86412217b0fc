"""The inner loop: steps between recorded times, compiled once for each shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.foundation.schedule import at_time
from pathlines.integrate.loops import bounded_while, frugal_scan
from pathlines.integrate.methods import Method
from pathlines.integrate.observe import Observable
from pathlines.model.base import Model, Snapshot, State
from pathlines.model.capability import Decays, HasDomain, HasEnergy, Pauses

OK, STALLED, DIVERGED = 0, 1, 2


class Carry(NamedTuple):
    """Everything a run needs to continue: interrupting between calls changes no bit of the result."""

    t: Array
    state: State
    integrals: tuple[Array, ...]
    slope: Any
    h: Array
    accepted: Array
    rejected: Array
    off_domain: Array
    local_error: Array
    status: Array


class Controls(NamedTuple):
    """Numbers that change without recompiling.

    Tolerances, end of the smooth piece, steps allowed in this call, whether the slope must be computed anew, whether
    to pause at a state that is ripe for another form.
    """

    rtol: Array
    atol: Array
    end: Array
    budget: Array
    fresh: Array
    watch: Array | bool = False


@dataclass(frozen=True)
class Program:
    """What is compiled: a method, what is recorded, which time integrals are carried along, whether to watch for a form
    that keeps more digits; ``bounded`` steps at most between two records, where the loop must have a reverse mode;
    ``shared``: the energy, last in the record, comes from the sums of the drift and rides along as a rate.
    """

    method: Method
    record: tuple[Observable, ...]
    accumulate: tuple[Observable, ...] = ()
    power: bool = False
    adaptive: bool = True
    watch: bool = False
    bounded: int = 0
    shared: bool = False


def field_of(program: Program, model: Model, start: State, end: Array) -> Any:
    """The drift with the integrands beside it, evaluated strictly before the end of a piece of the weights.

    A function of its own inside the program: methods call it in three to eight places, and it is traced once.
    """
    last = jnp.nextafter(end, -jnp.inf * jnp.ones_like(end))

    def field(augmented: tuple[State, tuple[Array, ...]], t: Array) -> tuple[State, tuple[Array, ...]]:
        state, _ = augmented
        t = jnp.minimum(t, last)
        now = at_time(model, t)
        snapshot = Snapshot(now, state, t, start)
        rates = tuple(o(snapshot) for o in program.accumulate)
        if program.shared and isinstance(now, HasEnergy):
            velocity, power, energy = now.moving(state, t)
            energy = now.energy_deficit(state, t) if energy is None else energy
            assert power is not None and energy is not None
            return velocity, (*rates, power, energy)
        power = now.power(state, t) if program.power and isinstance(now, HasEnergy) else None
        if power is not None:
            rates = (*rates, power)
        return now.drift(state, t), rates

    return jax.jit(field)


def constant(x: Any, dtype: Any) -> Any:
    """An array of NumPy's: handed to a compiled program it costs a tenth of one that was made on the device."""
    return np.asarray(x, dtype)


def fresh_carry(program: Program, state: State, t: float, h: float) -> Carry:
    """A carry at the start of a run; a step h ≤ 0 asks ``advance`` to find one."""
    dtype = jnp.result_type(*jax.tree.leaves(state))
    zero, count = constant(0, dtype), constant(0, jnp.result_type(int))
    integrals = (zero,) * (len(program.accumulate) + program.power + program.shared)
    slope = (jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), state), integrals)
    return Carry(constant(t, dtype), state, integrals, slope, constant(h, dtype), count, count, zero, zero, count)


def _first_step(program: Program, model: Model, controls: Controls, carry: Carry, slope: State) -> Array:
    """A first step that moves the state by one percent of its size, or less for tight tolerances."""
    scale = _scale(model, controls, carry.state, carry.state)
    size, speed = _rms(carry.state, scale), _rms(slope, scale)
    share = jnp.maximum(controls.rtol, 1e-14) ** (1 / program.method.order)
    return jnp.where(speed > 0, jnp.minimum(0.1 * share * size / jnp.maximum(speed, 1e-300), 1.0), 1e-3)


def advance(
    program: Program, model: Model, start: State, carry: Carry, times: Array, controls: Controls
) -> tuple[Carry, Array, tuple[Array, ...]]:
    """Step to each of ``times`` exactly and record there: (carry, which times were reached, records).

    Recorded values are solver states, never interpolants, so they have the full order of the method. At times that are
    not reached (NaN is a time that never is) nothing is looked at, and records are zero.
    """
    field = field_of(program, model, start, controls.end)
    begun = carry.accepted + carry.rejected
    here = (carry.state, carry.integrals)
    slope = jax.lax.cond(controls.fresh, lambda: field(here, carry.t), lambda: carry.slope)
    carry = carry._replace(slope=slope)
    if program.adaptive:
        first = _first_step(program, model, controls, *jax.lax.stop_gradient((carry, slope[0])))
        carry = carry._replace(h=jnp.where(carry.h > 0, carry.h, first))

    def unfinished(c: Carry, target: Array) -> Array:
        going = (c.t < target) & (c.status == OK) & (c.accepted + c.rejected - begun < controls.budget)
        ripe = model.should_pause(c.state) if program.watch and isinstance(model, Pauses) else None
        return going if ripe is None else going & ~(ripe & controls.watch)

    def to(c: Carry, target: Array) -> tuple[Carry, tuple[Array, tuple[Array, ...]]]:
        going, moved = lambda c: unfinished(c, target), lambda c: step(program, model, field, c, target, controls)
        c = bounded_while(going, moved, c, program.bounded) if program.bounded else jax.lax.while_loop(going, moved, c)
        reached = c.t >= target
        kept = c.integrals[:-1] if program.shared else c.integrals
        return c, (reached, (*jax.lax.cond(reached, look, lambda c: nothing, c), *kept))

    def look(c: Carry) -> tuple[Array, ...]:
        energy = (c.slope[1][-1],) if program.shared else ()
        looked = program.record[: len(program.record) - len(energy)]
        return (*(o(Snapshot(at_time(model, c.t), c.state, c.t, start)) for o in looked), *energy)

    nothing = jax.tree.map(lambda r: jnp.zeros(r.shape, r.dtype), jax.eval_shape(look, carry))
    scan = partial(frugal_scan, length=len(times)) if program.bounded else jax.lax.scan
    carry, (reached, records) = scan(to, carry, times)
    return carry, reached, records


def step(program: Program, model: Model, field: Any, c: Carry, target: Array, controls: Controls) -> Carry:
    """One attempted step towards ``target``: accepted with its error estimate, or retried smaller.

    Derivatives are those of the states on the steps that were taken: what controls their size has none.
    """
    remaining = target - c.t
    lands = c.h * (1 + 1e-9) >= remaining
    h = jnp.where(lands, remaining, c.h)
    retract = lambda y: (model.retract(y[0]), y[1])  # noqa: E731
    raw, slope, errors = program.method.step(field, retract, (c.state, c.integrals), c.slope, c.t, h)
    new, integrals = retract(raw)
    finite = jnp.isfinite(sum(jnp.sum(leaf) for leaf in jax.tree.leaves((new, slope[0]))))
    admissible = at_time(model, c.t + h).admissible(new) if isinstance(model, HasDomain) else None
    finite = finite if admissible is None else finite & admissible
    if program.adaptive:
        errors, before, after = jax.lax.stop_gradient((errors, (c.state, c.integrals), (new, integrals)))
        ratio, size = _error(errors, model, controls, before[0], after[0])
        ratio = jnp.maximum(ratio, _integral_error(program, errors, controls, before[1], after[1]))
        ratio = jnp.where(finite & jnp.isfinite(ratio), ratio, 1e10)
        growth = jnp.clip(0.9 * jnp.maximum(ratio, 1e-16) ** (-1 / (program.method.error_order + 1)), 0.2, 10.0)
        ok = ratio <= 1
        taken = jax.lax.stop_gradient(h)
        proposal = jnp.where(ok & (taken < c.h), jnp.maximum(c.h, taken * growth), taken * growth)
        stalled = proposal < 8 * jnp.finfo(c.t.dtype).eps * jnp.maximum(jnp.abs(c.t), jnp.abs(target))
        status = jnp.where(~ok & stalled, jnp.where(finite, STALLED, DIVERGED), OK)
    else:
        ok, proposal, size = finite, c.h, jnp.zeros_like(c.local_error)
        status = jnp.where(finite, OK, DIVERGED)
    off = _largest(jax.lax.stop_gradient(jax.tree.map(jnp.subtract, raw[0], new)), c.off_domain.dtype)
    t = jnp.where(lands, target, c.t + h)
    pick = lambda a, b: jax.tree.map(lambda x, y: jnp.where(ok, x, y), a, b)  # noqa: E731
    return Carry(
        t=jnp.where(ok, t, c.t),
        state=pick(new, c.state),
        integrals=pick(integrals, c.integrals),
        slope=pick(slope, c.slope),
        h=proposal,
        accepted=c.accepted + ok.astype(c.accepted.dtype),
        rejected=c.rejected + (~ok).astype(c.rejected.dtype),
        off_domain=jnp.where(ok, jnp.maximum(c.off_domain, off), c.off_domain),
        local_error=jnp.where(ok, c.local_error + size, c.local_error),
        status=status.astype(c.status.dtype),
    )


def _scale(model: Model, controls: Controls, x: State, y: State) -> State:
    """atol + rtol·|x|, entry by entry.

    Where control is purely relative, entries far below the largest one are differences of numbers of its size: asking
    more of them than its rounding would only shrink the step.
    """

    def one(a: Array, b: Array) -> Array:
        larger = jnp.maximum(jnp.abs(a), jnp.abs(b))
        size = controls.atol + controls.rtol * larger
        if isinstance(model, Decays):
            size = size + 32 * jnp.finfo(a.dtype).eps * jnp.max(larger)
        return jnp.where(size > 0, size, 1.0).astype(a.dtype)

    return jax.tree.map(one, x, y)


def _rms(x: State, scale: State) -> Array:
    """Root mean square over all entries of the state."""
    parts = jax.tree.leaves(jax.tree.map(lambda a, s: jnp.sum((a / s) ** 2), x, scale))
    return jnp.sqrt(sum(parts) / sum(leaf.size for leaf in jax.tree.leaves(x)))


def _largest(x: State, dtype: Any) -> Array:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)).astype(dtype) for leaf in jax.tree.leaves(x)]))


def _error(errors: tuple[Any, ...], model: Model, controls: Controls, x: State, y: State) -> tuple[Array, Array]:
    """(error over tolerance, absolute size of the local error); two estimates combine as in DOP853."""
    scale = _scale(model, controls, x, y)
    first = _rms(errors[0][0], scale)
    size = _largest(errors[0][0], controls.end.dtype)
    if len(errors) == 1:
        return first, size
    second = _rms(errors[1][0], scale)
    total = jnp.sqrt(first**2 + 0.01 * second**2)
    share = jnp.where(total > 0, first / jnp.where(total > 0, total, 1.0), 0.0)
    return first * share, size * share


def _integral_error(
    program: Program, errors: tuple[Any, ...], controls: Controls, before: tuple[Array, ...], after: tuple[Array, ...]
) -> Array:
    """Error over tolerance of the integrals that were asked for (that of the energy identity only rides along)."""
    worst = jnp.zeros_like(controls.end)
    for k in range(len(program.accumulate)):
        scale = jnp.maximum(controls.atol, controls.rtol) * jnp.maximum(1.0, jnp.maximum(abs(before[k]), abs(after[k])))
        worst = jnp.maximum(worst, jnp.abs(errors[0][1][k]) / scale)
    return worst


compiled_advance = eqx.filter_jit(advance)
