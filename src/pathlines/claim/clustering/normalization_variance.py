"""How fast the spread of directions decays in a narrow cone, and when the cone is narrow enough.

Collapse speeds of Normalization in Attention Dynamics (arXiv:2510.22026): Var = 1-|mean θ|² = Σ_ij m_i m_j u_ij.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import msgspec
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.normalization_schemes import MODEL_NAMES, RandomScheme, Scheme, scheme_model
from pathlines.claim.slopes import log_slope
from pathlines.claim.tolerance import absolute, at_least, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import NORMALIZATION
from pathlines.foundation.setting import means
from pathlines.integrate import Run, flow
from pathlines.observable.pairs import variance
from pathlines.observable.sphere import magnitude


class NarrowCone(RandomScheme):
    """Tokens in a narrow cone."""

    beta: of.Beta = 1.0
    switch: of.MixSwitch = 2.0
    spread: Annotated[of.Positive, means("deviation of the tokens from the axis of the cone")] = 0.01
    window: Annotated[of.Positive, means("half the time over which a rate is read", unit="depth-time")] = 0.01


Times = Annotated[tuple[of.NonNegative, ...], means("when the rate of each scheme is read", "t", unit="depth-time")]


class Collapse(NarrowCone):
    """The rates of several schemes."""

    schemes: of.Schemes = ("post", "ngpt", "pre", "peri", "mix", "sqrt")
    times: Times = (5.0, 5.0, 20.0, 20.0, 20.0, 20.0)


def _cone(s: NarrowCone) -> Array:
    """N(e_1 + spread·ξ_i), ξ_i standard Gaussian."""
    return Sphere(s.d).clusters(jax.random.key(s.seed), np.eye(s.d)[:1], [s.n], s.spread)


def _variances(name: str, s: Scheme, tokens: Array, times: np.ndarray) -> tuple[np.ndarray, Run]:
    options: dict[str, Any] = {"record": (variance, magnitude), "method": "dop853", "rtol": s.rtol}
    run = flow(scheme_model(name, s), tokens, times=times, **options)
    return run["variance"].values, run


# --- CL-12: the decay rate of each scheme


def _measured_rate(name: str, s: NarrowCone, time: float) -> tuple[float, np.ndarray, np.ndarray, Run]:
    """-d ln Var/dt at ``time`` by a central difference of width 2·window, with the curve of Var."""
    edges = [time - s.window, time + s.window]
    grid = np.union1d(np.linspace(0.0, time, s.records), edges)
    values, run = _variances(name, s, _cone(s), grid)
    low, high = values[np.searchsorted(grid, edges)]
    return float(np.log(low / high) / (2 * s.window)), grid, values, run


def simulate_rates(s: Collapse) -> Evidence:
    """One run a scheme from the same narrow cone."""
    found = [_measured_rate(name, s, time) for name, time in zip(s.schemes, s.times, strict=True)]
    return Evidence(
        {"rate": [rate for rate, *_ in found]},
        curves=tuple(Curve(name, grid, v) for name, (_, grid, v, _) in zip(s.schemes, found, strict=True)),
        runs=tuple(run for *_, run in found),
    )


def _rate_law(name: str, t: float, s: Collapse) -> float:
    """2/s of the scheme at consensus, where |A| = h = 1 and magnitudes grow at unit rate."""
    if name == "mix":
        return 2.0 if t <= s.switch else 2 / (s.magnitude + t - s.switch)
    grown = 2 / (s.magnitude + t)
    return {"post": 2.0, "ngpt": 2 * s.alpha, "pre": grown, "peri": grown, "sqrt": 2 / np.sqrt(t + 1)}[name]


def _decay_law(name: str, t: np.ndarray, s: Collapse) -> np.ndarray:
    """Var(t)/Var(0) = exp(-∫ rate)."""
    after = np.maximum(t - s.switch, 0.0)
    algebraic = (s.magnitude / (s.magnitude + t)) ** 2
    laws = {
        "post": np.exp(-2 * t),
        "ngpt": np.exp(-2 * s.alpha * t),
        "pre": algebraic,
        "peri": algebraic,
        "mix": np.exp(-2 * np.minimum(t, s.switch)) * (s.magnitude / (s.magnitude + after)) ** 2,
        "sqrt": np.exp(-4 * (np.sqrt(t + 1) - 1)),
    }
    return laws[name]


def predict_rates(s: Collapse) -> Evidence:
    """The linearisation at consensus."""
    first = 1 - float(np.sum(np.mean(np.asarray(_cone(s)), axis=0) ** 2))
    curves = []
    for name, time in zip(s.schemes, s.times, strict=True):
        grid = np.linspace(0.0, time, 121)
        curves.append(Curve(f"{name}, law", grid, first * _decay_law(name, grid, s)))
    rates = [_rate_law(name, time, s) for name, time in zip(s.schemes, s.times, strict=True)]
    wide = 0.1 * (1 + s.beta) * s.spread**2 * s.d
    advice = (
        {"rate": f"spread={s.spread * np.sqrt(NARROW / wide):.2g}: the cone is not narrow"} if wide > NARROW else {}
    )
    return Evidence({"rate": rates}, curves=tuple(curves), undecided=advice)


NARROW = 5e-4
"""What is allowed for the width of the cone."""

claim(
    "clustering/CL-12",
    NORMALIZATION,
    "collapse speed in a narrow cone",
    "In a narrow cone −V̇ar/Var is 2 for Post-LN, 2α for nGPT, 2/(r₀+t) for Pre- and Peri-LN, 2/(r₀+t−τ) for Mix-LN "
    "after its switch and 2/√(t+1) for sqrt-scaling.",
    where="theorem on the speed of collapse in a narrow cone",
    models=MODEL_NAMES,
    quick=Collapse(),
    full=Collapse(records=101),
    within={"rate": relative(NARROW, "corrections of a tenth of (1+β)·spread²·d at most, 0.01 % here")},
    simulate=simulate_rates,
    predict=predict_rates,
    axes=Axes("depth-time t", "Var = 1−|mean θ|²", y_scale="log"),
    note="times holds one time per scheme.",
)


# --- ER-05c: the printed dependence on α


class Alphas(NarrowCone):
    """NGPT at several α."""

    alphas: Annotated[tuple[of.Positive, ...], means("steps of nGPT", "α")] = (0.25, 0.5, 1.0, 2.0)
    time: Annotated[of.Positive, means("when the rates are read, times α", "αt", unit="depth-time")] = 5.0


def simulate_alpha(s: Alphas) -> Evidence:
    """The rate of nGPT at time/α for several α, and its exponent in α."""
    settings = [msgspec.structs.replace(s, alpha=alpha) for alpha in s.alphas]
    found = [_measured_rate("ngpt", at, s.time / at.alpha) for at in settings]
    rates = np.array([rate for rate, *_ in found])
    exponent = log_slope(s.alphas, rates)[0]
    curves = (Curve("nGPT", s.alphas, rates),)
    return Evidence({"exponent": exponent}, curves=curves, runs=tuple(run for *_, run in found))


def predict_alpha(s: Alphas) -> Evidence:
    """A rate proportional to 1/α, as printed; drawn with the constant 2 of α = 1."""
    return Evidence({"exponent": -1.0}, curves=(Curve("printed: ∝ 1/α", s.alphas, 2 / np.asarray(s.alphas)),))


claim(
    "clustering/ER-05c",
    NORMALIZATION,
    "collapse speed of nGPT, as printed",
    "Under nGPT in a narrow cone V̇ar = −Θ(Var/α).",
    where="theorem on the speed of collapse, row of nGPT as printed",
    models=("ngpt",),
    quick=Alphas(),
    within={"exponent": absolute(0.5, "half a power of α; constants hidden in Θ do not enter an exponent")},
    simulate=simulate_alpha,
    predict=predict_alpha,
    expected="refuted",
    corrected_by="clustering/CL-12",
    axes=Axes("α", "−V̇ar/Var", x_scale="log", y_scale="log"),
    note="The speed is α, so the rate is 2α: V̇ar = −Θ(α·Var).",
)


# --- ER-05a, ER-05b: how narrow is narrow enough


def _two_groups(n: int, d: int, deficit: float) -> Array:
    """n tokens on two points at pair deficit u: the widest start that max u_ij ≤ u admits."""
    points = np.zeros((2, d))
    points[0, 0] = 1.0
    points[1, :2] = 1 - deficit, np.sqrt(deficit * (2 - deficit))
    return Sphere(d).normalise(np.repeat(points, [n - n // 2, n // 2], axis=0))


def _cloud(n: int, d: int, deficit: float, seed: int) -> Array:
    """n tokens N(e_1 + sξ_i), with s such that the largest u_ij is the given (small) one."""
    directions = np.asarray(jax.random.normal(jax.random.key(seed), (n, d)))
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        x = np.asarray(Sphere(d).normalise(np.eye(d)[0] + middle * directions))
        wide = float(np.max(1 - x @ x.T)) > deficit
        low, high = (low, middle) if wide else (middle, high)
    return Sphere(d).normalise(np.eye(d)[0] + low * directions)


class Cone(Scheme):
    """A cone that the printed condition allows."""

    beta: of.Beta = 0.005
    alpha: of.NgptStep = 1.0
    switch: of.MixSwitch = 2.0
    d: of.Dimension = 5
    share: Annotated[of.NonNegative, means("width of the cone over the bound of the condition")] = 0.99
    until: of.Until = 2.0


def _printed_condition(s: Cone) -> float:
    """1/(100 n²β²), and 2 where that is more: no two unit vectors are further apart."""
    return 2.0 if s.beta == 0 else min(2.0, s.share / (100 * s.n**2 * s.beta**2))


def _decays(s: Cone, starts: dict[str, Array]) -> Evidence:
    times = np.linspace(0.0, s.until, s.records)
    rates, curves, runs = [], [], []
    for label, tokens in starts.items():
        values, run = _variances("post", s, tokens, times)
        rates.append(float(np.log(values[0] / values[-1]) / s.until))
        curves.append(Curve(label, times, values / values[0]))
        runs.append(run)
    return Evidence({"rate": rates}, curves=tuple(curves), runs=tuple(runs))


class PrintedCone(Cone):
    """The printed condition, and the rate it promises."""

    constant: Annotated[float, means("rate that is promised")] = 0.1


def simulate_printed_cone(s: PrintedCone) -> Evidence:
    """The widest start the printed condition admits: a counterexample where it admits antipodal groups."""
    found = _decays(s, {"two groups": _two_groups(s.n, s.d, _printed_condition(s))})
    widest = np.sqrt(s.share / 200) / s.n
    decays = {"rate": f"beta below {widest:.2g}: the condition does not admit antipodal groups"}
    return msgspec.structs.replace(found, undecided=decays if _printed_condition(s) < 2 else {})


def predict_printed_cone(s: PrintedCone) -> Evidence:
    """Decay at some positive rate."""
    times = np.linspace(0.0, s.until, 61)
    law = (Curve(f"e^{{−{s.constant:g}t}}", times, np.exp(-s.constant * times)),)
    return Evidence({"rate": [s.constant]}, curves=law)


_WIDTH_AXES = Axes("depth-time t", "Var(t)/Var(0)", y_scale="log")

claim(
    "clustering/ER-05a",
    NORMALIZATION,
    "cone condition of the collapse-speed theorem, as printed",
    "If all pair deficits are below δ < 1/(100n²β²), the variance under Post-LN decays at a rate bounded from below.",
    where="theorem on the speed of collapse, its cone condition as printed",
    models=("post-ln",),
    quick=PrintedCone(),
    within={"rate": at_least("a twentieth of the true rate 2 stands for the constant hidden in Θ")},
    simulate=simulate_printed_cone,
    predict=predict_printed_cone,
    expected="refuted",
    corrected_by="clustering/ER-05b",
    axes=_WIDTH_AXES,
    note="For β ≤ 1/(n√200) the condition is empty: it admits antipodal groups, which do not move.",
)


class CorrectedCone(Cone):
    """The corrected condition."""

    seed: of.Seed = 0


def simulate_cone(s: CorrectedCone) -> Evidence:
    """Two groups and a random cloud as wide as the corrected condition admits."""
    width = min(_printed_condition(s), s.share / (100 * s.n**2))
    return _decays(s, {"two groups": _two_groups(s.n, s.d, width), "cloud": _cloud(s.n, s.d, width, s.seed)})


def predict_cone(s: CorrectedCone) -> Evidence:
    """Rate 2."""
    times = np.linspace(0.0, s.until, 61)
    return Evidence({"rate": [2.0, 2.0]}, curves=(Curve("e^{−2t}", times, np.exp(-2 * times)),))


claim(
    "clustering/ER-05b",
    NORMALIZATION,
    "cone condition of the collapse-speed theorem, corrected",
    "If all pair deficits are below δ < min(1/(100n²β²), 1/(100n²)), the variance under Post-LN decays like e^{−2t} "
    "up to a constant in the rate.",
    where="theorem on the speed of collapse, its cone condition corrected",
    models=("post-ln",),
    quick=CorrectedCone(),
    within={"rate": relative(1e-3, "corrections of order (1+β)δ/10 ≤ 1/(500n²) for n ≥ 2")},
    simulate=simulate_cone,
    predict=predict_cone,
    axes=_WIDTH_AXES,
)
