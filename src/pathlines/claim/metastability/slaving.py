"""The fastest mode drags its double along (derived for arXiv:2410.23228)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import relative
from pathlines.domain.circle_law import density_moments
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.metastability.growth import growth_rates
from pathlines.limit.metastability.linear_phase import slaving_ratio
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.observable.patterns import fourier_moments

KINDS = ("usa", "sa")
STEPS = 224


class Slaving(Setting):
    """One mode and its double."""

    beta: of.Beta = 9.0
    k: Annotated[of.Count, means("the mode", "k")] = 4
    size: Annotated[of.Positive, means("its size at the start")] = 0.0001
    folds: Annotated[of.Positive, means("e-folds that it grows")] = 3.5
    degree: of.FourierModes = 48


def _times(s: Slaving, kind: str) -> np.ndarray:
    """Up to the given number of e-folds of mode k."""
    return np.linspace(0, s.folds / growth_rates(s.beta, 2, s.k, kind)[-1], 15)[1:]


def simulate(s: Slaving) -> Evidence:
    """m_2k/m_k² along a run from one small mode."""
    look = fourier_moments.at(modes=2 * s.k)
    values, curves, runs = {}, [], []
    for kind in KINDS:
        model = CircleDensity(s.beta, s.degree, unnormalised=kind == "usa", shift=s.beta)
        times, start = _times(s, kind), density_moments({s.k: s.size}, 2 * s.k)
        run = flow(model, start, times=times, record=look, method="rk4", step=times[-1] / STEPS)
        sizes = run[look.name].values
        ratio = sizes[:, 2 * s.k - 1] / sizes[:, s.k - 1] ** 2
        values[kind] = ratio[-1]
        curves.append(Curve(kind.upper(), np.linspace(0, s.folds, 15)[1:], ratio))
        runs.append(run)
    return Evidence(values, curves=tuple(curves), runs=tuple(runs))


def predict(s: Slaving) -> Evidence:
    """R (1 - e^{-(2λ_k - λ_2k)t})."""
    ratios = {kind: [slaving_ratio(s.beta, s.k, t, kind) for t in _times(s, kind)] for kind in KINDS}
    folds = np.linspace(0, s.folds, 15)[1:]
    curves = tuple(Curve(f"{kind.upper()}, theory", folds, row) for kind, row in ratios.items())
    values = {kind: row[-1] for kind, row in ratios.items()}
    end = (s.size * np.exp(s.folds)) ** 2
    late = "the mode is no longer small at the end: lower `folds` or `size`"
    return Evidence(
        values,
        {kind: end * value for kind, value in values.items()},
        curves=curves,
        undecided=dict.fromkeys(KINDS, late) if end > LARGEST else {},
    )


LARGEST = 1e-2
"""mₖ² at the end, which is the relative size of what second order leaves out."""


claim(
    "metastability/S7",
    METASTABLE_EMERGENCE,
    "the doubled mode is slaved (derived)",
    "While mₖ is small, m₂ₖ/mₖ² → 2λₖ/(2λₖ−λ₂ₖ) under USA, and (1−Iₖ/I₀) times that under SA, approached like "
    "1−e^{−(2λₖ−λ₂ₖ)t}.",
    where="quasi-linear phase; the ratio is derived",
    models=("circle-density",),
    quick=Slaving(),
    within={
        kind: relative(1e-7, "224 steps of RK4; terms of order mₖ² at the end, 1e-5", errors=1.0) for kind in KINDS
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("e-folds λₖt", "m₂ₖ/mₖ²"),
)
