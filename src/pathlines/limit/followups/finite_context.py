"""How much context resolves a query: softmax attention to n Gaussian keys against infinitely many (exact for every n).

Keys = values y_1..y_n ~ N(0, I_d), query q, r = |q|. Infinitely many give q; the error of n is e = Σ_j w_j y_j - q,
w_j ∝ e^{q·y_j}. Along q it has the moments of (w, z), z = y·q/r, across q it is d-1 times E Σ_j w_j²:

    E|e|² = (d-1) E Σ w_j² + E(Σ w_j z_j)² - 2r E Σ w_j z_j + r²,

all one-dimensional by 1/S² = ∫ u e^{-uS} du, S = Σ e^{r z_j}. As n → ∞, n E|e|² → e^{r²}(d + r²), and the next term is
e^{2r²}/n of it: n ≫ e^{2r²} is where the expansion begins, and from where a typical context has that error. The mean
square itself is the exact number, so its ratio to the law says whether the law holds: for sharp queries the border is
about e^{3r²/2} (r = 4, d = 4: the root mean square is .24, .52, .80, .95 of the law at n = e^{cr²}, c = 1.25, 1.5,
1.75, 2), and at r = 0 the law is exact at every n. Below, the mean is decided by the contexts in which a few keys take
much of the attention, and for n < e^{r²/2} (the freezing of the random energy model) the largest weights take all.
Derived; the setting is that of Propagation of Chaos in Contextual Flow Maps, arXiv:2605.16747.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.papers.followups import CONTEXTUAL
from pathlines.limit.gaussian.fluctuation import response
from pathlines.numerics.runge_kutta import rk4_step

SOURCES = (CONTEXTUAL,)
WIDEST = 6.0
"""Largest norm of a query: e^{36} keys and more would be needed."""
MOST = 1e18
"""Largest context that is looked for."""
_STEP, _REACH = 0.08, 10.0
LAWFUL = 1e6
"""Contexts of that many times e^{2|q|²} have the error of the law, to a few parts in that number."""
HOLDS = 0.05
"""Share by which the Gaussian law may be off where it is said to hold."""


def error_constant(query_norm: float, d: int) -> float:
    """lim n E|e|² = e^{|q|²}(d + |q|²)."""
    r = finite_number("query_norm", query_norm, 0.0, WIDEST)
    return math.exp(r * r) * (positive_integer("d", d) + r * r)


def context_error(query_norm: float, n: float, d: int = 4) -> float:
    """(E|e|²)^{1/2} with n keys, exact: by the trapezoid rule in log u and z, about 1e-9; any n ≥ 1."""
    r = finite_number("query_norm", query_norm, 0.0, WIDEST)
    count = finite_number("n", n, 1.0, MOST)
    if r == 0 or count > LAWFUL * math.exp(2 * r * r):  # the sum below would lose the error to rounding
        return math.sqrt(error_constant(r, d) / count)
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


def law_ratio(query_norm: float, n: float, d: int = 4) -> float:
    """``context_error`` over its law (e^{|q|²}(d+|q|²)/n)^{1/2}: 1 for q = 0, e^{-|q|²/2} for one key, 1 as n → ∞."""
    return context_error(query_norm, n, d) / math.sqrt(error_constant(query_norm, d) / n)


def law_holds_from(query_norm: float, d: int = 4) -> float:
    """The n from which the law is within 5 % of the exact error; infinite beyond 1e18."""
    missing = lambda log: law_ratio(query_norm, min(math.exp(log), MOST), d) - (1 - HOLDS)  # noqa: E731
    last = math.log(MOST)
    if missing(0.0) >= 0:
        return 1.0
    return math.exp(float(brentq(missing, 0.0, last, xtol=1e-6))) if missing(last) > 0 else math.inf


def nearest_distance(n: int, d: int) -> float:
    """ω_d^{-1/d} Γ(1+1/d) n!/Γ(n+1+1/d): E min_j |x - y_j|, y uniform in the ball of volume one around x.

    For the unit cube and its centre, up to ``corner_excess``. Its slope in n is -1/d: the rate of contextual flow maps
    that see the measure through its support.
    """
    count, size = positive_integer("n", n), positive_integer("d", d)
    logs = -_log_ball(size) / size + gammaln(1 + 1 / size) + gammaln(count + 1) - gammaln(count + 1 + 1 / size)
    return float(np.exp(logs))


def corner_excess(n: int, d: int) -> float:
    """What the corners of the unit cube add to ``nearest_distance``, to about 1e-5 of the sum.

    ∫_{1/2}^{√d/2} (1 - F_d(ρ²))^n dρ - ∫_{1/2}^∞ (1 - ω_d ρ^d)_+^n dρ, F_d the law of |y|² in the cube; from zero to
    (√d - 1)/2 · (1 - ω_d 2^{-d})^n. Cost O(d).
    """
    count, size = positive_integer("n", n), positive_integer("d", d)
    squares, inside = _cube_law(size)
    outer = squares >= 0.25
    rho = np.sqrt(squares[outer])
    ball = np.exp(np.minimum(_log_ball(size) + size * np.log(rho), 0.0))
    left = (1 - np.minimum(inside[outer], 1.0)) ** count - (1 - ball) ** count
    return float(np.trapezoid(left, rho))


def _log_ball(d: int) -> float:
    """ln ω_d."""
    return d / 2 * math.log(math.pi) - float(gammaln(d / 2 + 1))


@lru_cache(maxsize=64)
def _cube_law(d: int) -> tuple[np.ndarray, np.ndarray]:
    """s from 0 to d/4 and F_d(s) = P(|y|² ≤ s), y uniform on the cube around 0.

    F_d(s) = 2 ∫_0^{1/2} F_{d-1}(s - u²) du from the square on, between nodes by powers of s, as it is near 0.
    """
    cells = d * math.ceil(4000 / d)
    s = np.linspace(0.0, d / 4, cells + 1)
    s[0], s[cells // d] = 1e-12, 0.25
    if d == 1:
        return s, np.minimum(2 * np.sqrt(s), 1.0)
    rho = np.sqrt(np.clip(s, 0.25, 0.5))
    corners = rho**2 * np.arccos(0.5 / rho) - np.sqrt(np.maximum(rho**2 - 0.25, 0.0)) / 2
    law = np.where(s < 0.25, math.pi * s, math.pi * rho**2 - 4 * corners)
    line, share = np.polynomial.legendre.leggauss(48)
    half = np.minimum(np.sqrt(s), 0.5) / 2
    below = np.log(s[:, None] - (half[:, None] * (1 + line)) ** 2)
    for _ in range(d - 2):
        law = 2 * half * (np.exp(np.interp(below, np.log(s), np.log(np.maximum(law, 1e-300)))) @ share)
    return s, law


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


def hardest_query(score: Any, value: Any, start: Any, until: float, steps: int = 200) -> float:
    """max_t |h_t|, h = S^{1/2}Aᵀx: the sharpest query of the token of ``context_spread``, by RK4.

    Along the closure S' = MS + SMᵀ, x' = Mx, M = VSAᵀ, S_0 = I. At each depth the linear response needs n ≫ e^{2|h|²}.
    """
    x = finite_array("start", start, ("d",)).astype(float)
    A, V, h = np.asarray(score, float), np.asarray(value, float), finite_number("until", until, 0.0) / steps

    def rate(S: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        M = V @ S @ A.T
        return M @ S + S @ M.T, M @ x

    S, found = np.eye(len(x)), []
    for _ in range(steps + 1):
        asked = A.T @ x
        found.append(float(asked @ S @ asked))
        S, x = rk4_step(rate, (S, x), h)
    return math.sqrt(max(found))


Regime = Literal["gaussian", "few", "frozen"]


class Context(msgspec.Struct, frozen=True):
    """How much context resolves a query. ``regime`` is "gaussian" (the law of the constant is within 5 % of the exact
    error), "few" (it is not: contexts in which a few keys decide count) or "frozen" (the largest weights take all).
    ``n`` is whole, ``error`` what is asked for or what n leave, ``ratio`` the exact error of n over that of the law,
    ``holds_from`` the n from which that is within 5 % of 1, ``threshold`` = e^{2|q|²} where the expansion begins,
    ``freezing`` = e^{|q|²/2}.
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
    ratio: float
    holds_from: float
    regime: Regime
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
        count, rough = _whole(context_needed(query_norm, size, d)), constant / size**2
        rough_error = size
    else:
        count, rough = finite_number("n", n, 1.0, MOST), float(n)
        size, rough_error = context_error(query_norm, count, d), math.sqrt(constant / count)
    threshold, freezing = math.exp(2 * query_norm**2), math.exp(query_norm**2 / 2)
    ratio, begins = law_ratio(query_norm, min(count, MOST), d), law_holds_from(query_norm, d)
    regime: Regime = "gaussian" if abs(ratio - 1) <= HOLDS else "few" if count >= freezing else "frozen"
    borders = (threshold, freezing, ratio, begins)
    known = Context(query_norm, d, count, size, rough, rough_error, constant, *borders, regime, sentence="")
    return msgspec.structs.replace(known, sentence=_sentence(known, n is None))


def _whole(n: float) -> float:
    """The next whole number of keys; what the search for n leaves uncertain does not count."""
    return n if math.isinf(n) else float(math.ceil(n * (1 - 1e-8)))


def _sentence(c: Context, asked_n: bool) -> str:
    r, n = c.query_norm, c.n
    query = f"a query of norm {r:g} in dimension {c.d}"
    keys = "n = 1 key" if n == 1 else f"n = {n:,.0f} keys"
    if asked_n and math.isinf(n):
        return f"To resolve {query} to {c.error:.3g} takes more than 10^18 keys."
    if asked_n and n == 1:
        alone = math.sqrt(c.d + r * r)
        return f"An error of {c.error:.3g} takes no resolution of {query}: a single key leaves {alone:.3g} already."
    if asked_n:
        first = f"To resolve {query} to {c.error:.3g} (root mean square) takes {keys}"
        law = f"e^|q|²(d+|q|²)/error² = {c.gaussian_n:{',.0f' if c.gaussian_n > 100 else '.3g'}}"
    else:
        first = f"{keys} {'resolves' if n == 1 else 'resolve'} {query} to {c.error:.3g} (root mean square)"
        law = f"(e^|q|²(d+|q|²)/n)^½ = {c.gaussian_error:.3g}"
    if c.regime == "gaussian":
        return f"{first}; the Gaussian law {law} holds here."
    if c.regime == "few":
        begins = f"from n = {c.holds_from:,.3g} on" if math.isfinite(c.holds_from) else "beyond n = 10^18 only"
        return (
            f"{first}; the Gaussian law would say {law}, an error {1 / c.ratio:.3g} times the exact one: here contexts "
            f"in which a few keys decide still count in the mean. The law is within {100 * HOLDS:g} % {begins}."
        )
    return (
        f"{first}; this is no resolution: below n = e^(|q|²/2) = {c.freezing:.3g} the largest weights take all "
        f"attention, and the Gaussian law ({law}) says nothing."
    )
