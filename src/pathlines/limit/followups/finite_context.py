"""How much context resolves a query: softmax attention to n Gaussian keys against infinitely many (exact for every n).

Keys = values y_1..y_n ~ N(0, I_d), query q, r = |q|. Infinitely many give q; the error of n is e = Σ_j w_j y_j - q,
w_j ∝ e^{q·y_j}. Along q it has the moments of (w, z), z = y·q/r, across q it is d-1 times E Σ_j w_j²:

    E|e|² = (d-1) E Σ w_j² + E(Σ w_j z_j)² - 2r E Σ w_j z_j + r²,

all one-dimensional by 1/S² = ∫ u e^{-uS} du, S = Σ e^{r z_j}. As n → ∞, n E|e|² → e^{r²}(d + r²), and the next term is
e^{2r²}/n of it: the constant holds for n ≫ e^{2r²}. Below that the errors are decided by a few keys, and for n <
e^{r²/2} (the freezing of the random energy model) the largest weights take all attention: no query is resolved.
Derived; the setting is that of Propagation of Chaos in Contextual Flow Maps, arXiv:2605.16747.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.papers.followups import CONTEXTUAL
from pathlines.limit.gaussian.fluctuation import response

SOURCES = (CONTEXTUAL,)
WIDEST = 6.0
"""Largest norm of a query: e^{36} keys and more would be needed."""
MOST = 1e18
"""Largest context that is looked for."""
_STEP, _REACH = 0.08, 10.0


def error_constant(query_norm: float, d: int) -> float:
    """lim n E|e|² = e^{|q|²}(d + |q|²)."""
    r = finite_number("query_norm", query_norm, 0.0, WIDEST)
    return math.exp(r * r) * (positive_integer("d", d) + r * r)


def context_error(query_norm: float, n: float, d: int = 4) -> float:
    """(E|e|²)^{1/2} with n keys, exact: by the trapezoid rule in log u and z, about 1e-9; any n ≥ 1."""
    r = finite_number("query_norm", query_norm, 0.0, WIDEST)
    count = finite_number("n", n, 1.0, MOST)
    square, along, pair = _participation(r, count)
    whole = (positive_integer("d", d) - 1) * square + pair - 2 * r * along + r * r
    return math.sqrt(max(whole, 0.0))


@lru_cache(maxsize=4096)
def _participation(r: float, n: float) -> tuple[float, float, float]:
    """(E Σ w², E Σ w z, E (Σ w z)²)."""
    step = min(_STEP, 0.3 / max(r, 1e-9))
    z = step * np.arange(-math.ceil((_REACH + r) / step), math.ceil((_REACH + 3 * r) / step) + 1)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    # u = e^t: below, all of e^{-uS} is one; above, nothing is left of it
    t = np.arange(-math.log(n) - r * r - 2 * r * _REACH - 12, r * _REACH + 6, 0.08)
    grown = np.exp(np.minimum(t[:, None] + r * z, 690.0))
    some = np.exp(np.minimum(t[:, None] + r * z, 690.0) - grown)
    both = some * grown
    twice, twice_z, tilt = both @ weight, both @ (weight * z * z), some @ (weight * z)
    lost = -np.expm1(-grown) @ weight
    log_left = np.log1p(-np.minimum(lost, 1 - 1e-16))
    one, two = np.exp((n - 1) * log_left), np.exp((n - 2) * log_left)
    square = 0.08 * n * float(np.sum(twice * one))
    along = 0.08 * n * float(np.sum(tilt * one))
    pair = 0.08 * n * float(np.sum(twice_z * one + (n - 1) * tilt * tilt * two))
    return square, along, pair


def context_needed(query_norm: float, error: float, d: int = 4) -> float:
    """The n at which ``context_error`` is ``error``; 1 where a single key does, infinite beyond 1e18."""
    wanted = finite_number("error", error, 0.0, open_low=True)
    if context_error(query_norm, 1.0, d) <= wanted:
        return 1.0
    if context_error(query_norm, MOST, d) > wanted:
        return math.inf
    excess = lambda log: context_error(query_norm, math.exp(log), d) - wanted  # noqa: E731
    return math.exp(float(brentq(excess, 0.0, math.log(MOST), xtol=1e-9)))


def nearest_distance(n: int, d: int) -> float:
    """E min_j |x - y_j| for y uniform on the unit cube, x its centre: ω_d^{-1/d} Γ(1+1/d) n!/Γ(n+1+1/d).

    Exact up to a share (1 - ω_d 2^{-d})^n, the chance that no point is within the ball that fits the cube. Its slope in
    n is -1/d: the rate of contextual flow maps that see the measure through its support.
    """
    count, size = positive_integer("n", n), positive_integer("d", d)
    log_ball = size / 2 * math.log(math.pi) - gammaln(size / 2 + 1)
    logs = -log_ball / size + gammaln(1 + 1 / size) + gammaln(count + 1) - gammaln(count + 1 + 1 / size)
    return float(np.exp(logs))


def outside_ball(n: int, d: int) -> float:
    """(1 - ω_d 2^{-d})^n."""
    return float((1 - math.exp(d / 2 * math.log(math.pi) - gammaln(d / 2 + 1) - d * math.log(2))) ** n)


def context_spread(
    score: Any, value: Any, start: Any, until: float, nodes: int = 12, steps: int = 20
) -> tuple[np.ndarray, float]:
    """(x(T), lim √n (E|x^n(T) - x(T)|²)^{1/2}) of a token at ``start`` among n tokens drawn from N(0, I) that move too.

    Scores x·Ay, A the ``score``. The linear response of the flow to the sampling of its context
    (``gaussian.fluctuation``), integrated along depth on Gauss-Hermite nodes, at a listener of mass zero. Cost
    O(steps · nodes^{2d} d²).
    """
    x = finite_array("start", start, ("d",)).astype(float)
    d = positive_integer("d", len(x))
    line, share = np.polynomial.hermite_e.hermegauss(positive_integer("nodes", nodes, 2))
    grid = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    masses = np.prod(np.stack(np.meshgrid(*[share / share.sum()] * d, indexing="ij"), axis=-1).reshape(-1, d), axis=1)
    kept = masses > 1e-13
    points, weights = np.vstack([grid[kept], x]), np.append(masses[kept] / masses[kept].sum(), 0.0)
    found = response(np.transpose(score), value, points, weights, until, steps)
    spread = np.einsum("as,s->", found.kernels[0, -1] ** 2, weights)
    return found.nodes[-1], float(np.sqrt(spread))


class Context(msgspec.Struct, frozen=True):
    """How much context resolves a query. ``regime`` is "gaussian" (the constant holds), "few" (a few keys decide) or
    "frozen" (the largest weights take all).
    """

    query_norm: float
    d: int
    n: float
    error: float
    gaussian_n: float
    gaussian_error: float
    constant: float
    threshold: float
    freezing: float
    regime: str
    sentence: str


def context(query_norm: float, error: float | None = None, d: int = 4, n: float | None = None) -> Context:
    """How many Gaussian keys resolve a query to ``error``, or the error that ``n`` of them leave.

    Args:
        query_norm: |q| from 0 to 6, in units in which keys have variance 1 (scores q·y). The larger, the more context:
            e^{|q|²}.
        error: root mean square error of the attended vector, > 0, where n is asked for. The smaller, the more.
        d: d ≥ 1, the dimension of keys and values. The larger, the more directions an error has.
        n: how many keys there are, where the error is asked for, at most 10^18. The more, the smaller the error.
    """
    require((error is None) != (n is None), "n", "be given without `error`, or `error` without it", n)
    constant = error_constant(query_norm, d)
    if n is None:
        size = finite_number("error", error, 0.0, open_low=True)
        count, rough = context_needed(query_norm, size, d), constant / size**2
        rough_error = size
    else:
        count, rough = finite_number("n", n, 1.0, MOST), float(n)
        size, rough_error = context_error(query_norm, count, d), math.sqrt(constant / count)
    threshold, freezing = math.exp(2 * query_norm**2), math.exp(query_norm**2 / 2)
    regime = "gaussian" if count >= 4 * threshold else "few" if count >= freezing else "frozen"
    said = _sentence(query_norm, d, count, size, rough, rough_error, regime, n is None)
    return Context(query_norm, d, count, size, rough, rough_error, constant, threshold, freezing, regime, said)


def _sentence(
    r: float, d: int, n: float, error: float, rough: float, rough_error: float, regime: str, asked_n: bool
) -> str:
    query = f"a query of norm {r:g} in dimension {d}"
    if asked_n and math.isinf(n):
        return f"To resolve {query} to {error:.3g} takes more than 10^18 keys."
    if asked_n:
        first = f"To resolve {query} to {error:.3g} (root mean square) takes n = {n:,.0f} keys"
        law = f"e^|q|²(d+|q|²)/error² = {rough:,.0f}"
    else:
        first = f"{n:,.0f} keys resolve {query} to {error:.3g} (root mean square)"
        law = f"(e^|q|²(d+|q|²)/n)^½ = {rough_error:.3g}"
    if regime == "gaussian":
        return f"{first}; the Gaussian law {law} holds here."
    if regime == "few":
        return (
            f"{first}; the Gaussian law would say {law}, but it needs n well above e^(2|q|²) = "
            f"{math.exp(2 * r * r):.3g}: here a few keys decide the error."
        )
    return (
        f"{first}; this is no resolution: below n = e^(|q|²/2) = {math.exp(r * r / 2):.3g} the largest weights take "
        f"all attention, and the Gaussian law ({law}) says nothing."
    )
