"""d = 1: attention becomes Boolean, and the start decides who is listened to (arXiv:2305.05465, Boolean theorem)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import Cube, cube_start, direct_rescaled
from pathlines.claim.tolerance import absolute, at_most, exactly
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.euclidean import horizon
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import attention_matrix, attention_rank, booleanness

RECORD = (positions, attention_matrix, attention_rank, booleanness)
UNIT = np.eye(1)
BOOLEAN = 1e-12
"""Attention this close to 0/1 counts as 0/1."""
SETTLED = 0.01
"""A late rate is read off when it changes by less than this between records."""


class Boolean(Cube):
    """Several random starts on a line."""

    n: of.Tokens = 40
    d: of.Dimension = 1
    low: Annotated[float, means("lower end of the cube's sides")] = -1.0
    high: Annotated[float, means("upper end of the cube's sides")] = 1.0
    starts: of.Starts = 4
    until: of.Until = 15.0
    records: of.Records = 61
    rtol: of.Rtol = 1e-10


Intervals = Annotated[tuple[tuple[float, float], ...], means("intervals of the tokens, one start in each")]


class Signs(Setting):
    """Starts in intervals, of one sign or of both."""

    n: of.Tokens = 30
    intervals: Intervals = ((1.0, 3.0), (-1.0, 1.0))
    seed: of.Seed = 0
    until: of.Until = 14.0
    records: of.Records = 29
    rtol: of.Rtol = 1e-10


class Symmetric(Cube):
    """A symmetric start, and generic ones beside it."""

    n: of.Tokens = 3
    d: of.Dimension = 1
    low: Annotated[float, means("lower end of the cube's sides")] = -3.0
    high: Annotated[float, means("upper end of the cube's sides")] = 3.0
    start: Annotated[of.Vector, means("the symmetric start")] = (-1.0, 0.0, 1.0)
    starts: Annotated[of.Count, means("generic starts")] = 4
    until: of.Until = 2.0
    generic_until: Annotated[of.NonNegative, means("where the generic runs end", unit="depth-time")] = 10.0
    records: of.Records = 21
    rtol: of.Rtol = 1e-10
    tolerance: Annotated[of.Positive, means("entries of the attention matrix this near are equal")] = 1e-6


def line_run(s: Boolean | Signs | Symmetric, start: np.ndarray, until: float | None = None) -> Run:
    """z on the line with V = 1, softmax attention throughout, no longer than scores keep their digits."""
    require(float(np.abs(start).max()) > 0, "start", "not be 0 for every token", start)
    last = min(s.until if until is None else until, horizon(UNIT, float(np.abs(start).max())))
    times = np.linspace(0, last, s.records)
    return flow(RescaledAttention(UNIT), start, times=times, record=RECORD, method="dop853", rtol=s.rtol, form="tokens")


def on_its_way(run: Run) -> str:
    """What to change if attention is still becoming 0/1 at the end; empty when it is, or when it has stopped short.

    The runner-up of a row has weight b = exp(−e^{2t} z_i (z_1 − z_2)), z_1 − z_2 ~ e^{−t}: −ln b grows like e^t.
    """
    if run.outcome != "completed":
        return f"a smaller until: {run.outcome}"
    before, last = -np.log(np.maximum(run["booleanness"].values[-2:], 1e-300))
    step = run.time[-1] - run.time[-2]
    if last > -np.log(BOOLEAN) or last < before * np.exp(step / 4):
        return ""
    needed = run.time[-1] + np.log(-np.log(BOOLEAN) / last)
    reach = horizon(UNIT, float(np.abs(run["tokens"].values).max()))
    return f"until={needed:.3g}" if needed < reach else "another seed: two leaders are too close for float64"


def surviving_ends(s: Boolean | Signs | Symmetric, start: np.ndarray, until: float | None = None) -> list[int]:
    """Which of the lowest and the highest token is attended to in the end.

    Tokens keep their order, and a token listens to the end of its own sign. Equal signs persist (the hull shrinks);
    otherwise the direct solution says whether both signs do.
    """
    late = start if np.all(start > 0) or np.all(start < 0) else direct_rescaled(start, [until or s.until], UNIT)[-1]
    ends = [int(np.argmin(start))] if np.any(late < 0) else []
    return ends + ([int(np.argmax(start))] if np.any(late > 0) else [])


def simulate_rank(s: Signs) -> Evidence:
    """Rank of P at the end, for tokens of one sign and of both."""
    runs = [line_run(s, s_start) for s_start in _starts(s)]
    return Evidence(
        {"rank": np.array([float(run["attention_rank"].values[-1]) for run in runs])},
        undecided=_advice("rank", runs),
        curves=tuple(
            Curve(f"tokens in [{low:g}, {high:g}]", run.time, run["attention_rank"].values)
            for (low, high), run in zip(s.intervals, runs, strict=True)
        ),
        runs=tuple(runs),
    )


def _advice(name: str, runs: list[Run]) -> dict[str, str]:
    found = [advice for advice in map(on_its_way, runs) if advice]
    return {name: found[0]} if found else {}


def _starts(s: Signs) -> list[np.ndarray]:
    unit = np.random.default_rng(s.seed).random((s.n, 1))
    return [low + (high - low) * unit for low, high in s.intervals]


def predict_rank(s: Signs) -> Evidence:
    """One row pattern for each sign that survives."""
    return Evidence({"rank": np.array([float(len(surviving_ends(s, start))) for start in _starts(s)])})


claim(
    "clustering/CL-31",
    EMERGENCE,
    "one hyperplane when leading coordinates share a sign (derived)",
    "In d = 1 with V > 0, tokens of one sign all end up listening to the largest of them, rank P → 1; tokens of both "
    "signs end up listening to the largest of their own sign, rank P → 2.",
    where="derived; on §4, leading coordinates of one sign",
    models=("rescaled",),
    quick=Signs(),
    within={"rank": exactly("a count (singular values above 1e-6)")},
    simulate=simulate_rank,
    predict=predict_rank,
    axes=Axes("depth-time t", "rank of P"),
)


def simulate_boolean(s: Boolean) -> Evidence:
    """Distance of P from 0/1, the rate at which its logarithm grows, and the columns in use, for several starts."""
    runs = [line_run(s, start) for start in _cube_starts(s)]
    columns = [np.unique(run["attention_matrix"].values[-1].argmax(axis=1)) for run in runs]
    rates = np.array([_growth(run) for run in runs])
    unsettled = bool(np.any(np.abs(np.diff(rates, axis=1)) > SETTLED))
    return Evidence(
        {
            "booleanness": np.array([run["booleanness"].values[-1] for run in runs]),
            "growth": rates[:, -1],
            "columns": np.concatenate([_padded(c) for c in columns]),
        },
        curves=tuple(
            Curve(f"start {k}", run.time[1:], np.maximum(run["booleanness"].values[1:], 1e-17))
            for k, run in enumerate(runs)
        ),
        runs=tuple(runs),
        undecided=_advice("booleanness", runs)
        | ({"growth": "another until or more records: the growth has not settled"} if unsettled else {}),
    )


def _cube_starts(s: Boolean | Symmetric) -> list[np.ndarray]:
    return [cube_start(s, 1000 * s.seed + k) for k in range(s.starts)]


def _growth(run: Run) -> np.ndarray:
    """Slopes of ln(−ln b) at the last records at which b is neither near ½ nor lost: tends to 1.

    b is the largest weight of a runner-up, not min(P, 1−P): what 1−P is short of rounding depends on the compiler.
    """
    b = np.sort(run["attention_matrix"].values, axis=-1)[..., -2].max(axis=-1)
    inside = np.nonzero((b > 1e-290) & (b < 1e-3))[0][-3:]
    if len(inside) < 3:
        return np.full(2, np.nan)
    return np.diff(np.log(-np.log(b[inside]))) / np.diff(run.time[inside])


def _padded(columns: Any) -> np.ndarray:
    """Two entries, the second -1 when one column is in use; three or more columns do not fit and become NaN."""
    found = sorted(float(c) for c in columns)
    return np.array([*found, -1.0][:2]) if len(found) <= 2 else np.full(2, np.nan)


def predict_boolean(s: Boolean) -> Evidence:
    """The extreme tokens of the start."""
    ends = [_padded(surviving_ends(s, start)) for start in _cube_starts(s)]
    return Evidence({"booleanness": 0.0, "growth": 1.0, "columns": np.concatenate(ends)})


claim(
    "clustering/CL-33",
    EMERGENCE,
    "Boolean theorem, d = 1",
    "In d = 1 with V > 0 and QK > 0, for almost every start, P(t) converges to a 0/1 matrix of rank at most two, whose "
    "rows all point to the lowest or the highest token of the start; the weight of the runner-up falls like "
    "exp(−c·e^t) (derived).",
    where="theorem on the Boolean limit of attention in d = 1 (proof in §7)",
    models=("rescaled",),
    quick=Boolean(),
    within={
        "booleanness": at_most("what counts as 0/1", slack=BOOLEAN),
        "growth": absolute(2.5 * SETTLED, "corrections fall like e^{-t} and have settled to 40 % of this"),
        "columns": exactly("indices of the leaders"),
    },
    simulate=simulate_boolean,
    predict=predict_boolean,
    axes=Axes("depth-time t", "max min(P, 1−P)", y_scale="log"),
)


def _uniform_rows(P: np.ndarray, tolerance: float) -> np.ndarray:
    """1 for rows that listen to everyone equally, 0 for rows that are 0/1, NaN for rows still on their way."""
    boolean = np.max(np.minimum(P, 1 - P), axis=1) <= tolerance
    uniform = np.max(np.abs(P - 1 / len(P)), axis=1) <= tolerance
    return np.where(boolean, 0.0, np.where(uniform, 1.0, np.nan))


def simulate_exception(s: Symmetric) -> Evidence:
    """A symmetric start with a token at 0, and generic starts beside it."""
    run = line_run(s, np.asarray(s.start, float)[:, None])
    generic = [line_run(s, begin, s.generic_until) for begin in _cube_starts(s)]
    rows = _uniform_rows(run["attention_matrix"].values[-1], s.tolerance)
    return Evidence(
        {
            "rank": float(run["attention_rank"].values[-1]),
            "exceptional_rows": rows,
            "generic_rank": np.array([float(r["attention_rank"].values[-1]) for r in generic]),
        },
        curves=(Curve("token at 0", run.time, run["attention_rank"].values),),
        runs=(run, *generic),
        undecided=_advice("generic_rank", generic) | _unsettled(s, run, rows),
    )


def _unsettled(s: Symmetric, run: Run, rows: np.ndarray) -> dict[str, str]:
    """Rows still on their way; or a token at 0 that rounding has had the time to move."""
    z = np.asarray(s.start, float)
    names = ("rank", "exceptional_rows")
    if not np.all(np.isfinite(rows)):
        return dict.fromkeys(names, "a larger until: rows are still on their way")
    longest = 0.5 * np.log(2 * np.log(s.tolerance / np.finfo(float).eps) / np.var(z))
    if at_zero(z).any() and run.time[-1] > longest:
        return dict.fromkeys(names, f"until below {longest:.3g}: rounding moves the token at 0")
    return {}


def at_zero(start: np.ndarray) -> np.ndarray:
    """Tokens that the symmetry z → −z of the start keeps at 0."""
    symmetric = bool(np.array_equal(np.sort(start), np.sort(-start)))
    return (start == 0) & symmetric


def predict_two(s: Symmetric) -> Evidence:
    """The theorem without its exceptional row; a start without such a row says nothing about it."""
    silent = {} if at_zero(np.asarray(s.start, float)).any() else {"rank": "a start symmetric about a token at 0"}
    return Evidence({"rank": 2.0}, source="the theorem read without its exceptional row", undecided=silent)


def predict_exception(s: Symmetric) -> Evidence:
    """By the symmetry z → −z a token at 0 stays there and listens to everyone equally: one more row pattern."""
    start = np.asarray(s.start, float)
    still = at_zero(start)
    rank = float(len(surviving_ends(s, start[:, None]))) + float(still.any())
    generic = [surviving_ends(s, begin, s.generic_until) for begin in _cube_starts(s)]
    values = {"rank": rank, "exceptional_rows": still.astype(float), "generic_rank": [float(len(g)) for g in generic]}
    return Evidence(values)


UNSTABLE = (
    "Position 0 repels: a rounding error grows like exp(½e^{2t}Var z), so no float64 run keeps the token there beyond "
    "t ≈ 2.7, although the exact solution does for ever; the other rows are 0/1 to 1e-16 by t = 2."
)

ER_07B = claim(
    "clustering/ER-07b",
    EMERGENCE,
    "Boolean theorem with its exceptional row",
    "In d = 1 the limit of P(t) has rank at most three: rows point to the lowest or the highest token, except those of "
    "tokens at the unstable position 0, which listen to everyone equally. Generic starts have rank at most two.",
    where="theorem on the Boolean limit in d = 1 and §7, bounded particles",
    models=("rescaled",),
    quick=Symmetric(),
    within={
        "rank": exactly("a count (singular values above 1e-6)"),
        "exceptional_rows": exactly("which rows are not 0/1"),
        "generic_rank": exactly("a count (singular values above 1e-6): one for each sign that survives"),
    },
    simulate=simulate_exception,
    predict=predict_exception,
    axes=Axes("depth-time t", "rank of P"),
    note=UNSTABLE,
)

ER_07B.printed_as(
    "clustering/ER-07",
    "Boolean theorem without its exception",
    "In d = 1 the limit of P(t) has rank at most two for every start.",
    where="theorem on the Boolean limit in d = 1, without its exception",
    within={"rank": at_most("a count (singular values above 1e-6)")},
    predict=predict_two,
    note=UNSTABLE,
)
