"""Sharp rates of the unnormalised mean field on S¹ and S², and what finite n and atoms change (2504.14697; derived).

Densities symmetric about e₁ are carried by weighted tokens whose grid is geometric towards the antipode: there is mass
at every small distance from it, so that no finite number of tokens is seen.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from msgspec import Meta

from pathlines.attention import UnnormalisedAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.mean_field import W2_SQUARED, weighted_tokens
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_least, at_most, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import QUANTITATIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.limit.clustering.conformal import poisson_radius
from pathlines.limit.followups.quantitative import (
    crossover_delay,
    poisson_distance,
    pole_growth,
    sharp_rate,
    sharp_rates,
)
from pathlines.model import SelfAttention
from pathlines.observable.sphere import mean_norm
from pathlines.weights import FixedWeights

CONVENTION = "unnormalised attention e^{β⟨x,y⟩} without a shift, chordal distance in W₂."


def unnormalised(beta: float, d: int, masses: Any = None) -> SelfAttention:
    """USA at any real β: the sign of β goes into the queries."""
    kind = UnnormalisedAttention()
    if beta >= 0:
        return SelfAttention(beta, attention=kind, multiplicities=masses)
    weights = FixedWeights(np.eye(d), query=-np.eye(d))
    return SelfAttention(-beta, attention=kind, multiplicities=masses, weights=weights)


# --- Q1: the Poisson kernel


class Kernel(Setting):
    """Quantiles of a Poisson kernel on the circle, β = 0."""

    radius: Annotated[of.Share, means("resultant at the start", "r₀")] = 0.5
    times: of.Times = (1.0, 2.0, 5.0)
    n: of.Tokens = 3000
    rtol: of.Rtol = 1e-10


def simulate_kernel(s: Kernel) -> Evidence:
    """|x̄| and W₂ of quantiles: images of the roots of unity under z -> (z+r)/(1+rz)."""
    roots = np.exp(2j * np.pi * (np.arange(s.n) + 0.5) / s.n)
    points = (roots + s.radius) / (1 + s.radius * roots)
    tokens = Sphere(2).normalise(np.stack([points.real, points.imag], axis=1))
    grid = np.union1d(np.linspace(0.0, max(s.times), 13), s.times)
    run = flow(unnormalised(0.0, 2), tokens, times=grid, record=(mean_norm, W2_SQUARED), method="dop853", rtol=s.rtol)
    at, distance = np.searchsorted(grid, s.times), np.sqrt(run["w2_squared"].values)
    values = {"radius": run["mean_norm"].values[at], "distance": distance[at]}
    grown = 10 * s.rtol * 1e-3 * np.exp(np.asarray(s.times, float) / 2)  # of a resultant 0, which is unstable
    curves = (Curve(f"{s.n} quantiles", grid, distance),)
    return Evidence(values, uncertainties={"radius": grown}, curves=curves, runs=(run,))


def predict_kernel(s: Kernel) -> Evidence:
    """Closed forms; n quantiles are off by rⁿ."""
    grid, times = np.linspace(0.0, max(s.times), 121), np.asarray(s.times, float)
    radius = poisson_radius(times, s.radius)
    values = {"radius": radius, "distance": poisson_distance(times, s.radius)}
    few = float(np.max(radius)) ** s.n > 1e-12
    advice = dict.fromkeys(values, "more tokens n, or a shorter time: n quantiles are off by rⁿ") if few else {}
    law = Curve("√(2−2r)", grid, poisson_distance(grid, s.radius))
    return Evidence(values, curves=(law,), undecided=advice)


_SOLVED = "solver tolerance 1e-10, grown by the unstable start: at most e^{t/2}, relatively"
claim(
    "followups/Q1",
    QUANTITATIVE,
    "the Poisson kernel at β = 0",
    "On the circle at β = 0 a Poisson kernel of resultant r₀ stays one: r²/(1−r²) = eᵗ r₀²/(1−r₀²), and W₂ to its "
    "point mass is √(2−2r), of rate ½.",
    where="derived; the mean field at β = 0 on the circle",
    models=("usa",),
    quick=Kernel(),
    full=Kernel(n=20_000, times=(1.0, 2.0, 5.0, 6.5)),
    within={"radius": relative(1e-7, _SOLVED, errors=1), "distance": relative(1e-7, _SOLVED)},
    simulate=simulate_kernel,
    predict=predict_kernel,
    axes=Axes("depth-time t", "W₂", y_scale="log"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- Q2, Q5: sharp rates


Tilt = Annotated[float, Meta(gt=0, lt=1), means("slope of the density towards e₁")]


class Rates(Setting):
    """A density 1 + tilt·cos θ about e₁, as weighted tokens."""

    d: Annotated[int, Meta(ge=2, le=3), means("dimension of the space the tokens live in", "d")] = 2
    betas: Annotated[tuple[float, ...], means("inverse temperatures", "β")] = (0.0, 0.3, 0.6)
    tilt: Tilt = 0.5
    window: of.RateWindow = (6.0, 9.0)
    panels: of.Panels = 16
    points: of.PanelNodes = 5
    ring: Annotated[of.Count, means("tokens per ring, for d = 3")] = 6
    settled: Annotated[of.Positive, means("largest correction of a rate, relatively, at which it is judged")] = 0.02
    rtol: of.Rtol = 1e-9
    atol: of.Atol = 1e-14


BOUND = 0.01
"""The paper's exponent."""
RESONANT = 3
"""On S² both rates are equal at β = 0, where the flow is conformal and corrections are small."""


def _edges(s: Rates) -> np.ndarray:
    return np.linspace(s.window[0], s.window[1], 4)


def measured_distance(s: Rates, beta: float, times: np.ndarray) -> tuple[np.ndarray, Run]:
    """W₂² of the weighted tokens, by the engine."""
    tokens, weights = weighted_tokens(lambda a: 1 + s.tilt * np.cos(a), s.d, s.panels, s.points, s.ring)
    model = unnormalised(beta, s.d, weights)
    options: dict[str, Any] = {"method": "dop853", "rtol": s.rtol, "atol": s.atol, "form": "tokens"}
    run = flow(model, tokens, times=times, record=W2_SQUARED, **options)
    return run["w2_squared"].values, run


def local_rates(times: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Rates of W₂ between the recorded times."""
    return -np.diff(np.log(squares)) / np.diff(times) / 2


def settled_rate(rates: np.ndarray) -> tuple[float, float]:
    """(limit of three rates whose corrections shrink geometrically, by Aitken's formula; its distance to the last)."""
    first, second = np.diff(rates)
    if abs(first) <= 1e-6 * abs(rates[-1]) or not 0 < second / first < 1:
        return float(rates[-1]), float(abs(second))
    found = rates[-1] - second**2 / (second - first)
    return float(found), float(abs(found - rates[-1]))


def simulate_rates(s: Rates) -> Evidence:
    """Rates for each β, and at the β where both parts are equally slow."""
    found, curves, runs, undecided = [], [], [], {}
    for beta in s.betas:
        times = np.union1d(np.linspace(0.0, s.window[0], 7), _edges(s))
        squares, run = measured_distance(s, beta, times)
        rate, off = settled_rate(local_rates(times[-4:], squares[-4:]))
        if off > s.settled * abs(rate):
            undecided["rate"] = "a later window: the rate still changes"
        found.append(rate)
        curves.append(Curve(f"β = {beta:g}", times, np.sqrt(squares)))
        runs.append(run)
    values: dict[str, Any] = {"rate": found, "above_the_bound": found}
    if s.d == RESONANT:
        edges = np.linspace(*s.window, 3)
        squares, run = measured_distance(s, 0.0, np.concatenate([[0.0], edges]))
        values["resonant_rate"] = resonant_rate(edges, squares[1:])
        runs.append(run)
    return Evidence(values, curves=tuple(curves), runs=tuple(runs), undecided=undecided)


def resonant_rate(times: np.ndarray, squares: np.ndarray) -> float:
    """r of W₂² = A(t+c)e^{−2rt} through three equally spaced times: z = e^{2rΔ} solves W₀ − 2W₁z + W₂z² = 0."""
    first, middle, last = squares
    z = (middle + np.sqrt(max(middle**2 - first * last, 0.0))) / last
    return float(np.log(z) / (times[1] - times[0]) / 2)


def predict_rates(s: Rates) -> Evidence:
    """min(e^β, ½(d−1)e^{−β}); at resonance both."""
    rates = [sharp_rate(s.d, beta) for beta in s.betas]
    gaps = [abs(np.subtract(*sharp_rates(s.d, beta))) for beta in s.betas]
    near = min(gaps, default=1.0) * s.window[0] < 2
    late = max(np.exp(-b) for b in (*s.betas, 0.0)) * s.window[1] > s.panels
    advice = dict.fromkeys(("rate", "above_the_bound"), "β further from ½ln(½(d−1)), or a later window") if near else {}
    if late:
        advice |= dict.fromkeys(("rate", "resonant_rate"), "more panels: the last mass to leave is off the grid")
    curves = tuple(Curve(f"e^{{−{r:.4g}t}}", _edges(s), np.exp(-r * (_edges(s) - _edges(s)[0]))) for r in rates)
    if min(rates, default=1.0) < 1.1 * BOUND:
        advice["above_the_bound"] = "β nearer to 0: the theorem is for small |β|, and this rate is below its exponent"
    values = {"rate": rates, "above_the_bound": BOUND, "resonant_rate": 1.0}
    return Evidence(values, curves=curves, undecided=advice)


_RATES: dict[str, Any] = {
    "within": {
        "rate": relative(0.02, "Aitken's limit of three rates; judged where it is within as much of the last"),
        "above_the_bound": at_least("the paper's exponent, for small β"),
    },
    "simulate": simulate_rates,
    "predict": predict_rates,
    "axes": Axes("depth-time t", "W₂", y_scale="log"),
    "mistakes": (
        Mistake("local_rates", "rates {:.1%} too small", lambda right, size: lambda t, w: (1 - size) * right(t, w),
                (0.9, 0.97, 0.99)),
    ),
    "marks": ("secondary", "derived"),
    "convention": CONVENTION,
}  # fmt: skip

_RESONANT = relative(0.02, "W₂² = A(t+c)e^{−2t} up to terms e^{−2t} smaller; the window starts at t = 7")
_SPHERE = {**_RATES, "within": {**_RATES["within"], "resonant_rate": _RESONANT}}

claim(
    "followups/Q2",
    QUANTITATIVE,
    "sharp rate on the circle",
    "From a density bounded above and below near the antipode, W₂ ≍ e^{−rt}, r = min(e^β, ½(d−1)e^{−β}), here d = 2; "
    "the paper's e^{−t/100} for small |β| is far below it.",
    where="derived; beside the theorem on exponential convergence for small β",
    models=("usa",),
    quick=Rates(),
    full=Rates(betas=(-0.8, -0.1, 0.0, 0.3, 0.6, 0.8), panels=40, points=10, window=(9.0, 13.5), settled=0.01),
    **_RATES,
)

claim(
    "followups/Q5",
    QUANTITATIVE,
    "sharp rate on the sphere",
    "On S² the rate of W₂ is r = min(e^β, e^{−β}), largest at β = 0, where W₂² ≍ t e^{−2t} and the local rate "
    "approaches 1 slowly, like 1 − 1/(2t).",
    where="derived; beside the theorem on exponential convergence for small β",
    models=("usa",),
    quick=Rates(d=3, betas=(-0.2, 0.3, 0.5), window=(7.0, 10.0), panels=19, points=3),
    full=Rates(d=3, betas=(-0.4, -0.2, 0.3, 0.5), window=(9.0, 12.0), panels=24, points=6, ring=8, settled=0.01),
    **_SPHERE,
)


# --- Q3: finite n


class Quantiles(Setting):
    """Two numbers of quantile tokens on the circle."""

    beta: of.Beta = 0.3
    fewer: Annotated[of.Count, means("tokens of the smaller sample", "n")] = 250
    more: Annotated[of.Count, means("tokens of the larger sample", "n′")] = 2000
    tilt: Tilt = 0.5
    after: Annotated[of.Positive, means("how long after the crossover the run ends", unit="depth-time")] = 9.0
    records: of.Records = 121
    rtol: of.Rtol = 1e-9
    atol: of.Atol = 1e-13


def quantile_tokens(n: int, tilt: float) -> np.ndarray:
    """Quantiles of (1 + tilt·cos θ)/2π: θ + tilt·sin θ = 2πu, by Newton's method from a grid."""
    levels = 2 * np.pi * (np.arange(n) + 0.5) / n - np.pi
    grid = np.linspace(-np.pi, np.pi, 4001)
    theta = np.interp(levels, grid + tilt * np.sin(grid), grid)
    for _ in range(30):
        theta = theta - (theta + tilt * np.sin(theta) - levels) / (1 + tilt * np.cos(theta))
    return np.stack([np.cos(theta), np.sin(theta)], axis=1)


ENDED = 1e-2, 1e-7
"""W₂ between which the last rate is read: that of a cluster, and above the solver's rounding."""
CROWDED = 0.03
"""e^{2β}/n, the pull of a token near the antipode on its neighbours over that of the bulk, at which it delays them."""


def _end(s: Quantiles, n: int) -> float:
    """A time well after the nearest token has left: 1/(2nρ) grows like e^{e^{−β}t}."""
    density = (1 - abs(s.tilt)) / (2 * np.pi) if abs(s.tilt) < 1 else 0.1
    return float(np.exp(s.beta) * np.log(2 * n * max(density, 1e-3) + 1) + 3 + s.after)


def sampled_distance(s: Quantiles, n: int) -> tuple[np.ndarray, np.ndarray, Run]:
    """(times, W₂ of n quantiles, run)."""
    times = np.linspace(0.0, _end(s, n), s.records)
    options: dict[str, Any] = {"method": "dop853", "rtol": s.rtol, "atol": s.atol}
    run = flow(unnormalised(s.beta, 2), quantile_tokens(n, s.tilt), times=times, record=W2_SQUARED, **options)
    return times, np.sqrt(run["w2_squared"].values), run


def _final_rate(rates: np.ndarray) -> tuple[float, float]:
    """The limit of the last three rates, and how far it is from the last; nan where there are fewer."""
    return settled_rate(rates[-3:]) if len(rates) >= 3 else (float("nan"), float("inf"))


def simulate_quantiles(s: Quantiles) -> Evidence:
    """When the local rate passes the mean of both rates, and where it ends."""
    crossings, ends, curves, runs, undecided = [], [], [], [], {}
    level = 0.5 * sum((0.5 * np.exp(-s.beta), np.exp(s.beta)))
    for n in (s.fewer, s.more):
        times, distance, run = sampled_distance(s, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = local_rates(times, distance**2)
        middle = 0.5 * (times[1:] + times[:-1])
        late = np.flatnonzero((rates[:-1] < level) & (rates[1:] >= level) & (distance[1:-1] < 0.5))
        i = late[-1] if len(late) else -1
        share = (level - rates[i]) / (rates[i + 1] - rates[i]) if i >= 0 else np.nan
        crossings.append(middle[i] + share * (middle[1] - middle[0]))
        if i < 0:
            undecided["delay"] = "a smaller β, or a later end: the rate does not cross over"
        final, off = _final_rate(rates[distance[1:] > ENDED[1]])
        ends.append(final)
        if not (distance[-1] < ENDED[0] and off <= 0.01 * abs(final)):
            undecided["final_rate"] = "a smaller β, more records or a later end: the rate still changes"
        curves += [Curve(f"n = {n}", times, distance)]
        runs.append(run)
    values = {"final_rate": ends, "delay": crossings[1] - crossings[0]}
    return Evidence(values, curves=tuple(curves), runs=tuple(runs), undecided=undecided)


def predict_quantiles(s: Quantiles) -> Evidence:
    """e^β, and e^β ln(n'/n)."""
    delay = crossover_delay(s.beta, s.fewer, s.more)
    antipode, bulk = sharp_rates(2, s.beta)
    few = s.fewer < 100 or abs(delay) < 0.5
    advice = {"delay": "more tokens, in a larger ratio: the density is not constant within 1/n"} if few else {}
    if np.exp(2 * s.beta) / s.fewer > CROWDED:
        advice["delay"] = "a smaller β, or more tokens: those near the antipode hold one another"
    if 2 * s.after * bulk < 8:
        advice["final_rate"] = "a later end"
    grid = np.linspace(0.0, _end(s, s.more), 61)
    curve = Curve(f"e^{{−{antipode:.3g}t}}, mean field", grid, 1.5 * np.exp(-antipode * grid))
    return Evidence({"final_rate": [bulk, bulk], "delay": delay}, curves=(curve,), undecided=advice)


claim(
    "followups/Q3",
    QUANTITATIVE,
    "finite n leaves the mean-field rate",
    "n quantiles follow the mean-field rate ½e^{−β} until less than one of them is left near the antipode; then the "
    "rate is e^β. The crossover comes e^β ln(n′/n) later for n′ than for n tokens.",
    where="derived; finite n is not the mean field",
    models=("usa",),
    quick=Quantiles(),
    full=Quantiles(fewer=1000, more=20_000, records=241),
    within={
        "final_rate": relative(0.02, "three records after the crossover, corrections e^{−e^{−β}t} extrapolated"),
        "delay": relative(0.02, "times between records are interpolated; the density changes within 1/n"),
    },
    simulate=simulate_quantiles,
    predict=predict_quantiles,
    axes=Axes("depth-time t", "W₂", y_scale="log"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- Q4: atoms stay


class Poles(Setting):
    """Two opposite atoms."""

    mass: Annotated[float, Meta(gt=0, lt=1), means("mass at e", "m")] = 2 / 3
    beta: of.Beta = 0.2
    d: of.Dimension = 3
    until: of.Until = 30.0


def poles(d: int) -> np.ndarray:
    """e, −e, and a test particle at −e."""
    return np.array([1.0, -1.0, -1.0])[:, None] * np.eye(max(d, 2))[0]


def simulate_poles(s: Poles) -> Evidence:
    """Speed, distance kept, and the Jacobian of the engine."""
    model = unnormalised(s.beta, s.d, [s.mass, 1 - s.mass, 0.0])
    x = jnp.asarray(poles(s.d))
    rest = jnp.zeros(())
    run = flow(model, x, times=np.linspace(0.0, s.until, 13), record=W2_SQUARED, form="tokens")
    jacobian = np.asarray(jax.jacfwd(lambda y: model.drift(y, rest))(x))[:, 1, :, 1]
    whole = np.linalg.eigvals(jacobian[:2, :2]).real.max()
    resultant = jnp.sum((model.normalised_masses(3, x.dtype) @ x) ** 2)
    values = {
        "speed": float(jnp.abs(model.drift(x, rest)).max()),
        "resultant": float(resultant),
        "distance_squared": run["w2_squared"].values,
        "growth_of_both": float(whole),
        "growth_of_a_particle": float(jacobian[2, 2]),
    }
    rounded = dict.fromkeys(
        ("speed", "growth_of_both", "growth_of_a_particle"), 8 * np.finfo(float).eps * np.exp(s.beta)
    )
    curve = Curve("two atoms", run.time, np.sqrt(run["w2_squared"].values))
    return Evidence(values, uncertainties=rounded, curves=(curve,), runs=(run,))


def predict_poles(s: Poles) -> Evidence:
    """At rest at distance 2√(1−m) from δ_e for ever; unstable at rate e^{−β}."""
    whole, particle = pole_growth(s.beta, s.mass)
    values = {
        "speed": 0.0,
        "resultant": (2 * s.mass - 1) ** 2,
        "distance_squared": 4 * (1 - s.mass),
        "growth_of_both": whole,
        "growth_of_a_particle": particle,
    }
    grid = np.linspace(0.0, s.until, 13)
    bound = Curve("2√(1−m) e^{−t/100}, if the theorem applied", grid, 2 * np.sqrt(1 - s.mass) * np.exp(-BOUND * grid))
    return Evidence(values, curves=(bound,))


def _turned(right: Any, size: float) -> Any:
    def moved(d: int) -> np.ndarray:
        x = np.array(right(d))
        x[1, :2] = [-np.cos(size), np.sin(size)]
        return x

    return moved


_ROUNDED = "rounding of sums over two atoms, 8 eps e^β for numbers that come from entries e^β"
claim(
    "followups/Q4",
    QUANTITATIVE,
    "two opposite atoms are stationary: a density is needed",
    "⅔δ_e + ⅓δ_{−e} has R₀ = |∫x dμ|² > 0 and does not move: the theorem needs its density. The measure is unstable: "
    "both atoms turn towards each other at rate e^{−β}, a particle near −e leaves if me^{−β} > (1−m)e^β.",
    where="counterexample beside the theorem; the growth rates are derived",
    models=("usa",),
    quick=Poles(),
    within={
        "speed": at_most(_ROUNDED, slack=1e-14, errors=1),
        "resultant": absolute(1e-14, _ROUNDED),
        "distance_squared": absolute(1e-12, _ROUNDED),
        "growth_of_both": absolute(1e-12, _ROUNDED, errors=1),
        "growth_of_a_particle": absolute(1e-12, _ROUNDED, errors=1),
    },
    simulate=simulate_poles,
    predict=predict_poles,
    axes=Axes("depth-time t", "W₂"),
    mistakes=(Mistake("poles", "the second atom turned by {:g} of a radian", _turned, (1e-12, 1e-6, 0.01)),),
    marks=("secondary", "derived"),
    convention=CONVENTION,
)
