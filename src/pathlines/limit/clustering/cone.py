"""Hemispheres and cones: the geometry that decides whether all tokens meet in one point.

If some w has min_i ⟨x_i,w⟩ > 0, that minimum never decreases, the cone spanned by the tokens never grows, and all
tokens converge to one point (SA, USA, and SA with V = I and any Q, K): A mathematical perspective on Transformers,
arXiv:2312.10794.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from pathlines.foundation.errors import finite_array, positive_integer, require
from pathlines.foundation.papers import PERSPECTIVE

SOURCES = (PERSPECTIVE,)
_EXACT_LIMIT = 20_000
_TOLERANCE = 1e-12


def wendel_probability(n: int, d: int) -> float:
    """Probability 2^{-(n-1)} Σ_{k<d} C(n-1,k) that n i.i.d. uniform points lie in an open hemisphere (Wendel).

    Correctly rounded for n ≤ 20 000 (integer arithmetic), by the incomplete beta function (some 11 digits) beyond.
    """
    n, d = positive_integer("n", n), positive_integer("d", d)
    if n <= d:
        return 1.0
    if n > _EXACT_LIMIT:
        return float(special.bdtr(d - 1, n - 1, 0.5))
    total, binomial = 0, 1
    for k in range(d):
        total += binomial
        binomial = binomial * (n - 1 - k) // (k + 1)
    return total / 2 ** (n - 1)


def _normal(tokens: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Unit normal at equal height over the active tokens, in their span.

    Solved afresh from the active tokens: dividing the shortest vector of the hull by its length would magnify rounding
    by 1/margin, this has a backward error of rounding size whatever the margin.
    """
    w = np.linalg.lstsq(tokens[active], np.ones(int(active.sum())), rcond=None)[0]
    length = float(np.linalg.norm(w))
    return w / length if length > 0 else w


def hemisphere(tokens: ArrayLike) -> tuple[float, np.ndarray | None]:
    """(margin, w): the unit w that maximises min_i ⟨x_i,w⟩, and that minimum; (0, None) if no open hemisphere holds.

    The margin is the distance from 0 to the convex hull, by non-negative least squares (min |Xᵀα|² + (1-Σα)², α ≥ 0).
    Margins below 1e-12 count as zero. Tokens are rows; they need not be unit vectors. Cost: one NNLS of size (d+1, n).
    """
    x = finite_array("tokens", tokens, ("n", "d")).astype(np.float64)
    n, d = x.shape
    require(n > 0 and d > 0, "tokens", "hold at least one token", x)
    weights, residual = optimize.nnls(np.vstack([x.T, np.ones(n)]), np.append(np.zeros(d), 1.0), maxiter=30 * (n + d))
    if residual <= _TOLERANCE or not np.any(weights > 0):
        return 0.0, None
    hull = x.T @ weights
    candidates = [hull / np.linalg.norm(hull)] if np.any(hull) else []
    candidates.append(_normal(x, weights > 0))
    margins = [float(np.min(x @ w)) for w in candidates]
    best = int(np.argmax(margins))
    if margins[best] <= _TOLERANCE:
        return 0.0, None
    return margins[best], candidates[best]


def cone_excess(tokens: ArrayLike, initial: ArrayLike) -> float:
    """max_i min_{α≥0} |x_i - X0ᵀα|: how far the tokens stick out of the cone spanned by the initial ones.

    Cost: one non-negative least squares of size (d, n) a token.
    """
    x = finite_array("tokens", tokens, ("n", "d")).astype(np.float64)
    first = finite_array("initial", initial, ("m", "d")).astype(np.float64)
    require(x.shape[1] == first.shape[1], "initial", f"have {x.shape[1]} columns like `tokens`", first)
    return max(float(optimize.nnls(first.T, row, maxiter=30 * sum(first.shape))[1]) for row in x)
