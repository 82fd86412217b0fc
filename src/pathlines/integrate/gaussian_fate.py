"""fates: what becomes of Gaussian clouds, integrated through blow-up to a class, a time and a direction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, require
from pathlines.foundation.module import overridden
from pathlines.foundation.precision import require_float64
from pathlines.foundation.programs import make_room_for_programs
from pathlines.foundation.progress import Progress
from pathlines.integrate.advance import OK, Carry, Controls, Program, advance, fresh_carry
from pathlines.integrate.batched import in_turns
from pathlines.integrate.methods import METHODS, RungeKutta
from pathlines.integrate.rosenbrock import Rosenbrock
from pathlines.kernels.native import native_fates, native_serves
from pathlines.model.gaussian.closure import GaussianClosure, LinearGaussian, SoftmaxGaussian
from pathlines.model.gaussian.scaled import SEEN, SETTLED, STILL, TO_ZERO, Scaled, ScaledClosure

CLASSES = ("converged", "to-zero", "blow-up", "exponential", "algebraic", "undecided")
EXPLICIT_UNTIL = 1000.0
"""Scale-free time s up to which an explicit method is cheaper: rates are O(1) in s, and most fates are decided."""
LONGEST = 1e9
MOST_STEPS = 5000
"""A cloud that needs more keeps turning and is called undecided; thirty times the usual number."""
TURN = 25
"""Steps before a cloud makes room for others: clouds of a group wait for its slowest, which takes up to thousands."""
FEW = 8
LANES = 16
"""Clouds side by side, unless there is one only: few compiled programs serve any number."""
NATIVE_WORK = 1 << 18
"""Clouds × entries of the Jacobian that a native call takes: it answers neither Ctrl-C nor the progress bar."""
GROWTH = {True: 25.0, False: 30.0}
"""ln(ρ/ρ_0) at which growth is judged: e^{-25} of a softmax cloud's time is left, more for kinds that grow slower.

Rounding of the long axis moves the short ones by ε√ρ of it, which is the tolerance 10⁻⁹ at 2 ln(10⁻⁹/ε) = 30.6.
"""


class Fate(msgspec.Struct, frozen=True):
    """What becomes of one cloud.

    ``kind`` is one of ``CLASSES``; ``blow_up_time`` T* (None unless it blows up); ``direction`` the leading axis of Σ
    at the end, ``rank`` the number of eigenvalues above ``rank_tolerance`` of the largest; ``eigenvalues`` and
    ``covariance`` those of Σ at the end (of Σ/tr Σ for growing clouds). Diagnostics: ``time`` reached, ``scale_free``
    time s, ``log_growth`` = ln(tr Σ/tr Σ_0), ``residual`` = scale-free speed, ``slope`` = d ln tr Σ/d ln s over the
    last decade, ``rate`` = d ln tr Σ/dt and ``rate_exponent`` = d ln rate/d ln tr Σ (1 in a
    softmax blow-up, 0 for e^{ct}).
    """

    kind: str
    blow_up_time: float | None
    direction: list[float]
    rank: int
    eigenvalues: list[float]
    covariance: list[list[float]]
    time: float
    scale_free: float
    log_growth: float
    residual: float
    slope: float
    rate: float
    rate_exponent: float
    reason: str


def fates(
    models: Sequence[GaussianClosure] | GaussianClosure,
    factors: Any,
    *,
    until: float = 1e6,
    rtol: float = 1e-9,
    rank_tolerance: float = 1e-4,
    still: float = STILL,
    progress: bool | None = False,
) -> list[Fate]:
    """Classify the centred clouds N(0, L_kL_kᵀ), ``factors`` of shape (k, d, r), each under its model.

    One model serves all starts; several must agree in type and shape. Scale-free integration (``ScaledClosure``): an
    explicit method to s = 1000, then Rodas5P for those that are not decided, up to ``until``. A
    cloud whose scale-free speed falls below ``still`` has converged; algebraic limits come later than that. Cost
    for d = 4, after compilation: 0.3 milliseconds per cloud on one core for softmax and linear attention (compiled C++;
    four without it), most of it for the few that take thousands of steps; O(d⁶) per step in the stiff part. Needs
    64-bit numbers.
    """
    require_float64("Fates need")
    make_room_for_programs()
    listed, starts = _checked(models, factors)
    last = finite_number("until", until, 1.0, LONGEST)
    rtol = finite_number("rtol", rtol, 1e-13, 0.1)
    homogeneous = listed[0].homogeneous
    stacked = jax.tree.map(lambda *x: np.stack(x).astype(float), *listed)
    clouds = _Clouds(*on_host(_prepare(stacked, starts, GROWTH[homogeneous], still)))
    stages = _stages(len(starts), last)
    if _in_native_code(listed[0]) and native_serves(np.float64):
        _travel_natively(clouds, stages, last / 10, rtol, progress)
    else:
        reached = 0.0
        for method, end in stages:
            _travel(clouds, method, np.flatnonzero(clouds.carries.t >= reached), last / 10, end, rtol, progress)
            reached = end
    numbers = on_host(_diagnose(clouds.models, clouds.carries.state))
    numbers["slope"] = (numbers["log_size"] - clouds.early) / np.log(10.0)
    numbers["s"] = clouds.carries.t
    numbers["axes"], numbers["singular"], _ = np.linalg.svd(numbers["shape"], full_matrices=False)
    return [_fate(k, numbers, last, homogeneous, rank_tolerance, still) for k in range(len(starts))]


def _checked(models: Any, factors: Any) -> tuple[list[GaussianClosure], np.ndarray]:
    """(one model per start, factors of shape (k, d, r)), or what is wrong with them."""
    starts = finite_array("factors", factors).astype(float)
    if starts.ndim == 2:
        starts = starts[None]
    several = isinstance(models, Sequence) and all(isinstance(m, GaussianClosure) for m in models)
    require(several or isinstance(models, GaussianClosure), "models", "be one or several Gaussian closures", models)
    listed = [models] * len(starts) if isinstance(models, GaussianClosure) else list(models)
    if starts.ndim != 3 or len(listed) != len(starts) or not starts.size:
        raise ArgumentError(f"Argument `factors` must hold one d × r factor a model, but has shape {starts.shape}.")
    if not listed[0].preserves:
        name = type(listed[0]).__name__
        raise ArgumentError(
            f"Argument `models` must keep Gaussians (softmax, l2, sinkhorn, linear), but {name} does not."
        )
    d = listed[0].value.shape[-1]
    if starts.shape[1] != d:
        raise ArgumentError(f"Argument `factors` must have {d} rows as the models do, but has {starts.shape[1]}.")
    points = np.flatnonzero(~np.any(starts, axis=(1, 2)))
    if len(points):
        raise ArgumentError(f"Argument `factors` must not vanish, but factor {points[0]} is zero: a point stays one.")
    return listed, starts


def _in_native_code(model: GaussianClosure) -> bool:
    """Whether compiled C++ holds this very field; a class derived from it may say something else."""
    kind = next((k for k in (SoftmaxGaussian, LinearGaussian) if isinstance(model, k)), None)
    return kind is not None and model.homogeneous and not overridden(model, kind)


class _Clouds(NamedTuple):
    """Arrays of NumPy's with one row per cloud; carries are filled as clouds move on.

    ``early`` is ln ρ a decade before the end, or at the end of a cloud that was decided earlier.
    """

    models: ScaledClosure
    carries: Carry
    early: np.ndarray


def _stages(count: int, last: float) -> list[tuple[str, float]]:
    """Methods and how far they go; few clouds go with the stiff method alone, which compiles one program."""
    if count <= FEW:
        return [("rodas5p", last)]
    explicit = ("dop853", min(last, EXPLICIT_UNTIL))
    return [explicit, ("rodas5p", last)] if last > EXPLICIT_UNTIL else [explicit]


def on_host(tree: Any) -> Any:
    """Arrays of NumPy's, which are indexed and filled without compiling anything."""
    return jax.tree.map(np.array, tree)


@eqx.filter_jit
def _prepare(models: Any, factors: Any, growth: float, still: float) -> Any:
    """(scaled closures, carries, ln ρ) at s = 0."""

    def one(model: GaussianClosure, factor: Array) -> tuple[ScaledClosure, Carry, Array]:
        scaled = ScaledClosure(model, factor, growth, still)
        return scaled, fresh_carry(_program("dop853"), scaled.begin(factor), 0.0, 1e-3), scaled.log_start

    return jax.vmap(one)(models, factors)


@cache
def _program(method: str) -> Program:
    return Program(METHODS[method], (), watch=True)


@eqx.filter_jit
def _turn(program: Program, models: Any, carries: Any, targets: Any, rtol: Any) -> tuple[Carry, Array]:
    """(carries some steps further, which of them are decided or give up)."""

    def one(model: ScaledClosure, carry: Carry, target: Array) -> tuple[Carry, Array]:
        controls = Controls(rtol, rtol, target, jnp.asarray(TURN), jnp.asarray(True), True)
        end, _, _ = advance(program, model, carry.state, carry, target[None], controls)
        spent = (end.accepted + end.rejected >= MOST_STEPS) | (end.status != OK)
        return end, spent | model.is_decided(end.state)

    return jax.vmap(one)(models, carries, targets)


def _travel(
    clouds: _Clouds, method: str, jobs: np.ndarray, halt: float, end: float, rtol: float, progress: bool | None
) -> None:
    """Take ``jobs`` to scale-free time ``end``, or to where their fate is decided, in lanes on all cores.

    Steps land on ``halt``, up to where ``early`` is kept.
    """
    models, carries, early = clouds
    width = 1 if len(early) == 1 else LANES

    def work(jobs: np.ndarray) -> np.ndarray:
        filled = np.append(jobs, np.repeat(jobs[-1:], width - len(jobs)))
        those, before = jax.tree.map(lambda x: x[filled], (models, carries))
        targets = np.where((carries.t[filled] < halt) & (halt < end), halt, end)
        after, done = _turn(_program(method), those, before, targets, np.asarray(rtol))
        for whole, part in zip(jax.tree.leaves(carries), jax.tree.leaves(after), strict=True):
            whole[jobs] = np.asarray(part)[: len(jobs)]
        before_halt = jobs[carries.t[jobs] <= halt]
        early[before_halt] = carries.state.log_size[before_halt]
        return jobs[~np.asarray(done)[: len(jobs)] & (carries.t[jobs] < end)]

    in_turns(work, jobs, width, progress)


def _travel_natively(
    clouds: _Clouds, stages: list[tuple[str, float]], halt: float, rtol: float, progress: bool | None
) -> None:
    """``_travel`` through all stages in compiled C++, for clouds that follow L' = Σ_h C_h L(LᵀA_hL)."""
    models, carries, early = clouds
    pair, stiff = METHODS["dop853"], METHODS["rodas5p"]
    assert isinstance(pair, RungeKutta) and isinstance(stiff, Rosenbrock)
    first, end = stages[0], stages[-1][1]
    middle = first[1] if first[0] == "dop853" else 0.0
    fifth, third = pair.estimates
    values, scores = np.asarray(models.inner.value), np.swapaxes(models.inner.key, -1, -2) @ models.inner.query
    state = carries.state
    unknowns = state.shape[0].size
    size = int(np.clip(NATIVE_WORK // unknowns**2, 64, 4096))
    with Progress(f"{len(early)} runs", len(early), show=progress) as bar:
        for low in range(0, len(early), size):
            part = slice(low, low + size)
            found = native_fates(
                values[part], scores[part], state.shape[part], state.log_size[part],
                a=pair.a, b=pair.b, fifth=fifth, third=third, stiff_a=stiff.a, stiff_c=stiff.c, gamma=stiff.gamma,
                rtol=rtol, growth=models.growth, still=models.still, shrunk=TO_ZERO, settled=SETTLED, seen=SEEN,
                halt=halt, middle=middle, end=end, turn=TURN, most_steps=MOST_STEPS,
            )  # fmt: skip
            for whole, one in zip((state.shape, state.log_size, state.time, carries.t, early), found, strict=True):
                whole[part] = np.asarray(one)
            bar.update(min(low + size, len(early)))


@eqx.filter_jit
def _diagnose(models: Any, states: Any) -> dict[str, Array]:
    def one(model: ScaledClosure, state: Scaled) -> dict[str, Array]:
        def log_rate(s: Scaled) -> Array:
            return jnp.log(jnp.abs(model.drift(s, zero).log_size) * model.clock(model.factor(s)))

        zero = jnp.zeros((), state.log_size.dtype)
        slope = model.drift(state, zero)
        rate = slope.log_size * model.clock(model.factor(state))
        change = jax.jvp(log_rate, (state,), (slope,))[1]
        residual, collapsed = model.verdict(state)
        return {
            "shape": state.shape,
            "log_size": state.log_size,
            "log_growth": state.log_size - model.log_start,
            "time": state.time / jnp.where(model.unit > 0, model.unit, 1.0),
            "residual": residual,
            "collapsed": collapsed,
            "rate": rate,
            "rate_exponent": jnp.where(slope.log_size == 0, 0.0, change / slope.log_size),
        }

    return jax.vmap(one)(models, states)


def _fate(
    k: int,
    numbers: dict[str, np.ndarray],
    last: float,
    homogeneous: bool,
    tolerance: float,
    still: float,
) -> Fate:
    shape, growth = numbers["shape"][k], float(numbers["log_growth"][k])
    residual, slope, rate = (float(numbers[n][k]) for n in ("residual", "slope", "rate"))
    exponent, s = float(numbers["rate_exponent"][k]), float(numbers["s"][k])
    axes, singular = numbers["axes"][k], numbers["singular"][k]
    collapsed = bool(numbers["collapsed"][k])
    kind, reason = _class(growth, collapsed, residual, slope, rate, exponent, homogeneous, still)
    if kind in ("exponential", "algebraic") and growth < GROWTH[homogeneous] and s < last:
        kind, reason = "undecided", f"{MOST_STEPS} steps are used up at s = {s:.3g}"
    size = 1.0 if kind in ("blow-up", "exponential") else float(np.exp(numbers["log_size"][k]))
    direction = axes[:, 0] * np.sign(axes[np.argmax(np.abs(axes[:, 0])), 0])
    time = float(numbers["time"][k])
    power = 1.0 if homogeneous else exponent  # rate ∝ (tr Σ)^power, so that 1/(power·rate) of the time is left
    return Fate(
        kind=kind,
        blow_up_time=time + 1 / (power * rate) if kind == "blow-up" else None,
        direction=direction.tolist(),
        rank=int(np.sum(singular**2 > tolerance * singular[0] ** 2)),
        eigenvalues=(size * singular**2).tolist(),
        covariance=(size * shape @ shape.T).tolist(),
        time=time,
        scale_free=s,
        log_growth=growth,
        residual=residual,
        slope=slope,
        rate=rate,
        rate_exponent=exponent,
        reason=reason,
    )


def _class(
    growth: float,
    collapsed: bool,
    residual: float,
    slope: float,
    rate: float,
    exponent: float,
    homogeneous: bool,
    still: float,
) -> tuple[str, str]:
    """The class with the number that decided it."""
    # e^{ct} of a homogeneous kind is tr Σ ∝ s, and does not get there by s = 10⁹
    if growth > GROWTH[homogeneous] and (homogeneous or exponent > 0.05):
        return "blow-up", f"tr Σ grew by e^{growth:.0f}, and its rate like (tr Σ)^{exponent:.2f}"
    if growth > GROWTH[homogeneous]:
        return "exponential", f"tr Σ grew by e^{growth:.0f} at the rate {rate:.4g}"
    if collapsed:
        return "to-zero", f"tr Σ shrank by e^{growth:.0f}"
    if residual < still:
        return "converged", f"the scale-free speed is {residual:.1e}"
    if homogeneous and slope > 0.85:
        return "exponential", f"tr Σ ∝ s^{slope:.3f}, that is e^(ct)"
    if abs(slope) < 0.02:
        return "algebraic", f"tr Σ ∝ s^{slope:.4f}: converging like a power of t"
    return "undecided", f"tr Σ ∝ s^{slope:.3f} at the end"
