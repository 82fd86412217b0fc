"""Three theories of position bias under uniform causal attention, in closed form at every length.

M_jk = 1/j for k ≤ j (the Cesàro matrix) is attention without logits, a token seeing itself. Theories differ in how hops
are weighed: powers of M (Lost in the Middle at Birth, arXiv:2603.10123), powers of αI + (1-α)M (the same with residual
connections, and A Structural Theory of Position Bias in Transformers, arXiv:2602.16837; for both α is one free number
for all layers and positions here [assumed]), and e^{xM} or (I + xM/L)^L (paths of attention, after arXiv:2605.09213).

All are Hausdorff means, N[f(M)]_Ni = E φ(ln 1/t), t the i-th smallest of N uniform numbers, φ the density of the limit
N → ∞ (derived). Because ln 1/t_(i) is a sum of exponential variables of rates i, i+1, …, N, hops are complete
homogeneous polynomials of harmonic numbers,

    N[M^k]_Ni = h_{k-1}(1/i, …, 1/N)  →  ln^{k-1}(1/σ)/(k-1)!,   σ = i/N,   k ≥ 1.

The densities: ln^{L-1}(1/σ)/(L-1)! of M^L; (1-α)α^{L-1} L¹_{L-1}(-(1-α)/α ln 1/σ) of the rollout, L¹ Laguerre's; with
L → ∞ at L(1-α) = x, e^{-x} times x ₀F₁(;2;x ln 1/σ), the closed form of the kinetic theory without bias (``response``).
All fall from the first token to the last but one. The last has an atom N α^L of its own; there is no other recency.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import BIRTH, STRUCTURAL

SOURCES = (BIRTH, STRUCTURAL)


def cesaro_matrix(n: int) -> np.ndarray:
    """M_jk = 1/j for k ≤ j: uniform causal attention in which a token sees itself. Dense, N × N."""
    count = positive_integer("n", n)
    return np.tril(np.ones((count, count))) / np.arange(1, count + 1)[:, None]


def cesaro_hops(n: int, hops: int, positions: ArrayLike) -> np.ndarray:
    """N [M^k]_Ni for k = 0 … hops at positions i = 1 … N, without a matrix: O(hops²) for each. Shape (hops + 1, ·).

    Newton's identities k h_k = Σ_r p_r h_{k-r} with the power sums p_r = Σ_{m=i}^N m^{-r}; all terms are positive.
    """
    count, k = positive_integer("n", n), positive_integer("hops", hops, 0)
    i = np.atleast_1d(np.asarray(positions))
    inside = i.dtype.kind in "iu" and i.size > 0 and np.all((i >= 1) & (i <= count))
    require(bool(inside), "positions", f"be whole numbers from 1 to {count}", positions)
    sums = [special.digamma(count + 1.0) - special.digamma(i)]
    sums += [special.zeta(r, i) - special.zeta(r, count + 1.0) for r in range(2, k)]
    h = [np.ones(len(i))]
    for order in range(1, k):
        h.append(sum(sums[r - 1] * h[order - r] for r in range(1, order + 1)) / order)
    return np.stack([np.where(i == count, float(count), 0.0), *h][: k + 1])


def cesaro_density(sigma: ArrayLike, layers: int) -> np.ndarray:
    """ln^{L-1}(1/σ)/(L-1)!, the limit of N[M^L]_Ni at i = σN: primacy without any recency (arXiv:2603.10123)."""
    count, s = positive_integer("layers", layers), real_array("sigma", sigma, 0.0, 1.0, open_low=True)
    return np.exp(special.xlogy(count - 1, -np.log(s)) - special.gammaln(count))


def rollout_density(sigma: ArrayLike, skip: float, layers: int) -> np.ndarray:
    """(1-α)α^{L-1} L¹_{L-1}(-z), z = (1-α)/α ln(1/σ), the limit of N[(αI + (1-α)M)^L]_Ni beside its atom α^L at σ = 1.

    All terms of Laguerre's polynomial are positive here (derived; for arXiv:2602.16837 and arXiv:2603.10123).
    """
    alpha = finite_number("skip", skip, 0.0, 1.0)
    count, s = positive_integer("layers", layers), real_array("sigma", sigma, 0.0, 1.0, open_low=True)
    if alpha == 0:
        return cesaro_density(s, count)
    z = (1 - alpha) / alpha * -np.log(s)
    return (1 - alpha) * alpha ** (count - 1) * special.eval_genlaguerre(count - 1, 1, -z)


def nearest_rollout(influence: ArrayLike, layers: int) -> tuple[float, np.ndarray]:
    """(α, c[(αI + (1-α)M)^L]_N·): the rollout nearest to a positive profile, of any α and scale c.

    Nearest in the variance of logarithms, which the scale does not enter.
    """
    goal = np.log(real_array("influence", influence, 0.0, open_low=True))
    count, n = positive_integer("layers", layers), len(goal)
    hops, k = cesaro_hops(n, count, np.arange(1, n + 1)) / n, np.arange(count + 1)

    def row(alpha: float) -> np.ndarray:
        return np.log(binom.pmf(k, count, 1 - alpha) @ hops)

    halves = ((1e-9, 0.5), (0.5, 1 - 1e-9))  # one minimum in each at most was seen
    tried = [minimize_scalar(lambda v: np.var(goal - row(v)), bounds=b, method="bounded") for b in halves]
    best = float(min(tried, key=lambda r: r.fun).x)
    return best, np.exp(row(best) + np.mean(goal - row(best)))
