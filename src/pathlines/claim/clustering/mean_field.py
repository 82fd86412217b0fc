"""Infinitely many tokens: how fast a density becomes a point mass, and why a finite sample does not show it.

Quantitative Clustering in Mean-Field Transformer Models, arXiv:2504.14697; rates derived. The densities are symmetric
about e_1 and heavier towards it; they are simulated as weighted tokens (multiplicities) on a graded grid, whose mirror
images (d = 2) or rings (d = 3) carry the symmetry, and predicted by exponents in closed form.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.attention import UnnormalisedAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS, QUANTITATIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import Observable
from pathlines.limit.clustering.conformal import poisson_radius, quantile_radius
from pathlines.limit.clustering.mean_field import axisymmetric_flow, graded_quadrature, late_rate
from pathlines.model import SelfAttention, Snapshot
from pathlines.observable.sphere import mean_norm


def _squared_distance(snapshot: Snapshot) -> Array:
    """Σ_j m_j |x_j - e_1|², from differences."""
    x = snapshot.tokens
    masses = snapshot.model.normalised_masses(x.shape[0], x.dtype)
    return masses @ jnp.sum((x - jnp.eye(x.shape[1], dtype=x.dtype)[:1]) ** 2, axis=1)


W2_SQUARED = Observable(
    "w2_squared", "W₂² to the point mass at e₁", "W₂²", _squared_distance, needs_tokens=True, ambient=True
)


# --- CL-25: the Poisson kernel on the circle


class Poisson(Setting):
    """Quantiles of a Poisson kernel on the circle."""

    n: of.Tokens = 700
    radius: Annotated[float, means("parameter of the kernel at the start", "r")] = 0.2
    times: of.Times = (1.0, 3.0, 6.0)
    records: of.Records = 13
    rtol: of.Rtol = 1e-10


def simulate_poisson(s: Poisson) -> Evidence:
    """|x̄| of the quantiles of a Poisson kernel: images of the roots of unity under z -> (z+r)/(1+rz)."""
    roots = np.exp(2j * np.pi * (np.arange(s.n) + 0.5) / s.n)
    points = (roots + s.radius) / (1 + s.radius * roots)
    tokens = Sphere(2).normalise(np.stack([points.real, points.imag], axis=1))
    grid = np.union1d(np.linspace(0.0, max(s.times), s.records), s.times)
    run = flow(SelfAttention(0.0), tokens, times=grid, record=mean_norm, method="dop853", rtol=s.rtol)
    lengths = run["mean_norm"].values
    at_times = lengths[np.searchsorted(grid, s.times)]
    values = {"radius": at_times, "finite_radius": at_times}
    return Evidence(values, curves=(Curve(f"{s.n} tokens", grid, lengths),), runs=(run,))


def predict_poisson(s: Poisson) -> Evidence:
    """r²/(1-r²) = e^t r0²/(1-r0²); of n quantiles, r' = ½(1-r²)x̄(r), which differs by rⁿ."""
    grid, times = np.linspace(0.0, max(s.times), 121), np.asarray(s.times, float)
    law = Curve("r(t)", grid, poisson_radius(grid, s.radius))
    limit, order = poisson_radius(times, s.radius), np.argsort(times)
    finite = np.empty(len(times))
    finite[order] = quantile_radius(times[order], s.radius, s.n)
    few = bool(np.any(np.abs(finite - limit) > POISSON_DIGITS))
    enough = int(np.ceil(np.log(POISSON_DIGITS) / np.log(limit.max())))
    advice = {"radius": f"n={enough} or a shorter time: n quantiles are off by rⁿ"} if few else {}
    return Evidence({"radius": limit, "finite_radius": finite}, curves=(law,), undecided=advice)


POISSON_DIGITS = 1e-7


claim(
    "clustering/CL-25",
    MEAN_FIELD_DYNAMICS,
    "Poisson kernels on the circle at β = 0 (derived)",
    "On the circle at β = 0 a Poisson kernel of parameter r stays one, with |x̄| = r and r²/(1−r²) growing like eᵗ; its "
    "n quantiles stay quantiles, with ṙ = ½(1−r²)x̄ and x̄ = r + (1−r²)(−r)ⁿ/(r(1+(−r)ⁿ)).",
    where="derived; the mean field at β = 0 on the circle",
    models=("sa", "usa"),
    quick=Poisson(),
    full=Poisson(n=4000),
    within={
        "radius": absolute(2 * POISSON_DIGITS, "n quantiles are off by rⁿ, below half of this where it is decided"),
        "finite_radius": absolute(1e-8, "solver tolerance 1e-10, grown by the unstable start: at most e^{t/2} = 20"),
    },
    simulate=simulate_poisson,
    predict=predict_poisson,
    axes=Axes("depth-time t", "|x̄|"),
    note="rⁿ must be small at the last time: 0.9715⁷⁰⁰ = 2e-9 at t = 6.",
)


# --- CL-26: the late rates


def _tilted(tilt: float) -> Any:
    return lambda theta: 1 + tilt * np.cos(theta)


def weighted_tokens(density: Any, d: int, panels: int, points: int, ring: int) -> tuple[np.ndarray, np.ndarray]:
    """(tokens, weights) of an axisymmetric density: mirror images for d = 2, rings of ``ring`` tokens for d = 3.

    Coordinates next to the antipode -e_1 are small numbers with all their digits, which is what the late rate needs.
    """
    phi, weights = graded_quadrature(density, d, panels, points)
    if d == 2:
        around = np.array([[1.0], [-1.0]])
    else:
        angles = 2 * np.pi * (np.arange(ring) + 0.5) / ring
        around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    count = len(around)
    side = (np.sin(phi)[:, None, None] * around).reshape(-1, d - 1)
    x = np.concatenate([np.repeat(-np.cos(phi), count)[:, None], side], axis=1)
    return x, np.repeat(weights, count) / count


class MeanFieldRates(Setting):
    """A density heavier towards e₁, as weighted tokens."""

    beta: of.Beta = 1.0
    tilt: of.Tilt = 0.5
    window: of.RateWindow = (12.0, 16.0)
    records: of.Records = 17
    rings_of_tokens: Annotated[bool, means("whether d = 3 is simulated with rings of tokens")] = False
    panels: of.Panels = 22
    points: of.PanelNodes = 6
    ring: Annotated[of.Count, means("tokens per ring")] = 6
    near: of.LateDistance = 0.01
    settled: of.Settled = 0.0002
    rtol: of.Rtol = 1e-9
    atol: of.Atol = 1e-14


def _particles(s: MeanFieldRates, kind: str, d: int, times: np.ndarray) -> tuple[np.ndarray, Run]:
    """W₂² of weighted tokens, by the engine."""
    tokens, weights = weighted_tokens(_tilted(s.tilt), d, s.panels, s.points, s.ring)
    attention = UnnormalisedAttention() if kind == "usa" else None
    model = SelfAttention(s.beta, attention=attention, multiplicities=weights)
    run = flow(model, tokens, times=times, record=W2_SQUARED, method="dop853", rtol=s.rtol, atol=s.atol)
    return run["w2_squared"].values, run


CASES = {"sa_2": ("sa", 2), "sa_3": ("sa", 3), "sa_4": ("sa", 4), "usa_2": ("usa", 2), "usa_3": ("usa", 3)}


def _window(s: MeanFieldRates, kind: str) -> np.ndarray:
    """Start, middle and end of the fit window; USA runs on the clock e^{-β}t."""
    clock = np.exp(s.beta) if kind == "usa" else 1.0
    return clock * np.array([s.window[0], 0.5 * (s.window[0] + s.window[1]), s.window[1]])


def _case_times(s: MeanFieldRates, kind: str) -> np.ndarray:
    """From 0 to the end of the window, and the three times of the window."""
    window = _window(s, kind)
    return np.union1d(np.linspace(0.0, window[-1], s.records), window)


def _in_window(s: MeanFieldRates, kind: str, values: np.ndarray) -> np.ndarray:
    """W₂² at the three times of the window; NaN when the density did not come near a point mass."""
    times = _case_times(s, kind)
    if len(values) < len(times) or values[-1] > s.near:
        return np.full(3, np.nan)
    return values[np.searchsorted(times, _window(s, kind))]


def _slope(s: MeanFieldRates, kind: str, values: np.ndarray) -> float:
    """Slope of ln W₂² across the window.

    NaN when it differs between the halves of the window by more than ``settled`` of the clock's unit: then it says
    nothing about late times.
    """
    logs, window = np.log(_in_window(s, kind, values)), _window(s, kind)
    halves = np.diff(logs) / np.diff(window)
    settled = abs(halves[1] - halves[0]) * window[-1] / s.window[1] <= s.settled
    return float((logs[2] - logs[0]) / (window[2] - window[0])) if settled else float("nan")


def _resonant_slope(s: MeanFieldRates, kind: str, values: np.ndarray) -> tuple[float, float]:
    """(-κ of W₂² = A(t+c)e^{-κt} through the three times, growth of W₂²e^{2t} in the second half over the first).

    W₂²e^{κt} is linear when z = e^{κΔ} solves W_0 - 2W_1 z + W_2 z² = 0.
    """
    first, middle, last = _in_window(s, kind, values)
    window = _window(s, kind)
    z = (middle + np.sqrt(max(middle**2 - first * last, 0.0))) / last
    scaled = np.array([first, middle, last]) * np.exp(2 * (window - window[0]))
    growth = np.diff(scaled)
    return float(-np.log(z) / (window[1] - window[0])), float(growth[1] / growth[0])


def _on_axis(s: MeanFieldRates, kind: str, d: int) -> np.ndarray:
    """W₂² by characteristics on the axis."""
    return axisymmetric_flow(_tilted(s.tilt), _case_times(s, kind), d, s.beta, kind, s.panels, s.points)


def simulate_rates(s: MeanFieldRates) -> Evidence:
    """Weighted tokens on the circle (and on S² if asked for); characteristics on the axis elsewhere."""
    values: dict[str, Any] = {}
    curves, runs = [], []
    for name, (kind, d) in CASES.items():
        times, label = _case_times(s, kind), f"{kind.upper()}, d = {d}"
        if d == 2 or (d == 3 and s.rings_of_tokens):
            distances, run = _particles(s, kind, d, times)
            runs.append(run)
        else:
            distances, label = _on_axis(s, kind, d), f"{label} (characteristics)"
        if d == 2:
            values[f"distance_{name}"] = distances
        if name == "sa_3":
            values[name], values["sa_3_growth"] = _resonant_slope(s, kind, distances)
        else:
            values[name] = _slope(s, kind, distances)
        curves.append(Curve(label, times[: len(distances)], distances))
    return Evidence(values, curves=tuple(curves), runs=tuple(runs))


def _expected_slope(s: MeanFieldRates, kind: str, d: int) -> float | None:
    """-κ; None where the exponents of USA are too close for the window to tell them apart."""
    antipode, bulk = (d - 1) * np.exp(-s.beta), 2 * np.exp(s.beta)
    apart = kind == "sa" or abs(antipode - bulk) * _window(s, kind)[0] > 6
    return -late_rate(d, s.beta, kind) if apart else None


def predict_rates(s: MeanFieldRates) -> Evidence:
    """Exponents in closed form; the distances themselves from characteristics on the axis, solved by SciPy."""
    values: dict[str, Any] = {name: _expected_slope(s, kind, d) for name, (kind, d) in CASES.items()}
    values["sa_3_growth"] = 1.0
    curves = []
    for kind in ("sa", "usa"):
        values[f"distance_{kind}_2"] = _on_axis(s, kind, 2)
        curves.append(Curve(f"{kind.upper()}, d = 2, axis", _case_times(s, kind), values[f"distance_{kind}_2"]))
    early = 3 * np.exp(-s.window[0]) > SLOPE
    slopes = (*CASES, "sa_3_growth")
    advice = dict.fromkeys(slopes, f"a window from t = {np.log(3 / SLOPE):.1f} on: transients") if early else {}
    return Evidence(values, curves=tuple(curves), undecided=advice)


SLOPE = 4e-4
"""What is allowed for transients of the slopes, which fall like e^{-t}."""
_DISTANCE = relative(5e-8, "two solvers at tolerance 1e-9, on one quadrature")

claim(
    "clustering/CL-26",
    QUANTITATIVE,
    "late rates of the mean-field flow (derived)",
    "From a smooth density, W₂² to the limiting point mass decays under SA like e^{−t} (d=2), t·e^{−2t} (d=3), e^{−2t} "
    "(d≥4), and under USA like e^{−(d−1)e^{−β}t} while (d−1)e^{−β} < 2e^β: mass near the antipode leaves last.",
    where="derived; rates beside the paper's theorem on exponential convergence",
    models=("sa", "usa"),
    quick=MeanFieldRates(),
    full=MeanFieldRates(rings_of_tokens=True),
    within={
        "sa_2": absolute(SLOPE, "remaining transient: twice what the slope may change by in the window"),
        "sa_3": absolute(SLOPE, "remaining transient of (t+c)e^{−κt}, 3e^{−t}"),
        "sa_3_growth": absolute(10 * SLOPE, "W₂²e^{2t} grows linearly: the factor t"),
        "sa_4": absolute(SLOPE, "remaining transient: twice what the slope may change by in the window"),
        "usa_2": absolute(SLOPE, "remaining transient and quadrature"),
        "usa_3": absolute(SLOPE, "remaining transient and quadrature"),
        "distance_sa_2": _DISTANCE,
        "distance_usa_2": _DISTANCE,
    },
    simulate=simulate_rates,
    predict=predict_rates,
    axes=Axes("depth-time t", "W₂²", y_scale="log"),
    note="The window is in units of e^β for USA. The circle is simulated by weighted tokens, and so is S² with "
    "rings_of_tokens; otherwise d ≥ 3 is measured by characteristics on the axis. Slopes that have not settled and "
    "exponents that the window cannot tell apart are not judged.",
)
