"""Finite against infinite context: one head, a depth, hard attention (arXiv:2605.16747; constants derived)."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.attention.hardmax import HardmaxAttention
from pathlines.attention.softmax import SoftmaxAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.slopes import log_slope, several
from pathlines.claim.tolerance import absolute, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import CONTEXTUAL
from pathlines.foundation.setting import Setting, means
from pathlines.kernels.dense import attend
from pathlines.limit.followups.finite_context import (
    context_error,
    context_spread,
    error_constant,
    nearest_distance,
    outside_ball,
)
from pathlines.limit.gaussian.context import score_strength
from pathlines.model.parts.splitting import drift_flow
from pathlines.model.self_attention import SelfAttention
from pathlines.numerics.runge_kutta import rk4_step
from pathlines.weights.fixed import FixedWeights

ERRORS = 5.0
BATCH = 64
CONVENTION = (
    "the context tokens move by the same map as the distinguished one, ẋ = b(x, μ), ẏ = b(y, μ), and a finite context "
    "is n independent draws; the paper's own regularity classes and constants were not available."
)
MARKS = ("abstract", "assumed", "derived")
Contexts = Annotated[tuple[of.Count, ...], means("context lengths", "n")]


# --- F1: one head


class Query(Setting):
    """One query, and contexts of several lengths."""

    query: Annotated[of.Vector, means("the query", "q")] = (0.6, -0.3, 0.2, 0.4)
    contexts: Contexts = (100, 1600)
    draws: of.Draws = 4000
    seed: of.Seed = 1


@partial(jax.jit, static_argnames=("n", "draws"))
def _heard(q: jax.Array, key: jax.Array, n: int, draws: int) -> jax.Array:
    """|Σ_j w_j y_j - q|² of independent contexts."""

    def one(number: jax.Array) -> jax.Array:
        keys = jax.random.normal(jax.random.fold_in(key, number), (n, q.shape[0]))
        said, _ = attend(SoftmaxAttention(), q[None], keys, keys, jnp.full(n, 1.0 / n))
        return jnp.sum((said[0] - q) ** 2)

    return jax.lax.map(one, jnp.arange(draws), batch_size=BATCH)


def simulate_query(s: Query) -> Evidence:
    """n E|error|² for each context length, and at the longest."""
    q, key, found = jnp.asarray(s.query), jax.random.key(s.seed), []
    for n in s.contexts:
        squares = np.asarray(_heard(q, jax.random.fold_in(key, n), n, s.draws))
        found.append(mean_and_error(n * squares))
    scaled, error = np.array(found).T
    last = int(np.argmax(s.contexts))
    values, errors = {"scaled": scaled, "constant": scaled[last]}, {"scaled": error, "constant": error[last]}
    return Evidence(values, errors, (Curve("contexts", s.contexts, scaled, error),))


def predict_query(s: Query) -> Evidence:
    """Exact for every n by one-dimensional integrals; e^{|q|²}(d + |q|²) as n → ∞."""
    r, d = float(np.linalg.norm(s.query)), len(s.query)
    exact = np.array([n * context_error(r, n, d) ** 2 for n in s.contexts])
    limit = error_constant(r, d)
    left = abs(exact[int(np.argmax(s.contexts))] - limit)
    advice = {"constant": "longer contexts would decide: n ≫ e^{2|q|²}"} if left > 0.03 * limit else {}
    values, rest = {"scaled": exact, "constant": limit}, {"constant": left / ERRORS}
    return Evidence(values, rest, (Curve("exact", s.contexts, exact),), undecided=advice)


SAMPLED = standard_errors(ERRORS, "standard errors over contexts")

claim(
    "followups/F1",
    CONTEXTUAL,
    "n E|error|² of one softmax head tends to e^{|q|²}(d+|q|²)",
    "Softmax attention of a query q to n keys = values drawn from N(0, I_d) misses its infinite-context output q by an "
    "error with n E|error|² → e^{|q|²}(d+|q|²), 8.9073 for the query given; at every n it has the exact value of "
    "one-dimensional integrals.",
    where="abstract: rate n^{−1/2} for transformers; the constant is derived",
    models=(),
    quick=Query(),
    full=Query(contexts=(100, 400, 1600, 6400), draws=40_000),
    within={
        "scaled": SAMPLED,
        "constant": standard_errors(ERRORS, "standard errors over contexts; what finite n changes is computed"),
    },
    simulate=simulate_query,
    predict=predict_query,
    axes=Axes("context n", "n E|error|²", "log"),
    marks=MARKS,
    convention=CONVENTION,
)


# --- F2: depth


class Depth(Setting):
    """A token among Gaussian context tokens that move too."""

    score: Annotated[of.Matrix, means("scores x·Ay", "A")] = ((0.5, 0.2), (0.0, 0.3))
    value: Annotated[of.Matrix, means("values Vy", "V")] = ((-0.5, 0.0), (0.0, -0.5))
    start: Annotated[of.Vector, means("where the distinguished token starts", "x₀")] = (1.0, 0.5)
    until: of.Until = 1.0
    contexts: Contexts = (25, 100)
    steps: of.IntegratorSteps = 5
    draws: of.Draws = 4500
    seed: of.Seed = 2


@partial(jax.jit, static_argnames=("n", "draws", "steps"))
def _moved(
    model: SelfAttention, start: jax.Array, span: jax.Array, key: jax.Array, n: int, draws: int, steps: int
) -> jax.Array:
    """x(T) among n tokens, for independent contexts."""
    h = span / steps

    def one(number: jax.Array) -> jax.Array:
        context = jax.random.normal(jax.random.fold_in(key, number), (n, start.shape[0]))
        tokens = jnp.concatenate([context, start[None]])
        drift = lambda x, stage: model.drift(x, jnp.zeros(()))  # noqa: E731
        step = lambda x, _: (drift_flow(drift, model.retract, x, h), None)  # noqa: E731
        return jax.lax.scan(step, tokens, None, length=steps)[0][-1]

    return jax.lax.map(one, jnp.arange(draws), batch_size=BATCH)


def simulate_depth(s: Depth) -> Evidence:
    """√n times the rms distance to the limit for each n, extrapolated in 1/n from the two longest; and the slope."""
    several("contexts", s.contexts)
    weights = FixedWeights(np.array(s.value), query=np.array(s.score).T)
    lengths, key, found = sorted(s.contexts), jax.random.key(s.seed), []
    limit = _closure_end(s)
    for n in lengths:
        model = SelfAttention(1.0, weights=weights, space="euclidean", multiplicities=[1.0] * n + [0.0])
        ends = _moved(
            model, jnp.asarray(s.start), jnp.asarray(s.until), jax.random.fold_in(key, n), n, s.draws, s.steps
        )
        squares = n * np.sum((np.asarray(ends) - limit) ** 2, axis=1)
        found.append(mean_and_error(squares))
    mean, error = np.array(found).T
    share = lengths[-2] / (lengths[-1] - lengths[-2])  # of the remainder c/n
    whole = mean[-1] + share * (mean[-1] - mean[-2])
    spread = math.hypot((1 + share) * error[-1], share * error[-2])
    rms = np.sqrt(whole)
    slope, slope_error = log_slope(lengths, np.sqrt(mean / lengths), np.sqrt(mean / lengths) * error / (2 * mean))
    values = {"limit": limit, "scaled_rms": rms, "slope": slope}
    errors = {"scaled_rms": spread / (2 * rms), "slope": slope_error}
    return Evidence(values, errors, (Curve("contexts", lengths, np.sqrt(mean), error / (2 * np.sqrt(mean))),))


def _closure_end(s: Depth) -> np.ndarray:
    """x(T) of the infinite context, by the Gaussian closure: a listener's x' = V S Aᵀ x, S' of the cloud."""
    push, cloud, x = np.array(s.value), np.eye(len(s.start)), np.array(s.start, float)
    score, count = np.array(s.score), 200

    def rate(S: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        M = push @ S @ score.T
        return M @ S + S @ M.T, M @ x

    for _ in range(count):
        cloud, x = rk4_step(rate, (cloud, x), s.until / count)
    return x


def predict_depth(s: Depth) -> Evidence:
    """The linear response of the flow to its sampled context, integrated along depth; slope -1/2."""
    limit, size = context_spread(s.score, s.value, s.start, s.until, 12 if len(s.start) < 3 else 7, 10)
    strong = score_strength(s.score, np.eye(len(s.start))) > 0.7
    advice = {"scaled_rms": "weaker scores: beyond |A| = 0.7 single tokens decide"} if strong else {}
    ends = np.array(sorted(s.contexts), float)
    curves = (Curve("linear response", ends, np.full(len(ends), size)),)
    return Evidence({"limit": limit, "scaled_rms": size, "slope": -0.5}, curves=curves, undecided=advice)


claim(
    "followups/F2",
    CONTEXTUAL,
    "along depth the finite context costs n^{−1/2}, with the constant of linear response",
    "A token among n Gaussian context tokens that move by the same attention strays from its infinite-context path "
    "(Gaussian closure) by rms C n^{−1/2}, C = (∫|R_T(x₀, y)|²dμ)^{1/2} with R the linear response of the flow to its "
    "sampled context.",
    where="abstract: rate n^{−1/2} for transformers, uniformly in depth; the constant is derived",
    models=("sa",),
    quick=Depth(),
    full=Depth(contexts=(25, 100, 400), draws=20_000),
    within={
        "limit": absolute(1e-6, "ten steps of RK4 on Gauss-Hermite nodes against two hundred of the closure"),
        "scaled_rms": standard_errors(ERRORS, "standard errors over contexts, extrapolated in 1/n"),
        "slope": absolute(0.01, "what 1/n adds at the shortest context", 4.0),
    },
    simulate=simulate_depth,
    predict=predict_depth,
    axes=Axes("context n", "√n · rms", "log"),
    marks=MARKS,
    convention=CONVENTION,
)


# --- F3: hard attention


class Nearest(Setting):
    """Points of the cube, of which the nearest one counts."""

    dims: of.Dimensions = (3, 5)
    contexts: Contexts = (100, 800)
    draws: of.Draws = 2000
    seed: of.Seed = 3


@partial(jax.jit, static_argnames=("d", "n", "draws"))
def _distances(key: jax.Array, d: int, n: int, draws: int) -> jax.Array:
    """How far hard attention by distance carries a token from the centre of the cube."""
    x = jnp.full((1, d), 0.5)

    def one(number: jax.Array) -> jax.Array:
        keys = jax.random.uniform(jax.random.fold_in(key, number), (n, d)) - 0.5
        lifted = jnp.concatenate([keys, -jnp.sum(keys**2, axis=1, keepdims=True)], axis=1)
        rows = jnp.concatenate([2 * (x - 0.5), jnp.ones((1, 1))], axis=1)
        nearest, _ = attend(HardmaxAttention(), rows, lifted, keys, jnp.full(n, 1.0 / n))
        return jnp.sqrt(jnp.sum(nearest**2))

    return jax.lax.map(one, jnp.arange(draws), batch_size=BATCH)


def simulate_nearest(s: Nearest) -> Evidence:
    """Mean distances and their slopes in n."""
    several("contexts", s.contexts)
    key, sizes, errors, slopes = jax.random.key(s.seed), [], [], []
    for d in s.dims:
        keys = [jax.random.fold_in(key, 1000 * d + k) for k in range(len(s.contexts))]
        found = [mean_and_error(_distances(k, d, n, s.draws)) for k, n in zip(keys, s.contexts, strict=True)]
        mean, error = np.array(found).T
        sizes.append(mean)
        errors.append(error)
        slopes.append(log_slope(s.contexts, mean, error))
    slope, spread = np.array(slopes).T
    curves = tuple(Curve(f"d = {d}", s.contexts, m, e) for d, m, e in zip(s.dims, sizes, errors, strict=True))
    values = {"distance": np.array(sizes), "slope": slope}
    return Evidence(values, {"distance": np.array(errors), "slope": spread}, curves)


def predict_nearest(s: Nearest) -> Evidence:
    """ω_d^{-1/d} Γ(1+1/d) n!/Γ(n+1+1/d), and -1/d."""
    exact = np.array([[nearest_distance(n, d) for n in s.contexts] for d in s.dims])
    outside = max(outside_ball(n, d) for n in s.contexts for d in s.dims)
    advice = {"distance": "longer contexts: the nearest point may be in a corner"} if outside > 1e-3 else {}
    curves: Any = tuple(Curve(f"exact, d = {d}", s.contexts, row) for d, row in zip(s.dims, exact, strict=True))
    return Evidence({"distance": exact, "slope": -1 / np.array(s.dims)}, curves=curves, undecided=advice)


claim(
    "followups/F3",
    CONTEXTUAL,
    "a map that sees the nearest token only pays n^{−1/d}",
    "Hard attention by distance, b(x, μ) = −∇ of the distance to the nearest context point, moves a token that "
    "infinite context leaves at rest by E min|x−y_j| = ω_d^{−1/d} Γ(1+1/d) n!/Γ(n+1+1/d): slope −1/d, the general "
    "rate, not −1/2.",
    where="abstract: rate n^{−1/d} in general; the constant is derived",
    models=(),
    quick=Nearest(),
    full=Nearest(dims=(3, 5, 8), contexts=(100, 400, 1600, 6400), draws=10_000),
    within={
        "distance": SAMPLED,
        "slope": absolute(0.003, "1/n of the exact law at the shortest context", 4.0),
    },
    simulate=simulate_nearest,
    predict=predict_nearest,
    axes=Axes("context n", "distance moved", "log", "log"),
    marks=("abstract", "assumed", "derived", "unverified"),
    convention=CONVENTION,
)
