"""flow: one run of a model in continuous depth-time."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import msgspec
import numpy as np
from jaxtyping import Array

from pathlines.foundation.errors import PathlinesWarning, finite_number, positive_integer, require
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.progress import Progress
from pathlines.foundation.traceable import is_traced
from pathlines.integrate.advance import Program
from pathlines.integrate.certify import certificates
from pathlines.integrate.checked import FIXED_STEP_ERROR, Recorded, cast, checked_start, chosen_method, time_grid
from pathlines.integrate.checkpoint import capture, restore
from pathlines.integrate.forms import Form, Posed, choose_form, with_sums
from pathlines.integrate.journey import ENERGY_DEFICIT, Journey
from pathlines.integrate.methods import Method
from pathlines.integrate.native_path import native_run
from pathlines.integrate.observe import checked_observables, positions
from pathlines.integrate.run import Final, Run, describe, provenance
from pathlines.integrate.traced import traced_flow
from pathlines.model.base import Model
from pathlines.model.capability import HasEnergy


def flow(
    model: Model,
    tokens: Any,
    *,
    until: float | Array | None = None,
    times: Any = None,
    record: Recorded = (),
    accumulate: Recorded = (),
    method: str = "rk45",
    rtol: float = 1e-8,
    atol: float | None = None,
    step: float | Array | None = None,
    form: str = "auto",
    max_steps: int = 200_000,
    progress: bool | None = None,
    resume: Mapping[str, np.ndarray] | None = None,
    checkpoint: Callable[[dict[str, np.ndarray]], None] | None = None,
    checkpoint_seconds: float = 10.0,
    devices: Any = None,
) -> Run:
    """Integrate dX/dt = drift(X, t) from ``tokens`` at t = 0, recording observables on the way.

    Args:
        model: what moves the tokens.
        tokens: where they start: (n, d), or whatever the model starts from.
        until: the last depth-time T ≥ 0; 101 equally spaced times are recorded. The longer, the wider they lie apart.
        times: your own instead (increasing, ≥ 0; 0 itself may be among them). Steps land on them, so very many cost.
        record: observables or their names, by default the tokens.
        accumulate: observables whose time integrals are carried and recorded as ``integral_<name>``.
        method: adaptive ("rk45", "dop853"), or with a fixed step ("rk4", "heun", ...); ``METHODS`` has all.
        rtol: tolerance of a step relative to the state, 1e-8 by default; halving it costs 15 % (order 5). The larger,
            the cheaper and the less exact.
        atol: absolute tolerance, by default ``rtol``. The larger, the fewer digits small entries keep.
        step: the step of methods that have a fixed one. The larger, the cheaper and the less exact.
        form: "auto" takes the cheapest exact form of the problem and may change it on the way; ``run.forms`` says why.
        max_steps: where a run that gets nowhere is stopped, 200,000 by default. The more, the longer it may try.
        progress: whether to show a bar; by default after two seconds, on a terminal.
        resume: arrays of a checkpoint; the other arguments must be the same. The run goes on bit for bit.
        checkpoint: is called with plain arrays every so often and at the end of an unfinished run.
        checkpoint_seconds: how often, every 10 s by default. The longer, the more a kill costs.
        devices: a number of devices, a list of them or a mesh, over which the rows of one large system are shared out;
            by default one. SelfAttention only, in its tokens; equal to one device to rounding.

    Recorded states are solver steps, not interpolants. A run that cannot go on (divergence, stalled steps, Ctrl-C)
    returns what it has, warns, and says when and why in ``run.outcome``.
    Cost: (drifts per step) × (cost of a drift). Memory: what is recorded, plus one state.

    Inside ``jax.grad``, ``jvp``, ``jit`` or ``vmap`` (a number of the model, ``tokens``, ``times``, ``until`` or
    ``step`` is a tracer) the run is a ``TracedRun``: ``run["energy"]`` is an array over the recorded times. The form is
    then "tokens", and derivatives are those of the steps taken: right to about ``rtol``. Reverse mode keeps
    2√(records) + 2√(``max_steps``) states and takes about five times as long as the run.
    """
    began = clock.perf_counter()
    make_room_for_programs()
    if is_traced(model, tokens, until, times, step):
        require(resume is None and checkpoint is None, "checkpoint", "be None in a traced function", checkpoint)
        grid = time_grid(until, times)
        return traced_flow(model, tokens, grid, record, accumulate, method, rtol, atol, step, form, max_steps)
    tokens, grid = checked_start(model, tokens), time_grid(until, times)
    chosen = checked_observables(record, [model], tokens.dtype) or (positions,)
    summed = checked_observables(accumulate, [model], tokens.dtype)
    scheme = chosen_method(method, step, model)
    form = _form_on_sphere(method, form) if scheme.spherical else form
    if devices is not None:
        require(form in ("auto", "tokens"), "form", "be 'tokens' over several devices", form)
        form = "tokens"
    rtol = finite_number("rtol", rtol, low=1e-15, high=0.1)
    absolute = None if atol is None else finite_number("atol", atol, low=0.0)
    posed = choose_form(cast(model, tokens.dtype), tokens, (*chosen, *summed), form)
    posed, choice = with_sums(posed, rtol if step is None else FIXED_STEP_ERROR)
    if devices is not None:
        posed = _shared(posed, choice, devices)
    program = _program(posed.model, posed.tokens, scheme, chosen, summed, step is None)
    tolerances = (rtol, absolute)
    steps = positive_integer("max_steps", max_steps)
    journey = Journey(posed, program, grid, -1.0 if step is None else float(step), tolerances, steps, form == "auto")
    if resume is not None:
        restore(journey, dict(resume))
    with Progress(f"flow to t = {grid[-1]:g}", float(grid[-1]), show=progress) as bar:
        outcome = journey.travel(_reporter(bar, checkpoint, checkpoint_seconds))
    if outcome != "completed" and checkpoint is not None:
        checkpoint(capture(journey))
    data = journey.dataset()
    checks = certificates(model, journey, data, rtol if step is None else None)
    _warn(outcome, checks)
    setting = {
        "model": describe(model),
        "papers": [p.key for p in model.papers],
        "tokens": describe(np.asarray(tokens)),
        "times": describe(grid),
        "method": method,
        **({"rtol": rtol, "atol": absolute} if step is None else {"step": step}),
        "form": form,
        "summation": None if choice is None else msgspec.to_builtins(choice),
        "dtype": str(tokens.dtype),
        "versions": provenance(),
    }
    final = Final(journey.model, journey.carry.state, float(journey.carry.t), tokens)
    seconds = clock.perf_counter() - began
    return Run(data, checks, tuple(journey.forms), outcome, setting, seconds, model, final)


def _shared(posed: Posed, choice: Any, devices: Any) -> Posed:
    """The problem over several devices."""
    from pathlines.model.parts.sharing import mesh_of, shared_out  # few runs need it

    model, tokens, words = shared_out(posed.model, posed.tokens, choice, mesh_of(devices))
    return Posed(model, tokens, Form(posed.form.name, posed.form.since, posed.form.reason + words), posed.lift)


def _form_on_sphere(method: str, form: str) -> str:
    """A spherical method keeps to tokens: no other form may serve or take over on the way."""
    require(form in ("auto", "tokens", "span"), "form", f"be 'tokens' or 'span' for method '{method}'", form)
    return "tokens" if form == "auto" else form


@cache
def _has_power(structure: Any, shapes: tuple[Any, ...], tokens: tuple[tuple[int, ...], np.dtype]) -> tuple[bool, bool]:
    """Whether models of that structure have an energy, and whether it comes from the sums of the drift; asked once,
    because tracing costs more than a small run.
    """
    model = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*s) for s in shapes])
    start, t = jax.ShapeDtypeStruct(*tokens), jax.ShapeDtypeStruct((), tokens[1])
    _, power, energy = eqx.filter_eval_shape(lambda m, x, t: m.moving(m.initial(x), t), model, start, t)
    return power is not None, power is not None and energy is not None


def _program(
    model: Model, tokens: Any, method: Method, chosen: tuple[Any, ...], summed: tuple[Any, ...], adaptive: bool
) -> Program:
    leaves, structure = jax.tree.flatten(model)
    shapes = tuple((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)
    known = isinstance(model, HasEnergy) and _has_power(structure, shapes, (tokens.shape, tokens.dtype))
    power, shared = known or (False, False)
    program = Program(method, (*chosen, ENERGY_DEFICIT) if power else chosen, summed, power, adaptive)
    if not shared or model.breakpoints or native_run(model, program, tokens) is not None:
        return program
    return replace(program, shared=True)


def _reporter(
    bar: Progress, checkpoint: Callable[[dict[str, np.ndarray]], None] | None, seconds: float
) -> Callable[[Journey], None]:
    last = clock.monotonic()

    def report(journey: Journey) -> None:
        nonlocal last
        bar.update(float(journey.carry.t))
        if checkpoint is not None and clock.monotonic() - last > seconds:
            checkpoint(capture(journey))
            last = clock.monotonic()

    return report


def _warn(outcome: str, checks: tuple[Any, ...]) -> None:
    if outcome != "completed":
        warnings.warn(f"flow {outcome}; the run keeps what it has.", PathlinesWarning, stacklevel=3)
    for check in checks:
        if check.passed is False:
            text = f"Certificate `{check.name}` failed: {check.value:.3g} > {check.threshold:.3g} ({check.meaning})."
            warnings.warn(text, PathlinesWarning, stacklevel=3)
