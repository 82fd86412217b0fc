"""Where the modes of a kernel density estimator are: the belt (arXiv:2412.09080)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import at_least, at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import KDE_MODES
from pathlines.foundation.setting import Setting, means
from pathlines.limit.metastability.kde_modes import (
    INNER,
    belt,
    expected_beyond,
    last_mode,
    mode_density,
    modes_between,
)
from pathlines.observable.kde_modes import ModeTable, normal_modes


@lru_cache(maxsize=32)
def _table(n: int, beta: float, runs: int, seed: int) -> ModeTable:
    return normal_modes(n, beta, runs, seed)


def _histogram(table: ModeTable, n: int, bins: int = 60) -> Curve:
    """Modes a unit of t and sample."""
    edge = 1.25 * last_mode(n, table.beta)
    edges = np.linspace(-edge, edge, bins + 1)
    heights = np.histogram(table.position, edges)[0] / (len(table.count) * np.diff(edges))
    label = f"n = {n}, β = {table.beta:g}"
    return Curve(label, (edges[1:] + edges[:-1]) / 2, heights, np.sqrt(heights / (len(table.count) * np.diff(edges))))


def _density(n: int, beta: float) -> Curve:
    edge = last_mode(n, beta)
    t = np.linspace(-edge, edge, 400)
    return Curve(f"Kac–Rice, β = {beta:g}", t, mode_density(t, n, beta))


Cells = Annotated[tuple[tuple[of.Count, of.Positive], ...], means("samples and inverse bandwidths", "n, β")]


class Belt(Setting):
    """Samples of several sizes."""

    cells: Cells = ((10000, 100.0), (10000, 1000.0))
    runs: of.Runs = 120
    seed: of.Seed = 5


def _check(s: Belt) -> None:
    for n, beta in s.cells:
        require(1 < beta <= n * n, "cells", "have 1 < β ≤ n² (else there is no belt)", [n, beta])


def _inside(position: np.ndarray, n: int, beta: float) -> np.ndarray:
    return np.any([(position >= a) & (position <= b) for a, b in belt(n, beta)], axis=0)


# --- K5: how much of it at finite n


def simulate_share(s: Belt) -> Evidence:
    """The share of all modes that is in the belt, compared with both bounds, and how many are in its inner part."""
    _check(s)
    shares, errors, inner, curves = [], [], [], []
    for i, (n, beta) in enumerate(s.cells):
        table = _table(int(n), float(beta), s.runs, s.seed + i)
        belted = _inside(table.position, int(n), beta)
        inside = np.bincount(table.run, belted, minlength=s.runs)
        share = inside.sum() / table.count.sum()
        shares.append(share)
        errors.append(mean_and_error(inside - share * table.count)[1] / table.mean)
        near = belted & (np.abs(table.position) <= INNER * last_mode(int(n), beta))
        inner.append(mean_and_error(np.bincount(table.run[near], minlength=s.runs), unit=1))
        curves.append(_histogram(table, int(n)))
    share, error = np.array(shares), np.array(errors)
    modes, modes_error = np.transpose(inner)
    values = {"lower": share, "upper": share, "inner": modes}
    return Evidence(values, {"lower": error, "upper": error, "inner": modes_error}, curves=tuple(curves))


def predict_share(s: Belt) -> Evidence:
    """Kac-Rice inside |t| ≤ t_e, and between no modes and as many as samples beyond."""
    low, high, inner = [], [], []
    for n, beta in s.cells:
        inside = sum(modes_between(a, b, int(n), beta) for a, b in belt(int(n), beta))
        edge = last_mode(int(n), beta)
        all_ = modes_between(-edge, edge, int(n), beta)
        low.append(inside / (all_ + expected_beyond(int(n), beta)))
        high.append(inside / all_)
        parts = [np.clip(part, -INNER * edge, INNER * edge) for part in belt(int(n), beta)]
        inner.append(sum(modes_between(a, b, int(n), beta) for a, b in parts))
    curves = tuple(_density(int(n), b) for n, b in s.cells)
    values = {"lower": low, "upper": high, "inner": inner}
    return Evidence(values, curves=curves, source="quadrature of the Kac-Rice density")


GAUSSIAN = "five standard errors, and Gaussian (F, F′) to 1 %"

claim(
    "metastability/K5",
    KDE_MODES,
    "the belt is asymptotic",
    "The share of modes with 2 ln n − 3 ln β ≤ t² ≤ 2 ln n − ln β, which tends to one, is still 0.33 at n = 10⁴, "
    "β = 100 and 0.89 at β = 1000; Kac–Rice brackets it.",
    where="theorem on where modes lie",
    models=(),
    quick=Belt(),
    full=Belt(runs=2000),
    within={
        "lower": at_least(GAUSSIAN, 0.01, errors=5.0),
        "upper": at_most(GAUSSIAN, 0.01, errors=5.0),
        "inner": relative(0.01, GAUSSIAN, errors=5.0),
    },
    simulate=simulate_share,
    predict=predict_share,
    axes=Axes("position t", "modes per unit of t"),
    note="cells are [n, β].",
)


# --- K8 and ER-12: one interval or two


class Centre(Setting):
    """Samples of one size."""

    n: of.Tokens = 1000
    beta: of.Bandwidth = 1000.0
    centre: Annotated[of.Positive, means("share of the belt that counts as near zero")] = 0.25
    runs: of.Runs = 300
    seed: of.Seed = 6


def simulate_centre(s: Centre) -> Evidence:
    """Modes with |t| ≤ c t_e."""
    table = _table(s.n, s.beta, s.runs, s.seed)
    near = np.abs(table.position) <= s.centre * last_mode(s.n, s.beta)
    count = np.bincount(table.run[near], minlength=s.runs)
    mean, error = mean_and_error(count, unit=1)
    return Evidence({"central_modes": mean}, {"central_modes": error}, curves=(_histogram(table, s.n),))


def predict_centre(s: Centre) -> Evidence:
    """∫ρ over |t| ≤ c t_e."""
    edge = s.centre * last_mode(s.n, s.beta)
    value = modes_between(-edge, edge, s.n, s.beta)
    return Evidence({"central_modes": value}, curves=(_density(s.n, s.beta),))


def predict_hole(s: Centre) -> Evidence:
    """Two intervals ±[√|2 ln n - 3 ln β|, t_e]: none between them."""
    inner, outer = np.sqrt(abs(2 * np.log(s.n) - 3 * np.log(s.beta))), last_mode(s.n, s.beta)
    edges = np.array([-outer, -outer, -inner, -inner, inner, inner, outer, outer])
    height = np.sqrt(1.5 * s.beta) / (2 * np.pi)
    curve = Curve("two intervals", edges, height * np.array([0, 1, 1, 0, 0, 1, 1, 0]))
    return Evidence({"central_modes": 0.0}, curves=(curve,), source="the belt as two intervals")


K8 = claim(
    "metastability/K8",
    KDE_MODES,
    "the belt is one interval when 2 ln n ≤ 3 ln β (corrected)",
    "For 2 ln n ≤ 3 ln β the modes fill one interval |t| ≤ √(2 ln n − ln β): near its centre there are as many as the "
    "Kac–Rice density says. There are two intervals only for 2 ln n > 3 ln β.",
    where="theorem on where modes lie, corrected",
    models=(),
    quick=Centre(),
    full=Centre(runs=5000),
    within={"central_modes": relative(0.01, GAUSSIAN, errors=5.0)},
    simulate=simulate_centre,
    predict=predict_centre,
    axes=Axes("position t", "modes per unit of t"),
)

K8.printed_as(
    "metastability/ER-12",
    "two intervals for every β",
    "Modes concentrate in two intervals of t, one on each side of zero, for every β: none are near zero.",
    where="theorem on where modes lie, for every β",
    within={"central_modes": at_most("a twentieth of the modes may stray", slack=1.0)},
    predict=predict_hole,
)
