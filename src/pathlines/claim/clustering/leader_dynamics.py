"""Leaders and followers: hard-max attention in closed form, and two tokens at a frozen temperature."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expi

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, at_least, means
from pathlines.integrate import flow
from pathlines.model.base import MODELS
from pathlines.model.clustering.frozen_exponent import FrozenExponentAttention


class Leaders(Setting):
    """A regular polygon of leaders with followers inside."""

    leaders: Annotated[int, at_least(3), means("corners of the polygon")] = 5
    followers: Annotated[of.Count, means("tokens inside")] = 15
    radius: Annotated[of.Positive, means("distance of the leaders from the origin")] = 2.0
    value: Annotated[float, means("value matrix, a multiple of the identity")] = 0.5
    until: of.Until = 4.0
    rtol: of.Rtol = 1e-11
    seed: of.Seed = 1


def _start(s: Leaders) -> np.ndarray:
    """``leaders`` points at equal angles of a circle, then tokens in the circle that their polygon encloses."""
    require(s.leaders >= 3, "leaders", "be at least 3 (a polygon)", s.leaders)
    rng = np.random.default_rng(s.seed)
    angles = 2 * np.pi * np.arange(s.leaders) / s.leaders
    ring = s.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turn, share = rng.uniform(0, 2 * np.pi, s.followers), np.sqrt(rng.uniform(0.01, 1, s.followers))
    lengths = 0.99 * s.radius * np.cos(np.pi / s.leaders) * share
    return np.concatenate([ring, lengths[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)])


def _led(start: np.ndarray) -> np.ndarray:
    """z_l(i), l(i) = argmax_j ⟨z_i, z_j⟩."""
    return start[(start @ start.T).argmax(axis=1)]


def simulate_leaders(s: Leaders) -> Evidence:
    """The rescaled system dz_i = z_l(i) - z_i, and attention itself, dx_i = v x_l(i), at the last time."""
    start = _start(s)
    times = np.linspace(0, s.until, 9)
    options: dict[str, Any] = {"times": times, "record": "tokens", "method": "dop853", "rtol": s.rtol}
    rescaled = flow(MODELS["leader"].build(), start, **options)
    plain = flow(MODELS["hardmax"].build(space="euclidean", value=s.value), start, **options)
    distance = np.linalg.norm(rescaled["tokens"].values[:, s.leaders :] - _led(start)[s.leaders :], axis=-1)
    return Evidence(
        {"followers": rescaled["tokens"].values[-1].ravel(), "tokens": plain["tokens"].values[-1].ravel()},
        curves=(Curve("mean distance of a follower", times, distance.mean(axis=1)),),
        runs=(rescaled, plain),
    )


def predict_leaders(s: Leaders) -> Evidence:
    """z_l + e^{-t}(z_i - z_l), and x_i + (e^{vt} - 1) x_l."""
    start = _start(s)
    led, decay = _led(start), np.exp(-s.until)
    times = np.linspace(0, s.until, 65)
    first = np.linalg.norm(start - led, axis=1)[s.leaders :].mean()
    return Evidence(
        {
            "followers": (led + decay * (start - led)).ravel(),
            "tokens": (start + np.expm1(s.value * s.until) * led).ravel(),
        },
        curves=(Curve("∝ e^{−t}", times, first * np.exp(-times)),),
    )


claim(
    "clustering/LD-01",
    PERSPECTIVE,
    "leader dynamics in closed form (derived)",
    "Where every leader leads itself (leaders of equal length, all others in their hull), leaders never change: "
    "hard-max attention gives z_i = z_l + e^{−t}(z_i(0) − z_l) in the rescaled system and, without rescaling, "
    "x_i = x_i(0) + (e^{vt} − 1)x_l for V = vI.",
    where="§9, leader dynamics (hard-max limit); solution derived",
    models=("leader", "hardmax"),
    quick=Leaders(),
    full=Leaders(leaders=9, followers=200, until=8.0),
    within={
        "followers": absolute(1e-8, "closed form; solver at 1e-11"),
        "tokens": relative(1e-8, "closed form; solver at 1e-11"),
    },
    simulate=simulate_leaders,
    predict=predict_leaders,
    axes=Axes("depth-time t", "distance to the leader", y_scale="log"),
)


class FrozenPair(Setting):
    """Two opposite tokens on a line at a frozen temperature."""

    beta: of.Beta = 1.5
    half_distance: Annotated[of.Positive, means("distance of each token from the origin", "a")] = 1.0
    until: of.Until = 4.0
    records: of.Records = 17
    rtol: of.Rtol = 1e-11


def simulate_pair(s: FrozenPair) -> Evidence:
    """Half the distance of two opposite tokens on the line, at a fixed β."""
    times = np.linspace(0, s.until, s.records)
    model = FrozenExponentAttention(np.eye(1), s.beta)
    start = np.array([[s.half_distance], [-s.half_distance]])
    run = flow(model, start, times=times, record="tokens", method="dop853", rtol=s.rtol)
    half = run["tokens"].values[:, 0, 0]
    return Evidence({"half_distance": half}, curves=(Curve("half distance", times, half),), runs=(run,))


def predict_pair(s: FrozenPair) -> Evidence:
    """u = 2βa² with Ei(u) + ln u = Ei(u₀) + ln u₀ - 4t, by bisection in ln u."""
    require(s.beta > 0, "beta", "be positive", s.beta)
    clock = lambda log: expi(np.exp(log)) + log  # noqa: E731
    first = np.log(2 * s.beta * s.half_distance**2)
    found = []
    for t in np.linspace(0, s.until, s.records):
        level = clock(first) - 4 * t
        log = (
            first if t == 0 else brentq(lambda x, level=level: clock(x) - level, first - 4 * t - 60, first, xtol=1e-14)
        )
        found.append(np.sqrt(np.exp(log) / (2 * s.beta)))
    return Evidence(
        {"half_distance": np.array(found)}, curves=(Curve("Ei", np.linspace(0, s.until, s.records), found),)
    )


claim(
    "clustering/LD-02",
    PERSPECTIVE,
    "two tokens at a frozen temperature (derived)",
    "Two tokens ±a on the line with scores frozen at β merge by ȧ = −2a/(1+e^{2βa²}): u = 2βa² obeys Ei(u) + ln u = "
    "Ei(u₀) + ln u₀ − 4t, so that they stay apart for a time of order e^{u₀}/u₀ and then merge like e^{−t}.",
    where="§9, system with a frozen exponent; solution derived",
    models=("frozen",),
    quick=FrozenPair(),
    full=FrozenPair(beta=4.0, until=500.0),
    within={"half_distance": absolute(1e-8, "closed form; solver at 1e-11")},
    simulate=simulate_pair,
    predict=predict_pair,
    axes=Axes("depth-time t", "half distance a"),
)
