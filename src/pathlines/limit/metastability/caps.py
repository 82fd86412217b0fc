"""The metastability theorem as a certificate: how long tokens are guaranteed to stay in their caps.

Dynamic metastability in the self-attention model (arXiv:2410.06833). Caps S_q(ε) = {x : <x, w_q> ≥ 1-ε}; α is the
largest inner product between different caps of size 2ε (0 for one cap). If every token lies in some S_q(ε),
0 < ε < 1/16, β > 1 and

    γ = 1 - α - 8ε - ln(2n²/ε)/β > 0,

then under SA and USA (scaled kernel) tokens stay in S_q(2ε) until T_2 = (ε/n) e^{(1-α)β}, and on [T_1, T_2] squared
distances inside a cap are at most 2e^{-λβ}, T_1 = 2n e^{8εβ} + e n λβ²/(β-1), for any λ below two bounds. The first is
printed with a wrong sign: (1-α) + ln((β-1)ε/(β²n²e))/β is the exponent that makes T_1 < T_2 follow.
All times are logarithms.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import METASTABILITY

SOURCES = (METASTABILITY,)
LARGEST = 1 / 16
"""Caps of the theorem are smaller than this."""

MARGIN = 0.99
"""Of the open bounds on λ."""


class Caps(msgspec.Struct, frozen=True):
    """What the theorem promises (nothing unless it ``holds``); ``log_gather`` = ln T_1, ``log_exit`` = ln T_2."""

    centres: np.ndarray
    epsilon: float
    alpha: float
    gamma: float
    rate: float
    log_gather: float
    log_exit: float
    holds: bool
    labels: np.ndarray | None = None


def largest_overlap(centres: ArrayLike, epsilon: float) -> float:
    """α = max_{p≠q} cos(max(0, ψ_pq - 2 arccos(1-2ε))), ψ_pq the angle between centres; 0 for one cap."""
    w = _unit_rows("centres", centres)
    if len(w) == 1:
        return 0.0
    chord = np.linalg.norm(w[:, None] - w[None, :], axis=-1)[~np.eye(len(w), dtype=bool)].min()
    angle = 2 * np.arcsin(min(chord / 2, 1.0))
    return float(np.cos(max(0.0, angle - 2 * np.arccos(1 - 2 * epsilon))))


def rate_bounds(beta: float, n: int, epsilon: float, alpha: float, printed: bool = False) -> tuple[float, float]:
    """The two upper bounds of λ; the first as its logarithm, with the ``printed`` sign if asked."""
    gamma = 1 - alpha - 8 * epsilon - np.log(2 * n * n / epsilon) / beta
    if gamma <= 0:
        return -np.inf, -np.inf
    shape = np.log((beta - 1) * epsilon / (beta**2 * n**2 * math.e))
    first = (1 - alpha) * beta + (-shape if printed else shape) + np.log(-np.expm1(-gamma * beta))
    second = 1 - alpha - np.log(2 * n * n / (1 - 8 * epsilon)) / beta - 8 * epsilon
    return float(first), float(second)


def log_gathering_time(beta: float, n: int, epsilon: float, rate: float) -> float:
    """ln T_1 = ln(2n e^{8εβ} + e n λβ²/(β-1))."""
    linear = np.log(math.e * n * rate * beta**2 / (beta - 1)) if rate > 0 else -np.inf
    return float(np.logaddexp(np.log(2 * n) + 8 * epsilon * beta, linear))


def caps(
    centres: ArrayLike, epsilon: float, beta: float, n: int, rate: float | None = None, mean_field: bool = False
) -> Caps:
    """What the theorem says about n tokens in caps of size ε; λ = ``rate``, by default 0.99 of its bounds.

    ``mean_field`` replaces n by the number of caps and asks for γ > 8ε.
    """
    w = _unit_rows("centres", centres)
    epsilon = finite_number("epsilon", epsilon, 0.0, open_low=True)
    require(epsilon < LARGEST, "epsilon", "be below 1/16", epsilon)
    beta = finite_number("beta", beta, 1.0, open_low=True)
    count = len(w) if mean_field else positive_integer("n", n)
    alpha = largest_overlap(w, epsilon)
    gamma = 1 - alpha - 8 * epsilon - np.log(2 * count**2 / epsilon) / beta
    log_first, second = rate_bounds(beta, count, epsilon, alpha)
    most = min(np.exp(min(log_first, 700.0)), second)
    chosen = MARGIN * max(most, 0.0) if rate is None else finite_number("rate", rate, 0.0)
    holds = gamma > (8 * epsilon if mean_field else 0.0) and 0 < chosen < most
    log_exit = np.log(epsilon / count) + (1 - alpha) * beta
    return Caps(
        w,
        epsilon,
        alpha,
        float(gamma),
        float(chosen),
        log_gathering_time(beta, count, epsilon, chosen),
        float(log_exit),
        bool(holds),
    )


def gathering(offsets: ArrayLike, beta: float, mass: float, kind: str, squared: float) -> tuple[float, float]:
    """(t, θ): when tokens of one cap on the circle, alone, are within a squared distance, and where they gather.

    θ_i' = m n⁻¹ Σ_j e^{β(cos θ_ij-1)} sin θ_ij for a cap of mass m under USA; divided by the same sum of weights, and
    free of m, under SA. The exact particle equation without the other caps, which change it by e^{-β(1-α)}.
    """
    theta = real_array("offsets", offsets)
    one_of("kind", kind, ("sa", "usa"))
    width = 2 * np.arcsin(np.sqrt(finite_number("squared", squared, 0.0, 4.0, open_low=True)) / 2)

    def velocity(_: float, x: np.ndarray) -> np.ndarray:
        turn = x[None, :] - x[:, None]
        w = np.exp(-2 * beta * np.sin(turn / 2) ** 2)
        pull = np.sum(w * np.sin(turn), axis=1)
        return pull / w.sum(axis=1) if kind == "sa" else mass * pull / len(x)

    def wide(_: float, x: np.ndarray) -> float:
        return float(np.log(max(np.ptp(x), 1e-300) / width))

    if wide(0.0, theta) <= 0:
        return 0.0, float(theta.mean())
    longest = 1e3 * len(theta) / mass * np.exp(2 * beta * np.sin(np.ptp(theta) / 2) ** 2)
    wide.terminal = True  # type: ignore[attr-defined]
    solved = solve_ivp(velocity, (0, longest), theta, "DOP853", events=wide, rtol=1e-11, atol=1e-13)
    return float(solved.t[-1]), float(solved.y[:, -1].mean())


def cap_certificate(tokens: ArrayLike, beta: float) -> Caps | None:
    """The longest guaranteed T_2 over single-linkage partitions of the tokens and cap sizes; ``None`` if there is none.

    Partitions into several caps come first; one cap is the fallback. O(n²) memory.
    """
    x = _unit_rows("tokens", tokens)
    beta = finite_number("beta", beta, 1.0, open_low=True)
    best: Caps | None = None
    for labels in _partitions(x):
        several = labels.max() > 0
        if not several and best is not None:
            continue
        found = _best_size(x, labels, beta)
        if found is not None and (best is None or found.log_exit > best.log_exit):
            best = found
    return best


def _partitions(x: np.ndarray) -> list[np.ndarray]:
    """Cluster labels 0.. of the single-linkage tree, finest first, one cluster last."""
    n = len(x)
    labels = np.arange(n)
    found = [labels.copy()]
    if n == 1:
        return found
    members = {i: [i] for i in range(n)}
    for step, (a, b, _, _) in enumerate(hierarchy.linkage(x, "single")):
        members[n + step] = members.pop(int(a)) + members.pop(int(b))
        labels = np.empty(n, int)
        for name, group in enumerate(members.values()):
            labels[group] = name
        found.append(labels)
    return found


def _best_size(x: np.ndarray, labels: np.ndarray, beta: float) -> Caps | None:
    """The cap size with the longest T_2 among those that contain the tokens and satisfy the theorem."""
    centres = np.array([_centre(x[labels == q]) for q in range(labels.max() + 1)])
    least = max(float(np.max(0.5 * np.sum((x - centres[labels]) ** 2, axis=1))), 1e-12)
    if least >= LARGEST:
        return None
    offers = [caps(centres, e, beta, len(x)) for e in np.geomspace(least * (1 + 1e-12), LARGEST * (1 - 1e-9), 48)]
    valid = [o for o in offers if o.holds]
    if not valid:
        return None
    best = max(valid, key=lambda o: o.log_exit)
    return msgspec.structs.replace(best, labels=labels)


def _centre(points: np.ndarray) -> np.ndarray:
    """The centre of a small cap around the points: steps 1/i towards the farthest one (any centre is allowed)."""
    centre = points.mean(axis=0)
    for i in range(1, 60 if len(points) > 1 else 1):
        far = points[np.argmax(np.sum((points - centre) ** 2, axis=1))]
        centre = centre + (far - centre) / (i + 1)
    return centre / np.linalg.norm(centre)


def _unit_rows(name: str, value: ArrayLike) -> np.ndarray:
    """Rows of length one; a list of angles stands for points of the circle."""
    array = finite_array(name, value).astype(float)
    if array.ndim == 1:
        angles = real_array(name, array)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if array.ndim != 2 or 0 in array.shape:
        raise ArgumentError(f"Argument `{name}` must be angles (k,) or unit vectors (k, d), not {array.shape}.")
    lengths = np.linalg.norm(array, axis=1)
    require(bool(np.all(np.abs(lengths - 1) < 1e-6)), name, "have rows of length 1", array)
    return array / lengths[:, None]
