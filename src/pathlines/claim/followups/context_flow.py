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
    WIDEST,
    context_error,
    context_spread,
    corner_excess,
    error_constant,
    hardest_query,
    law_ratio,
    nearest_distance,
)
from pathlines.limit.gaussian.context import critical_time
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


NODES = {1: 16, 2: 12, 3: 7}
"""Gauss-Hermite nodes in each direction, by dimension."""
EXACT = 1e-6
CLOSE = 0.03
"""Share that a remainder may have of a number that is to be known to 10 % (3 % at full size: there it is smaller)."""


class Depth(Setting):
    """A token among Gaussian context tokens that move too."""

    score: Annotated[of.Matrix, means("scores x·Ay", "A")] = ((0.5, 0.2), (0.0, 0.3))
    value: Annotated[of.Matrix, means("values Vy", "V")] = ((-0.5, 0.0), (0.0, -0.5))
    start: Annotated[of.Vector, means("where the distinguished token starts", "x₀")] = (1.0, 0.5)
    until: Annotated[of.Positive, means("where the run ends", "T", unit="depth-time")] = 1.0
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
    """√n times the rms distance to the limit for each n, extrapolated in 1/n from the two longest; and the slope.

    n E|…|² = C²(1 + a/n + b/n² + …) leaves b/(n₁n₂) of it, where b is about a².
    """
    several("contexts", s.contexts)
    weights = FixedWeights(np.array(s.value), query=np.array(s.score).T)
    lengths, key, found = sorted(set(s.contexts)), jax.random.key(s.seed), []
    limit, stepped = _closure_end(s, 200), _closure_end(s, s.steps)
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
    rms, rest = np.sqrt(abs(whole)), (1 - mean[-1] / whole) ** 2 * lengths[-1] / lengths[-2]
    slope, slope_error = log_slope(lengths, np.sqrt(mean / lengths), np.sqrt(mean / lengths) * error / (2 * mean))
    values = {"limit": limit, "scaled_rms": rms, "slope": slope}
    errors = {"scaled_rms": float(np.hypot(spread / (2 * rms), rms * rest / (2 * ERRORS))), "slope": slope_error}
    curves = (Curve("contexts", lengths, np.sqrt(mean), error / (2 * np.sqrt(mean))),)
    advice = ""
    if not rest < 2 * CLOSE:
        advice = "longer contexts: their errors are not of the form C²/n (1 + a/n) yet"
    if not lengths[-1] * np.sum((stepped - limit) ** 2) < 0.1 * error[-1]:
        advice = "more steps: what they leave counts beside the error of the longest context"
    return Evidence(values, errors, curves, undecided=dict.fromkeys(errors, advice) if advice else {})


def _closure_end(s: Depth, count: int) -> np.ndarray:
    """x(T) of the infinite context, by the Gaussian closure: a listener's x' = V S Aᵀ x, S' of the cloud."""
    push, cloud, x = np.array(s.value), np.eye(len(s.start)), np.array(s.start, float)
    score = np.array(s.score)

    def rate(S: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        M = push @ S @ score.T
        return M @ S + S @ M.T, M @ x

    with np.errstate(over="ignore", invalid="ignore"):  # a closure that blows up has no end, and decides nothing
        for _ in range(count):
            cloud, x = rk4_step(rate, (cloud, x), s.until / count)
    return x


def predict_depth(s: Depth) -> Evidence:
    """The linear response of the flow to its sampled context, integrated along depth; slope -1/2.

    What it leaves is bounded twice: by fewer nodes and steps, and by one head at the sharpest query of the path, whose
    error is known at every n.
    """
    d, known = len(s.start), ("limit", "scaled_rms", "slope")
    if d not in NODES:
        return Evidence(dict.fromkeys(known), source="no quadrature of more than three dimensions")
    lost = critical_time(np.transpose(s.score), s.value, np.eye(d), s.until)
    if math.isfinite(lost):
        advice = f"weaker scores or an end before {lost:.3g}: there |S^½AS^½| is 1/√2, and single tokens decide"
        return Evidence(dict.fromkeys(known, math.nan), undecided=dict.fromkeys(known, advice))
    limit, size = context_spread(s.score, s.value, s.start, s.until, NODES[d], 10)
    coarse, small = context_spread(s.score, s.value, s.start, s.until, NODES[d] - 2, 5)
    lengths, sharpest = sorted(set(s.contexts)), hardest_query(s.score, s.value, s.start, s.until)
    rest, bend = _remainders(sharpest, d, lengths)
    rough = abs(1 - small / size)
    undecided: dict[str, str] = {}
    if not np.abs(limit - coarse).max() <= EXACT:
        undecided["limit"] = (
            "weaker scores, a nearer start or a shorter run: quadrature and its steps leave more than 1e-6"
        )
    if not rest + rough <= CLOSE:
        undecided["scaled_rms"] = f"longer contexts, n ≫ e^(2|h|²) = {math.exp(2 * sharpest**2):.3g}, or a weaker query"
    if not bend <= CLOSE:
        undecided["slope"] = f"longer contexts, n ≫ e^(2|h|²) = {math.exp(2 * sharpest**2):.3g}, or a weaker query"
    ends = np.array(lengths, float)
    curves = (Curve("linear response", ends, np.full(len(ends), size)),)
    left = {"scaled_rms": size * (rest + rough) / ERRORS, "slope": bend / ERRORS}
    return Evidence({"limit": limit, "scaled_rms": size, "slope": -0.5}, left, curves, undecided=undecided)


def _remainders(r: float, d: int, lengths: list[int]) -> tuple[float, float]:
    """What the extrapolation of one head's √n rms leaves of it at |query| = r, and how far its slope is from -1/2."""
    if r > WIDEST:
        return math.inf, math.inf
    ratio = np.array([law_ratio(r, n, d) for n in lengths])
    share = lengths[-2] / (lengths[-1] - lengths[-2])
    whole = ratio[-1] ** 2 + share * (ratio[-1] ** 2 - ratio[-2] ** 2)
    return abs(1 - math.sqrt(max(whole, 0.0))), abs(log_slope(lengths, ratio)[0])


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
        "limit": absolute(EXACT, "ten steps of RK4 on Gauss-Hermite nodes against two hundred of the closure"),
        "scaled_rms": standard_errors(
            ERRORS, "standard errors over contexts, extrapolated in 1/n; remainders are added"
        ),
        "slope": standard_errors(
            ERRORS, "standard errors over contexts; what 1/n adds at the sharpest query is computed"
        ),
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
    contexts: Contexts = (25, 400)
    draws: of.Draws = 1500
    seed: of.Seed = 3


@partial(jax.jit, static_argnames=("d", "contexts", "draws"))
def _distances(key: jax.Array, d: int, contexts: tuple[int, ...], draws: int) -> jax.Array:
    """How far hard attention by distance carries a token from the centre of the cube, by a context and its starts."""
    x = jnp.full((1, d), 0.5)

    def one(number: jax.Array) -> jax.Array:
        keys = jax.random.uniform(jax.random.fold_in(key, number), (max(contexts), d)) - 0.5
        lifted = jnp.concatenate([keys, -jnp.sum(keys**2, axis=1, keepdims=True)], axis=1)
        rows = jnp.concatenate([2 * (x - 0.5), jnp.ones((1, 1))], axis=1)
        near = [attend(HardmaxAttention(), rows, lifted[:n], keys[:n], jnp.full(n, 1.0 / n))[0] for n in contexts]
        return jnp.sqrt(jnp.sum(jnp.stack(near) ** 2, axis=(1, 2)))

    return jax.lax.map(one, jnp.arange(draws), batch_size=BATCH)


def simulate_nearest(s: Nearest) -> Evidence:
    """Mean distances, and their slopes in n with all n alike; errors from draw to draw, which all n share."""
    several("contexts", s.contexts)
    key, sizes, errors, slopes = jax.random.key(s.seed), [], [], []
    off = np.log(s.contexts) - np.mean(np.log(s.contexts))
    off /= off @ off
    for d in s.dims:
        found = np.asarray(_distances(jax.random.fold_in(key, d), d, s.contexts, s.draws))
        mean, error = mean_and_error(found)
        sizes.append(mean)
        errors.append(error)
        slopes.append((off @ np.log(mean), mean_and_error(found / mean @ off)[1]))
    slope, spread = np.array(slopes).T
    curves = tuple(Curve(f"d = {d}", s.contexts, m, e) for d, m, e in zip(s.dims, sizes, errors, strict=True))
    values = {"distance": np.array(sizes), "slope": slope}
    return Evidence(values, {"distance": np.array(errors), "slope": spread}, curves)


def predict_nearest(s: Nearest) -> Evidence:
    """ω_d^{-1/d} Γ(1+1/d) n!/Γ(n+1+1/d) and what corners add, for every n; the slope of that law between these n."""
    exact = np.array([[nearest_distance(n, d) + corner_excess(n, d) for n in s.contexts] for d in s.dims])
    slopes = np.polyfit(np.log(s.contexts), np.log(exact).T, 1)[0]
    curves: Any = tuple(Curve(f"exact, d = {d}", s.contexts, row) for d, row in zip(s.dims, exact, strict=True))
    return Evidence({"distance": exact, "slope": slopes}, curves=curves)


claim(
    "followups/F3",
    CONTEXTUAL,
    "a map that sees the nearest token only pays n^{−1/d}",
    "Hard attention by distance, b(x, μ) = −∇ of the distance to the nearest context point, moves a token that "
    "infinite context leaves at rest by E min|x−y_j| = ω_d^{−1/d} Γ(1+1/d) n!/Γ(n+1+1/d), and what corners of the "
    "cube add at small n. The slope between finite n is that law's and tends to −1/d, the general rate, not −1/2.",
    where="abstract: rate n^{−1/d} in general; the constant is derived",
    models=(),
    quick=Nearest(),
    full=Nearest(dims=(3, 5, 8), contexts=(100, 400, 1600, 6400), draws=10_000),
    within={
        "distance": SAMPLED,
        "slope": standard_errors(ERRORS, "standard errors over contexts; the law is exact between these n"),
    },
    simulate=simulate_nearest,
    predict=predict_nearest,
    axes=Axes("context n", "distance moved", "log", "log"),
    marks=("abstract", "assumed", "derived", "unverified"),
    convention=CONVENTION,
)
