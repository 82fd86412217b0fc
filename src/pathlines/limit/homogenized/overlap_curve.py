"""Token similarity against depth: the overlap γ of the simplex in diffusive time τ, and layer by layer.

ODE (small steps; Homogenized Transformers, arXiv:2604.01978): dγ/dτ = 𝖻(γ), or 𝒟_d(γ) for finite d. With
s = log[(1+(n-1)γ)/(1-γ)] it reads dτ = ds / {(1+(n-1)e^{-s}) [γ(1-f)+g]}; at b = 0 simply dτ = ds, so the integrand is
tame everywhere and a curve is one quadrature, inverted. Good values: b ≤ √(2 log n), τ up to 10; you will see an
S-shaped rise with γ = 1/2 near τ = log n.

Layer map (steps of any size, wide heads and d; derived), a = (η²/H) d σ_V² for normalised tokens:

    γ' = (r²γ + aS)/(r² + aP),      r'² = r² + aP with pre-normalisation, r ≡ 1 with post-normalisation.

First order in v/d: S is multiplied by 1-(2-γ²)/d and P, in γ' only, by 1-1/d; ``exact`` takes the whole O(1/d) term of
the mean of γ' at any v (derived in ``gram``). From v = 0.05 on the map is closer to
finite networks than the ODE.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.gram import next_overlap
from pathlines.limit.homogenized.participation import check_dimension, check_overlap
from pathlines.limit.homogenized.simplex import SimplexTable, simplex_table

SOURCES = (HOMOGENIZED,)
NORMS = ("post", "pre")
_PANEL = 0.5
_POINTS = 16
_FAR = 70.0
_SAMPLES = 400


def progress(gamma: float, n: float) -> float:
    """s(γ) = log[(1+(n-1)γ)/(1-γ)]: 0 at orthogonal tokens, ∞ at γ = 1."""
    return math.log1p((n - 1) * gamma) - math.log1p(-gamma)


def deficit_at(s: np.ndarray, n: float) -> np.ndarray:
    """1-γ at progress s."""
    return n / (np.exp(np.minimum(s, 700.0)) + (n - 1))


def slowness(s: np.ndarray, table: SimplexTable, d: float = math.inf) -> np.ndarray:
    """dτ/ds at progress s; 1 for b = 0 and d = ∞, negative where finite d turns the drift around."""
    growth = (1 + (table.n - 1) * np.exp(-s)) * table.closing_rate(deficit_at(s, table.n), d)
    with np.errstate(divide="ignore"):  # a curve that stands still takes for ever
        return 1 / growth


class Passage:
    """τ(s) and its inverse from s = ``start`` to τ = ``longest``, for a drift that is positive from there on.

    dτ/ds is interpolated by 16 Chebyshev points on panels of length ½ until 1-γ < e^{-70}, from where it is constant.
    Less is enough for a short time: γ(1-f)+g ≤ 1 bounds e^s by (e^{start}+n-1)e^τ. 200 times cost 1-3 ms.
    """

    def __init__(self, table: SimplexTable, start: float, longest: float, d: float = math.inf) -> None:
        late = max(start, math.log(table.n))
        end = min(late + _FAR, float(np.logaddexp(start, math.log(table.n - 1))) + longest)
        panels = math.ceil((end - start) / _PANEL) + 1
        self._edges = start + _PANEL * np.arange(panels + 1)
        nodes = np.cos(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)
        pace = slowness(self._edges[:-1, None] + 0.5 * _PANEL * (nodes + 1), table, d)
        weights = np.cos(np.outer(np.arange(_POINTS), np.arccos(nodes))) * (2 / _POINTS)
        weights[0] *= 0.5
        self._pace = 0.5 * _PANEL * (weights @ pace.T)
        self._time = chebyshev.chebint(self._pace, lbnd=-1)
        self._times = np.append(0.0, np.cumsum(np.sum(self._time, axis=0)))
        self._last = float(pace[-1, 0])

    def progress_at(self, times: np.ndarray) -> np.ndarray:
        """s(τ): Newton inside the panel, where the pace hardly changes."""
        panel = np.clip(np.searchsorted(self._times, times, side="right") - 1, 0, len(self._edges) - 2)
        rest = times - self._times[panel]
        time, pace = self._time[:, panel], self._pace[:, panel]
        x = np.clip(2 * rest / (self._times[panel + 1] - self._times[panel]) - 1, -1.0, 1.0)
        for _ in range(6):
            step = (chebyshev.chebval(x, time, tensor=False) - rest) / chebyshev.chebval(x, pace, tensor=False)
            x = np.clip(x - step, -1.0, 1.0)
        beyond = np.maximum(times - self._times[-1], 0.0) / self._last
        return self._edges[panel] + 0.5 * _PANEL * (x + 1) + beyond


def _rises(table: SimplexTable, start: float, d: float) -> bool:
    if math.isinf(d):
        return True
    deficits = np.append(deficit_at(start + np.linspace(0.0, _FAR, _SAMPLES), table.n), 0.0)
    return bool(np.min(table.closing_rate(deficits, d)) > 0)


def _integrated(table: SimplexTable, start: float, d: float, times: np.ndarray) -> np.ndarray:
    """s(τ) by Runge-Kutta of order 8, for a drift with a zero (few dimensions, many keys)."""
    order = np.unique(times)
    if order[-1] == 0:
        return np.full(times.shape, start)
    flow = solve_ivp(
        lambda _, s: 1 / slowness(s, table, d), (0.0, order[-1]), [start], "DOP853", order, rtol=1e-12, atol=1e-12
    )
    return flow.y[0][np.searchsorted(order, times)]


def deficit_curve(
    times: ArrayLike, n: int, b: float, *, d: float = math.inf, p: float = math.inf, gamma0: float = 0.0
) -> np.ndarray:
    """1-γ(τ), with relative precision also when γ is near 1."""
    tau, dimension = real_array("times", times, 0.0), check_dimension(d)
    check_overlap("gamma0", gamma0, positive_integer("n", n, 2), collapsed=False)
    table = simplex_table(n, b, p)
    return deficit_at(_progress_at(tau, table, dimension, gamma0), table.n)[()]


def overlap_curve(
    times: ArrayLike, n: int, b: float, *, d: float = math.inf, p: float = math.inf, gamma0: float = 0.0
) -> np.ndarray:
    """γ(τ) from overlap γ0, relative error some 1e-11 (1e-7 for finite p); 1-3 ms once the table exists.

    Args:
        times: diffusive times τ = vℓ ≥ 0.
        n: the number of tokens. The more, the later the collapse (log n while b is small).
        b: the standard deviation of a logit, ``math.inf`` for hard attention. Matters beyond √(2 log n). The larger,
            the later the collapse.
        d: the width; ∞ by default. The smaller, the slower.
        p: the head dimension; ∞ by default. The smaller, the heavier the tails of a logit.
        gamma0: the overlap at the start, 0 (orthogonal tokens) by default. The larger, the sooner the collapse.

    For finite d the drift is exact while the tokens form a simplex (which needs d ≥ n-1) and is used beyond that as it
    stands; it may then vanish at an overlap below 1, which the curve approaches.
    """
    tau, dimension = real_array("times", times, 0.0), check_dimension(d)
    check_overlap("gamma0", gamma0, positive_integer("n", n, 2), collapsed=False)
    table = simplex_table(n, b, p)
    s = _progress_at(tau, table, dimension, gamma0)
    return (np.expm1(np.minimum(s, 700.0)) / n * deficit_at(s, table.n))[()]


def _progress_at(tau: np.ndarray, table: SimplexTable, d: float, gamma0: float) -> np.ndarray:
    start = progress(check_overlap("gamma0", gamma0, table.n, collapsed=False), table.n)
    if _rises(table, start, d):
        return Passage(table, start, float(np.max(tau, initial=0.0)), d).progress_at(tau.ravel()).reshape(tau.shape)
    return _integrated(table, start, d, np.ravel(tau)).reshape(tau.shape)


class LayerCurve(NamedTuple):
    """Overlap and mean square r² of the residual stream after 0, 1, 2, … layers."""

    overlap: np.ndarray
    power: np.ndarray


def simplex_layer(
    table: SimplexTable, gamma: float, power: float, a: float, d: float = math.inf, exact: bool = False
) -> tuple[float, float]:
    """(γ', r²+aP) after one attention layer of power a, from overlap γ and mean square r² = ``power``."""
    own, pair = (float(v) for v in table.attended(gamma))
    if exact:
        after = power + a * own
        share = power / after
        return min(next_overlap(share * gamma, (power * gamma + a * pair) / after, share, share, d), 1.0), after
    turned = 1 - (2 - gamma * gamma) / d
    moved = (power * gamma + a * pair * turned) / (power + a * own * (1 - 1 / d))
    return min(moved, 1.0), power + a * own


def layer_map_curve(
    layers: int,
    n: int,
    b: float,
    v: float,
    *,
    p: float = math.inf,
    d: float = math.inf,
    norm: str = "post",
    r0: float = 1.0,
    gamma0: float = 0.0,
    exact: bool = False,
) -> LayerCurve:
    """γ and r² after 0 … ``layers`` layers of attention power v; r0 is the root mean square of the embeddings ("pre").

    Args:
        layers: L ≥ 0, the depth. The deeper, the nearer to one.
        n: the number of tokens. The more, the later the collapse.
        b: the standard deviation of a logit. The larger, the later the collapse, beyond √(2 log n).
        v: the attention power of a layer, (η²/H) d σ_V². The larger, the fewer layers to collapse.
        p: the head dimension; ∞ by default. The smaller, the heavier the tails of a logit.
        d: the width; ∞ by default. The smaller, the slower.
        norm: "post", or "pre", where tokens grow and each layer matters less.
        r0: the root mean square of the embeddings, for "pre". The larger, the slower.
        gamma0: the overlap at the start. The larger, the sooner the collapse.
        exact: takes the whole term of order 1/d instead of its first order in v/d.

    With pre-normalisation r² grows and 1-γ falls like 1/ℓ; with post-normalisation it falls like (1+v)^{-ℓ}. Some 40 µs
    per layer once the table exists.
    """
    one_of("norm", norm, NORMS)
    a, radius = (finite_number(name, value, 0.0, open_low=True) for name, value in (("v", v), ("r0", r0)))
    dimension, count = check_dimension(d), positive_integer("layers", layers)
    gamma = check_overlap("gamma0", gamma0, positive_integer("n", n, 2))
    power = radius**2 if norm == "pre" else 1.0
    table = simplex_table(n, b, p)
    overlaps, powers = [gamma], [power]
    for _ in range(count):
        gamma, grown = simplex_layer(table, gamma, power, a, dimension, exact)
        power = grown if norm == "pre" else 1.0
        overlaps.append(gamma)
        powers.append(power)
    return LayerCurve(np.array(overlaps), np.array(powers))
