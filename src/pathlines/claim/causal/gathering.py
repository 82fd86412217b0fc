"""Causal self-attention on the sphere: where tokens end, by the leading eigenvalues of V.

Clustering in causal attention masking, arXiv:2411.04990: x_k' = P(Z_k⁻¹ Σ_{j≤k} e^{β<Qx_k,Kx_j>} V x_j). Rates near
consensus are derived.
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import simulated_at
from pathlines.claim.tolerance import absolute, at_least, at_most
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import CAUSAL_CLUSTERING
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

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

# --- C3: a leading plane


class LeadingPlane(Setting):
    """V with a double leading eigenvalue."""

    n: of.Tokens = 32
    beta: of.Beta = 9.0
    last: Annotated[float, means("the third eigenvalue of V; the others are 1", "λ₃")] = -0.5
    until: of.Until = 60.0
    draws: of.Draws = 10
    seed: of.Seed = 30


def simulate_leading_plane(s: LeadingPlane) -> Evidence:
    """At the end: the largest height above the plane, the first token off its place, clusters, speed of the median run.

    Clusters are stretches of the plane between gaps of more than β^{-1/2}.
    """
    model = SelfAttention(s.beta, weights=FixedWeights(np.diag([1.0, 1.0, s.last])), mask="causal")
    drift = jax.jit(model.drift)
    height, first, clusters, speed = np.zeros((4, s.draws))
    for k in range(s.draws):
        start = np.asarray(Sphere(3).uniform(jax.random.key(s.seed + k), n=s.n))
        end = flow(model, start, times=[0.0, s.until], record="tokens", rtol=1e-8)["tokens"].values[-1]
        height[k] = np.abs(end[:, 2]).max()
        first[k] = np.linalg.norm(end[0, :2] - start[0, :2] / np.linalg.norm(start[0, :2]))
        angles = np.sort(np.arctan2(end[:, 1], end[:, 0]))
        clusters[k] = np.sum(np.diff(np.append(angles, angles[0] + 2 * np.pi)) > s.beta**-0.5)
        speed[k] = np.linalg.norm(np.asarray(drift(end, 0.0)), axis=1).max()
    found = {"height": height.max(), "first": first.max(), "clusters": np.median(clusters), "speed": np.median(speed)}
    return Evidence(found)


def predict_leading_plane(s: LeadingPlane) -> Evidence:
    """All in the plane, the first at its projection, but two clusters and more, which hardly move."""
    wrong = {}
    if s.last > 0.7 or (1 - s.last) * s.until < 40:
        wrong = dict.fromkeys(("height", "first"), "(1 − λ₃) until of at least 40: tokens are on their way")
    if s.beta < 6:
        wrong |= dict.fromkeys(("clusters", "speed"), "β of at least 6: clusters that far apart would meet")
    return Evidence({"height": 1e-6, "first": 0.0, "clusters": 2.0, "speed": 0.05}, undecided=wrong)


claim(
    "causal/C3",
    CAUSAL_CLUSTERING,
    "a leading plane: many clusters inside it, for a long time",
    "If the leading eigenvalue of V is double, tokens fall into its plane L, the first at P_L x₁/|P_L x₁|, where all "
    "should end (a conjecture); at β = 9 several clusters inside L hardly move.",
    where="Table 1, third row (conjecture); that clusters stay is observed",
    models=("sa",),
    quick=LeadingPlane(),
    full=LeadingPlane(until=400.0, draws=40),
    within={
        "height": at_most("e^{-1.5t}, and the solver's absolute tolerance"),
        "first": absolute(1e-6, "e^{-1.5t} at t = 60, and a relative tolerance of 1e-8"),
        "clusters": at_least("several: the median of the runs"),
        "speed": at_most("a twentieth of the speed of a lone token: the median of the runs"),
    },
    simulate=simulate_leading_plane,
    predict=predict_leading_plane,
    mistakes=(
        simulated_at("β too small by {:.0%}", (0.5, 0.9), beta=lambda beta, size: beta * (1 - size)),
        simulated_at("a flow {:.0%} too short", (0.9, 0.99), until=lambda until, size: until * (1 - size)),
    ),
)
