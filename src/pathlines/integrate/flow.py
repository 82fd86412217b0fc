"""flow: one run of a model in continuous depth-time."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.foundation.errors import (
    ArgumentError,
    FormError,
    PathlinesWarning,
    finite_array,
    finite_number,
    of_kind,
    positive_integer,
    require,
)
from pathlines.foundation.precision import resolve_dtype
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.progress import Progress
from pathlines.integrate.advance import Program
from pathlines.integrate.certify import certificates
from pathlines.integrate.checkpoint import capture, restore
from pathlines.integrate.forms import choose_form, with_sums
from pathlines.integrate.journey import ENERGY_DEFICIT, Journey
from pathlines.integrate.methods import METHODS, Method
from pathlines.integrate.observe import Observable, checked_observables, positions
from pathlines.integrate.run import Final, Run, describe, provenance
from pathlines.model.base import Model

FIXED_STEP_ERROR = 1e-10
"""Relative error of sums over tokens where no tolerance was given."""

Recorded = Sequence[Observable | str] | Observable | str


def flow(
    model: Model,
    tokens: Any,
    *,
    until: float | None = None,
    times: Any = None,
    record: Recorded = (),
    accumulate: Recorded = (),
    method: str = "rk45",
    rtol: float = 1e-8,
    atol: float | None = None,
    step: float | None = None,
    form: str = "auto",
    max_steps: int = 200_000,
    progress: bool | None = None,
    resume: Mapping[str, np.ndarray] | None = None,
    checkpoint: Callable[[dict[str, np.ndarray]], None] | None = None,
    checkpoint_seconds: float = 10.0,
) -> Run:
    """Integrate dX/dt = drift(X, t) from ``tokens`` at t = 0, recording observables on the way.

    Args:
        model: what moves the tokens.
        tokens: where they start: (n, d), or whatever the model starts from.
        until: the last depth-time T ≥ 0; 101 equally spaced times are recorded.
        times: your own instead (increasing, ≥ 0; 0 itself may be among them). Steps land on them, so very many cost.
        record: observables or their names, by default the tokens.
        accumulate: observables whose time integrals are carried and recorded as ``integral_<name>``.
        method: adaptive ("rk45", "dop853"), or with a fixed step ("rk4", "heun", ...); ``METHODS`` has all.
        rtol: tolerance of a step relative to the state, 1e-8 by default; halving it costs 15 % (order 5).
        atol: absolute tolerance, by default ``rtol``.
        step: the step of methods that have a fixed one.
        form: "auto" takes the cheapest exact form of the problem and may change it on the way; ``run.forms`` says why.
        max_steps: where a run that gets nowhere is stopped, 200,000 by default.
        progress: whether to show a bar; by default after two seconds, on a terminal.
        resume: arrays of a checkpoint; the other arguments must be the same. The run goes on bit for bit.
        checkpoint: is called with plain arrays every so often and at the end of an unfinished run.
        checkpoint_seconds: how often, every 10 s by default.

    Recorded states are solver steps, not interpolants. A run that cannot go on (divergence, stalled steps, Ctrl-C)
    returns what it has, warns, and says when and why in ``run.outcome``.
    Cost: (drifts per step) × (cost of a drift). Memory: what is recorded, plus one state.
    """
    began = clock.perf_counter()
    make_room_for_programs()
    tokens, grid = admitted_tokens(model, tokens), time_grid(until, times)
    chosen = checked_observables(record, [model], tokens.dtype) or (positions,)
    summed = checked_observables(accumulate, [model], tokens.dtype)
    scheme = chosen_method(method, step, model)
    form = _form_on_sphere(method, form) if scheme.spherical else form
    rtol = finite_number("rtol", rtol, low=1e-15, high=0.1)
    absolute = None if atol is None else finite_number("atol", atol, low=0.0)
    posed = choose_form(cast(model, tokens.dtype), tokens, (*chosen, *summed), form)
    posed, choice = with_sums(posed, rtol if step is None else FIXED_STEP_ERROR)
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


def admitted_tokens(model: Model, tokens: Any) -> jax.Array:
    """Tokens as a float array of one dtype, checked against the model."""
    of_kind("model", model, Model, "a model")
    array = finite_array("tokens", tokens)
    known = array.dtype if array.dtype in (np.float32, np.float64) else "float64"
    dtype = resolve_dtype(known, "pass tokens.astype('float32')")
    model.check(array)
    return jnp.asarray(array, dtype)


def time_grid(until: Any, times: Any) -> np.ndarray:
    """Recorded times from ``until`` or ``times``, exactly one of them."""
    if (until is None) == (times is None):
        raise ArgumentError("Give either `until` (the last time) or `times` (all recorded times).")
    if times is None:
        return np.linspace(0.0, finite_number("until", until, low=0.0, open_low=True), 101)
    grid = np.atleast_1d(finite_array("times", times)).astype(float)
    if grid.ndim != 1 or len(grid) == 0 or grid[0] < 0 or np.any(np.diff(grid) <= 0):
        raise ArgumentError("Argument `times` must be increasing numbers ≥ 0.")
    return grid


def chosen_method(name: str, step: Any, model: Model) -> Method:
    """The method of that name; an adaptive one takes no step, a fixed one needs it, a spherical one a sphere."""
    method = METHODS[name]
    if method.spherical and getattr(model, "space", "") != "sphere":
        raise FormError(f"Method `{name}` moves tokens along great circles: it needs SelfAttention on the sphere.")
    if method.error_order == 0 and step is None:
        raise ArgumentError(f"Method `{name}` has no error estimate: give `step`, or use 'rk45' or 'dop853'.")
    if step is not None:
        finite_number("step", step, low=0.0, open_low=True)
    return method


def _form_on_sphere(method: str, form: str) -> str:
    """A spherical method keeps to tokens: no other form may serve or take over on the way."""
    require(form in ("auto", "tokens", "span"), "form", f"be 'tokens' or 'span' for method '{method}'", form)
    return "tokens" if form == "auto" else form


def cast(model: Model, dtype: Any) -> Model:
    """The model with its floating arrays in the dtype of the tokens."""
    strange = lambda x: eqx.is_inexact_array(x) and not jnp.iscomplexobj(x) and x.dtype != dtype  # noqa: E731
    if not any(strange(leaf) for leaf in jax.tree.leaves(model)):
        return model
    return jax.tree.map(lambda x: x.astype(dtype) if strange(x) else x, model)


@cache
def _has_power(structure: Any, shapes: tuple, tokens: tuple[tuple[int, ...], np.dtype]) -> bool:
    """Whether models of that structure have an energy; asked once, because tracing costs more than a small run."""
    model = jax.tree.unflatten(structure, [jax.ShapeDtypeStruct(*s) for s in shapes])
    start, t = jax.ShapeDtypeStruct(*tokens), jax.ShapeDtypeStruct((), tokens[1])
    return eqx.filter_eval_shape(lambda m, x, t: m.power(m.initial(x), t), model, start, t) is not None


def _program(model: Model, tokens: Any, method: Method, chosen: tuple, summed: tuple, adaptive: bool) -> Program:
    leaves, structure = jax.tree.flatten(model)
    shapes = tuple((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)
    power = _has_power(structure, shapes, (tokens.shape, tokens.dtype))
    return Program(method, (*chosen, ENERGY_DEFICIT) if power else chosen, summed, power, adaptive)


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


def _warn(outcome: str, checks: tuple) -> None:
    if outcome != "completed":
        warnings.warn(f"flow {outcome}; the run keeps what it has.", PathlinesWarning, stacklevel=3)
    for check in checks:
        if check.passed is False:
            text = f"Certificate `{check.name}` failed: {check.value:.3g} > {check.threshold:.3g} ({check.meaning})."
            warnings.warn(text, PathlinesWarning, stacklevel=3)
