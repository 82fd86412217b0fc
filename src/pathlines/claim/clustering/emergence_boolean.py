"""d = 1: attention becomes Boolean, and the start decides who is listened to (arXiv:2305.05465, Boolean theorem)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import cube_start, direct_rescaled
from pathlines.claim.tolerance import at_most, exactly
from pathlines.foundation.papers import EMERGENCE
from pathlines.integrate import Run, flow
from pathlines.model import RescaledAttention
from pathlines.observable.attention import attention, attention_rank, booleanness

RECORD = (attention, attention_rank, booleanness)
UNIT = np.eye(1)


def line_run(s: Any, start: np.ndarray, until: float | None = None) -> Run:
    """z on the line with V = 1, softmax attention throughout."""
    times = np.linspace(0, s.until if until is None else until, s.records)
    return flow(RescaledAttention(UNIT), start, times=times, record=RECORD, method="dop853", rtol=s.rtol, form="tokens")


def surviving_ends(s: Any, start: np.ndarray) -> list[int]:
    """Which of the lowest and the highest token is attended to in the end.

    Tokens keep their order, and a token listens to the end of its own sign. Equal signs persist (the hull shrinks);
    otherwise the direct solution says whether both signs do.
    """
    late = start if np.all(start > 0) or np.all(start < 0) else direct_rescaled(start, [s.until], UNIT)[-1]
    ends = [int(np.argmin(start))] if np.any(late < 0) else []
    return ends + ([int(np.argmax(start))] if np.any(late > 0) else [])


def simulate_rank(s: Any) -> Evidence:
    """Rank of P at the end, for tokens of one sign and of both."""
    runs = [line_run(s, s_start) for s_start in _starts(s)]
    return Evidence(
        {"rank": np.array([float(run["attention_rank"].values[-1]) for run in runs])},
        curves=tuple(
            Curve(f"tokens in [{low:g}, {high:g}]", run.time, run["attention_rank"].values)
            for (low, high), run in zip(s.intervals, runs, strict=True)
        ),
        runs=tuple(runs),
    )


def _starts(s: Any) -> list[np.ndarray]:
    unit = np.random.default_rng(s.seed).random((s.n, 1))
    return [low + (high - low) * unit for low, high in s.intervals]


def predict_rank(s: Any) -> Evidence:
    """One row pattern for each sign that survives."""
    return Evidence({"rank": np.array([float(len(surviving_ends(s, start))) for start in _starts(s)])})


claim(
    "clustering/CL-31",
    EMERGENCE,
    "one hyperplane when leading coordinates share a sign (derived)",
    "In d = 1 with V > 0, tokens of one sign all end up listening to the largest of them, rank P → 1; tokens of both "
    "signs end up listening to the largest of their own sign, rank P → 2.",
    models=("rescaled",),
    quick={
        "n": 30,
        "intervals": [[1.0, 3.0], [-1.0, 1.0]],
        "seed": 0,
        "until": 10.0,
        "records": 21,
        "rtol": 1e-10,
    },
    within={"rank": exactly("a count (singular values above 1e-6)")},
    simulate=simulate_rank,
    predict=predict_rank,
    axes=Axes("depth-time t", "rank of P"),
)


def simulate_boolean(s: Any) -> Evidence:
    """Distance of P from 0/1 and the columns in use at the end, for several starts."""
    runs = [line_run(s, cube_start(s, seed)) for seed in s.seeds]
    columns = [np.unique(run["attention"].values[-1].argmax(axis=1)) for run in runs]
    return Evidence(
        {
            "booleanness": np.array([run["booleanness"].values[-1] for run in runs]),
            "columns": np.concatenate([_padded(c) for c in columns]),
        },
        curves=tuple(
            Curve(f"seed {seed}", run.time[1:], np.maximum(run["booleanness"].values[1:], 1e-17))
            for seed, run in zip(s.seeds, runs, strict=True)
        ),
        runs=tuple(runs),
    )


def _padded(columns: Any) -> np.ndarray:
    """Two entries, the second -1 when one column is in use; three or more columns do not fit and become NaN."""
    found = sorted(float(c) for c in columns)
    return np.array([*found, -1.0][:2]) if len(found) <= 2 else np.full(2, np.nan)


def predict_boolean(s: Any) -> Evidence:
    """The extreme tokens of the start."""
    ends = [_padded(surviving_ends(s, cube_start(s, seed))) for seed in s.seeds]
    return Evidence({"booleanness": np.zeros(len(s.seeds)), "columns": np.concatenate(ends)})


claim(
    "clustering/CL-33",
    EMERGENCE,
    "Boolean theorem, d = 1",
    "In d = 1 with V > 0 and QK > 0, for almost every start, P(t) converges to a 0/1 matrix of rank at most two, whose "
    "rows all point to the lowest or the highest token of the start.",
    models=("rescaled",),
    quick={
        "n": 40,
        "d": 1,
        "low": -1.0,
        "high": 1.0,
        "seeds": [0, 1, 2, 3],
        "until": 12.0,
        "records": 25,
        "rtol": 1e-10,
    },
    within={
        "booleanness": at_most("specified bound at T = 12", slack=1e-12),
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


def simulate_exception(s: Any) -> Evidence:
    """A symmetric start with a token at 0, and generic starts beside it."""
    run = line_run(s, np.asarray(s.start, float)[:, None])
    generic = [line_run(s, cube_start(s, seed), s.generic_until) for seed in s.seeds]
    rows = _uniform_rows(run["attention"].values[-1], s.tolerance)
    settled = bool(np.all(np.isfinite(rows)))
    return Evidence(
        {
            "rank": float(run["attention_rank"].values[-1]) if settled else np.nan,
            "exceptional_rows": rows,
            "generic_rank": np.array([float(r["attention_rank"].values[-1]) for r in generic]),
        },
        curves=(Curve("token at 0", run.time, run["attention_rank"].values),),
        runs=(run, *generic),
    )


def predict_two(s: Any) -> Evidence:
    """The theorem without its exceptional row."""
    return Evidence({"rank": 2.0}, source="the theorem read without its exceptional row")


def predict_exception(s: Any) -> Evidence:
    """By the symmetry z → −z a token at 0 stays there and listens to everyone equally: one more row pattern."""
    start = np.asarray(s.start, float)
    symmetric = bool(np.array_equal(np.sort(start), np.sort(-start)))
    at_zero = (start == 0) & symmetric
    rank = float(len(surviving_ends(s, start[:, None]))) + float(at_zero.any())
    return Evidence(
        {"rank": rank, "exceptional_rows": at_zero.astype(float), "generic_rank": np.full(len(s.seeds), 2.0)}
    )


EXCEPTION = {
    "start": [-1.0, 0.0, 1.0],
    "n": 3,
    "d": 1,
    "low": -3.0,
    "high": 3.0,
    "seeds": [0, 1, 2, 3],
    "until": 2.0,
    "generic_until": 10.0,
    "records": 21,
    "rtol": 1e-10,
    "tolerance": 1e-6,
}
UNSTABLE = (
    "Position 0 repels: a rounding error grows like exp(½e^{2t}Var z), so no float64 run keeps the token there beyond "
    "t ≈ 2.7, although the exact solution does for ever; the other rows are 0/1 to 1e-16 by t = 2."
)

claim(
    "clustering/ER-07",
    EMERGENCE,
    "Boolean theorem without its exception",
    "In d = 1 the limit of P(t) has rank at most two for every start.",
    models=("rescaled",),
    quick=EXCEPTION,
    within={"rank": at_most("a count (singular values above 1e-6)")},
    simulate=simulate_exception,
    predict=predict_two,
    expected="refuted",
    corrected_by="clustering/ER-07b",
    axes=Axes("depth-time t", "rank of P"),
    note=UNSTABLE,
)

claim(
    "clustering/ER-07b",
    EMERGENCE,
    "Boolean theorem with its exceptional row",
    "In d = 1 the limit of P(t) has rank at most three: rows point to the lowest or the highest token, except those of "
    "tokens at the unstable position 0, which listen to everyone equally. Generic starts have rank at most two.",
    models=("rescaled",),
    quick=EXCEPTION,
    within={
        "rank": exactly("a count (singular values above 1e-6)"),
        "exceptional_rows": exactly("which rows are not 0/1"),
        "generic_rank": at_most("a count (singular values above 1e-6)"),
    },
    simulate=simulate_exception,
    predict=predict_exception,
    axes=Axes("depth-time t", "rank of P"),
    note=UNSTABLE,
)
