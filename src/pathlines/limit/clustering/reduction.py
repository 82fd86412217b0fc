"""Six ways to normalise, reduced to two numbers: the overlap ρ of directions and the magnitude r of the tokens.

From an equiangular start with equal magnitudes, every scheme of Normalization in Attention Dynamics (arXiv:2510.22026)
keeps that form. With y = 1-ρ, b = 1/(e^{βy}+n-1), a = 1-(n-1)b, s1 = 1+(n-1)ρ (derived):

    h = ⟨θ,A⟩ = (a-b) + b s1,   m = |A| = √((a-b)² + 2(a-b)b s1 + b² n s1),   F = 2b y s1,
    ρ' = F/s,  (s, r') = post (1,0)  pre (r,h)  peri (rm,h/m)  ngpt (m/α,0)  sqrt (√(t+1),0);  mix: post to τ, then pre.

A vanishing attention vector (A = 0: β = 0 on the regular simplex) is normalised to 0, so that state does not move.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of, real_array

SCHEMES = ("post", "pre", "mix", "peri", "ngpt", "sqrt")


def attention_numbers(
    deficit: ArrayLike, slack: ArrayLike, n: ArrayLike, beta: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(a-b, b, h, m) at y = ``deficit``, w = ``slack`` = ρ+1/(n-1); sums of positive terms only, nothing cancels."""
    y, w, n, beta = (np.asarray(v, dtype=np.float64) for v in (deficit, slack, n, beta))
    fading = np.exp(-beta * y)
    total = 1 + (n - 1) * fading
    b = fading / total
    own = -np.expm1(-beta * y) / total
    s1 = (n - 1) * w
    h = own + b * s1
    m = np.sqrt(own * own + 2 * own * b * s1 + b * b * n * s1)
    return own, b, h, m


def check_scheme(scheme: str, n: int, beta: float, alpha: float, switch: float) -> None:
    """Raise unless the scheme is known, n ≥ 2, β ≥ 0, α > 0 and the switch time τ ≥ 0."""
    one_of("scheme", scheme, SCHEMES)
    positive_integer("n", n, 2)
    finite_number("beta", beta, 0.0)
    finite_number("alpha", alpha, 0.0, open_low=True)
    finite_number("switch", switch, 0.0)


def check_state(deficit: ArrayLike, magnitude: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check (1-ρ, r); return y, w = n/(n-1) - y and r."""
    y = real_array("deficit", deficit, 0.0)
    slack = n / (n - 1) - y
    require(bool(np.all(slack >= -1e-15)), "deficit", "be ≤ n/(n-1)", deficit)
    return y, np.maximum(slack, 0.0), real_array("magnitude", magnitude, 0.0, open_low=True)


def reduced_rates(
    scheme: str,
    deficit: ArrayLike,
    magnitude: ArrayLike,
    n: int,
    beta: float,
    time: ArrayLike = 0.0,
    alpha: float = 1.0,
    switch: float = 2.0,
) -> tuple[np.ndarray, np.ndarray]:
    """(ρ', r') at deficit 1-ρ and magnitude r: the right-hand side at the top of this file, elementwise."""
    check_scheme(scheme, n, beta, alpha, switch)
    y, slack, r = check_state(deficit, magnitude, n)
    t = real_array("time", time, 0.0)
    _, b, h, m = attention_numbers(y, slack, n, beta)
    unit = np.where(m > 0, m, 1.0)
    after = t > switch
    table: dict[str, tuple[ArrayLike, ArrayLike]] = {
        "post": (1.0, 0.0),
        "pre": (1 / r, h),
        "mix": (np.where(after, 1 / r, 1.0), np.where(after, h, 0.0)),
        "peri": (1 / (r * unit), h / unit),
        "ngpt": (alpha / unit, 0.0),
        "sqrt": (1 / np.sqrt(t + 1), 0.0),
    }
    speed, growth = (np.asarray(v) for v in table[scheme])
    shape = np.broadcast_shapes(y.shape, r.shape, t.shape)
    rate = 2 * b * y * (n - 1) * slack * speed
    return np.broadcast_to(rate, shape).copy()[()], np.broadcast_to(growth, shape).copy()[()]
