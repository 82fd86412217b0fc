"""How n tokens follow their mean field over depth: rates and prefactors.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; Token Sample Complexity of Attention,
arXiv:2512.10656. Rates and prefactors are derived. Tokens are coupled with copies of the same starts in the mean field,
which quadrature markers carry: the error has no sampling floor. Means over runs have control variates, and beside
chance their errors count the remainder O(1/n), which is as large as what half the tokens change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
from scipy.special import betaln, log_ndtr, ndtri

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import controlled_mean, mean_and_error, root_and_error
from pathlines.claim.fitting import Mistake
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.gaussian.controls import legendre, modes, sample_controls
from pathlines.claim.tolerance import at_least, at_most, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.coupling import Coupling, synchronous_coupling
from pathlines.limit.gaussian.context import CRITICAL, rate_exponent, score_strength
from pathlines.limit.gaussian.fluctuation import HALVED, coupling_size, line_distance, response
from pathlines.limit.gaussian.markers import gaussian_grid, legendre_nodes
from pathlines.model import SelfAttention
from pathlines.numerics.quadrature import WeightedNodes, gauss_legendre, trapezoid
from pathlines.observable.distances import line_to_gaussian
from pathlines.weights import FixedWeights

Found = tuple[float, float]


class Square(Setting):
    """Tokens uniform in a square."""

    A: of.QueryKey = R.A
    V: of.ValueMatrix = R.V
    scale: of.ScoreFactor = 2.0
    until: of.Until = 1.0
    sizes: of.Sizes = (200,)
    runs: of.Runs = 120
    nodes: Annotated[of.Count, means("Gauss-Legendre nodes per side")] = 10
    step: of.TimeStep = 0.2
    seed: of.Seed = 2


class OnTheLine(Setting):
    """Gaussian tokens on a line."""

    v: of.LineValue = 1.0
    a: of.LineScore = 0.15
    variance: Annotated[of.Positive, means("variance of the tokens", "σ")] = 1.0
    until: of.Until = 1.0
    sizes: of.Sizes = (200,)
    runs: of.Runs = 200
    step: of.TimeStep = 0.2
    seed: of.Seed = 0


def _coupled(s: Square | OnTheLine, value: Any, score: Any, law: WeightedNodes, samples: np.ndarray) -> Coupling:
    build = partial(SelfAttention, 1.0, weights=FixedWeights(np.asarray(value), np.asarray(score)), space="euclidean")
    return synchronous_coupling(build(), build, law, samples, times=[s.until], method="rk4", step=s.step)


def _square(pair: Coupling) -> np.ndarray:
    """n C_n² of each run."""
    return pair.tokens.shape[2] * pair.errors[:, -1] ** 2


def _with_remainder(whole: Found, half: Found) -> Found:
    """Error beside chance: half of what n/2 tokens change; five times that is 2.5 times a remainder of order 1/n."""
    return whole[0], float(np.hypot(whole[1], (whole[0] - half[0]) / 2))


def _last_variance(s: OnTheLine) -> float:
    """σ/(1 - 2vaσT) of the mean field at depth T, which must not have exploded before."""
    left = 1 - 2 * s.v * s.a * s.variance * s.until
    if left <= 0:
        blow_up = s.until / (1 - left)
        raise ArgumentError(f"Setting `until` must be below the blow-up of the mean field at 1/(2vaσ) = {blow_up:g}, "
                            f"but is {s.until:g}.")  # fmt: skip
    return float(s.variance / left)


def _line(s: OnTheLine, normals: np.ndarray) -> Coupling:
    _last_variance(s)
    law = trapezoid([0.0], [[s.variance]], 0.25)
    return _coupled(s, [[s.v]], [[s.a]], law, np.sqrt(s.variance) * normals)


def _normals(s: OnTheLine, n: int) -> np.ndarray:
    return np.random.default_rng([s.seed, n]).standard_normal((s.runs, positive_integer("sizes", n, 4), 1))


# --- C02


def _line_row(s: OnTheLine, normals: np.ndarray, end: float) -> tuple[dict[str, Found], Coupling]:
    """√(n E C_n²) and √n E W_1 at the end, √(n E W_2²) at the start."""
    n, pair = normals.shape[1], _line(s, normals)
    controls = sample_controls(modes(normals, 4))
    w1 = [np.sqrt(n) * line_to_gaussian(x[-1, :, 0], 0.0, end, 1) for x in pair.tokens]
    w2 = [n * s.variance * line_to_gaussian(x[:, 0], 0.0, 1.0, 2) ** 2 for x in normals]
    return {
        "coupling": root_and_error(*controlled_mean(_square(pair), controls)),
        "w1": controlled_mean(w1, controls),
        "w2_start": root_and_error(*controlled_mean(w2, controls)),
    }, pair


def simulate_line(s: OnTheLine) -> Evidence:
    """The three sizes at each n."""
    rows: dict[str, list[Found]] = {"coupling": [], "w1": [], "w2_start": []}
    runs, end = [], float(np.sqrt(_last_variance(s)))
    for n in s.sizes:
        normals = _normals(s, n)
        (whole, pair), (half, _) = (_line_row(s, normals[:, :count], end) for count in (n, n // 2))
        runs.append(pair.run)
        for name in ("coupling", "w1"):
            rows[name].append(_with_remainder(whole[name], half[name]))
        rows["w2_start"].append(whole["w2_start"])
    names = {"coupling": "√n Cₙ(T)", "w1": "√n W₁(T)", "w2_start": "√n W₂(0)"}
    values, errors = ({k: np.array(v)[:, j] for k, v in rows.items()} for j in (0, 1))
    curves = tuple(Curve(names[k], s.sizes, values[k], errors[k]) for k in rows)
    return Evidence(values, errors, curves=curves, runs=tuple(runs))


def _start_distance(n: int) -> float:
    """√(n E W_2²) of n standard normals and their law: E W_2² = 2 - 2 Σ_i E x_(i) (φ_{i-1} - φ_i)."""
    z = np.linspace(-9, 9, 2001)
    i = np.arange(1, n + 1)[:, None]
    log = (i - 1) * log_ndtr(z) + (n - i) * log_ndtr(-z) - betaln(i, n - i + 1) - z**2 / 2
    order = np.exp(log) @ z * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    cells = ndtri(np.arange(1, n) / n)
    phi = np.concatenate([[0.0], np.exp(-(cells**2) / 2) / np.sqrt(2 * np.pi), [0.0]])
    return float(np.sqrt(n * (2 - 2 * order @ (phi[:-1] - phi[1:]))))


def predict_line(s: OnTheLine) -> Evidence:
    """Linear response on 161 nodes for n → ∞; order statistics for W_2 at the start, exactly at each n."""
    strength = score_strength([[s.a]], [[max(_last_variance(s), s.variance)]])
    nodes, masses = gaussian_grid(0.0, np.sqrt(s.variance), 0.1)
    found = response([[s.a]], [[s.v]], nodes[:, None], masses, s.until)
    limits = (coupling_size(found, masses), line_distance(found, masses))
    one = np.ones(len(s.sizes))
    values = {k: x * one if strength < CRITICAL else None for k, x in zip(("coupling", "w1"), limits, strict=True)}
    start = [np.sqrt(s.variance) * _start_distance(n) for n in s.sizes]
    curves = [Curve(f"n → ∞, {k}", s.sizes, x) for k, x in values.items() if x is not None]
    curves.append(Curve("order statistics, W₂(0)", s.sizes, start))
    advice = f"θ reaches {strength:.2g}: below 1/√12 half the tokens would show the remainder; a smaller a or until"
    return Evidence(
        {**values, "w2_start": start},
        curves=tuple(curves),
        source="linear response of the mean field; order statistics",
        undecided={} if strength < HALVED else dict.fromkeys(values, advice),
    )


_CHANCE = "runs are independent; half of what n/2 tokens change for the remainder O(1/n)"

claim(
    "gaussian/C02",
    UNIFIED,
    "the mean-field error is n^{-1/2} while θ < 1/√2",
    "On a line with V = v, A = a and Gaussian tokens, √n Cₙ and √n W₁ at depth T converge: a token strays from its "
    "mean-field copy by the linear response to sampling, with a remainder O(1/n) while θ < 1/√6. W₂ of the samples "
    "themselves decays a little slower.",
    where="mean-field limit; the rate for Gaussian tokens is derived",
    models=("sa",),
    quick=OnTheLine(),
    full=OnTheLine(sizes=(50, 200, 800), runs=1200, step=0.1),
    within={
        "coupling": standard_errors(5.0, _CHANCE),
        "w1": standard_errors(5.0, _CHANCE),
        "w2_start": standard_errors(5.0, "runs are independent; the expectation is exact"),
    },
    simulate=simulate_line,
    predict=predict_line,
    axes=Axes("tokens n", "√n · error", x_scale="log"),
)


# --- C03


def simulate_slower(s: OnTheLine) -> Evidence:
    """√n C_n at the sizes, and its growth from the first to the last."""
    found = [root_and_error(*map(float, mean_and_error(_square(_line(s, _normals(s, n)))))) for n in s.sizes]
    values, errors = np.array(found).T
    growth = values[-1] / values[0]
    error = growth * float(np.hypot(errors[-1] / values[-1], errors[0] / values[0]))
    numbers = {"growth": growth, "faster_than_slowest": growth}
    advice = f"{growth:.3g} ± {error:.2g} is not five errors above 1: more runs, or sizes further apart"
    return Evidence(
        numbers,
        dict.fromkeys(numbers, error),
        curves=(Curve("√n Cₙ(T)", s.sizes, values, errors),),
        undecided={"growth": advice} if abs(growth - 1) < 5 * error else {},
    )


def predict_slower(s: OnTheLine) -> Evidence:
    """More than the 1 of the rate n^{-1/2}; less than if the exponent at the start held at all depths."""
    strength = abs(s.a) * s.variance
    if strength <= CRITICAL:
        return Evidence({"growth": None, "faster_than_slowest": None}, source="θ(0) ≤ 1/√2: not of this regime")
    strongest = max(strength, abs(s.a) * _last_variance(s))
    most = float((s.sizes[-1] / s.sizes[0]) ** ((1 - rate_exponent(strongest)) / 2))
    curves = (Curve("n^{-1/2}", s.sizes, np.ones(len(s.sizes))),)
    return Evidence({"growth": 1.0, "faster_than_slowest": most}, curves=curves)


claim(
    "gaussian/C03",
    UNIFIED,
    "above θ = 1/√2 the mean-field error decays more slowly than n^{-1/2}",
    "With θ(0) = aσ₀ > 1/√2 the product √n Cₙ grows with n, by at most n^{(1-p)/2}, MSE ~ n^{-p} at the largest θ.",
    where="mean-field limit; the rate for Gaussian tokens is derived",
    models=("sa",),
    quick=OnTheLine(v=-1.0, a=2.0, sizes=(20, 320), runs=160, seed=1),
    full=OnTheLine(v=-1.0, a=2.0, sizes=(20, 80, 320, 1280), step=0.1, seed=1),
    within={
        "growth": at_least("a rate n^{-1/2} would give 1: five standard errors below what is measured, or undecided"),
        "faster_than_slowest": at_most("the smallest exponent of the flow", errors=5.0),
    },
    simulate=simulate_slower,
    predict=predict_slower,
    axes=Axes("tokens n", "√n · Cₙ", x_scale="log"),
    mistakes=(
        Mistake(
            "_square",
            "a power of n too small by {:g} in n Cₙ²",
            lambda right, size: lambda pair: right(pair) / pair.tokens.shape[2] ** size,
            (0.4, 0.6, 0.8),
        ),
        Mistake(
            "_square",
            "a power of n too large by {:g} in n Cₙ²",
            lambda right, size: lambda pair: right(pair) * pair.tokens.shape[2] ** size,
            (0.6, 0.8, 1.0),
        ),
    ),
)


# --- C26


def _box_row(couple: Callable[[np.ndarray], Coupling], points: np.ndarray, degree: int) -> tuple[Found, Coupling]:
    pair = couple(points)
    controls = sample_controls(modes(points, degree, legendre))
    return root_and_error(*controlled_mean(_square(pair), controls)), pair


def simulate_box(s: Square) -> Evidence:
    """√n C_n of uniform tokens in a square, copies in the field of Gauss-Legendre markers."""
    law = gauss_legendre([-1.0, -1.0], [1.0, 1.0], s.nodes)
    found, runs = [], []
    for n in s.sizes:
        shape = (s.runs, positive_integer("sizes", n, 4), 2)
        points = np.random.default_rng([s.seed, n]).uniform(-1, 1, shape)
        couple = partial(_coupled, s, s.V, s.scale * np.asarray(s.A), law)
        (whole, pair), (half, _) = (_box_row(couple, points[:, :count], 2) for count in (n, n // 2))
        runs.append(pair.run)
        found.append(_with_remainder(whole, half))
    values, errors = np.array(found).T
    curves = (Curve("√n Cₙ(T)", s.sizes, values, errors),)
    return Evidence({"coupling": values}, {"coupling": errors}, curves=curves, runs=tuple(runs))


def predict_box(s: Square) -> Evidence:
    """Linear response on Gauss-Legendre nodes."""
    nodes, masses = legendre_nodes(8, 2)
    found = response(s.scale * np.asarray(s.A), s.V, nodes, masses, s.until, steps=10)
    limit = coupling_size(found, masses) * np.ones(len(s.sizes))
    return Evidence({"coupling": limit}, curves=(Curve("n → ∞", s.sizes, limit),), source="linear response")


claim(
    "gaussian/C26",
    UNIFIED,
    "compact supports: the rate is always n^{-1/2}",
    "For tokens uniform in a square √n Cₙ converges to the linear response of the mean field to sampling.",
    where="well-posedness: mean-field limit of compactly supported laws; rate derived",
    models=("sa",),
    quick=Square(),
    full=Square(sizes=(100, 400), runs=400, step=0.1),
    within={"coupling": standard_errors(5.0, _CHANCE)},
    simulate=simulate_box,
    predict=predict_box,
    axes=Axes("tokens n", "√n · Cₙ", x_scale="log"),
)
