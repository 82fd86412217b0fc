"""How many modes a kernel density estimator of normal samples has (arXiv:2412.09080)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_least, at_most, exactly, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KDE_MODES
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.kde_modes import (
    INNER,
    bracket,
    count_by_signs,
    last_mode,
    leading_constant,
    modes_between,
    two_sample_modes,
)
from pathlines.observable.kde_modes import ModeTable, normal_modes

NOISE = "five standard errors of the average"
CERTIFIED = exactly("every count is certified: no interval was left open by rounding")


def _rounded(right: Any, size: float) -> Any:
    """Expansions whose rounding is larger than it is."""
    return lambda rows: (found := right(rows))._replace(noise=size * found.noise)


ROUNDED = Mistake(
    "pathlines.observable.kde_modes.expand_derivative", "rounding {:g} times as large", _rounded, (1e6, 1e9, 1e12)
)


@lru_cache(maxsize=64)
def _table(n: int, beta: float, runs: int, seed: int) -> ModeTable:
    return normal_modes(n, beta, runs, seed)


Cells = Annotated[tuple[tuple[of.Count, of.Positive], ...], means("samples and inverse squared bandwidths", "n, β")]


class Counted(Setting):
    """Samples whose modes are counted."""

    cells: Cells = ((50, 4.0), (100, 10.0), (100, 100.0), (300, 30.0))
    runs: of.Runs = 600
    seed: of.Seed = 2


def _tables(s: Counted) -> list[ModeTable]:
    """One table a cell [n, β], each from its own seed."""
    return [_table(int(n), float(b), s.runs, s.seed + i) for i, (n, b) in enumerate(s.cells)]


def _averages(tables: list[ModeTable]) -> tuple[np.ndarray, np.ndarray]:
    """Mean count of each table and its standard error."""
    means, errors = np.transpose([mean_and_error(t.count, unit=1) for t in tables])
    return means, errors


def _doubtful(tables: list[ModeTable]) -> int:
    return int(sum(t.doubtful.sum() for t in tables))


# --- K1: two samples


class TwoSamples(Setting):
    """Two samples."""

    betas: Annotated[tuple[of.Positive, ...], means("inverse squared bandwidths", "β")] = (2.0, 4.0, 25.0)
    runs: of.Runs = 8000
    seed: of.Seed = 1


def simulate_pair(s: TwoSamples) -> Evidence:
    """Average number of modes of two samples."""
    tables = [_table(2, b, s.runs, s.seed + i) for i, b in enumerate(s.betas)]
    means, errors = _averages(tables)
    curve = Curve("samples", s.betas, means, errors)
    return Evidence({"mean": means, "doubtful": _doubtful(tables)}, {"mean": errors}, curves=(curve,))


def predict_pair(s: TwoSamples) -> Evidence:
    """1 + erfc(β^{-1/2})."""
    fine = np.geomspace(min(s.betas) / 2, max(s.betas) * 2, 200)
    curve = Curve("1 + erfc(β^{-1/2})", fine, two_sample_modes(fine))
    return Evidence({"mean": two_sample_modes(s.betas), "doubtful": 0}, curves=(curve,))


claim(
    "metastability/K1",
    KDE_MODES,
    "modes of two samples (derived)",
    "A Gaussian kernel density estimator of two standard normal samples has two modes if and only if "
    "|X₁ − X₂| > 2β^{−1/2}, so 1 + erfc(β^{−1/2}) on average.",
    where="derived; no statement in the paper",
    models=(),
    quick=TwoSamples(),
    full=TwoSamples(runs=200_000),
    within={
        "mean": standard_errors(5.0, NOISE),
        "doubtful": CERTIFIED,
    },
    simulate=simulate_pair,
    predict=predict_pair,
    axes=Axes("inverse squared bandwidth β", "E #modes", x_scale="log"),
    mistakes=(ROUNDED,),
)


# --- K2: the count, by an independent counter


class Recounted(Counted):
    """Modes that are counted again on a grid."""

    checks: Annotated[of.Count, means("runs that are counted again")] = 40


def simulate_counts(s: Recounted) -> Evidence:
    """Average number of modes, by polynomials with isolated zeros; ``checks`` of the samples are counted again."""
    tables = _tables(s)
    means, errors = _averages(tables)
    curve = Curve("isolated zeros", [b for _, b in s.cells], means, errors)
    again = [t.count[: s.checks].mean() for t in tables]
    return Evidence({"mean": again, "doubtful": _doubtful(tables)}, curves=(curve,))


MISSED = 1e-3
"""Share of the modes that a grid of step h/12 misses: h/3 loses a hundredth, and close pairs get rare at least like
the square of their distance."""


def predict_counts(s: Recounted) -> Evidence:
    """The same samples, by the signs of P̂' on a grid of step h/12; at least one of them may miss a mode."""
    means, errors = [], []
    for i, (n, beta) in enumerate(s.cells):
        rows = np.random.default_rng(s.seed + i).standard_normal((min(s.checks, s.runs), int(n)))
        found = [count_by_signs(row, beta) for row in rows]
        means.append(np.mean(found))
        errors.append(np.sqrt(1 + MISSED * np.sum(found)) / len(rows))
    curve = Curve("signs on a grid", [b for _, b in s.cells], means, np.array(errors))
    return Evidence({"mean": means, "doubtful": 0}, {"mean": errors}, (curve,), source="another count of the samples")


TABULATED = (
    (50, 4.0),
    (100, 10.0),
    (100, 100.0),
    (300, 30.0),
    (1000, 10.0),
    (1000, 100.0),
    (1000, 1000.0),
    (3000, 300.0),
    (10000, 100.0),
    (10000, 1000.0),
    (10000, 10000.0),
)
"""(n, β) of the table of expected numbers of modes."""

claim(
    "metastability/K2",
    KDE_MODES,
    "expected number of modes",
    "The number of modes of samples of n standard normals is the same whether zeros of P̂′ are isolated or signs are "
    "counted on a grid of step h/12, from n = 50, β = 4 (1.105 on average) to n = β = 10⁴ (133.3).",
    where="main theorem: expected number of modes; numbers measured",
    models=(),
    quick=Recounted(),
    full=Recounted(
        cells=TABULATED,
        runs=1000,
        checks=60,
    ),
    within={
        "mean": absolute(0.0, "Poisson numbers of pairs closer than the grid, three deviations", errors=3.0),
        "doubtful": CERTIFIED,
    },
    simulate=simulate_counts,
    predict=predict_counts,
    axes=Axes("inverse squared bandwidth β", "E #modes", "log", "log"),
    note="cells are [n, β].",
    mistakes=(ROUNDED,),
)


# --- K3: bracket


class Bracketed(Counted):
    """Modes between the bounds of Kac and Rice."""

    cells: Cells = ((50, 4.0), (100, 10.0), (300, 30.0), (1000, 100.0), (1000, 1000.0))
    runs: of.Runs = 500
    seed: of.Seed = 3


def simulate_bracket(s: Bracketed) -> Evidence:
    """The average, compared with both bounds, and that of the modes well inside."""
    tables = _tables(s)
    means, errors = _averages(tables)
    inner, inner_errors = np.transpose([_inner(t, int(n)) for t, (n, _) in zip(tables, s.cells, strict=True)])
    curve = Curve("samples", [b for _, b in s.cells], means, errors)
    values = {"lower": means, "upper": means, "inner": inner}
    return Evidence(values, {"lower": errors, "upper": errors, "inner": inner_errors}, curves=(curve,))


def _inner(table: ModeTable, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean number of modes with |t| ≤ ¾ t_e."""
    near = np.abs(table.position) <= INNER * last_mode(n, table.beta)
    return mean_and_error(np.bincount(table.run[near], minlength=len(table.count)), unit=1)


def predict_bracket(s: Bracketed) -> Evidence:
    """KR_T, and with the samples beyond t_e; nothing where n² < β."""
    lows, highs = np.array([bracket(int(n), b) for n, b in s.cells]).T
    if np.isnan(lows).any():
        return Evidence(dict.fromkeys(("lower", "upper", "inner")))
    edges = [INNER * last_mode(int(n), b) for n, b in s.cells]
    inner = [modes_between(-e, e, int(n), b) for e, (n, b) in zip(edges, s.cells, strict=True)]
    betas = [b for _, b in s.cells]
    curves = (Curve("KR_T", betas, lows), Curve("KR_T + 2n(1 − Φ(t_e))", betas, highs))
    values = {"lower": lows, "upper": highs, "inner": inner}
    return Evidence(values, curves=curves, source="quadrature of the Kac-Rice density")


claim(
    "metastability/K3",
    KDE_MODES,
    "bracket of the expected number of modes (derived)",
    "KR_T ≤ E #modes ≤ KR_T + 2n(1 − Φ(t_e)), KR_T the integral of the Kac–Rice density with Gaussian (F, F′) over "
    "|t| ≤ t_e = √(2 ln n − ln β): beyond t_e there are no more modes than samples, in expectation. Up to ¾ t_e the "
    "density is that of the modes to 1 %.",
    where="derived; from the bounds in- and outside T in the proof (§1.3, §4.2)",
    models=(),
    quick=Bracketed(),
    full=Bracketed(
        cells=TABULATED,
        runs=1000,
    ),
    within={
        "lower": at_least(NOISE, errors=5.0),
        "upper": at_most(NOISE, errors=5.0),
        "inner": relative(0.01, "Gaussian (F, F′) with a few samples in a bandwidth; " + NOISE, errors=5.0),
    },
    simulate=simulate_bracket,
    predict=predict_bracket,
    axes=Axes("inverse squared bandwidth β", "E #modes", "log", "log"),
    note="cells are [n, β]; the lower bound is observed, not proved.",
)


# --- K4: slow approach of the constant


class LeadingConstant(Setting):
    """Samples along β = n."""

    sizes: of.Sizes = (100, 1000)
    runs: of.Runs = 1500
    seed: of.Seed = 4


def simulate_constant(s: LeadingConstant) -> Evidence:
    """mean/√(β ln β) along β = n."""
    tables = [_table(int(n), float(n), s.runs, s.seed + i) for i, n in enumerate(s.sizes)]
    scale = np.array([np.sqrt(n * np.log(n)) for n in s.sizes])
    ratio, error = np.array(_averages(tables)) / scale
    ends = ("lower", "upper", "above")
    values = {**dict.fromkeys(ends, ratio), "change": np.diff(ratio)}
    errors = {**dict.fromkeys(ends, error), "change": np.hypot(error[1:], error[:-1])}
    return Evidence(values, errors, curves=(Curve("samples", s.sizes, ratio, error),))


def predict_constant(s: LeadingConstant) -> Evidence:
    """Between the bracket's ends, above the limit π^{-1}√(3/2), and falling."""
    limit = leading_constant(1.0)
    scale = np.array([np.sqrt(n * np.log(n)) for n in s.sizes])
    low, high = np.array([bracket(int(n), float(n)) for n in s.sizes]).T / scale
    values = {"lower": low, "upper": high, "above": np.full(len(low), limit), "change": np.zeros(len(low) - 1)}
    lines = (Curve("KR_T", s.sizes, low), Curve("KR_T + 2n(1 − Φ(t_e))", s.sizes, high))
    return Evidence(values, curves=(*lines, Curve("limit", s.sizes, np.full(len(low), limit))))


claim(
    "metastability/K4",
    KDE_MODES,
    "slow approach of the leading constant (derived)",
    "Along β = n the ratio E #modes/√(β ln β) falls towards π⁻¹√(3/2) = 0.38985 only logarithmically: "
    "0.464, 0.4485, 0.439 at n = 10², 10³, 10⁴.",
    where="main theorem: expected number of modes; the constant is derived",
    models=(),
    quick=LeadingConstant(),
    full=LeadingConstant(sizes=(100, 1000, 10000), runs=2000),
    within={
        "lower": at_least(NOISE, errors=5.0),
        "upper": at_most(NOISE, errors=5.0),
        "above": at_least(NOISE, errors=5.0),
        "change": at_most(NOISE, errors=5.0),
    },
    simulate=simulate_constant,
    predict=predict_constant,
    axes=Axes("n = β", "E #modes/√(β ln β)", x_scale="log"),
    mistakes=(
        Mistake(
            "_table",
            "an exponent of β too large by {:g}",
            lambda right, size: lambda n, beta, *o: right(n, beta ** (1 + size), *o),
            (0.05, 0.1),
        ),
    ),
)
