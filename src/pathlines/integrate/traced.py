"""Runs inside ``jax.grad``, ``jvp``, ``jit`` and ``vmap``: the same steps, arrays instead of labelled data."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from pathlines.foundation.errors import FormError
from pathlines.integrate.batched import lane, shared_settings
from pathlines.integrate.checked import FIXED_STEP_ERROR, Recorded, cast, checked_start
from pathlines.integrate.forms import Form, fast_sums
from pathlines.integrate.observe import checked_observables, positions
from pathlines.integrate.run import Final, Run
from pathlines.model.base import Model

PORTABLE = "derivatives of native kernels are those of the portable formula"


class TracedRun(Run, frozen=True):
    """What ``flow``, ``layers`` and ``chain`` return while a function is traced: values are not known yet.

    ``run["energy"]`` and ``run.data["energy"]`` are arrays over time (and run, token, …), ``run.final.state`` is the
    last state; ``finished`` is the traced answer to whether every recorded time was reached (records that were not are
    NaN). It is a pytree, so that a function under ``jit`` or ``vmap`` may return it. Values are not checked, and there
    are no certificates, no setting and no hand-over: call the function outside once to have those.
    """

    finished: Any = True

    def __post_init__(self) -> None:
        """Arrays have no attributes to tell a story in."""

    def __getitem__(self, name: str) -> Any:
        """The recorded observable ``name``, an array; one with parameters also by its plain name."""
        same = [k for k in self.data if str(k).partition("[")[0] == name]
        return self.data[same[0] if name not in self.data and len(same) == 1 else name]

    def __repr__(self) -> str:
        """The form, and the shapes of the records."""
        return f"TracedRun ({self.forms[0].reason}): { ({k: jnp.shape(v) for k, v in self.data.items()}) }"

    @property
    def time(self) -> Any:
        """Recorded times."""
        return self.data["time"]


def traced_run(data: dict[str, Any], forms: tuple[Form, ...], model: Model, final: Final, finished: Any) -> TracedRun:
    """A ``TracedRun`` of these arrays."""
    return TracedRun(data, (), forms, "traced", {}, 0.0, model, final, finished)  # type: ignore[arg-type]


def _flatten(run: TracedRun) -> tuple[tuple[Any, ...], Any]:
    return (run.data, run.model, run.final, run.finished), run.forms


def _unflatten(forms: Any, parts: Any) -> TracedRun:
    data, model, final, finished = parts
    return traced_run(data, forms, model, final, finished)


jax.tree_util.register_pytree_node(TracedRun, _flatten, _unflatten)


def traced_flow(
    model: Model,
    tokens: Any,
    grid: Any,
    record: Recorded,
    accumulate: Recorded,
    method: str,
    rtol: float,
    atol: float | None,
    step: Any,
    form: str,
    max_steps: int,
) -> TracedRun:
    """``flow`` whose numbers are tracers: the form "tokens", compiled once for each shape."""
    if form not in ("auto", "tokens"):
        raise FormError(f"The {form} form has no derivative: inside jax.grad, jit or vmap the form is 'tokens'.")
    tokens = checked_start(model, tokens)
    chosen = checked_observables(record, [model], tokens.dtype) or (positions,)
    summed = checked_observables(accumulate, [model], tokens.dtype)
    exact, _, sums = fast_sums(cast(model, tokens.dtype), tokens, rtol if step is None else FIXED_STEP_ERROR)
    lanes = shared_settings(
        exact, tokens, grid, chosen, method, rtol, atol, step, max_steps, accumulate=summed, bounded=max_steps
    )
    carry, finished, columns = _travelled(lanes, exact, tokens)
    names = [*(o.name for o in chosen), *(f"integral_{o.name}" for o in summed)]
    data = {"time": lanes.grid, **dict(zip(names, columns, strict=True))}
    forms = (Form("tokens", 0.0, f"traced: {PORTABLE}{sums}"),)
    return traced_run(data, forms, model, Final(exact, carry.state, carry.t, tokens), finished)


_travelled = eqx.filter_jit(lane)
