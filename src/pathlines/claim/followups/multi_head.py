"""Many heads whose weights change with depth: energy balance, ω-limits, oscillation, stability (2605.18870)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from msgspec import Meta

from pathlines.attention import UnnormalisedAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.followups.quantitative import settled_rate
from pathlines.claim.slopes import log_slope
from pathlines.claim.tolerance import absolute, at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers.followups import TIME_DEPENDENT
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.limit.followups.time_dependent import (
    linear_response,
    multi_head_energy,
    multi_head_field,
    multi_head_path,
    omega_limit,
    settling_speeds,
    slowest_rate,
)
from pathlines.model import SelfAttention
from pathlines.observable.head_energy import head_energy, head_power, head_work
from pathlines.weights import VaryingWeights
from pathlines.weights.paths import Decaying, Oscillating, PiecewiseLinear, ornstein_uhlenbeck

CONVENTION = (
    "tokens on the sphere climb E = ½Σ_h∬e^{⟨x,A_h(t)y⟩} by unnormalised attention with symmetric A_h; an "
    "Ornstein–Uhlenbeck path is joined by straight lines between layers."
)
PATHS = ("oscillating", "decaying", "ornstein-uhlenbeck")
Stack = tuple[of.Matrix, ...]


class Stacks(Setting):
    """Tokens and symmetric heads A_h(t), drawn or given."""

    base: Annotated[Stack, means("symmetric heads that the path is about, one matrix each; drawn if empty", "A_h")] = ()
    swing: Annotated[Stack, means("symmetric size of their change; drawn if empty", "B_h")] = ()
    frequencies: Annotated[of.Vector, means("frequencies of the heads (the first: decay of the others)", "ω")] = (
        1.3,
        2.1,
    )
    n: of.Tokens = 12
    d: Annotated[int, Meta(ge=2), means("dimension of the space the tokens live in", "d")] = 3
    until: of.Until = 4.0
    step: of.TimeStep = 0.1
    seed: of.Seed = 0


class Heads(Stacks):
    """Heads whose path is chosen."""

    path: Annotated[str, means("how weights change: oscillating, decaying or ornstein-uhlenbeck")] = "oscillating"


def matrices(s: Any) -> tuple[np.ndarray, np.ndarray]:
    """(A_h, B_h): entries of size 0.4 and 0.3 where none are given."""
    rng = np.random.default_rng(s.seed)
    drawn = rng.standard_normal((2, len(s.frequencies), s.d, s.d))
    drawn = (drawn + np.swapaxes(drawn, -1, -2)) / 2
    base, swing = (
        np.array(m, float) if m else f * x for m, f, x in zip((s.base, s.swing), (0.4, 0.3), drawn, strict=True)
    )
    for name, stack in (("base", base), ("swing", swing)):
        wanted = (len(s.frequencies), s.d, s.d)
        require(stack.shape == wanted, name, f"have one {s.d} × {s.d} matrix a frequency", stack.shape)
        require(np.allclose(stack, np.swapaxes(stack, -1, -2)), name, "hold symmetric matrices", stack.tolist())
    return base, swing


def start(s: Any) -> np.ndarray:
    """Uniform tokens."""
    x = np.random.default_rng([s.seed, 1]).standard_normal((s.n, s.d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _knots(s: Heads) -> tuple[np.ndarray, float]:
    """OU knots four steps apart."""
    base, swing = matrices(s)
    layers = max(1, round(s.until / (4 * s.step)))
    spacing = s.until / layers
    return ornstein_uhlenbeck(base, float(np.abs(swing).mean()), 1.0, layers, spacing, s.seed), spacing


def engine_path(s: Heads) -> Any:
    """A_h(t) for the engine."""
    require(s.path in PATHS, "path", f"be one of {', '.join(PATHS)}", s.path)
    base, swing = matrices(s)
    if s.path == "ornstein-uhlenbeck":
        return PiecewiseLinear(*_knots(s))
    return (
        Oscillating(base, swing, s.frequencies) if s.path == "oscillating" else Decaying(base, swing, s.frequencies[0])
    )


def numpy_path(s: Heads) -> Any:
    """A_h(t) in NumPy, and where it has kinks."""
    base, swing = matrices(s)
    rates = np.array(s.frequencies)
    if s.path == "ornstein-uhlenbeck":
        knots, spacing = _knots(s)
        times, flat = spacing * np.arange(len(knots)), knots.reshape(len(knots), -1)
        line = lambda t: np.array([np.interp(t, times, c) for c in flat.T]).reshape(base.shape)  # noqa: E731
        return line, times
    if s.path == "decaying":
        return (lambda t: base + swing * np.exp(-rates[0] * t)), ()
    return (lambda t: base + swing * np.cos(rates * t)[:, None, None]), ()


def heads_model(path: Any) -> SelfAttention:
    """The engine with Q_h = V_h = A_h(t), K_h = I, unnormalised, β = 1."""
    return SelfAttention(1.0, attention=UnnormalisedAttention(), weights=VaryingWeights(path, query=path))


# --- G1: the balance of energy


def balance(s: Heads, step: float) -> tuple[float, float, Run]:
    """(gain of the energy, gain minus the integrals of power and work, run), by RK4 and Simpson's rule."""
    steps = 4 * max(1, round(s.until / (4 * step)))
    times = s.until * np.arange(steps + 1) / steps
    model, options = heads_model(engine_path(s)), {"method": "rk4", "step": s.until / steps, "form": "tokens"}
    run = flow(model, start(s), times=times, record=(positions, head_energy, head_power), **options)  # type: ignore[arg-type]
    work = works(model, run["tokens"].values, times)
    energy, change = run["head_energy"].values, run["head_power"].values + work
    weights = np.ones(steps + 1)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    gain = float(energy[-1] - energy[0])
    return gain, gain - float(weights @ change) * s.until / steps / 3, run


def works(model: SelfAttention, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """∂_tE_t at the recorded tokens."""
    return np.asarray(jax.jit(jax.vmap(lambda y, t: head_work(model, y, t)))(jnp.asarray(x), jnp.asarray(times)))


def _smooth(s: Heads) -> bool:
    return s.path != "ornstein-uhlenbeck"


STEP = 0.1
"""What the tolerances are made for: 5e-5 of defect at this step, 2e-7 at a quarter of it, for weights of order one."""


BENT = 0.115
"""Largest change of the order between two halvings: a remainder h^p leaves (2^p - 2)/(2^p - 1) of it, 6/7 for p = 3."""


MOST_TURN = 0.3
"""Largest step times frequency or size of the heads that the tolerances are made for."""


def simulate_balance(s: Heads) -> Evidence:
    """Gain, defect at a quarter of the step, and its order from a half, a quarter and an eighth of it."""
    found = [balance(s, s.step / k) for k in (2, 4, 8)]
    defects = np.abs([f[1] for f in found])
    orders = np.log2(defects[:-1] / defects[1:])
    values = {"gain": found[-1][0], "defect": defects[1], "order": 2 * orders[1] - orders[0]}
    undecided = {}
    if defects[-1] < 1e-12 or abs(orders[1] - orders[0]) > BENT or not _smooth(s):
        undecided["order"] = "another step: the defect changes its sign, or is rounding; smooth weights"
    base, swing = matrices(s)
    fastest = max(*map(abs, s.frequencies), float(np.linalg.norm(np.abs(base) + np.abs(swing), 2, axis=(1, 2)).max()))
    if s.step > STEP or (s.step * fastest > MOST_TURN):
        undecided |= dict.fromkeys(
            ("gain", "defect"), f"a step of at most {min(STEP, MOST_TURN / fastest):.2g}: h⁴ is too much"
        )
    run = found[0][2]
    curve = Curve("engine", run.time, run["head_energy"].values)
    return Evidence(values, curves=(curve,), runs=(run,), undecided=undecided)


def predict_balance(s: Heads) -> Evidence:
    """The gain by SciPy; no defect; order 4."""
    path, kinks = numpy_path(s)
    times = np.linspace(0.0, s.until, 41)
    found = multi_head_path(path, start(s), times, kinks)
    energy = np.array([multi_head_energy(path(t), x) for t, x in zip(times, found, strict=True)])
    curve = Curve("SciPy", times, energy)
    return Evidence({"gain": energy[-1] - energy[0], "defect": 0.0, "order": 4.0}, curves=(curve,), source="SciPy")


claim(
    "followups/G1",
    TIME_DEPENDENT,
    "balance of energy with weights that change",
    "E_T(μ_T) − E_0(μ_0) = ∫∫|v|²dμ dt + ∫∂_tE_t(μ_t)dt, and by RK4 with Simpson's rule up to O(h⁴).",
    where="derived; energy–dissipation identity of the time-dependent gradient flow",
    models=("usa",),
    quick=Heads(),
    full=Heads(step=0.05, until=8.0, n=40),
    within={
        "gain": absolute(1e-4, "RK4 at an eighth of the step: (h/8)⁴ with constants of order one"),
        "defect": at_most("(h/4)⁴ with constants of order one", slack=1e-5),
        "order": absolute(
            0.1,
            "three steps without their first bend, of which 6/7 may be left; judged where it is below 0.115",
        ),
    },
    simulate=simulate_balance,
    predict=predict_balance,
    axes=Axes("depth-time t", "energy E_t"),
    mistakes=(
        Mistake(
            "works", "the work of the weights {:.0%} too small", lambda right, size: lambda *a: (1 - size) * right(*a)
        ),
    ),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)


# --- G2: weights that settle


def speeds(path: Any, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """max_i |v_i| at the recorded tokens."""
    model = heads_model(path)
    moves = jax.jit(jax.vmap(model.drift))(jnp.asarray(x), jnp.asarray(times))
    return np.asarray(jnp.max(jnp.linalg.norm(moves, axis=-1), axis=-1))


def followed(s: Stacks, path: Any, times: np.ndarray) -> tuple[np.ndarray, Run]:
    """Tokens by the engine at tight tolerance."""
    options: dict[str, Any] = {"method": "dop853", "rtol": 1e-11, "atol": 1e-13, "form": "tokens"}
    run = flow(heads_model(path), start(s), times=times, record=positions, **options)
    return run["tokens"].values, run


LATE = (1e-8, 1e-4)
"""Speeds between which the rate is read: above the solver's rounding, below what happens on the way past saddles."""


def late_rate(times: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """(rate, its distance to the last of three) of speeds between the bounds of ``LATE``; nan where they are few."""
    fast = np.flatnonzero(found > LATE[1])
    late = np.arange(fast[-1] + 1 if len(fast) else 0, len(found))
    late = late[found[late] > LATE[0]]
    if len(late) < 4:
        return np.nan, np.inf
    chosen = late[np.linspace(0, len(late) - 1, 4).astype(int)]
    return settled_rate(-np.diff(np.log(found[chosen])) / np.diff(times[chosen]))


def _records(s: Heads) -> np.ndarray:
    return np.linspace(0.0, s.until, 8 * max(1, round(s.until / 4)) + 1)


def simulate_settling(s: Heads) -> Evidence:
    """Late decay of max|v|, and what the limiting weights still move the last tokens by."""
    times = _records(s)
    path = engine_path(s)
    x, run = followed(s, path, times)
    found = speeds(path, x, times)
    left = np.abs(speeds(Decaying(matrices(s)[0], 0 * matrices(s)[1]), x[-1:], times[-1:]))[0]
    rate, off = late_rate(times, found)
    undecided = {}
    if not off <= 0.02 * abs(rate):
        undecided["rate"] = "a later end, or other weights: the rate still changes between 1e-4 and 1e-8"
    if found[-1] > LATE[1]:
        undecided["residual"] = "a later end: tokens are still on their way"
    if not found[0] > LATE[1]:
        undecided["residual"] = "other weights: tokens hardly move"
    values = {"rate": rate, "residual": float(left / max(found[0], 1e-300))}
    return Evidence(values, curves=(Curve("max|v|", times, found),), runs=(run,), undecided=undecided)


def predict_settling(s: Heads) -> Evidence:
    """min(κ, slowest rate of the linearisation at the ω-limit); stationary there."""
    base, swing = matrices(s)
    path, _ = numpy_path(s)
    times = _records(s)
    tokens = multi_head_path(path, start(s), times)
    last = omega_limit(base, tokens[-1], s.until)
    slow, forced = slowest_rate(base, last), s.frequencies[0]
    rate = min(slow, forced)
    advice = {}
    if slow < 1e-6 or abs(slow - forced) < 0.08 * forced:
        advice["rate"] = "other weights: two rates are too close to be told apart, or a mode is neutral"
    elif s.path == "decaying" and not _tail_shows(s, rate, times, tokens, last, (base, swing)):
        advice["rate"] = "other weights or another start: at speeds above 1e-8 the slowest mode does not lead yet"
    if rate * s.until < 14:
        advice["residual"] = "a later end"
    if s.path != "decaying":
        advice |= dict.fromkeys(("rate", "residual"), "path=decaying: other weights have no limit")
    return Evidence({"rate": rate, "residual": 0.0}, undecided=advice)


MIDDLE = 2e-6
"""Speed from which the linearisation is followed: deviations of its size squared are left out."""


def _tail_shows(s: Heads, rate: float, times: np.ndarray, tokens: np.ndarray, last: np.ndarray, heads: Any) -> bool:
    """Whether the estimator finds the slowest rate, to half its tolerance, in SciPy's speeds down to ``MIDDLE`` and
    those of the linearisation, with the coefficients of its modes, beyond."""
    base, swing = heads
    decay = s.frequencies[0]
    faded = [swing * np.exp(-decay * t) for t in times]
    found = np.array(
        [np.linalg.norm(multi_head_field(base + b, x), axis=1).max() for b, x in zip(faded, tokens, strict=True)]
    )
    slow = np.flatnonzero(found > MIDDLE)
    k = int(slow[-1]) + 1 if len(slow) else 0
    if k >= len(found):
        return True  # the simulation does not get there either, and says so
    found[k:] = settling_speeds(base, faded[k], decay, tokens[k], last, times[k:] - times[k])
    return bool(abs(late_rate(times, found)[0] / rate - 1) <= 0.01)


def _settling_elsewhere(right: Any, size: float) -> Any:
    def moved(s: Heads) -> Decaying:
        path = right(s)
        return Decaying(path.base + size * path.swing, path.swing, float(path.decay))

    return moved


claim(
    "followups/G2",
    TIME_DEPENDENT,
    "weights that settle: ω-limits are stationary",
    "If A_h(t) = A_h + e^{−κt}B_h, max|v| → 0 and the limit is stationary for the energy with the limiting weights, "
    "at the rate min(κ, slowest mode of the linearisation there) if that mode is excited.",
    where="theorem on ω-limit points for weights of bounded variation; the rate is derived",
    models=("usa",),
    quick=Heads(path="decaying", frequencies=(0.15, 0.15), until=250.0),
    full=Heads(path="decaying", frequencies=(0.15, 0.15), until=300.0, n=40),
    within={
        "rate": relative(0.02, "the next exponent; three rates extrapolated, judged where the last is as near"),
        "residual": at_most("relative to the speed at the start, e^{−14} and less where it is judged", slack=1e-4),
    },
    simulate=simulate_settling,
    predict=predict_settling,
    axes=Axes("depth-time t", "max|v|", y_scale="log"),
    mistakes=(Mistake("engine_path", "heads that settle {:.0%} of their change elsewhere", _settling_elsewhere),),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)


# --- G3: weights that do not


class Swings(Stacks):
    """Heads that oscillate at one frequency, at full size and small."""

    frequencies: Annotated[of.Vector, means("frequencies of the heads; the first is that of the response", "ω")] = (
        1.3,
        1.3,
    )
    until: of.Until = 40.0
    small: Annotated[of.Positive, means("share of the swing at which the response is linear", "ε")] = 0.01
    times: of.Times = (4.0, 8.0, 12.0)


def simulate_swings(s: Swings) -> Evidence:
    """max|v| at the times; mean square speed over the last period at a small swing."""
    base, swing = matrices(s)
    path = Oscillating(base, swing, s.frequencies)
    times = np.union1d([0.0], s.times)
    x, run = followed(s, path, times)
    at = np.searchsorted(times, s.times)
    found = speeds(path, x, times)
    curve = Curve("max|v|", times, found)
    response, undecided = np.nan, {"response": "a later end: less than a period is simulated"}
    if s.until > 2 * np.pi / s.frequencies[0]:
        response, half = (_response(s, share) for share in (s.small, s.small / 2))
        bent = abs(response / half - 1) > 0.005
        undecided = {"response": "a smaller `small`: the response is not linear"} if bent else {}
    return Evidence({"speed": found[at], "response": response}, curves=(curve,), runs=(run,), undecided=undecided)


def _response(s: Swings, share: float) -> float:
    """Root mean square speed over the last period at a share of the swing, over the share."""
    base, swing = matrices(s)
    period = 2 * np.pi / s.frequencies[0]
    last = s.until - period + period * np.arange(16) / 16
    gentle = Oscillating(base, share * swing, s.frequencies)
    y, _ = followed(s, gentle, np.concatenate([[0.0], last]))
    moves = np.asarray(jax.jit(jax.vmap(heads_model(gentle).drift))(jnp.asarray(y[1:]), jnp.asarray(last)))
    return float(np.sqrt(np.mean(np.sum(moves**2, axis=(1, 2)))) / share)


def predict_swings(s: Swings) -> Evidence:
    """The same by SciPy; the response from the linearisation at the ω-limit of the mean weights."""
    base, swing = matrices(s)
    rates = np.array(s.frequencies)
    path = lambda t: base + swing * np.cos(rates * t)[:, None, None]  # noqa: E731
    times = np.sort(s.times)
    found = multi_head_path(path, start(s), times)
    speed = {t: np.linalg.norm(multi_head_field(path(t), x), axis=1).max() for t, x in zip(times, found, strict=True)}
    gentle = lambda t: base + s.small * swing * np.cos(rates * t)[:, None, None]  # noqa: E731
    last = omega_limit(base, multi_head_path(gentle, start(s), [s.until])[0])
    slow = slowest_rate(base, last)
    advice = {}
    if len(set(s.frequencies)) > 1 or slow * s.until < 8:
        advice["response"] = "one frequency for all heads, and a later end: transients are left"
    values = {"speed": [speed[t] for t in s.times], "response": linear_response(base, swing, rates[0], last)}
    return Evidence(values, undecided=advice, source="SciPy and linear response")


claim(
    "followups/G3",
    TIME_DEPENDENT,
    "weights that oscillate: tokens do not come to rest",
    "With A_h(t) = A_h + εB_h cos ωt, max|v| does not tend to 0: at small ε the root mean square of |v| over a period "
    "is ε|ω(iω − J)⁻¹f|/√2, J the linearisation at the ω-limit of A_h and f the change of the field by B_h.",
    where="derived; beside the experiments with oscillating weights",
    models=("usa",),
    quick=Swings(),
    full=Swings(n=40, until=80.0, small=0.003),
    within={
        "speed": relative(1e-5, "two solvers at tolerance 1e-11, errors grown by the motion"),
        "response": relative(0.02, "the next order in ε, and the transient e^{−8} where it is judged"),
    },
    simulate=simulate_swings,
    predict=predict_swings,
    axes=Axes("depth-time t", "max|v|"),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)


# --- G4: stability


class Perturbed(Stacks):
    """Heads perturbed by ε."""

    epsilons: Annotated[of.Positives, means("sizes of the perturbation of all heads", "ε")] = (1e-3, 1e-4, 1e-5)


def _direction(s: Perturbed) -> np.ndarray:
    rng = np.random.default_rng([s.seed, 2])
    drawn = rng.standard_normal((len(s.frequencies), s.d, s.d))
    return (drawn + np.swapaxes(drawn, -1, -2)) / 2


def simulate_perturbed(s: Perturbed) -> Evidence:
    """Distance of perturbed trajectories, over ε."""
    base, swing = matrices(s)
    ends = []
    for size in (0.0, *s.epsilons):
        path = Oscillating(base + size * _direction(s), swing, s.frequencies)
        x, run = followed(s, path, np.array([0.0, s.until]))
        ends.append(x[-1])
    apart = [float(np.linalg.norm(x - ends[0])) for x in ends[1:]]
    slope = log_slope(s.epsilons, apart)[0] if len(set(s.epsilons)) > 1 else float("nan")
    values = {"slope": slope, "sensitivity": apart[-1] / s.epsilons[-1]}
    return Evidence(values, curves=(Curve("distance", s.epsilons, apart),), runs=(run,))


def predict_perturbed(s: Perturbed) -> Evidence:
    """Slope 1; the derivative by SciPy's trajectories on both sides."""
    base, swing = matrices(s)
    rates, step = np.array(s.frequencies), 1e-5

    def end(size: float) -> np.ndarray:
        moved = base + size * _direction(s)
        return multi_head_path(lambda t: moved + swing * np.cos(rates * t)[:, None, None], start(s), [s.until])[0]

    derivative = float(np.linalg.norm(end(step) - end(-step)) / (2 * step))
    curve = Curve("derivative · ε", s.epsilons, [derivative * e for e in s.epsilons])
    nonlinear = max(s.epsilons) * derivative > 0.05
    advice = dict.fromkeys(("slope", "sensitivity"), "smaller epsilons: the answer is not linear") if nonlinear else {}
    if len(set(s.epsilons)) < 2:
        advice["slope"] = "two epsilons or more: a slope needs them"
    return Evidence({"slope": 1.0, "sensitivity": derivative}, curves=(curve,), undecided=advice, source="SciPy")


claim(
    "followups/G4",
    TIME_DEPENDENT,
    "stability in the weights",
    "Trajectories of weights A_h and A_h + εC_h differ by at most εCe^{Ct}: the distance at T is linear in ε, and its "
    "slope the derivative of the flow.",
    where="theorem on stability in initial data and weights; the derivative is ours",
    models=("usa",),
    quick=Perturbed(),
    full=Perturbed(n=40, until=8.0, epsilons=(1e-4, 1e-5, 1e-6)),
    within={
        "slope": absolute(0.02, "the next order in ε, below 5 % at the largest where it is judged"),
        "sensitivity": relative(0.02, "the next order at the smallest ε, and rounding 1e-11/ε"),
    },
    simulate=simulate_perturbed,
    predict=predict_perturbed,
    axes=Axes("ε", "distance at T", "log", "log"),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)
