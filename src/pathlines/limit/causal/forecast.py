"""What a causal decoder will retrieve from where, in one record: regime, worst position, depth of lost recency.

Profiles are those of Kinetic theory for Transformers and the lost-in-the-middle phenomenon (arXiv:2605.09213) for ALiBi
masks and sums over paths of attention (derived) for every mask. Where a mask has no closed form, recency is lost at the
depth at which the last but one source is retrieved no better than the one before it.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.limit.causal.paths import hop_rows, hop_weights, hops_needed
from pathlines.limit.causal.profile import Profile, retrieval_profile, soft_accuracy

DEEPEST = 40.0
"""Largest x = a t that is searched for lost recency."""


class RetrievalForecast(msgspec.Struct, frozen=True):
    """``profile[i-1]`` is S_N of source i; ``closed_form`` the limit N → ∞ (ALiBi only); depths are in time.

    ``recency_lost`` is infinite if the last sources stay best, 0 if they never are; ``linear_error`` is e^{2x}/N.
    """

    n: int
    depth: float
    regime: str
    worst_position: int
    worst: float
    first: float
    last: float
    mean: float
    chance: float
    accuracy_at_worst: float
    accuracy_at_last: float
    recency_lost: float
    monotone_from: float | None
    linear_error: float
    profile: tuple[float, ...]
    closed_form: tuple[float, ...] | None

    @property
    def sentences(self) -> list[str]:
        """What a person can use."""
        share = self.worst_position / self.n
        lost = {math.inf: "Recent tokens stay best at every depth.", 0.0: "Recent tokens are never retrieved best."}
        lines = [
            f"The worst position is {self.worst_position} of {self.n} ({share:.0%} into the prompt): {self.worst:.3g} "
            f"there, {self.first:.3g} for the first token, {self.last:.3g} for the last but one.",
            lost.get(self.recency_lost, f"Recency is lost beyond depth {self.recency_lost:.4g}")
            + ("" if self.recency_lost in lost else f" (now {self.depth:g})."),
        ]
        if self.regime == "buried recency":
            lines.append("Recency is buried: the best retrieved recent token is not the last one.")
        if self.linear_error > 0.05:
            lines.append(
                f"e^(2x)/N = {self.linear_error:.2g}: linear theory overshoots here; --simulate tells by how much."
            )
        return lines


def retrieval_forecast(
    beta: float,
    slope: float,
    vocabulary: int,
    depth: float,
    n: int,
    *,
    mask: Any = None,
    softmax: bool = False,
    layers: int | None = None,
) -> RetrievalForecast:
    """The retrieval profile of N = ``n`` tokens at ``depth``: of the ALiBi slope λ, or of the rows of a ``mask``.

    O(N) a hop for ALiBi (N = 10⁶ takes seconds), O(N²) for a matrix.
    """
    n, depth = positive_integer("n", n, 2), finite_number("depth", depth, 0.0, open_low=True)
    closed = retrieval_profile(beta, slope, vocabulary, depth, softmax=softmax)
    require(mask is None or len(mask) == n, "mask", f"have n = {n} rows", mask)
    rows, profile = _paths((n, slope) if mask is None else mask, closed, layers)
    worst = int(np.argmin(profile))
    alibi = mask is None and layers is None
    accuracy = soft_accuracy(profile[[worst, -1]], vocabulary, n)
    return RetrievalForecast(
        n=n,
        depth=depth,
        regime=closed.regime if alibi else _shape(profile),
        worst_position=worst + 1,
        worst=float(profile[worst]),
        first=float(profile[0]),
        last=float(profile[-1]),
        mean=float(profile.mean()),
        chance=math.sqrt(math.pi / 2) / vocabulary,
        accuracy_at_worst=float(accuracy[0]),
        accuracy_at_last=float(accuracy[1]),
        recency_lost=closed.recency_lost if alibi else _recency_lost(rows, closed, layers),
        monotone_from=closed.monotone_from if alibi else None,
        linear_error=float(math.exp(min(2 * depth * max(closed.rates), 700.0)) / n),
        profile=tuple(profile.tolist()),
        closed_form=tuple(closed(np.arange(1, n) / n).tolist()) if alibi else None,
    )


def _paths(mask: Any, p: Profile, layers: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows of hops up to the largest depth that is searched, and the profile at p's depth."""
    hops = hops_needed(max(DEEPEST, p.t * max(p.rates)))
    rows = hop_rows(mask, hops if layers is None else min(layers, hops))
    return rows, _profile(rows, p, layers)


def _profile(rows: np.ndarray, p: Profile, layers: int | None) -> np.ndarray:
    hops = len(rows) - 1
    total = sum(w * hop_weights(a * p.t, hops, layers) for w, a in zip(p.weights, p.rates, strict=True))
    return np.asarray(rows.shape[1] * (total @ rows))[:-1]


def _recency_lost(rows: np.ndarray, p: Profile, layers: int | None) -> float:
    """The depth at which the last source is no longer above the one before, by bisection; infinite if there is none."""
    if rows.shape[1] < 3:
        return math.inf
    ends = rows[:, -3:-1]
    rising = lambda t: float(np.diff(_profile(np.c_[ends, ends[:, :1]], p.at_depth(t), layers))[0])  # noqa: E731
    low, high = 1e-6 / max(p.rates), DEEPEST / max(p.rates)
    if rising(low) <= 0:
        return 0.0
    if rising(high) > 0:
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) > 0 else (low, middle)
    return high


def _shape(profile: np.ndarray) -> str:
    """In words: where the profile has its extrema, steps within rounding left out."""
    steps = np.diff(profile)
    signs = np.sign(steps[np.abs(steps) > 1e-12 * np.abs(profile).max()])
    turns = np.diff(signs)
    low, high = int((turns > 0).sum()), int((turns < 0).sum())
    if low == 1 and high == 0:
        return "U"
    if low == 1 and high == 1 and signs[0] < 0:
        return "buried recency"
    return (
        "primacy"
        if not low + high and (not len(signs) or signs[0] < 0)
        else "recency"
        if not low + high
        else "several extrema"
    )
