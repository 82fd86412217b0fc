"""fates: what becomes of Gaussian clouds, integrated through blow-up to a class, a time and a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError, finite_number
from pathlines.integrate.advance import Controls, Program, advance, fresh_carry
from pathlines.integrate.lanes import in_chunks
from pathlines.integrate.methods import METHODS
from pathlines.integrate.observe import Observable
from pathlines.model.gaussian_closure import GaussianClosure
from pathlines.model.gaussian_scaled import STILL, TO_ZERO, Scaled, ScaledClosure

CLASSES = ("converged", "to-zero", "blow-up", "exponential", "algebraic", "undecided")
EXPLICIT_UNTIL = 1001.0
"""Scale-free time s up to which an explicit method is cheaper: rates are O(1) in s, and most fates are decided."""
HALF_DECADES = 10 ** np.arange(-2, 9.01, 0.5)
MOST_STEPS = 5000
"""A cloud that needs more keeps turning and is called undecided; fifty times the usual number."""
FEW = 8
WIDTHS = (1, FEW, 32)
"""Lanes side by side: few compiled programs serve any number of clouds."""
GROWTH = {True: 25.0, False: 40.0}
"""ln(ρ/ρ_0) at which growth is judged: e^{-25} of a softmax cloud's time is left, more for kinds that grow slower."""


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
    explicit method to s = 1000, then Rodas5P for those that are not decided, at half-decades of s up to ``until``. A
    cloud whose scale-free speed falls below ``still`` has converged; algebraic limits come later than that. Cost
    for d = 4: about a millisecond a cloud after compilation, several for slow ones; O(d⁶) a step in the stiff part.
    """
    starts = np.asarray(factors, float)
    if starts.ndim == 2:
        starts = starts[None]
    listed = [models] * len(starts) if isinstance(models, GaussianClosure) else list(models)
    if starts.ndim != 3 or len(listed) != len(starts):
        raise ArgumentError(f"Argument `factors` must hold one d × r factor a model, but has shape {starts.shape}.")
    last = finite_number("until", until, 1.0, float(HALF_DECADES[-1]))
    if not listed[0].preserves:
        name = type(listed[0]).__name__
        raise ArgumentError(
            f"Argument `models` must keep Gaussians (softmax, l2, sinkhorn, linear), but {name} does not."
        )
    homogeneous = listed[0].homogeneous
    stacked = jax.tree.map(lambda *x: np.stack(x), *listed)
    scaled, states = on_host(_prepare(stacked, starts, GROWTH[homogeneous], still))
    grid = HALF_DECADES[last >= HALF_DECADES * 0.9999]
    trail, reached = np.zeros((len(starts), len(grid))), np.zeros(len(starts))
    going, s = np.arange(len(starts)), 0.0
    for method, columns in _phases(len(starts), grid):
        mine, those = jax.tree.map(lambda x: x[going], (scaled, states))  # noqa: B023
        ends, reached[going], sizes = _travel(method, mine, those, s, grid[columns], rtol, progress)
        for whole, part in zip(jax.tree.leaves(states), jax.tree.leaves(ends), strict=True):
            whole[going] = part
        trail[going, columns] = sizes
        trail[going, columns.stop :] = sizes[:, -1:]
        numbers = on_host(_diagnose(scaled, states))
        going, s = np.flatnonzero(~numbers["decided"]), float(grid[columns][-1])
        if len(going) == 0:
            break
    return [
        _fate(k, numbers, trail[k], grid, reached[k], homogeneous, rank_tolerance, still) for k in range(len(starts))
    ]


_SIZE = Observable("log_size", "log size", "ln ρ", lambda snapshot: snapshot.state.log_size)


def _phases(count: int, grid: np.ndarray) -> list[tuple[str, slice]]:
    """Methods and the times they serve; few clouds go with the stiff method alone, which compiles one program."""
    split = int(np.sum(grid <= EXPLICIT_UNTIL)) if count > FEW else 0
    both = [("dop853", slice(0, split)), ("rodas5p", slice(split, len(grid)))]
    return [(method, columns) for method, columns in both if columns.stop > columns.start]


def on_host(tree: Any) -> Any:
    """Arrays of NumPy's, which are indexed and filled without compiling anything."""
    return jax.tree.map(np.array, tree)


@eqx.filter_jit
def _prepare(models: Any, factors: Any, growth: float, still: float) -> Any:
    """(scaled closures, their states at s = 0)."""

    def one(model: GaussianClosure, factor: Array) -> tuple[ScaledClosure, Scaled]:
        scaled = ScaledClosure(model, factor, growth, still)
        return scaled, scaled.begin(factor)

    return jax.vmap(one)(models, factors)


@eqx.filter_jit
def _block(program: Program, models: Any, states: Any, s: Any, times: Any, rtol: Any) -> Any:
    def one(model: ScaledClosure, state: Scaled) -> tuple[Scaled, Array, Array]:
        carry = fresh_carry(program, state, 0.0, 0.0)._replace(t=s, h=1e-3 * jnp.maximum(s, 1.0))
        controls = Controls(rtol, rtol, times[-1], jnp.asarray(MOST_STEPS), jnp.asarray(True), jnp.asarray(True))
        end, _, (sizes,) = advance(program, model, state, carry, times, controls)
        return end.state, end.t, sizes

    group = jax.vmap(one)
    return jax.lax.map(lambda item: group(*item), (models, states))


def _travel(
    method: str, models: Any, states: Any, s: float, times: np.ndarray, rtol: float, progress: bool | None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """(states at the end, s there, ln ρ at the times) of all clouds from scale-free time s, in lanes on all cores."""
    program, count = Program(METHODS[method], (_SIZE,), watch=True), len(states.log_size)
    begin, grid, tolerance = (np.asarray(x, float) for x in (s, times, rtol))

    def work(indices: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
        mine, those = jax.tree.map(lambda x: x[indices], (models, states))
        end, reached, sizes = _block(program, mine, those, begin, grid, tolerance)
        return np.ones(indices.shape, bool), (*jax.tree.leaves(end), reached, sizes)

    width = next(w for w in WIDTHS if w >= min(count, WIDTHS[-1]))
    *leaves, reached, sizes = in_chunks(work, count, width, 1, progress)
    return jax.tree.unflatten(jax.tree.structure(states), leaves), reached, sizes


@eqx.filter_jit
def _diagnose(models: Any, states: Any) -> dict[str, Array]:
    def one(model: ScaledClosure, state: Scaled) -> dict[str, Array]:
        def log_rate(s: Scaled) -> Array:
            return jnp.log(jnp.abs(model.drift(s, zero).log_size) * model.clock(model.factor(s)))

        zero = jnp.zeros((), state.log_size.dtype)
        slope = model.drift(state, zero)
        rate = slope.log_size * model.clock(model.factor(state))
        change = jax.jvp(log_rate, (state,), (slope,))[1]
        return {
            "decided": model.is_ripe(state),
            "shape": state.shape,
            "log_size": state.log_size,
            "log_growth": state.log_size - model.log_start,
            "time": state.time / model.unit,
            "residual": model.residual(state),
            "rate": rate,
            "rate_exponent": change / slope.log_size,
        }

    return jax.vmap(one)(models, states)


def _fate(
    k: int,
    numbers: dict[str, np.ndarray],
    trail: np.ndarray,
    grid: np.ndarray,
    s: float,
    homogeneous: bool,
    tolerance: float,
    still: float,
) -> Fate:
    shape, growth = numbers["shape"][k], float(numbers["log_growth"][k])
    residual, rate, exponent = (float(numbers[n][k]) for n in ("residual", "rate", "rate_exponent"))
    axes, singular, _ = np.linalg.svd(shape, full_matrices=False)
    slope = float((trail[-1] - trail[-3]) / np.log(grid[-1] / grid[-3]))
    kind, reason = _class(growth, residual, slope, rate, exponent, homogeneous, still)
    if kind in ("exponential", "algebraic") and growth < GROWTH[homogeneous] and s < 0.999 * grid[-1]:
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
        scale_free=float(s),
        log_growth=growth,
        residual=residual,
        slope=slope,
        rate=rate,
        rate_exponent=exponent,
        reason=reason,
    )


def _class(
    growth: float, residual: float, slope: float, rate: float, exponent: float, homogeneous: bool, still: float
) -> tuple[str, str]:
    """The class with the number that decided it."""
    # e^{ct} of a homogeneous kind is tr Σ ∝ s, and does not get there by s = 10⁹
    if growth > GROWTH[homogeneous] and (homogeneous or exponent > 0.05):
        return "blow-up", f"tr Σ grew by e^{growth:.0f}, and its rate like (tr Σ)^{exponent:.2f}"
    if growth > GROWTH[homogeneous]:
        return "exponential", f"tr Σ grew by e^{growth:.0f} at the rate {rate:.4g}"
    if growth < TO_ZERO:
        return "to-zero", f"tr Σ shrank by e^{growth:.0f}"
    if residual < still:
        return "converged", f"the scale-free speed is {residual:.1e}"
    if homogeneous and slope > 0.85:
        return "exponential", f"tr Σ ∝ s^{slope:.3f}, that is e^(ct)"
    if abs(slope) < 0.02:
        return "algebraic", f"tr Σ ∝ s^{slope:.4f}: converging like a power of t"
    return "undecided", f"tr Σ ∝ s^{slope:.3f} at the end"
