"""How fast each normalisation scheme ends: exponential, or C/t² with a constant that is known exactly.

Schemes of Normalization in Attention Dynamics, arXiv:2510.22026; constants derived from the equiangular reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.normalization_schemes import (
    EqualScheme,
    RandomScheme,
    reduced,
    scheme_model,
    simplex_run,
    uniform_start,
)
from pathlines.claim.tolerance import absolute, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import NORMALIZATION
from pathlines.foundation.setting import means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.equiangular import late_time_shift
from pathlines.limit.clustering.schemes import terminal_constant
from pathlines.observable.sphere import magnitude

Observed = tuple[np.ndarray, np.ndarray, np.ndarray, Run]


class Late(EqualScheme):
    """A run that is late enough for its last law."""

    time: Annotated[of.Positive, means("where the run ends, at least", "T", unit="depth-time")] = 8.0
    late: Annotated[of.Positive, means("the run goes on until its remainder is below")] = 5e-6


def _late_run(name: str, s: Late, grid: np.ndarray, is_late: Callable[[float], bool]) -> tuple[np.ndarray, Observed]:
    """The run on ``grid``, stretched by factors of two until its last deficit is late enough for the terminal law."""
    while True:
        observed = simplex_run(name, s, grid)
        complete = len(observed[0]) == len(grid)
        if not complete or is_late(float(observed[0][-1])):
            return grid[: len(observed[0])], observed
        grid = 2 * grid


def _last(values: np.ndarray, grid: np.ndarray) -> float:
    """The last value of a complete run, NaN of one that stopped early."""
    return float(values[-1]) if len(values) == len(grid) else float("nan")


# --- CL-08: Post-LN


def simulate_post(s: Late) -> Evidence:
    """(1-ρ)e^{2t} of n tokens at ``time``, or later if it is not late yet."""
    asked = np.linspace(0.0, s.time, s.records)
    grid, (y, _, _, run) = _late_run("post", s, asked, lambda u: u * (1 + s.beta / s.n) <= s.late)
    scaled = y * np.exp(2 * grid)
    return Evidence({"prefactor": _last(scaled, asked)}, curves=(Curve("tokens", grid, scaled),), runs=(run,))


def predict_post(s: Late) -> Evidence:
    """e^{2T∞} in closed form."""
    limit = float(np.exp(2 * late_time_shift(s.n, s.beta, s.overlap)))
    grid = np.linspace(0.0, s.time, 121)
    deficit, _ = reduced("post", s, grid)
    curves = (
        Curve("closed form", grid, deficit * np.exp(2 * grid)),
        Curve("e^{2T∞}", [0.0, s.time], [limit, limit]),
    )
    return Evidence({"prefactor": limit}, curves=curves)


claim(
    "clustering/CL-08",
    NORMALIZATION,
    "terminal law of Post-LN (derived)",
    "From an equiangular start, Post-LN ends as 1−ρ ~ e^{2T∞−2t} with T∞ = (n−1)/(2n)·ln(y₀c/w₀) + "
    "{Ei(βy₀)−γ−ln β+e^{βc}[E₁(βw₀)−E₁(βc)]}/(2n), y₀ = 1−ρ₀, c = n/(n−1), w₀ = c−y₀.",
    where="derived; no statement in the paper",
    models=("post-ln",),
    quick=Late(),
    full=Late(records=121),
    within={"prefactor": relative(1e-5, "the first correction, (1−ρ)(1/c+β/n), is at most `late`")},
    simulate=simulate_post,
    predict=predict_post,
    axes=Axes("depth-time t", "(1−ρ)e^{2t}"),
    note="Measured at `time`, doubled until (1−ρ)(1+β/n) ≤ late.",
)


# --- CL-09: Pre-LN and Peri-LN


def _scaled(found: dict[str, tuple[np.ndarray, Observed]]) -> dict[str, np.ndarray]:
    return {name: r**2 * y for name, (_, (y, _, r, _)) in found.items()}


class LateSchemes(Late):
    """Late runs of several schemes."""

    records: of.Records = 31
    time: Annotated[of.Positive, means("where the run ends, at least", "T", unit="depth-time")] = 1000.0
    late: Annotated[of.Positive, means("the run goes on until its remainder is below")] = 8e-7
    schemes: of.Schemes = ("pre", "peri")


def simulate_constant(s: LateSchemes) -> Evidence:
    """r²(1-ρ) of n tokens at the last of ``times``, or later if it is not late yet."""
    asked = np.geomspace(1.0, s.time, s.records)
    found = {name: _late_run(name, s, asked, lambda u: u * s.beta / s.n <= s.late) for name in s.schemes}
    scaled = _scaled(found)
    return Evidence(
        {"constant": [_last(scaled[name], asked) for name in s.schemes]},
        curves=tuple(Curve(name, found[name][0], scaled[name]) for name in s.schemes),
        runs=tuple(observed[-1] for _, observed in found.values()),
    )


def predict_constant(s: LateSchemes) -> Evidence:
    """C∞ = r0²(1-ρ0)e^{J(1)}, one number for both schemes."""
    constant = float(terminal_constant(s.n, s.beta, s.overlap, s.magnitude))
    lines = [Curve("C∞", [1.0, s.time], [constant, constant])]
    grid = np.geomspace(1.0, s.time, 121)
    for name in s.schemes:
        deficit, size = reduced(name, s, grid)
        lines.append(Curve(f"{name}, reduced", grid, size**2 * deficit))
    return Evidence({"constant": np.full(len(s.schemes), constant)}, curves=tuple(lines))


claim(
    "clustering/CL-09",
    NORMALIZATION,
    "common terminal constant of Pre-LN and Peri-LN (derived)",
    "Pre-LN and Peri-LN end as r²(1−ρ) → C∞ with the same C∞ = r₀²(1−ρ₀)e^{J(1)}, "
    "J(1) = ∫_{ρ₀}^1 (e^{β(1−x)}−1)/((1−x)(1+(n−1)x)) dx; hence t²(1−ρ) → C∞.",
    where="derived; no statement in the paper",
    models=("pre-ln", "peri-ln"),
    quick=LateSchemes(),
    full=LateSchemes(records=81, time=10000.0),
    within={"constant": relative(1e-6, "the first correction, β(1−ρ)/n, is at most `late`")},
    simulate=simulate_constant,
    predict=predict_constant,
    axes=Axes("depth-time t", "r²(1−ρ)", x_scale="log"),
    note="Measured at `time`, doubled until β(1−ρ)/n ≤ late.",
)


# --- CL-11: Pre-LN without temperature


def _differences(x: np.ndarray) -> np.ndarray:
    """x_i - x_n for i < n: they determine all others."""
    return x[..., :-1, :] - x[..., -1:, :]


class Translation(RandomScheme):
    """Pre-LN at β = 0."""

    beta: of.Beta = 0.0
    alpha: of.NgptStep = 1.0
    records: of.Records = 26
    rtol: of.Rtol = 1e-13
    d: of.Dimension = 6
    until: of.Until = 50.0


def simulate_rigid(s: Translation) -> Evidence:
    """x_i - x_n with x = rθ under Pre-LN."""
    times = np.linspace(0.0, s.until, s.records)
    options: dict[str, Any] = {"record": (positions, magnitude), "method": "dop853", "rtol": s.rtol}
    run = flow(scheme_model("pre", s), uniform_start(s), times=times, **options)
    x = run["tokens"].values * run["magnitude"].values[..., None]
    differences = _differences(x)
    lengths = np.linalg.norm(differences, axis=-1)
    curves = tuple(Curve(f"|x{i + 1}−x{s.n}|", times, lengths[:, i]) for i in range(min(4, s.n - 1)))
    return Evidence({"differences": differences}, curves=curves, runs=(run,))


def predict_rigid(s: Translation) -> Evidence:
    """The differences of the start, at every time."""
    start = _differences(s.magnitude * np.asarray(uniform_start(s)))
    lengths = np.linalg.norm(start, axis=-1)
    curves = tuple(
        Curve(f"|x{i + 1}−x{s.n}| at t = 0", [0.0, s.until], [lengths[i]] * 2) for i in range(min(4, s.n - 1))
    )
    return Evidence({"differences": np.broadcast_to(start, (s.records, *start.shape))}, curves=curves)


claim(
    "clustering/CL-11",
    NORMALIZATION,
    "Pre-LN at β = 0 translates (derived)",
    "At β = 0 every token of Pre-LN feels the same attention vector, so all differences xᵢ−xⱼ are constant.",
    where="derived; no statement in the paper",
    models=("pre-ln",),
    quick=Translation(),
    full=Translation(records=101),
    within={"differences": absolute(2e-12, "solver tolerance 1e-13, a few times, in tokens that move together")},
    simulate=simulate_rigid,
    predict=predict_rigid,
    axes=Axes("depth-time t", "|xᵢ−xₙ|"),
    note="At β > 0 it does not hold: try --set beta=0.5.",
)
