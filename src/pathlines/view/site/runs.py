"""The run of a state, as frames for the player, with the lines that compute the same numbers elsewhere."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.run import Run
from pathlines.model import MODELS
from pathlines.model.capability import HasRandomLayers
from pathlines.model.gaussian.closure import GaussianClosure
from pathlines.sweep.request import build, compute, law_of, usual_record
from pathlines.view.frames import frames
from pathlines.view.site.computing import Deadline
from pathlines.view.site.derived import can_derive, completed, leaner
from pathlines.view.site.overlays import overlays
from pathlines.view.site.state import State, written

WORK = 3e10
"""Pairs × components × drifts that a page may ask for: some ten seconds of one core."""
OWN_WORK = {"gaussian-sigmoid": 322 * 129.0**2 * 10}
"""Operations of a drift of models that are no sum over pairs: a quadrature of sigmoids, ten each, over the plane. Its
steps cannot be interrupted, so a page that begins it could not end it."""
STEPS = 20_000
"""Of one flow: what cannot be followed in so many is shown as far as it came."""
USUAL_RECORDS = 101
CLOUD = ("covariance", "cloud_mean", "covariance_trace", "anisotropy")
"""What is recorded of a Gaussian cloud of the plane, which is drawn as an ellipse."""


def check_work(state: State) -> None:
    """Refuse what would take a page too long, before any of it."""
    s = state.stage
    drifts = s.layers or 7.0 * max(s.frames, 100)
    heads = max([int(v) for k, v in state.parameters.items() if k in ("heads", "width") and type(v) is int] or [1])
    work = OWN_WORK.get(state.model, float(s.n) ** 2 * s.d * heads) * drifts
    if work > WORK:
        raise ArgumentError(
            f"{s.n} tokens through {s.layers or s.frames} {'layers' if s.layers else 'records'} are {work:.1g} "
            f"operations, but a page computes at most {WORK:.1g}; `pathlines run {state.model}` has no such limit."
        )


def records(state: State) -> tuple[str, ...]:
    """What is recorded for the page: the tokens, and what the program records of that model by itself."""
    request = state.request()
    model = build(request)
    if isinstance(model, GaussianClosure) and state.stage.d == 2:
        return CLOUD
    return ("tokens", *usual_record(model, request))


def run_of(state: State, deadline: Deadline | None = None) -> Run:
    """The run, as ``pathlines run`` would compute it."""
    check_work(state)
    deadline = deadline or Deadline()
    asked = records(state)
    model = build(state.request())
    derives = "tokens" in asked and can_derive(model, state.stage.n)
    request = state.request(leaner(asked) if derives else asked)
    times = None if state.stage.frames == USUAL_RECORDS else np.linspace(0.0, request.until, state.stage.frames)
    run = compute(
        request, model, law_of(request), checkpoint=deadline, seconds=0.5, max_steps=STEPS, times=times,
        progress=False,
    )  # fmt: skip
    run = completed(run, asked) if derives else run
    return msgspec.structs.replace(run, outcome=deadline.said(run.outcome))


def frames_of(state: State) -> dict[str, Any]:
    """What the player shows."""
    run = run_of(state)
    return frames(
        run,
        count=max(state.stage.frames, USUAL_RECORDS),
        clock="time",
        title=MODELS[state.model].title,
        overlays=overlays(state, run),
        command=command(state),
        python=python(state),
    )


def command(state: State) -> str:
    """A line for a shell: the same numbers."""
    request = state.request(records(state))
    words = [f"pathlines run {state.model}"]
    own = {**request.parameters, "n": request.n, "d": request.d}
    own |= {"layers": request.depth} if request.depth else {"until": request.until}
    own |= {"start": request.start, "step": request.step, "seed": request.seed, "record": ",".join(request.record)}
    own |= {"form": request.form} if request.form != "auto" else {}
    return " ".join([*words, *(_option(k, v) for k, v in own.items() if v is not None)])


def _option(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return flag if value else "--no-" + flag[2:]
    text = written(value)
    plain = all(c.isalnum() or c in "._,:-/+" for c in text)
    return f"{flag} {text}" if plain and text else f"{flag} '{text}'"


def python(state: State) -> str:
    """Lines of Python: the same numbers."""
    request = state.request(records(state))
    model = build(request)
    taken = {"d": request.d, "step": request.step}
    usual = MODELS[state.model].parameters()
    own = {k: v for k, v in taken.items() if v is not None and hasattr(usual, k)} | request.parameters
    said = ", ".join(f"{k}={v!r}" for k, v in own.items())
    lines = ["import jax, numpy as np, pathlines as pl", 'jax.config.update("jax_enable_x64", True)']
    lines.append(f"model = pl.MODELS[{state.model!r}].build({said})")
    where = f"{request.start!r}, {request.n}, {request.d}, 'float64', {state.model!r}"
    lines.append(f"start = pl.domain.starting({where})")
    recorded = f"record={list(request.record)!r}"
    key = f"jax.random.key({request.seed})"
    if isinstance(model, HasRandomLayers):
        clock = next(iter(model.clocks.values()), 1.0)
        depth = math.ceil(request.until / clock) if request.depth is None else request.depth
        return "\n".join([*lines, f"run = pl.chain(model, start, depth={depth}, key={key}, {recorded})"])
    lines.append(f"tokens = start({key})")
    if request.depth is not None:
        step = 1.0 if request.step is None else request.step
        return "\n".join([*lines, f"run = pl.layers(model, tokens, depth={request.depth}, step={step}, {recorded})"])
    span = f"until={request.until}"
    if state.stage.frames != USUAL_RECORDS:
        span = f"times=np.linspace(0.0, {request.until}, {state.stage.frames})"
    stride = "" if request.step is None else f", step={request.step}"
    ending = f", form={request.form!r}" if request.form != "auto" else ""
    return "\n".join([*lines, f"run = pl.flow(model, tokens, {span}, {recorded}{stride}{ending})"])
