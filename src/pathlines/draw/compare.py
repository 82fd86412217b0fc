"""compare: simulation and theory in one picture, with their distance and its error."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from matplotlib.figure import Figure

from pathlines.claim.estimate import mean_and_error
from pathlines.draw.style import COLOURS, MUTED, house_style, new_figure
from pathlines.foundation.errors import ArgumentError, require
from pathlines.integrate.chain import chain
from pathlines.integrate.flow import flow
from pathlines.integrate.run import Run
from pathlines.model.base import Model
from pathlines.model.capability import HasRandomLayers

CLOCKS = ("tau", "t", "time")
"""Clocks that a run and its theory may share, the first that both have."""


class Comparison(msgspec.Struct, frozen=True):
    """What was measured and what was predicted, over one clock.

    ``distance`` is the largest |measured - predicted|, ``error`` the standard error of that difference (0 for a single
    deterministic run), ``where`` its time on the clock.
    """

    observable: str
    clock: str
    times: np.ndarray
    measured: np.ndarray
    errors: np.ndarray
    predicted: np.ndarray
    distance: float
    error: float
    where: float
    figure: Figure

    def __repr__(self) -> str:
        where = f"{self.clock} = {self.where:.3g}"
        return f"{self.observable}: largest distance {self.distance:.3g} ± {self.error:.2g}, at {where}"


def compare(subject: Run | Model, theory: Any, observable: str | None = None, **how: Any) -> Comparison:
    """Measure how far a run is from its theory, and draw both.

    Args:
        subject: a run, or a model, which is then run with ``how``.
        theory: a reduction (``pl.simplex``, ``pl.gram``), a run of a limit, or a limit itself, run like the subject.
        observable: what to look at; by default what the reduction predicts, else the first that both recorded.
        how: arguments of ``pl.chain`` (models with random layers) or ``pl.flow``: start, key, depth, until, runs, ….
    """
    if not hasattr(theory, "curve"):
        theory = _run_of(theory, "theory", how)
    run = _run_of(subject, "subject", how | ({} if isinstance(theory, Run) else {"record": theory.observable}))
    name = observable or (_shared(run, theory) if isinstance(theory, Run) else theory.observable)
    if name not in run.data:
        raise ArgumentError(f"The run has no record `{name}`; it has {', '.join(map(str, run.data.data_vars))}.")
    measured, errors = _averaged(run, name)
    if isinstance(theory, Run):
        clock = next(c for c in CLOCKS if c in run.data.coords and c in theory.data.coords)
        values, uncertain = _averaged(theory, name)
        at, known = np.asarray(run.data[clock]), np.asarray(theory.data[clock])
        require(bool(at.max() <= known.max() * (1 + 1e-9)), "theory", f"reach {clock} = {at.max():g}", known.max())
        predicted, errors = np.interp(at, known, values), np.hypot(errors, np.interp(at, known, uncertain))
        label = str(theory.setting.get("model", {}).get("name", "theory"))
    else:
        clock = next(c for c in CLOCKS if c in run.data.coords)
        at, predicted, label = np.asarray(run.data[clock]), np.asarray(theory.curve(run.data)), theory.label
    worst = int(np.argmax(np.abs(measured - predicted)))
    figure = _drawn(run, name, clock, (at, measured, errors, predicted), label)
    return Comparison(
        name, clock, at, measured, errors, predicted, float(abs(measured[worst] - predicted[worst])),
        float(errors[worst]), float(at[worst]), figure,
    )  # fmt: skip


def _run_of(thing: Any, name: str, how: dict[str, Any]) -> Run:
    if isinstance(thing, Run):
        return thing
    require(isinstance(thing, Model), name, "be a run, a model or a reduction of one", thing)
    return chain(thing, **how) if isinstance(thing, HasRandomLayers) else flow(thing, **how)


def _shared(run: Run, theory: Run) -> str:
    both = [str(name) for name in run.data.data_vars if name in theory.data]
    require(bool(both), "theory", f"have recorded one of {', '.join(map(str, run.data.data_vars))}", list(theory.data))
    return both[0]


def _averaged(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
    data = run[name]
    require(set(data.dims) <= {"run", "time"}, "observable", "be one number at a time", name)
    if "run" not in data.dims:
        return data.values, np.zeros(data.shape)
    return mean_and_error(data.transpose("run", "time").values)


def _drawn(run: Run, name: str, clock: str, curves: tuple[np.ndarray, ...], label: str) -> Figure:
    at, measured, errors, predicted = curves
    with house_style():
        figure, grid = new_figure(1, 1, width=4.6, height=3.0)
        axes = grid[0][0]
        axes.errorbar(at, measured, 2 * errors, fmt="o", ms=3, color=COLOURS[0], label="simulated, ± 2 s.e.")
        axes.plot(at, predicted, "--", color=MUTED, lw=1.6, label=label, zorder=5)
        axes.set(xlabel={"tau": "diffusive time $\\tau$"}.get(clock, "depth-time $t$"))
        axes.set_ylabel(str(run[name].attrs.get("long_name", name)))
        axes.legend()
    return figure
