"""The metastability theorem of Dynamic metastability in the self-attention model (arXiv:2410.06833) and its errata."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.metastability.slow_phase import attention_model, circle_tokens
from pathlines.claim.tolerance import absolute, at_least, at_most
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.coarsen import Coarsening, coarsen
from pathlines.limit.metastability.caps import caps, gathering, log_gathering_time, rate_bounds
from pathlines.limit.metastability.merging import log_merging_time

# --- M7: containment and gathering


class Caps(Setting):
    """Tokens in separated caps on the circle."""

    centres: Annotated[of.Vector, means("angles of the caps", unit="radians")] = (0.0, 2.0)
    each: Annotated[of.Count, means("tokens per cap")] = 3
    epsilon: of.CapSize = 0.01
    beta: of.Beta = 20.0
    kinds: of.Kinds = ("sa", "usa")


def cap_angles(s: Caps) -> tuple[np.ndarray, np.ndarray]:
    """Angles that fill caps of size ε from edge to edge, and the cap of each token."""
    reach = np.arccos(1 - s.epsilon)
    offsets = np.linspace(-1, 1, s.each) * reach * np.where(np.arange(s.each) % 2, 0.3, 1.0)
    angles = (np.asarray(s.centres)[:, None] + offsets).ravel()
    return angles, np.repeat(np.arange(len(s.centres)), s.each)


def _paths(found: Coarsening) -> tuple[np.ndarray, np.ndarray]:
    """ln t and token coordinates (time, token, 2) over both phases."""
    assert found.staircase is not None
    tokens = np.concatenate([run["tokens"].values[1:] for run in found.runs])
    slow = circle_tokens(found.staircase.positions[:, found.labels])
    return found.profile[0], np.concatenate([tokens, slow])


def _crossing(at: np.ndarray, values: np.ndarray, level: float) -> float:
    """Where ``values``, starting below the level, first exceed it, linear between records; infinite if never."""
    above = np.flatnonzero(values > level)
    if len(above) == 0:
        return np.inf
    i = int(above[0])
    if i == 0:
        return float(at[0])
    share = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(at[i - 1] + share * (at[i] - at[i - 1]))


class Theorem(Caps):
    """The times of the theorem."""

    rate: Annotated[of.Positive, means("squared distances shrink to 2e^{−λβ}", "λ")] = 0.7


def simulate_caps(s: Theorem) -> Evidence:
    """Particles, then clusters: when tokens leave the doubled caps, and when each cap has gathered."""
    angles, home = cap_angles(s)
    exits, gathered, curves = [], [], []
    for kind in s.kinds:
        found = coarsen(attention_model(kind, s.beta), circle_tokens(angles))
        log_t, tokens = _paths(found)
        away = 1 - np.sum(tokens * circle_tokens(s.centres)[home], axis=-1).min(axis=1)
        spread = np.max([_diameter(tokens[:, home == q]) for q in range(len(s.centres))], axis=0)
        exits.append(_crossing(log_t, away, 2 * s.epsilon))
        # distances decay like e^{-t}, so their logarithm is linear in t
        fast = len(found.formation[0])
        decay, level = -np.log(np.maximum(spread[:fast], 1e-300)), s.rate * s.beta - np.log(2)
        gathered.append(float(np.log(_crossing(found.formation[0], decay, level))))
        curves.append(Curve(f"{kind.upper()} 1 − min ⟨x,w⟩", log_t, away, panel="distance from the centres"))
        curves.append(Curve(f"{kind.upper()} largest |xᵢ−xⱼ|²", log_t, spread, panel="inside the caps"))
    values = {"log_exit": exits, "log_gather": gathered, "exit": exits, "gather": gathered}
    return Evidence(values, curves=tuple(curves))


def _diameter(tokens: np.ndarray) -> np.ndarray:
    """Largest squared distance at each time."""
    return np.sum((tokens[:, :, None] - tokens[:, None, :]) ** 2, axis=-1).max(axis=(1, 2))


def _true_times(s: Theorem, kind: str) -> tuple[float, float]:
    """(ln of the exit time, ln of the gathering time): each cap gathers alone, then a pair of clusters approaches.

    Clusters of equal mass at angle φ₀ move by the same x, the farther out of its cap being the first to leave it: φ
    closes from φ₀ to φ₀ − 2x. The exit time is NaN for other numbers of caps than two.
    """
    angles, home = cap_angles(s)
    count, squared = len(s.centres), 2 * np.exp(-s.rate * s.beta)
    caps_alone = [gathering(angles[home == q] - s.centres[q], s.beta, 1 / count, kind, squared) for q in range(count)]
    log_gather = float(np.log(max(t for t, _ in caps_alone)))
    if count != 2:
        return np.nan, log_gather
    places = np.array([place for _, place in caps_alone])
    turn = float(np.angle(np.exp(1j * (s.centres[1] - s.centres[0]))))
    gap = abs(turn) + np.sign(turn) * (places[1] - places[0])
    way = np.arccos(1 - 2 * s.epsilon) - max(np.sign(turn) * places[0], -np.sign(turn) * places[1])
    return log_merging_time(s.beta, gap, gap - 2 * way, kind), log_gather


def predict_caps(s: Theorem) -> Evidence:
    """ln T₁ and ln T₂ of the theorem, and the times themselves; nothing where the conditions of the theorem fail."""
    found = caps(s.centres, s.epsilon, s.beta, s.each * len(s.centres), s.rate)
    names = ("log_exit", "log_gather", "exit", "gather")
    if not found.holds:
        fails = f"the conditions of the theorem fail, γ = {found.gamma:.2g}: raise `beta`, or lower `epsilon` or `rate`"
        return Evidence(dict.fromkeys(names, np.nan), undecided=dict.fromkeys(names, fails), source="theorem")
    bound = 2 * np.exp(-s.rate * s.beta)
    lines = (
        Curve("2ε until T₂", [0, found.log_exit], [2 * s.epsilon] * 2, panel="distance from the centres"),
        Curve("2e^{−λβ} on [T₁, T₂]", [found.log_gather, found.log_exit], [bound] * 2, panel="inside the caps"),
    )
    exits, gathered = np.transpose([_true_times(s, kind) for kind in s.kinds])
    # clusters move while they gather, by other forces than those of points
    moved = np.exp(gathered + 8 * s.epsilon * s.beta - exits)
    return Evidence(
        dict(zip(names, (found.log_exit, found.log_gather, exits, gathered), strict=True)),
        {"exit": moved, "gather": s.beta**2 * np.exp(gathered - (1 - found.alpha) * s.beta)},
        curves=lines,
        source="theorem; closed form",
        undecided={} if len(s.centres) == 2 else {"exit": "the closed form of the exit time is for two `centres`"},
    )


claim(
    "metastability/M7",
    METASTABILITY,
    "metastability theorem",
    "Tokens in separated caps S_q(ε) stay in S_q(2ε) until T₂ = (ε/n)e^{(1−α)β}, and from T₁ = 2ne^{8εβ} + "
    "enλβ²/(β−1) on squared distances inside a cap are at most 2e^{−λβ}, for SA and USA. The true times are those of "
    "caps that gather alone and of two clusters that approach until one is at the edge of its doubled cap.",
    where="§2, theorem on metastability",
    models=("sa", "usa"),
    quick=Theorem(),
    full=Theorem(each=6, rate=0.6),
    within={
        "log_exit": at_least("a lower bound of the theorem"),
        "log_gather": at_most("an upper bound of the theorem"),
        "exit": absolute(1e-4, "interpolation between records of the clusters; what moved before", errors=1.0),
        "gather": absolute(1e-4, "interpolation between records; pulls of the other caps", errors=1.0),
    },
    simulate=simulate_caps,
    predict=predict_caps,
    axes=Axes("ln t", "1 − ⟨x,w⟩, or squared distance", y_scale="log"),
    note="rate is λ. Exit times come from particles handed over to clusters: they are beyond 10⁶ steps.",
)


# --- ER-04: the first bound on λ


class Bounds(Setting):
    """The bounds on λ."""

    n: of.Tokens = 6
    epsilon: of.CapSize = 0.01
    beta: of.Beta = 20.0
    gamma: Annotated[of.Positive, means("room that the theorem leaves", "γ")] = 0.001


def _overlap(s: Bounds) -> float:
    """α at which γ takes the given small value."""
    return float(1 - 8 * s.epsilon - np.log(2 * s.n**2 / s.epsilon) / s.beta - s.gamma)


def _largest_time(s: Bounds, sign: float) -> Evidence:
    """ln T₁ at 0.99 of the smaller bound, the first one with the given sign of its logarithm, term by term."""
    alpha, n, epsilon = _overlap(s), s.n, s.epsilon
    shape = np.log((s.beta - 1) * epsilon / (s.beta**2 * n**2 * math.e))
    log_first = s.beta * (1 - alpha) + sign * shape + np.log(1 - np.exp(-s.gamma * s.beta))
    second = 1 - alpha - np.log(2 * n**2 / (1 - 8 * epsilon)) / s.beta - 8 * epsilon
    rate = 0.99 * min(np.exp(min(log_first, 50.0)), second)
    gathered = 2 * n * np.exp(8 * epsilon * s.beta) + math.e * n * rate * s.beta**2 / (s.beta - 1)
    return Evidence({"log_gather": np.log(gathered)})


def simulate_printed_bound(s: Bounds) -> Evidence:
    """λ next to the printed bound."""
    return _largest_time(s, -1.0)


def simulate_bound(s: Bounds) -> Evidence:
    """λ next to the bound with the sign that the proof needs."""
    return _largest_time(s, 1.0)


def predict_bound(s: Bounds) -> Evidence:
    """ln T₂, before which T₁ must come; drawn over γ."""
    gammas = np.geomspace(s.gamma / 10, 1.0, 60)
    alphas = [_overlap(msgspec.structs.replace(s, gamma=g)) for g in gammas.tolist()]
    exits = np.log(s.epsilon / s.n) + s.beta * (1 - np.asarray(alphas))
    lines = [Curve("ln T₂", gammas, exits)]
    for name, printed in (("ln T₁, printed sign", True), ("ln T₁, corrected sign", False)):
        rates = []
        for a in alphas:
            first, second = rate_bounds(s.beta, s.n, s.epsilon, a, printed)
            rates.append(0.99 * min(np.exp(min(first, 50.0)), second))
        lines.append(Curve(name, gammas, [log_gathering_time(s.beta, s.n, s.epsilon, r) for r in rates]))
    exit_here = np.log(s.epsilon / s.n) + s.beta * (1 - _overlap(s))
    return Evidence({"log_gather": exit_here}, curves=tuple(lines))


_BOUND_AXES = Axes("γ", "logarithm of time", x_scale="log")
ER_04B = claim(
    "metastability/ER-04b",
    METASTABILITY,
    "first bound on λ (corrected)",
    "For every λ below e^{(1−α)β}((β−1)ε)/(β²n²e)·(1−e^{−γβ}) and below the second bound, T₁ < T₂.",
    where="§2, theorem on metastability: first bound on λ, corrected",
    models=("sa", "usa"),
    quick=Bounds(),
    within={"log_gather": at_most("T₁ < T₂, since 2ne^{8εβ} = T₂e^{−γβ}")},
    simulate=simulate_bound,
    predict=predict_bound,
    axes=_BOUND_AXES,
)

ER_04B.printed_as(
    "metastability/ER-04",
    "first bound on λ, as printed",
    "For every λ below e^{(1−α)β}(β²n²e)/((β−1)ε)·(1−e^{−γβ}) and below the second bound, T₁ < T₂.",
    where="§2, theorem on metastability: first bound on λ as printed",
    within={"log_gather": at_most("T₁ < T₂")},
    simulate=simulate_printed_bound,
    predict=predict_bound,
    note="The sign in front of β⁻¹ln((β−1)ε/(β²n²e)) is printed as minus.",
)
