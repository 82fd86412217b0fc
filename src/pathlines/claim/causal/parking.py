"""Causal self-attention on the sphere: where tokens gather, and the centres at which they park on the way.

Clustering in causal attention masking, arXiv:2411.04990: x_k' = P(Z_k⁻¹ Σ_{j≤k} e^{β<Qx_k,Kx_j>} V x_j). Rates near
consensus and counts at finite n are derived.
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim, known
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import absolute, at_least, at_most, standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import CAUSAL_CLUSTERING
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.causal.parking import centre_lifetime, centres, strong_centres
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

ERRORS = 5.0
Delta = Annotated[of.Positive, means("distance that separates centres", "δ", unit="radians")]

# --- C1: one cluster at the first token, at the rate 1/2


class OneCluster(Setting):
    """Gaussian queries and keys, V = I."""

    n: of.Tokens = 12
    d: of.Dimension = 3
    beta: of.Beta = 1.0
    window: of.RateWindow = (36.0, 52.0)
    seed: of.Seed = 1


def simulate_one_cluster(s: OneCluster) -> Evidence:
    """Slope of ln max_k |x_k - x_1(0)| over the window; how far the first token moved; the bend of the slope."""
    one, two, three = jax.random.split(jax.random.key(s.seed), 3)
    query, key = (jax.random.normal(k, (s.d, s.d)) / np.sqrt(s.d) for k in (two, three))
    tokens = Sphere(s.d).uniform(one, n=s.n)
    model = SelfAttention(s.beta, weights=FixedWeights(np.eye(s.d), query, key), mask="causal")
    times = np.linspace(0, s.window[1], 41)
    x = flow(model, tokens, times=times, record="tokens", rtol=1e-11, atol=1e-16)["tokens"].values
    apart = np.linalg.norm(x - x[0, 0], axis=-1)
    chosen = times >= s.window[0]
    farthest = apart[chosen].max(axis=1)
    half = chosen.sum() // 2
    logs, t = np.log(farthest), times[chosen]
    slope, early = np.polyfit(t, logs, 1)[0], np.polyfit(t[:half], logs[:half], 1)[0]
    undecided = {}
    if not 1e-13 < farthest[-1] < 0.05 or abs(slope - early) > 0.005:
        undecided = {"rate": "tokens are on their way, or at their goal to all digits: another window"}
    return Evidence(
        {"rate": slope, "first": apart[:, 0].max()},
        curves=(Curve("farthest token", times[1:], apart[1:].max(axis=1)),),
        undecided=undecided,
    )


def predict_one_cluster(s: OneCluster) -> Evidence:
    """-1/2, set by the second token, whatever β, Q and K; the third adds e^{-t/6} of itself."""
    return Evidence({"rate": -0.5, "first": 0.0})


claim(
    "causal/C1",
    CAUSAL_CLUSTERING,
    "V = I: one cluster, at the first token, at rate 1/2",
    "With V = I and any Q, K, β all tokens converge to the start of the first one, which rests; near consensus weights "
    "are 1/k and |x_k − x₁(0)| ≍ e^{−t/2}, set by the second token.",
    where="Theorem 4.1; the rate is derived",
    models=("sa",),
    quick=OneCluster(),
    full=OneCluster(n=32),
    within={
        "rate": absolute(0.01, "the third token adds e^{-t/6}: 0.4 % at t = 36"),
        "first": absolute(1e-12, "the first token hears itself alone"),
    },
    simulate=simulate_one_cluster,
    predict=predict_one_cluster,
    axes=Axes("t", "max |x_k − x₁(0)|", y_scale="log"),
)

# --- C2: two points at the leading eigenvector


class TwoPoints(Setting):
    """A diagonal V with one leading eigenvalue."""

    n: of.Tokens = 24
    beta: of.Beta = 9.0
    eigenvalues: of.Eigenvalues = (1.0, 0.5, -0.5)
    until: of.Until = 60.0
    seed: of.Seed = 2


def simulate_two_points(s: TwoPoints) -> Evidence:
    """The smallest |<x_k, e_1>| at the end, and the rarer of its two signs."""
    d = len(s.eigenvalues)
    tokens = Sphere(d).uniform(jax.random.key(s.seed), n=s.n)
    model = SelfAttention(s.beta, weights=FixedWeights(np.diag(s.eigenvalues)), mask="causal")
    end = flow(model, tokens, times=[0.0, s.until / 2, s.until], record="tokens", rtol=1e-9)["tokens"].values
    aligned, before = end[-1, :, 0], end[1, :, 0]
    smallest = np.abs(aligned).min()
    moving = {"alignment": "some tokens are on their way: a larger until"} if np.abs(before).min() < 0.9 else {}
    return Evidence(
        {"alignment": smallest, "rarer_sign": min((aligned > 0).sum(), (aligned < 0).sum())}, undecided=moving
    )


def predict_two_points(s: TwoPoints) -> Evidence:
    """One, and both signs."""
    order = np.argsort(s.eigenvalues)
    gap = s.eigenvalues[0] - s.eigenvalues[order[-2] if order[-1] == 0 else order[-1]]
    other = {} if order[-1] == 0 and s.eigenvalues[0] > 0 and gap > 0.1 else {
        "alignment": "the first eigenvalue must be positive and the largest, by 0.1", "rarer_sign": "the same"
    }  # fmt: skip
    return Evidence({"alignment": 1.0, "rarer_sign": 1}, undecided=other)


claim(
    "causal/C2",
    CAUSAL_CLUSTERING,
    "a simple leading eigenvalue: two points",
    "If the eigenvalue of V of largest real part is positive and simple, tokens end at ±ξ, its unit eigenvector.",
    where="Table 1, second row (conjecture)",
    models=("sa",),
    quick=TwoPoints(),
    full=TwoPoints(n=64, until=400.0),
    within={
        "alignment": absolute(1e-3, "tokens that chose late are e^{-t/2} away"),
        "rarer_sign": at_least("both points are taken"),
    },
    simulate=simulate_two_points,
    predict=predict_two_points,
)

# --- C4, C5: numbers of centres


class Counted(Setting):
    """Uniform tokens on the circle, counted."""

    n: of.Tokens = 400
    delta: Delta = 0.5
    draws: of.Draws = 1500
    seed: of.Seed = 4


def _numbers(s: Counted, d: int) -> tuple[np.ndarray, np.ndarray]:
    """(strong, ordinary) centres of each draw, token after token, all draws at once."""
    rng = np.random.default_rng(s.seed)
    x = rng.standard_normal((s.draws, s.n, d))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    near = np.cos(s.delta)
    strong, taken = np.ones(s.draws, int), np.zeros((s.draws, s.n), bool)
    taken[:, 0] = True
    for k in range(1, s.n):
        close = np.einsum("rkd,rd->rk", x[:, :k], x[:, k]) >= near
        strong += ~close.any(axis=1)
        taken[:, k] = ~(close & taken[:, :k]).any(axis=1)
    return strong, taken.sum(axis=1)


class StrongCounted(Counted):
    """On spheres of several dimensions."""

    n: of.Tokens = 150
    delta: Delta = 0.6
    draws: of.Draws = 600
    dimensions: of.Dimensions = (2, 3, 4)


def simulate_strong(s: StrongCounted) -> Evidence:
    """Mean numbers of strong centres."""
    found = [mean_and_error(_numbers(s, d)[0], unit=1.0) for d in s.dimensions]
    return Evidence({"count": [m for m, _ in found]}, {"count": [e for _, e in found]})


def predict_strong(s: StrongCounted) -> Evidence:
    """(1-(1-p)^n)/p with p the mass of a cap of angle δ."""
    return Evidence({"count": [strong_centres(s.n, s.delta, d) for d in s.dimensions]})


C4 = claim(
    "causal/C4",
    CAUSAL_CLUSTERING,
    "strong centres: the reciprocal mass of a cap",
    "Of n uniform tokens (1−(1−p)ⁿ)/p are on average farther than δ from all before them, p the mass of a cap of angle "
    "δ: a number that does not grow with n and is of order β^{(d−1)/2} for δ = cβ^{−1/2}.",
    where="§5, the lemma on strong Rényi centres; finite n derived",
    models=(),
    quick=StrongCounted(),
    full=StrongCounted(n=400, draws=3000),
    within={"count": standard_errors(ERRORS, "standard errors over draws")},
    simulate=simulate_strong,
    predict=predict_strong,
)


def predict_printed_cap(s: StrongCounted) -> Evidence:
    """The same with the cap's mass on S² as printed, 3 sin²(δ/2)."""
    counts = [strong_centres(s.n, s.delta, d) for d in s.dimensions]
    p = 3 * np.sin(s.delta / 2) ** 2
    return Evidence({"count": [(1 - (1 - p) ** s.n) / p if d == 3 else c for d, c in zip(s.dimensions, counts)]})


C4.printed_as(
    "causal/ER-02",
    "the mass of a cap on S²",
    "On S² the mass of a cap of angle δ is 3 sin²(δ/2).",
    where="§5, the example d = 3",
    predict=predict_printed_cap,
    note="Normalised, it is sin²(δ/2): three times as many centres.",
)


def simulate_centres(s: Counted) -> Evidence:
    """Mean number of centres on the circle."""
    mean, error = mean_and_error(_numbers(s, 2)[1], unit=1.0)
    return Evidence({"count": mean}, {"count": error})


def predict_centres(s: Counted) -> Evidence:
    """(2π/δ)Θ(τ) + (1-e^{-τ})e^{-2Ein(τ)}, τ = nδ/2π, up to the next order in δ/2π."""
    if s.delta > 1:
        return Evidence({"count": None}, undecided={"count": "δ of at most 1: few cars on the circle feel its end"})
    return Evidence({"count": centres(s.n, s.delta)}, {"count": s.delta**2 / 200})


C5 = claim(
    "causal/C5",
    CAUSAL_CLUSTERING,
    "ordinary centres: cars that park at random",
    "Greedy centres of n uniform tokens on the circle number (2π/δ)Θ(nδ/2π) on average, to leading order, Θ the "
    "coverage of random sequential adsorption; Rényi's 0.7476·2π/δ is reached slowly, like 1/n.",
    where="§5, Rényi centres; finite n derived",
    models=(),
    quick=Counted(),
    full=Counted(draws=20_000),
    within={"count": standard_errors(ERRORS, "standard errors over draws")},
    simulate=simulate_centres,
    predict=predict_centres,
)

# --- C7: strong centres stay


class Staying(Setting):
    """Tokens on the circle at low temperature."""

    n: of.Tokens = 60
    beta: of.Beta = 400.0
    c: Annotated[of.Positive, means("separation in units of β^{-1/2}", "c")] = 4.0
    epsilon: Annotated[of.Positive, means("share of the separation that is allowed", "ε")] = 0.25
    until: of.Until = 60.0
    draws: of.Draws = 3
    seed: of.Seed = 7


def simulate_staying(s: Staying) -> Evidence:
    """Largest displacement of a strong centre up to its time, over εcβ^{-1/2}."""
    worst, moved = 0.0, 0.0
    model = SelfAttention(s.beta, mask="causal")
    times = np.linspace(0, s.until, 25)
    for k in range(s.draws):
        tokens = np.asarray(Sphere(2).uniform(jax.random.key(s.seed + k), n=s.n))
        x = flow(model, tokens, times=times, record="tokens", rtol=1e-8)["tokens"].values
        angle = np.arccos(np.clip(tokens @ tokens.T, -1, 1))
        apart = s.c * (1 + 2 * s.epsilon) / np.sqrt(s.beta)
        for j in range(1, s.n):
            if angle[j, :j].min() > apart:
                life = min(s.until, centre_lifetime(j + 1, s.c, s.beta, s.epsilon))
                moves = np.linalg.norm(x[times <= life, j] - tokens[j], axis=-1)
                worst = max(worst, float(moves.max()) * np.sqrt(s.beta) / (s.epsilon * s.c))
        moved = max(moved, float(np.linalg.norm(x[-1] - tokens, axis=-1).max()))
    return Evidence({"displacement": worst, "others": moved * np.sqrt(s.beta)})


def predict_staying(s: Staying) -> Evidence:
    """At most one; other tokens move by more than β^{-1/2}."""
    return Evidence({"displacement": 1.0, "others": 1.0})


claim(
    "causal/C7",
    CAUSAL_CLUSTERING,
    "strong centres stay for times exponential in c²",
    "A token farther than c(1+2ε)β^{−1/2} from all before it stays within εcβ^{−1/2} of its start up to the time T "
    "with T s h(cβ^{−1/2}) = εcβ^{−1/2}, while others travel.",
    where="Lemma 5.1",
    models=("sa",),
    quick=Staying(),
    full=Staying(draws=20),
    within={
        "displacement": at_most("the lemma's bound"),
        "others": at_least("tokens that are no centres are drawn to one"),
    },
    simulate=simulate_staying,
    predict=predict_staying,
    note="The bound is very loose: 1e-5 of it was seen.",
)

# --- C8: coverage


class Coverage(Setting):
    """Tokens on the circle that gather at centres."""

    n: of.Tokens = 200
    beta: of.Beta = 64.0
    c: Annotated[of.Positive, means("separation of centres in units of β^{-1/2}", "c")] = 4.0
    times: of.Times = (0.0, 5.0, 10.0, 20.0, 40.0)
    draws: of.Draws = 32
    seed: of.Seed = 8


def simulate_coverage(s: Coverage) -> Evidence:
    """Share of tokens within β^{-1/2} of a centre, followed where it goes: ordinary and strong."""
    model, radius = SelfAttention(s.beta, mask="causal"), s.beta**-0.5
    shares = []
    for k in range(s.draws):
        tokens = np.asarray(Sphere(2).uniform(jax.random.key(s.seed + 100 * k), n=s.n))
        x = flow(model, tokens, times=s.times, record="tokens", rtol=1e-7)["tokens"].values
        angle = np.arccos(np.clip(tokens @ tokens.T, -1, 1))
        strong, taken = np.zeros(s.n, bool), np.zeros(s.n, bool)
        for j in range(s.n):
            strong[j] = np.all(angle[j, :j] > s.c * radius)
            taken[j] = np.all(angle[j, :j][taken[:j]] > s.c * radius)
        shares.append([_covered(x, flags, radius) for flags in (taken, strong)])
    mean, error = mean_and_error(shares)
    curves = tuple(Curve(w, s.times, mean[k], error[k]) for k, w in enumerate(("ordinary", "strong")))
    return Evidence({"ordinary": mean[0], "strong": mean[1]}, {"ordinary": error[0], "strong": error[1]}, curves=curves)


def _covered(x: np.ndarray, flags: np.ndarray, radius: float) -> np.ndarray:
    """Share of the tokens near a flagged one, at each time."""
    cosines = np.clip(np.einsum("tid,tjd->tij", x, x[:, flags]), -1, 1)
    return (np.arccos(cosines) <= radius).any(axis=2).mean(axis=1)


def predict_coverage(s: Coverage) -> Evidence:
    """Means of 40 runs of another program, at one setting."""
    values = {"ordinary": [0.397, 0.784, 0.910, 0.953, 0.976], "strong": [0.272, 0.558, 0.676, 0.746, 0.817]}
    setting = {"n": 200, "beta": 64.0, "c": 4.0, "times": (0.0, 5.0, 10.0, 20.0, 40.0)}
    found = known(values, s, setting)
    return Evidence(found.values, {"ordinary": 0.015, "strong": 0.019}, source=found.source)


claim(
    "causal/C8",
    CAUSAL_CLUSTERING,
    "tokens gather at centres",
    "At low temperature the share of tokens within β^{−1/2} of a centre grows from what chance gives to almost all of "
    "them: ordinary centres cover 95 % at t = 20, strong ones 75 % (n = 200, β = 64, δ = 4β^{−1/2}).",
    where="§5, the figure of coverage",
    models=("sa",),
    quick=Coverage(),
    full=Coverage(draws=200),
    within=dict.fromkeys(
        ("ordinary", "strong"),
        standard_errors(4.0, "standard errors of both; those of the reference are 0.015 and 0.019"),
    ),
    simulate=simulate_coverage,
    predict=predict_coverage,
    axes=Axes("t", "share of tokens near a centre"),
    blind=dict.fromkeys(("ordinary", "strong"), "the reference is a mean of 40 runs"),
)
