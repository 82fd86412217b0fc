"""The drift of overlaps, measured from one short layer: (E K' - K)/v → 𝒟(K) as v → 0.

With the same weights K' - K = c₁√v + c₂v + c₃v^{3/2} + c₄v² + …, where odd terms are odd in V and have mean zero: three
layers of times v, v/4 and v/16 give c₂ without c₁, which is most of the noise, and without c₄; O(v²) is left
(Homogenized Transformers, arXiv:2604.01978; logits exactly Gaussian, p = ∞). Only the Gram matrix is moved, so one
program serves every dimension.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.fitting import Mistake
from pathlines.claim.slopes import log_slope
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.limit.homogenized.attended import sampled_attention, uniform_attended
from pathlines.limit.homogenized.gram import overlap_drift
from pathlines.limit.homogenized.overlap_curve import simplex_layer
from pathlines.limit.homogenized.simplex import SimplexTable, simplex_table
from pathlines.model.homogenized.random_transformer import RandomTransformer

ERRORS = 5.0
CLEAR = 10.0
"""Standard errors of a number whose logarithm is fitted."""
ROOTS = np.array([1.0, 0.5, 0.25])
"""√v of the three layers, over that of the longest."""
SHARES = np.linalg.solve(ROOTS ** np.array([[1], [2], [4]]), [0.0, 1.0, 0.0])
"""What each layer counts so that Σ √v^k is 0, 1, 0 for k = 1, 2, 4."""


def _simplex(n: int, gamma: float) -> np.ndarray:
    return (1 - gamma) * np.eye(n) + gamma


def _uneven(n: int, overlap: float) -> np.ndarray:
    """Half of the tokens have one common overlap, the others are orthogonal to everything: Var_k⟨x_k,x̄⟩ > 0."""
    gram = np.eye(n)
    gram[: n // 2, : n // 2] += overlap * (1 - np.eye(n // 2))
    return gram


_STARTS = {"simplex": _simplex, "uneven": _uneven}


@cache
def _growth(kind: str, n: int, overlap: float, d: int, b: float, layer_time: float, runs: int, seed: int) -> np.ndarray:
    """(γ̄' - γ̄)/v in every run, extrapolated to v = 0 with the same weights; kept for the claims beside."""
    gram = _STARTS[kind](n, overlap)
    before = (gram.sum() - n) / (n * (n - 1))

    def moved(root: float) -> np.ndarray:
        net = RandomTransformer(d, step=root * math.sqrt(layer_time), logit_scale=b, qk_dim=math.inf)
        sampler = "gram" if 2 * n <= d else "auto"
        run = chain(net, gram, depth=1, key=jax.random.key(seed), runs=runs, record="mean_overlap", sampler=sampler)
        return run["mean_overlap"].values[:, 1] - before

    return SHARES @ np.stack([moved(root) for root in ROOTS]) / layer_time


class Simplex(Setting):
    """One layer on simplices."""

    n: of.Tokens = 4
    d: of.Dimension = 8
    b: of.LogitScale = 1.0
    overlaps: of.Overlaps = (0.0, 0.3, 0.6)
    layer_time: of.LongestLayer = 0.1
    runs: of.Runs = 160_000
    seed: of.Seed = 9


def simulate_simplex(s: Simplex) -> Evidence:
    """The drift of γ on the simplex at each γ."""
    sizes = s.d, s.b, s.layer_time, s.runs
    found = [mean_and_error(_growth("simplex", s.n, g, *sizes, s.seed + k)) for k, g in enumerate(s.overlaps)]
    mean, error = (np.array(column) for column in zip(*found, strict=True))
    return Evidence({"drift": mean}, {"drift": error}, curves=(Curve("chain", s.overlaps, mean, error),))


def simulate_printed_simplex(s: Simplex) -> Evidence:
    """The same; where 2g/d is too small for the noise, agreement with the printed drift decides nothing."""
    found, table = simulate_simplex(s), simplex_table(s.n, s.b)
    gap = np.abs(table.drift(np.asarray(s.overlaps)) - table.drift(np.asarray(s.overlaps), s.d))
    ratio = float(np.max(gap / np.asarray(found.uncertainties["drift"])))
    if ratio > 2 * ERRORS:
        return found
    need = math.ceil(s.runs * (2 * ERRORS / ratio) ** 2) if ratio > 0 else 0
    advice = f"runs={need}, or a smaller d, would resolve the difference of 2g/d" if need else "γ < 1 would show it"
    return Evidence(found.values, found.uncertainties, found.curves, undecided={"drift": advice})


def _drift(s: Simplex, d: float, label: str) -> Evidence:
    table, gamma = simplex_table(s.n, s.b), np.linspace(min(s.overlaps), max(s.overlaps), 60)
    curve = Curve(label, gamma, table.drift(gamma, d))
    rest = [abs(_extrapolated(table, g, s) - float(table.drift(g, s.d))) for g in s.overlaps]
    return Evidence({"drift": table.drift(np.asarray(s.overlaps), d)}, {"drift": np.array(rest) / ERRORS}, (curve,))


def _extrapolated(table: SimplexTable, gamma: float, s: Simplex) -> float:
    """What the three layers extrapolate to, by the mean of a layer to first order in 1/d."""
    v = s.layer_time * ROOTS**2
    return float(SHARES @ [simplex_layer(table, gamma, 1.0, x, s.d, exact=True)[0] - gamma for x in v]) / s.layer_time


def predict_simplex(s: Simplex) -> Evidence:
    """𝒟_d(γ)."""
    return _drift(s, s.d, "drift at finite d")


def predict_printed_simplex(s: Simplex) -> Evidence:
    """𝖻(γ)."""
    return _drift(s, math.inf, "drift at d = ∞")


class Uneven(Setting):
    """One layer of uneven tokens."""

    n: of.Tokens = 4
    b: of.LogitScale = 1.5
    overlap: Annotated[of.Cosine, means("overlap within the first half of the tokens")] = 0.95
    dimensions: of.Dimensions = (64, 4096)
    layer_time: of.LongestLayer = 0.1
    runs: of.Runs = 120_000
    samples: Annotated[of.Count, means("samples of the logits in the prediction")] = 262_144
    seed: of.Seed = 10


def simulate_uneven(s: Uneven) -> Evidence:
    """Drift of m = |x̄|² at logit scale b less that at b = 0, with the same normals, for each d."""
    found = []
    for k, d in enumerate(s.dimensions):
        sizes = s.layer_time, s.runs, s.seed + k
        warm, cold = (_growth("uneven", s.n, s.overlap, d, b, *sizes) for b in (0.0, s.b))
        found.append(mean_and_error((s.n - 1) / s.n * (cold - warm)))
    mean, error = (np.array(column) for column in zip(*found, strict=True))
    exponent, spread = log_slope(s.dimensions, mean, error)
    clear = float(np.min(np.abs(mean) / error))
    more = f"runs={s.runs * (CLEAR / clear) ** 2:.2g} or more: the logarithm of a deviation needs one above its noise"
    return Evidence(
        {"deviation": mean, "exponent": exponent},
        {"deviation": error, "exponent": spread},
        curves=(Curve("chain", s.dimensions, np.abs(mean), error),),
        undecided={} if clear > CLEAR else {"exponent": more},
    )


def predict_uneven(s: Uneven) -> Evidence:
    """At fixed b a number that hardly depends on d, from E_A[ΠKΠᵀ]."""
    gram = _uneven(s.n, s.overlap)
    cold, warm = sampled_attention(gram, s.b, samples=s.samples, seed=s.seed), uniform_attended(gram)
    deviation = [float(np.mean(overlap_drift(gram, cold.mean, d) - overlap_drift(gram, warm, d))) for d in s.dimensions]
    return Evidence(
        {"deviation": deviation, "exponent": 0.0},
        {"deviation": float(np.mean(cold.error)), "exponent": abs(log_slope(s.dimensions, deviation)[0]) / ERRORS},
        curves=(Curve("E_A[ΠKΠᵀ]", s.dimensions, np.abs(deviation)),),
        source="exponent; quasi-random average of the logits",
    )


def predict_printed_uneven(s: Uneven) -> Evidence:
    """Proportional to d²σ_A⁴β² = d·b²."""
    d = np.asarray(s.dimensions, float)
    first = abs(predict_uneven(s).values["deviation"][0])
    return Evidence({"exponent": 1.0}, curves=(Curve("∝ d²σ_A⁴β² = d b²", d, first * d / d[0]),))


_SIMPLEX_AXES = Axes("overlap γ", "drift of γ per unit of τ")
_UNEVEN_AXES = Axes("dimension d", "|drift of m − its value at b = 0|", x_scale="log", y_scale="log")
_NOISE = standard_errors(ERRORS, "standard errors over runs, each entry, and what extrapolation leaves, O(v²)")

ER_01B = claim(
    "homogenized/ER-01b",
    HOMOGENIZED,
    "drift on the simplex in d dimensions (derived)",
    "On the simplex the overlap drifts by 𝒟_d(γ) = [(d−2+γ²)S − (d−1)γP]/d per unit of diffusive time, with "
    "P = γ+(1−γ)f and S = γ+(1−γ)g.",
    where="derived; on §2.3.4, the drift on the simplex",
    models=("random",),
    quick=Simplex(),
    full=Simplex(runs=1_000_000),
    within={"drift": _NOISE},
    simulate=simulate_simplex,
    predict=predict_simplex,
    axes=_SIMPLEX_AXES,
)

ER_01B.printed_as(
    "homogenized/ER-01",
    "drift on the simplex, as printed",
    "On the simplex the overlap drifts by 𝖻(γ) = (1−γ)[γ(1−f)+g] per unit of diffusive time, in every dimension d.",
    where="§2.3.4, drift 𝖻(γ) of the theorem on the simplex, read at finite d",
    simulate=simulate_printed_simplex,
    predict=predict_printed_simplex,
    note="Right only as d → ∞: at γ = 0 the drift is smaller by 2g(0)/d.",
)

ER_05B = claim(
    "homogenized/ER-05b",
    HOMOGENIZED,
    "high-temperature parameter (derived)",
    "The deviation of the drift of m = |x̄|² from its value at β = 0 depends on the query-key matrices through "
    "b² = dσ_A⁴β² and not on d at fixed b; its value follows from E_A[ΠKΠᵀ].",
    where="derived; on §2.3.5, the parameter of the logistic law",
    models=("random",),
    quick=Uneven(),
    full=Uneven(dimensions=(64, 512, 4096, 32768), runs=400_000, samples=524_288),
    within={
        "exponent": standard_errors(ERRORS, "standard errors of the slope, and that of the deviations at these d"),
        "deviation": _NOISE,
    },
    simulate=simulate_uneven,
    predict=predict_uneven,
    axes=_UNEVEN_AXES,
    blind={"deviation": "logits make one layer scatter by five times the deviation: 3 % takes 1.2e6 runs at each d"},
    mistakes=(
        Mistake(
            "_growth",
            "logits that change with the dimension like d^{:g}",
            lambda right, size: lambda kind, n, overlap, d, b, *o: right(kind, n, overlap, d, b * (d / 64) ** size, *o),
            (0.01, 0.02, 0.05, 0.1),
        ),
    ),
)

ER_05B.printed_as(
    "homogenized/ER-05",
    "high-temperature parameter, as printed",
    "The deviation from the logistic law that the query-key matrices cause is of the size of d²σ_A⁴β²: at a fixed "
    "standard deviation b = βσ_A²√d of the logits it grows like d.",
    where="§2.3.5, parameter d²σ_A⁴β² of the theorem on the logistic law",
    within={"exponent": standard_errors(ERRORS, "standard errors of the slope")},
    predict=predict_printed_uneven,
    note="As an upper bound with an unspecified constant the printed inequality is not contradicted: it is not sharp.",
)
