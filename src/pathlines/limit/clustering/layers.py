"""Discrete layers of the six schemes on the equiangular reduction, exact and free of cancellation.

A layer x ← c0 θ + c1 A keeps an equiangular configuration equiangular and scales every difference of tokens by the
same number, x_i - x_j ← (c0 + c1(a-b))(θ_i - θ_j), so that with a, b, h, m of ``limit.clustering.reduction`` (derived)

    r₊² = c0² + 2c0c1 h + c1² m²,        1-ρ₊ = (1-ρ) ((c0 + c1(a-b))/r₊)².

(c0, c1) with step η: post (1, η), pre (r, η), peri (r, η/m), ngpt (1-αη, αη/m), sqrt (1, η/√(1+t)); mix: post while
t ≤ τ, then pre. Schemes: Normalization in Attention Dynamics, arXiv:2510.22026.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.limit.clustering.reduction import attention_numbers, check_scheme, check_state


class CollapseDepth(NamedTuple):
    """``layers`` until the deficit is ≤ δ (None: not within those allowed) and the depth ``time`` η·(fraction)."""

    layers: int | None
    time: float


def is_post_phase(time: float, switch: float, step: float) -> bool:
    """True if the Mix-LN layer that starts at ``time`` is still Post-LN: time ≤ τ, forgiving the rounding of ℓη."""
    return bool(time <= switch + 1e-6 * step)


def layer_map(
    scheme: str,
    deficit: ArrayLike,
    magnitude: ArrayLike,
    n: int,
    beta: float,
    step: float,
    time: float = 0.0,
    alpha: float = 1.0,
    switch: float = 2.0,
) -> tuple[np.ndarray, np.ndarray]:
    """(1-ρ, r) after one layer with step η that starts at depth time ``time``; relative precision of 1-ρ is kept."""
    check_scheme(scheme, n, beta, alpha, switch)
    y, slack, r = check_state(deficit, magnitude, n)
    eta = finite_number("step", step, 0.0, open_low=True)
    t = finite_number("time", time, 0.0)
    require(scheme != "ngpt" or alpha * eta <= 1, "step", "be ≤ 1/alpha for ngpt", step)
    return _layer(scheme, y, slack, r, n, beta, eta, t, alpha, switch)


def _layer(
    scheme: str,
    y: np.ndarray,
    slack: np.ndarray,
    r: np.ndarray,
    n: int,
    beta: float,
    eta: float,
    t: float,
    alpha: float,
    switch: float,
) -> tuple[np.ndarray, np.ndarray]:
    own, _, h, m = attention_numbers(y, slack, n, beta)
    unit = np.where(m > 0, m, np.inf)
    if scheme == "mix":
        scheme = "post" if is_post_phase(t, switch, eta) else "pre"
    coefficients: dict[str, tuple[Any, Any]] = {
        "post": (1.0, eta),
        "pre": (r, eta),
        "peri": (r, eta / unit),
        "ngpt": (1 - alpha * eta, alpha * eta / unit),
        "sqrt": (1.0, eta / np.sqrt(1 + t)),
    }
    c0, c1 = coefficients[scheme]
    new = np.sqrt(c0 * c0 + 2 * c0 * c1 * h + (c1 * m) ** 2)
    new = np.where(new > 0, new, 1.0)
    kept = new if scheme in ("pre", "peri") else r + np.zeros_like(new)
    return (y * ((c0 + c1 * own) / new) ** 2)[()], kept[()]


def layers_to_deficit(
    scheme: str,
    n: int,
    beta: float,
    step: float,
    deficit: float,
    start: float = 0.0,
    magnitude: float = 1.0,
    alpha: float = 1.0,
    switch: float = 2.0,
    max_layers: int = 100_000,
) -> CollapseDepth:
    """Number of layers of step η until 1-ρ ≤ δ = ``deficit``, and the depth time η·(ℓ-1+fraction).

    The fraction is where the straight line between the last two deficits crosses δ. At η = 0.1 the layers need 5-10 %
    more depth than the ODE, because a Post-LN layer moves by η/(1+ηh). Some 20 µs per layer.
    """
    check_scheme(scheme, n, beta, alpha, switch)
    first = 1.0 - finite_number("start", start, -1.0 / (n - 1), 1.0)
    y, slack, r = check_state(first, magnitude, n)
    require(first > 0, "start", "be < 1", start)
    goal = finite_number("deficit", deficit, 0.0, open_low=True)
    eta = finite_number("step", step, 0.0, open_low=True)
    require(scheme != "ngpt" or alpha * eta <= 1, "step", "be ≤ 1/alpha for ngpt", step)
    if first <= goal:
        return CollapseDepth(0, 0.0)
    for layer in range(positive_integer("max_layers", max_layers)):
        before = y
        y, r = _layer(scheme, y, slack, r, n, beta, eta, layer * eta, alpha, switch)
        slack = np.maximum(n / (n - 1) - y, 0.0)
        if y <= goal:
            return CollapseDepth(layer + 1, float(eta * (layer + (before - goal) / (before - y))))
    return CollapseDepth(None, math.inf)
