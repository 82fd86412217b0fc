"""Discrete layers of the six schemes on the equiangular reduction, exact and free of cancellation.

A layer x ← c0 θ + c1 A keeps an equiangular configuration equiangular, and scales every difference of tokens by the same
number, x_i - x_j ← (c0 + c1(a-b))(θ_i - θ_j), so that with a, b, h, m of ``limit.reduction`` (derived)

    r₊² = c0² + 2c0c1 h + c1² m²,        1-ρ₊ = (1-ρ) ((c0 + c1(a-b))/r₊)².

(c0, c1) with step η: post (1, η), pre (r, η), peri (r, η/m), ngpt (1-αη, αη/m), sqrt (1, η/√(1+t)); mix: post while
t ≤ τ, then pre. Schemes: Normalization in Attention Dynamics, arXiv:2510.22026.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.limit.arguments import real_array
from pathlines.limit.reduction import attention_numbers, check_scheme, check_state


class CollapseDepth(NamedTuple):
    """``layers`` until the deficit is ≤ δ (None if not within the layers allowed) and the depth time η·(fractional layer)."""

    layers: int | None
    time: float


def is_post_phase(time: ArrayLike, switch: float, step: float) -> np.ndarray:
    """True where the layer that starts at ``time`` is still Post-LN under Mix-LN: time ≤ τ, forgiving rounding of ℓη."""
    return np.asarray(time) <= switch + 1e-9 * step


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
    t = real_array("time", time, 0.0)
    require(scheme != "ngpt" or alpha * eta <= 1, "step", "be ≤ 1/alpha for ngpt", step)
    own, _, h, m = attention_numbers(y, slack, n, beta)
    unit = np.where(m > 0, m, np.inf)
    if scheme == "mix":
        scheme = "post" if bool(np.all(is_post_phase(t, switch, eta))) else "pre"
    c0, c1 = {
        "post": (np.ones_like(r), eta),
        "pre": (r, eta),
        "peri": (r, eta / unit),
        "ngpt": (np.full_like(r, 1 - alpha * eta), alpha * eta / unit),
        "sqrt": (np.ones_like(r), eta / np.sqrt(1 + t)),
    }[scheme]
    new = np.sqrt(c0 * c0 + 2 * c0 * c1 * h + (c1 * m) ** 2)
    new = np.where(new > 0, new, 1.0)
    kept = np.broadcast_to(new if scheme in ("pre", "peri") else r, new.shape).copy()
    return (y * ((c0 + c1 * own) / new) ** 2)[()], kept[()]
