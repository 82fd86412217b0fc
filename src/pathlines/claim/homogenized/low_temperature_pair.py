"""Two tokens at zero temperature (Homogenized Transformers, arXiv:2604.01978): the law of their overlap, corrected.

Attention of infinitely many tokens points at Ax/|Ax|, A = W W'ᵀ with W, W' of size d × p. On the clock t = τ/d the
overlap of a pair obeys dR = -κR(1-R²) dt + √2(1-R²) dB with κ = 3/2 + d/(2p), so κ = 2 for square factors; κ = 1 is in
print.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.low_temperature import pair_diffusion
from pathlines.limit.homogenized.slow_overlap import (
    PRINTED_KAPPA,
    consensus_probability,
    expected_overlap_power,
    kappa_of,
)
from pathlines.model.homogenized.low_temperature_pair import LogisticPair, LowTemperaturePair

ERRORS = 5.0
ROWS = 24
CURVE = np.array([0.0, 0.2, 0.5, 1.0])  # few points: each is a matrix exponential


@cache
def _pairs(d: int, qk_dim: int, step: float, time: float, runs: int, seed: int) -> Run:
    """Overlaps at about ``ROWS`` times up to ``time`` on the slow clock, shared by a claim and its erratum."""
    model = LowTemperaturePair(d, step, qk_dim=qk_dim)
    every = max(1, round(time / model.clocks["slow"] / ROWS))
    depth = every * int(np.ceil(time / model.clocks["slow"] / every))
    return chain(model, 0.0, depth=depth, every=every, key=jax.random.key(seed), runs=runs)


class ZeroTemperature(Setting):
    """Pairs that attend to Ax/|Ax|."""

    d: of.Dimension = 32
    width_ratio: of.WidthRatio = 1.0
    step: of.Step = 0.3
    times: Annotated[tuple[of.NonNegative, ...], means("when the overlaps are compared", "t", unit="τ/d")] = (0.5, 1.0)
    runs: of.Runs = 5000
    seed: of.Seed = 12


def _width(s: ZeroTemperature) -> int:
    """p of the setting's ratio p/d."""
    return round(s.d * s.width_ratio)


def simulate_square(s: ZeroTemperature) -> Evidence:
    """E R² of the chain; between recorded layers, which are short against the slow clock, by interpolation."""
    run = _pairs(s.d, _width(s), s.step, max(s.times), s.runs, s.seed)
    clock = run.data["slow"].values
    y = run["state"]
    mean, error = mean_and_error(np.tanh(y.values) ** 2)
    values, errors = np.interp(s.times, clock, mean), np.interp(s.times, clock, error)
    return Evidence(
        {"square": values, "square_at_this_d": values},
        {"square": errors, "square_at_this_d": errors},
        curves=(Curve(f"chain, d = {s.d}, p = {_width(s)}", clock, mean, error),),
        runs=(run,),
    )


def _square_law(s: ZeroTemperature, kappa: float, label: str) -> tuple[np.ndarray, Curve]:
    curve = np.unique(np.concatenate([max(s.times) * CURVE, s.times]))
    values = expected_overlap_power(curve, kappa)
    return values[np.searchsorted(curve, s.times)], Curve(label, curve, values)


def predict_square(s: ZeroTemperature) -> Evidence:
    """The slow limit with κ = 3/2 + d/(2p), and the diffusion at this d with the exact kernel."""
    kappa = kappa_of(s.d, _width(s))
    limit, curve = _square_law(s, kappa, f"κ = {kappa:g}")
    law = pair_diffusion(s.d, _width(s))
    exact = [law.expectation(lambda r: r**2, t * s.d) for t in s.times]
    layers = 0.1 * s.step**2 * (1 + 3 * max(0.0, s.d / _width(s) - 1))
    return Evidence(
        {"square": limit, "square_at_this_d": exact},
        {"square": (0.35 / s.d + layers) / ERRORS, "square_at_this_d": layers / ERRORS},
        curves=(curve,),
    )


def predict_printed_square(s: ZeroTemperature) -> Evidence:
    """The slow limit with κ = 1."""
    limit, curve = _square_law(s, PRINTED_KAPPA, f"κ = {PRINTED_KAPPA:g}")
    return Evidence({"square": limit}, curves=(curve,))


_SQUARE_AXES = Axes("slow time t = τ/d", "E R²")

C12 = claim(
    "homogenized/C12",
    HOMOGENIZED,
    "low-temperature logistic SDE, corrected (derived)",
    "Two tokens attending to Ax/|Ax| with A = WW′ᵀ of d × p Gaussian factors have, on the clock t = τ/d and as d → "
    "∞, the overlap dR = −κR(1−R²)dt + √2(1−R²)dB with κ = 3/2 + d/(2p): κ = 2 at p = d, that is R = tanh(√2 B).",
    where="theorem on low temperature: the logistic SDE, corrected",
    models=("low-temperature-pair",),
    quick=ZeroTemperature(),
    full=ZeroTemperature(d=64, times=(1.0, 2.0), runs=10000),
    within={
        "square": standard_errors(
            ERRORS, "standard errors over pairs, 0.35/d (the diffusion at finite d, t ≤ 2), and the layers as below"
        ),
        "square_at_this_d": standard_errors(
            ERRORS, "standard errors over pairs, and O(v) of the layers: v/10 at p = d, v at p = d/4 (NumPy, d = 16)"
        ),
    },
    simulate=simulate_square,
    predict=predict_square,
    axes=_SQUARE_AXES,
    blind=dict.fromkeys(
        ("square", "square_at_this_d"), "3 % takes 60 000 pairs of shorter layers, minutes instead of seconds"
    ),
)

C12.printed_as(
    "homogenized/ER-07",
    "low-temperature logistic SDE, as printed",
    "The slow overlap of a pair at zero temperature obeys dR = −R(1−R²)dt + √2(1−R²)dB (κ = 1).",
    where="theorem on low temperature: the logistic SDE, as printed",
    within={"square": absolute(0.025, "that of the corrected law")},
    predict=predict_printed_square,
    note="κ = 1 would give E R² = 0.648, 0.814 at t = 1, 2. It drops the curvature of the kernel E⟨Ax/|Ax|, Ay/|Ay|⟩.",
)


class Absorption(Setting):
    """The equation of one overlap."""

    kappa: Annotated[float, means("strength of the drift", "κ")] = 1.0
    start: Annotated[of.Cosine, means("overlap at the start", "R₀")] = 0.5
    time: Annotated[of.Positive, means("where the runs end", "t", unit="τ/d")] = 8.0
    time_step: Annotated[of.Positive, means("step of the integrator", unit="τ/d")] = 0.04
    runs: of.Runs = 10000
    seed: of.Seed = 21


def simulate_absorption(s: Absorption) -> Evidence:
    """Paths of the logistic SDE in y = artanh R."""
    depth = round(s.time / s.time_step)
    every = max(1, depth // ROWS)
    model = LogisticPair(s.kappa, s.time_step)
    run = chain(model, s.start, depth=depth - depth % every, every=every, key=jax.random.key(s.seed), runs=s.runs)
    positive, positive_error = mean_and_error(run["state"].values > 0, unit=1.0)
    y = run["state"]
    chance = scale_function(np.tanh(y.values), s.kappa)
    potential, potential_error = mean_and_error(chance)
    unsettled = float(np.minimum(chance, 1 - chance)[:, -1].mean())
    return Evidence(
        {"positive": positive[-1], "martingale": potential[-1]},
        {"positive": np.hypot(positive_error[-1], unsettled / ERRORS), "martingale": potential_error[-1]},
        curves=(
            Curve("P(R > 0)", run.data["t"], positive, positive_error),
            Curve("E h(R)", run.data["t"], potential, potential_error),
        ),
        runs=(run,),
    )


def scale_function(r: np.ndarray, kappa: float) -> np.ndarray:
    """h(R) = P(end at +1) by the trapezoid rule for ∫cos^{1-κ}, R = sin φ: harmonic, and φ = arcsin R at κ = 1."""
    grid = np.linspace(-1, 1, 4001)[1:-1] * np.pi / 2
    power = np.cos(grid) ** (1 - kappa)
    total = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2)])
    return np.interp(np.arcsin(r), grid, total / total[-1])


def predict_absorption(s: Absorption) -> Evidence:
    """½ + arcsin(R₀)/π at κ = 1."""
    value = float(consensus_probability(s.start, s.kappa))
    ends = [0.0, s.time]
    return Evidence({"positive": value, "martingale": value}, curves=(Curve("½ + arcsin(R₀)/π", ends, [value, value]),))


claim(
    "homogenized/C21",
    HOMOGENIZED,
    "absorption of the κ = 1 equation",
    "In dR = −κR(1−R²)dt + √2(1−R²)dB with κ = 1, arcsin R is a martingale and R is absorbed at ±1, at +1 with "
    "probability ½ + arcsin(R₀)/π (for κ < 2: an incomplete beta function).",
    where="theorem on low temperature: analysis of the equation with κ = 1",
    models=("logistic-pair",),
    quick=Absorption(),
    full=Absorption(time_step=0.01, runs=40000),
    within={
        "positive": standard_errors(ERRORS, "standard errors over paths, and the share that may still change sides"),
        "martingale": standard_errors(ERRORS, "standard errors over paths"),
    },
    simulate=simulate_absorption,
    predict=predict_absorption,
    axes=Axes("t", "probability"),
    note="True of the printed equation; the equation itself is not the limit of the tokens (κ = 2, C12).",
)
