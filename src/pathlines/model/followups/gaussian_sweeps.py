"""Layers of the dual filter for linear Gaussian tokens: sweeps backwards and forwards, then a step at every token."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pathlines.numerics.sources import StateSpace

SETTLED = 1e-13
"""Weights whose largest change over a layer is below, relative to their size, have settled."""
POWER_STEPS = 60


class Problem(NamedTuple):
    """A, H, Q, R, Σ_0, and K targets fᵀX_s with their times s."""

    transition: Float[Array, "d d"]
    readout: Float[Array, "d p"]
    moves: Float[Array, "d d"]
    noise: Float[Array, "p p"]
    spread: Float[Array, "d d"]
    targets: Float[Array, "k d"]
    times: Int[Array, " k"]


class Settled(NamedTuple):
    """After the last layer: weights u, duals y, errors J, how many layers, and the last relative change."""

    weights: Float[Array, "k T p"]
    dual: Float[Array, "k T+1 d"]
    errors: Float[Array, " k"]
    layers: Int[Array, ""]
    change: Float[Array, ""]


def problem(source: StateSpace, targets: Array, times: Array) -> Problem:
    """The arrays of a source on the device."""
    a, h, q = map(jnp.asarray, (source.transition, source.readout, source.moves))
    r, spread = jnp.asarray(source.noise), jnp.asarray(source.spread)
    return Problem(a, h, q, r, spread, jnp.asarray(targets), jnp.asarray(times))


def backward(q: Problem, u: Float[Array, "T p"], target: Array, time: Array) -> Float[Array, "T+1 d"]:
    """y_t = A y_{t+1} + H u_t from y_s = f; beyond s it stays f."""

    def sweep(y: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        t, weight = at
        before = jnp.where(t < time, q.transition @ y + q.readout @ weight, y)
        return before, before

    _, y = jax.lax.scan(sweep, target, (jnp.arange(len(u)), u), reverse=True)
    return jnp.concatenate([y, target[None]])


def forward(q: Problem, y: Float[Array, "S d"]) -> Float[Array, "S-1 d"]:
    """p_0 = Σ_0 y_0, p_{t+1} = Aᵀ p_t + Q y_{t+1}: it looks at earlier times only."""
    sweep = lambda p, later: (q.transition.T @ p + q.moves @ later, p)  # noqa: E731
    return jax.lax.scan(sweep, q.spread @ y[0], y[1:])[1]


def gradient(q: Problem, u: Float[Array, "T p"], target: Array, time: Array) -> Float[Array, "T p"]:
    """½∇J = R u_t + Hᵀ p_t at the tokens before the target's time."""
    costate = forward(q, backward(q, u, target, time))
    return jnp.where(jnp.arange(len(u))[:, None] < time, u @ q.noise + costate @ q.readout, 0.0)


def error(q: Problem, u: Float[Array, "T p"], y: Float[Array, "T+1 d"], time: Array) -> Float[Array, ""]:
    """J(u), the mean square error of the estimate with these weights."""
    each = jnp.einsum("ti,ij,tj->t", y[1:], q.moves, y[1:]) + jnp.einsum("ti,ij,tj->t", u, q.noise, u)
    return y[0] @ q.spread @ y[0] + jnp.sum(jnp.where(jnp.arange(len(u)) < time, each, 0.0))


@partial(jax.jit, static_argnames="length")
def curvature(q: Problem, length: int) -> Float[Array, ""]:
    """Largest eigenvalue of ½∇²J, by power iteration: layers are stable for steps below 2 over it."""
    still = jnp.zeros_like(q.targets[0])
    apply = lambda u: gradient(q, u, still, jnp.asarray(length))  # noqa: E731
    start = jnp.ones((length, q.readout.shape[1])) + 0.1 * jnp.arange(q.readout.shape[1], dtype=float)[None]
    turn = lambda _, u: (v := apply(u)) / jnp.linalg.norm(v)  # noqa: E731
    u = jax.lax.fori_loop(0, POWER_STEPS, turn, start / jnp.linalg.norm(start))
    return jnp.vdot(u, apply(u))


@partial(jax.jit, static_argnames="length")
def descend(q: Problem, length: int, step: Array, layers: Array, settled: Array) -> Settled:
    """At most ``layers`` layers u ← u - η(R u + Hᵀ p) from u = 0, fewer if the weights settle before."""
    of_targets = jax.vmap(lambda u, f, s: gradient(q, u, f, s))

    def layer(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        u, k, _ = carry
        move = step * of_targets(u, q.targets, q.times)
        size = jnp.maximum(jnp.max(jnp.abs(u - move), initial=0.0), jnp.finfo(u.dtype).tiny)
        return u - move, k + 1, jnp.max(jnp.abs(move), initial=0.0) / size

    start = jnp.zeros((len(q.targets), length, q.readout.shape[1]))
    onwards = lambda c: (c[1] < layers) & (c[2] > settled)  # noqa: E731
    u, k, change = jax.lax.while_loop(onwards, layer, (start, jnp.asarray(0), jnp.asarray(jnp.inf)))
    y = jax.vmap(partial(backward, q))(u, q.targets, q.times)
    return Settled(u, y, jax.vmap(partial(error, q))(u, y, q.times), k, change)
