"""How deep until tokens are alike: collapse time, collapse depth, maps over (n, b), and what moves them.

τ_½ is the diffusive time from orthogonal tokens to overlap ½, ∫ dγ/𝖻(γ), on the curves of Homogenized Transformers,
arXiv:2604.01978. At b = 0 it is exactly log(n+1); raising b helps only past b ≈ √(2 log n), where log n turns into a
power of n; d slows it by O(1/d). In layers it is τ_½/v, v = (η²/H) d σ_V²: heads and step only rescale that clock.

Near collapse (derived, any n and b, attention alone): a typical gap has d log(1-R)/dτ → -(d-1)/d, and its mean decays
at the rate (d-3)/d, slower because of rare late pairs; for d ≤ 3 the mean does not decay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.numbers import flat_list, one_of, whole_array
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.overlap_curve import NORMS, progress, simplex_layer, slowness
from pathlines.limit.homogenized.participation import check_dimension, check_logit_scale, check_overlap, check_width
from pathlines.limit.homogenized.simplex import SimplexTable, simplex_table, tabulate
from pathlines.limit.homogenized.wishart import chi_square_rule

SOURCES = (HOMOGENIZED,)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANEL = 0.5
_LOG_STEP = 0.01
_GAUSS = 40


def passage_time(table: SimplexTable, gamma0: float, level: float, d: float = math.inf) -> float:
    """τ from overlap γ0 to ``level`` by Gauss panels in s = log[(1+(n-1)γ)/(1-γ)]; infinite if the drift turns back."""
    start, end = progress(gamma0, table.n), progress(level, table.n)
    edges = np.linspace(start, end, math.ceil((end - start) / _PANEL) + 1)
    half = 0.5 * np.diff(edges)[:, None]
    times = slowness(edges[:-1, None] + half * (_NODES + 1), table, d)
    if np.min(times, initial=1.0) <= 0:
        return math.inf
    return float(np.sum(half * (times @ _WEIGHTS)[:, None]))


def _check_levels(gamma0: float, level: float, n: float) -> tuple[float, float]:
    start = check_overlap("gamma0", gamma0, n, collapsed=False)
    goal = finite_number("level", level, 0.0, open_low=True)
    require(start <= goal < 1, "level", f"be ≥ gamma0 = {start:g} and < 1", level)
    return start, goal


def collapse_time(
    n: int, b: float, *, level: float = 0.5, p: float = math.inf, d: float = math.inf, gamma0: float = 0.0
) -> float:
    """τ at which the overlap, from γ0, reaches ``level``; see ``passage_time``.

    Args:
        n: the number of tokens. The more, the later.
        b: the standard deviation of a logit; ``math.inf`` is the argmax. The larger, the later, beyond √(2 log n).
        level: the overlap to reach, 1/2 by default. The larger, the later.
        p: the head dimension; ∞ by default. The smaller, the heavier the tails of a logit.
        d: the width; ∞ by default. The smaller, the later.
        gamma0: the overlap at the start. The larger, the sooner.
    """
    start, goal = _check_levels(gamma0, level, positive_integer("n", n, 2))
    dimension = check_dimension(d)
    return passage_time(simplex_table(n, b, p), start, goal, dimension)


def collapse_map(
    ns: ArrayLike,
    bs: Sequence[float] | np.ndarray,
    *,
    level: float = 0.5,
    p: float = math.inf,
    d: float = math.inf,
    gamma0: float = 0.0,
) -> np.ndarray:
    """Collapse times, one row for each n and one column for each b, relative error 1e-8 (1e-6 for finite p).

    All n share the integrals behind f and g, so a 40×40 map costs some 12 s at p = ∞.
    """
    keys = whole_array("ns", ns, 2).ravel()
    scales = [check_logit_scale(b) for b in flat_list("bs", bs)]
    require(len(keys) > 0, "ns", "hold at least one number", ns)
    start, goal = _check_levels(gamma0, level, float(np.max(keys)))
    width, dimension = check_width(p), check_dimension(d)
    columns = []
    for b in scales:
        tables = tabulate(keys, b, width, start, goal, tolerance=1e-8)
        columns.append([passage_time(t, start, goal, dimension) for t in tables])
    return np.array(columns).T


def collapse_depth(
    n: int,
    b: float,
    v: float,
    *,
    level: float = 0.5,
    p: float = math.inf,
    d: float = math.inf,
    norm: str = "post",
    r0: float = 1.0,
    gamma0: float = 0.0,
    max_layers: int = 100_000,
) -> int | None:
    """First layer after which the layer map has γ ≥ ``level``, or None.

    Args:
        n: the number of tokens. The more, the deeper.
        b: the standard deviation of a logit. The larger, the deeper, beyond √(2 log n).
        v: the attention power of a layer. Depth is about log(n)/log(1+v) while b < √(2 log n). The larger, the fewer
            layers.
        level: the overlap to reach, 1/2 by default. The larger, the deeper.
        p: the head dimension; ∞ by default. The smaller, the heavier the tails of a logit.
        d: the width; ∞ by default. The smaller, the deeper.
        norm: "post" or "pre".
        r0: the root mean square of the embeddings, for "pre". The larger, the deeper.
        gamma0: the overlap at the start. The larger, the fewer layers.
        max_layers: where to give up, 100,000 by default. The more, the longer it may try.
    """
    one_of("norm", norm, NORMS)
    gamma, goal = _check_levels(gamma0, level, positive_integer("n", n, 2))
    a, radius = (finite_number(name, value, 0.0, open_low=True) for name, value in (("v", v), ("r0", r0)))
    power, dimension = radius**2 if norm == "pre" else 1.0, check_dimension(d)
    most = positive_integer("max_layers", max_layers)
    table = simplex_table(n, b, p)
    for layer in range(most + 1):
        if gamma >= goal:
            return layer
        gamma, grown = simplex_layer(table, gamma, power, a, dimension)
        power = grown if norm == "pre" else 1.0
    return None


class Effect(NamedTuple):
    """Collapse depth is multiplied by x^exponent when the named quantity is multiplied by x (x near 1)."""

    name: str
    exponent: float


class Sensitivities(NamedTuple):
    """The collapse time τ and ∂log τ/∂log of n, b, p and d."""

    time: float
    n: float
    b: float
    p: float
    d: float

    def effects(self) -> tuple[Effect, ...]:
        """What moves the collapse depth τ/v, v = η²/H, strongest first (each alone, the others held)."""
        named = (
            Effect("residual step η", -2.0),
            Effect("heads H", 1.0),
            Effect("context length n", self.n),
            Effect("logit scale b", self.b),
            Effect("head width p", self.p),
            Effect("dimension d", self.d),
        )
        return tuple(sorted(named, key=lambda e: -abs(e.exponent)))


def sensitivities(
    n: int, b: float, *, p: float = math.inf, d: float = math.inf, level: float = 0.5, gamma0: float = 0.0
) -> Sensitivities:
    """∂log τ/∂log(n, b, p, d) at the collapse time, by central differences of 1% (error some 1e-5); needs p ≥ 2."""
    keys = positive_integer("n", n, 2) * np.exp(_LOG_STEP * np.array([-1.0, 0.0, 1.0]))
    scale, width, dimension = check_logit_scale(b), check_width(p), check_dimension(d)
    require(width >= 2, "p", "be ≥ 2", p)
    start, goal = _check_levels(gamma0, level, float(np.max(keys)))

    def times(which: np.ndarray, new_b: float, new_p: float, new_d: float) -> np.ndarray:
        tables = tabulate(which, new_b, new_p, start, goal)
        return np.array([passage_time(t, start, goal, new_d) for t in tables])

    def slope(low: float, high: float) -> float:
        return math.log(high / low) / (2 * _LOG_STEP)

    up, down = math.exp(_LOG_STEP), math.exp(-_LOG_STEP)
    fewer, here, more = times(keys, scale, width, dimension)
    one = keys[1:2]
    by_b = by_p = by_d = 0.0
    if 0 < scale < math.inf:
        by_b = slope(*(times(one, scale * x, width, dimension)[0] for x in (down, up)))
    if math.isfinite(width):
        by_p = slope(*(times(one, scale, width * x, dimension)[0] for x in (down, up)))
    if math.isfinite(dimension):
        by_d = slope(*(times(one, scale, width, dimension * x)[0] for x in (down, up)))
    return Sensitivities(float(here), slope(fewer, more), by_b, by_p, by_d)


def near_collapse_rates(d: int) -> tuple[float, float]:
    """(d log(1-R)/dτ of a typical pair, d log E(1-R)/dτ) near R = 1: (-(d-1)/d, -(d-3)/d).

    For tokens that are all close to each other; a close pair among separated ones moves at its own rate.
    """
    dimension = positive_integer("d", d, 2)
    return -(dimension - 1) / dimension, -(dimension - 3) / dimension


def layer_collapse_rates(d: int, v: float) -> tuple[float, float]:
    """``near_collapse_rates`` of layers with diffusive time v instead of the diffusion (derived): → them as v → 0.

    A layer takes nearly equal tokens x, x+δ to N(x+ζ) with the same ζ, Gaussian of variance v/d, so that the gap 1-R is
    multiplied by (|w|² - ⟨w,δ̂⟩²)/|w|⁴, w = x+ζ: its mean logarithm and the logarithm of its mean, over v, by tensor
    Gauss rules in ⟨w,x⟩, ⟨w,δ̂⟩² and the χ² of the d-2 other directions. -log(1+v)/v both as d → ∞.
    """
    others = positive_integer("d", d, 3) - 2
    scale = finite_number("v", v, 0.0, open_low=True) / d
    g, along = np.polynomial.hermite_e.hermegauss(_GAUSS)
    rest, across = chi_square_rule(others, _GAUSS)
    first = (1 + math.sqrt(scale) * g[:, None, None]) ** 2
    side, beyond = scale * (g**2)[:, None], scale * others * rest
    weights = along[:, None, None] * along[:, None] * across
    weights = weights / weights.sum()
    whole = first + side + beyond
    ratio = (first + beyond) / whole**2
    return float(np.sum(weights * np.log(ratio)) / v), math.log(float(np.sum(weights * ratio))) / v
