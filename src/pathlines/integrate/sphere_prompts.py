"""Prompts on the sphere through any model of tokens: the last one at the end, and its exact derivative in every start.

The derivative is that of the steps taken, by reverse mode: one sweep for each of the d coordinates of the last token
gives all starts. Steps of Runge–Kutta of order four, back on the sphere after every stage.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, of_kind, positive_integer
from pathlines.foundation.programs import make_room_for_programs
from pathlines.model.base import Model
from pathlines.model.capability import HasLayers

ACCURATE = 1e-5
"""How far halving all steps may move the last token."""
MOST_STEPS = 4096
TRIED = 8
"""Prompts on which the number of steps is tried."""


def sphere_decoded(
    model: Model,
    starts: Any,
    depth: float,
    *,
    layers: int | None = None,
    steps: int | None = None,
    adjoint: bool = True,
) -> tuple[Float[np.ndarray, "r d"], Float[np.ndarray, "r d n d"] | None]:
    """(x_N(depth), ∂x_N/∂x_i(0)) of each prompt of unit rows, ``None`` without ``adjoint``; shape (prompts, n, d).

    ``layers`` L are the model's own layers of step depth/L; else ``steps`` of Runge–Kutta, by default as many as
    ``enough_steps`` finds. Cost is that of d + 2 drifts a stage.
    """
    x = finite_array("starts", starts, ("r", "n", "d")).astype(float)
    depth = finite_number("depth", depth, 0.0)
    check_sphere_model(model, x[0])
    if layers is not None:
        of_kind("model", model, HasLayers, "a model with layers")
        count = positive_integer("layers", layers)
    else:
        count = enough_steps(model, x, depth) if steps is None else positive_integer("steps", steps)
    make_room_for_programs()
    step = jnp.asarray(depth / count)
    if not adjoint:
        return np.asarray(_ends(model, jnp.asarray(x), step, jnp.asarray(count), layers is not None)), None
    ends, jacobians = _program(layers is not None)(model, jnp.asarray(x), step, count)
    return np.asarray(ends), np.asarray(jacobians)


def check_sphere_model(model: Any, tokens: np.ndarray) -> None:
    """``ArgumentError`` unless the model's state is its tokens, unit rows of these shapes."""
    of_kind("model", model, Model, "a model")
    model.check(tokens)
    if getattr(model.initial(jnp.asarray(tokens)), "shape", None) != tokens.shape:
        raise ArgumentError(f"Argument `model` must have tokens as its state, but {type(model).__name__} has not.")


def enough_steps(model: Model, starts: np.ndarray, depth: float) -> int:
    """Steps after which twice as many move the last token of a few prompts by less than 1e-5."""
    few, count = jnp.asarray(starts[:TRIED]), max(2, math.ceil(2 * depth))
    make_room_for_programs()
    coarse = _ends(model, few, jnp.asarray(depth / count), jnp.asarray(count))
    while count < MOST_STEPS:
        fine = _ends(model, few, jnp.asarray(depth / (2 * count)), jnp.asarray(2 * count))
        if float(jnp.max(jnp.abs(fine - coarse))) < ACCURATE:
            return count
        count, coarse = 2 * count, fine
    raise ArgumentError(f"Argument `depth` is too large for {MOST_STEPS} steps; give `layers`, or a smaller depth.")


AT, WEIGHTS = np.array([0.0, 0.5, 0.5, 1.0]), np.array([1, 2, 2, 1]) / 6
"""The classical method: where its stages are, and what they weigh."""


def _step(model: Any, x: Array, step: Array) -> Array:
    """One step; the stages are a loop, because the drift and its derivatives then compile once."""

    def stage(carry: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        slope, total = carry
        slope = model.drift(model.retract(x + step * row[0] * slope), jnp.zeros(()))
        return (slope, total + row[1] * slope), None

    (_, total), _ = jax.lax.scan(stage, (jnp.zeros_like(x), jnp.zeros_like(x)), (jnp.asarray(AT), jnp.asarray(WEIGHTS)))
    return model.retract(x + step * total)


def _advanced(model: Any, x: Array, number: Array, step: Array, layered: bool) -> Array:
    time = jnp.asarray(number, jnp.result_type(step)) * step
    return model.layer(x, time, step) if layered else _step(model, x, step)


@eqx.filter_jit
def _ends(model: Model, starts: Array, step: Array, count: Array, layered: bool = False) -> Array:
    """The last tokens, forwards only: the number of steps needs no program of its own."""
    go = lambda k, y: _advanced(model, y, k, step, layered)  # noqa: E731
    return jax.lax.map(lambda x: jax.lax.fori_loop(0, count, go, x)[-1], starts)


@lru_cache
def _program(layered: bool) -> Any:
    def last(model: Any, start: Array, step: Array, count: int) -> Array:
        @jax.checkpoint
        def one(x: Array, k: Array) -> tuple[Array, None]:
            return _advanced(model, x, k, step, layered), None

        return jax.lax.scan(one, start, jnp.arange(count))[0][-1]

    def run(model: Model, starts: Array, step: Array, count: int) -> tuple[Array, Array]:
        both = lambda x: (lambda y: (y, y))(last(model, x, step, count))  # noqa: E731
        jacobian, end = jax.vmap(jax.jacrev(both, has_aux=True))(starts)
        return end, jacobian

    return eqx.filter_jit(run)
