"""How n tokens follow their mean field over depth: rates and prefactors.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; Token Sample Complexity of Attention,
arXiv:2512.10656. Rates and prefactors are derived. Tokens are coupled with copies of the same starts in the mean field,
which quadrature markers carry: the error has no sampling floor.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import betaln, log_ndtr, ndtri

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.gaussian import reference_set as R
from pathlines.claim.tolerance import at_least, at_most, relative, standard_errors
from pathlines.domain.quadrature import Markers, gauss_legendre, trapezoid
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import UNIFIED
from pathlines.integrate.coupling import Coupling, synchronous_coupling
from pathlines.limit.gaussian.context import CRITICAL, rate_exponent, theta
from pathlines.limit.gaussian.fluctuation import coupling_draws, coupling_size, line_distance_draws, response
from pathlines.limit.gaussian.markers import gaussian_grid, legendre_nodes
from pathlines.model import SelfAttention
from pathlines.observable.distances import line_to_gaussian
from pathlines.weights import Fixed


def _coupled(s: Any, value: Any, score: Any, law: Markers, samples: np.ndarray) -> Coupling:
    build = partial(SelfAttention, 1.0, weights=Fixed(np.asarray(value), np.asarray(score)), space="euclidean")
    return synchronous_coupling(build(), build, law, samples, times=[s.until], method="rk4", step=s.step)


def _mean_and_error(squares: np.ndarray) -> tuple[float, float]:
    """√(mean) over runs with its standard error."""
    mean = float(np.mean(squares))
    return float(np.sqrt(mean)), float(np.std(squares, ddof=1) / np.sqrt(len(squares)) / (2 * np.sqrt(mean)))


def _draws(s: Any, n: int, d: int) -> np.ndarray:
    return np.random.default_rng([s.seed, n]).standard_normal((s.runs, n, d))


def _line(s: Any, n: int) -> tuple[Coupling, np.ndarray]:
    _last_variance(s)
    samples = np.sqrt(s.variance) * _draws(s, n, 1)
    return _coupled(s, [[s.v]], [[s.a]], trapezoid([0.0], [[s.variance]], 0.25), samples), samples


def _last_variance(s: Any) -> float:
    """σ/(1 - 2vaσT) of the mean field at depth T, which must not have exploded before."""
    left = 1 - 2 * s.v * s.a * s.variance * s.until
    if left <= 0:
        blow_up = s.until / (1 - left)
        raise ArgumentError(f"Setting `until` must be below the blow-up of the mean field at 1/(2vaσ) = {blow_up:g}, "
                            f"but is {s.until:g}.")  # fmt: skip
    return float(s.variance / left)


# --- C02


def simulate_line(s: Any) -> Evidence:
    """Means over runs of √n C_n and √n W_1 at the end, root mean square of √n W_2 at the start."""
    rows: dict[str, list[tuple[float, float]]] = {"coupling": [], "w1": [], "w2_start": []}
    runs = []
    end = np.sqrt(_last_variance(s))
    for n in s.sizes:
        pair, samples = _line(s, n)
        runs.append(pair.run)
        w1 = [line_to_gaussian(x[-1, :, 0], 0.0, end, 1) for x in pair.tokens]
        w2 = [n * line_to_gaussian(x[:, 0], 0.0, np.sqrt(s.variance), 2) ** 2 for x in samples]
        for name, found in (("coupling", pair.errors[:, -1]), ("w1", np.array(w1))):
            scaled = np.sqrt(n) * found
            rows[name].append((float(scaled.mean()), float(scaled.std(ddof=1) / np.sqrt(s.runs))))
        rows["w2_start"].append(_mean_and_error(np.array(w2)))
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


def predict_line(s: Any) -> Evidence:
    """Linear response on 161 nodes for n → ∞; order statistics for W_2 at the start, exactly at each n."""
    last = _last_variance(s)
    nodes, masses = gaussian_grid(0.0, np.sqrt(s.variance), 0.1)
    found = response([[s.a]], [[s.v]], nodes[:, None], masses, s.until)
    usual = theta([[s.a]], [[max(last, s.variance)]]) < CRITICAL
    draws = (coupling_draws(found, masses), line_distance_draws(found, masses))
    limits = [np.full(len(s.sizes), x.mean()) if usual else None for x in draws]
    start = [np.sqrt(s.variance) * _start_distance(n) for n in s.sizes]
    named = [(name, limit) for name, limit in zip(("Cₙ", "W₁"), limits, strict=True) if limit is not None]
    curves = [Curve(f"n → ∞, {name}", s.sizes, limit) for name, limit in named]
    curves.append(Curve("order statistics, W₂(0)", s.sizes, start))
    values = {"coupling": limits[0], "w1": limits[1], "w2_start": start}
    errors = {k: 0.03 * x for k, x in zip(("coupling", "w1"), limits, strict=True) if x is not None}
    return Evidence(values, errors, curves=tuple(curves), source="linear response of the mean field; order statistics")


claim(
    "gaussian/C02",
    UNIFIED,
    "the mean-field error is n^{-1/2} while θ < 1/√2",
    "On a line with V = v, A = a and Gaussian tokens, √n Cₙ and √n W₁ at depth T converge: a token strays from its "
    "mean-field copy by the linear response to sampling. W₂ of the samples themselves decays a little slower.",
    models=("sa",),
    quick={
        "v": 1.0,
        "a": 0.25,
        "variance": 1.0,
        "until": 1.0,
        "sizes": [200],
        "runs": 300,
        "step": 0.1,
        "seed": 0,
    },
    full={"sizes": [50, 200, 800], "runs": 300},
    within={
        "coupling": standard_errors(4.5, "runs are independent; 3 % for terms of order n^{-1/2}"),
        "w1": standard_errors(4.5, "runs are independent; 3 % for terms of order n^{-1/2}"),
        "w2_start": standard_errors(4.5, "runs are independent; the expectation is exact"),
    },
    simulate=simulate_line,
    predict=predict_line,
    axes=Axes("tokens n", "√n · error", x_scale="log"),
)


# --- C03


def simulate_slower(s: Any) -> Evidence:
    """√n C_n at the sizes, and its growth from the first to the last."""
    found = [_mean_and_error(n * _line(s, n)[0].errors[:, -1] ** 2) for n in s.sizes]
    values, errors = np.array(found).T
    growth = values[-1] / values[0]
    error = growth * float(np.hypot(errors[-1] / values[-1], errors[0] / values[0]))
    numbers = {"growth": growth, "faster_than_slowest": growth}
    return Evidence(numbers, dict.fromkeys(numbers, error), curves=(Curve("√n Cₙ(T)", s.sizes, values, errors),))


def predict_slower(s: Any) -> Evidence:
    """More than the 1 of the rate n^{-1/2}; less than if the exponent at the start held at all depths."""
    strength = abs(s.a) * s.variance
    if strength <= CRITICAL:
        return Evidence({"growth": None, "faster_than_slowest": None}, source="θ(0) ≤ 1/√2: not of this regime")
    most = float((s.sizes[-1] / s.sizes[0]) ** ((1 - rate_exponent(strength)) / 2))
    curves = (Curve("n^{-1/2}", s.sizes, np.ones(len(s.sizes))),)
    return Evidence({"growth": 1.0, "faster_than_slowest": most}, curves=curves)


claim(
    "gaussian/C03",
    UNIFIED,
    "above θ = 1/√2 the mean-field error decays more slowly than n^{-1/2}",
    "With θ(0) = aσ₀ > 1/√2 the product √n Cₙ grows with n, by at most n^{(1-p)/2}, MSE ~ n^{-p} at θ(0).",
    models=("sa",),
    quick={
        "v": -1.0,
        "a": 2.0,
        "variance": 1.0,
        "until": 1.0,
        "sizes": [30, 300],
        "runs": 80,
        "step": 0.1,
        "seed": 1,
    },
    full={"sizes": [50, 200, 800], "runs": 200, "step": 0.05},
    within={
        "growth": at_least("a rate n^{-1/2} would give 1; measured 1.5 ± 0.2", slack=-0.15),
        "faster_than_slowest": at_most("the exponent of the start is the smallest of the flow"),
    },
    simulate=simulate_slower,
    predict=predict_slower,
    axes=Axes("tokens n", "√n · Cₙ", x_scale="log"),
)


# --- C26


def simulate_box(s: Any) -> Evidence:
    """√n C_n of uniform tokens in a square, copies in the field of Gauss-Legendre markers."""
    law = gauss_legendre([-1.0, -1.0], [1.0, 1.0], s.nodes)
    found, runs = [], []
    for n in s.sizes:
        samples = np.random.default_rng([s.seed, n]).uniform(-1, 1, (s.runs, n, 2))
        pair = _coupled(s, s.V, s.scale * np.asarray(s.A), law, samples)
        runs.append(pair.run)
        found.append(_mean_and_error(n * pair.errors[:, -1] ** 2))
    values, errors = np.array(found).T
    curves = (Curve("√n Cₙ(T)", s.sizes, values, errors),)
    return Evidence({"coupling": values}, {"coupling": errors}, curves=curves, runs=tuple(runs))


def predict_box(s: Any) -> Evidence:
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
    models=("sa",),
    quick={
        "A": R.A,
        "V": R.V,
        "scale": 2.0,
        "until": 1.0,
        "sizes": [400],
        "runs": 40,
        "nodes": 16,
        "step": 0.1,
        "seed": 2,
    },
    full={"sizes": [100, 400], "runs": 160},
    within={"coupling": relative(0.16, "40 runs: 6 % each, two and a half times that; O(1/n) beside it")},
    simulate=simulate_box,
    predict=predict_box,
    axes=Axes("tokens n", "√n · Cₙ", x_scale="log"),
)
