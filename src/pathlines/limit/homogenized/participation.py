"""f and g of the simplex: how concentrated random attention is, and how much two tokens attend to the same keys.

n tokens with all overlaps γ, logits β⟨Ax_i,x_k⟩ with A = WW'ᵀ Gaussian, W, W' ∈ R^{d×p}, b = βσ_A²√p (Homogenized
Transformers, arXiv:2604.01978, where p = d):

    f(γ) = E Σ_k π_ik²,        g(γ) = E Σ_k π_ik π_jk  (i ≠ j).

Up to a shift, row i of the logits is b r_i √(1-γ) times i.i.d. normals, and two rows are correlated by c. Wide heads
(p = ∞) have r = 1 and c = γ; for finite p both are averaged over the Wishart law of ``wishart``. Limits that check it:
g(0) = 1/n at p = ∞; b → 0: f ≈ 1/n + b²(1-γ)(n-1)/n², g ≈ 1/n + b²γ(1-γ)(n-1)/n²; b = ∞: f = 1 and g is the
probability that two normal vectors of correlation γ have the same argmax.

Relative error at p = ∞: below 2e-12, 1-10 ms for (f, g). Finite p averages 24 (p ≥ 4096) to 605 (p < 12) values of G,
0.03 s to 1 s for p ≥ 16 (narrower heads with sharp logits cost more: 16 s at p = 3, b = 20), with the errors stated in
``wishart.node_counts``: below 1e-9 for p ≥ 16, 1e-7 below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.coincidence import COARSE, LIGHT, Sums, pair_coincidence, row_coincidence
from pathlines.limit.homogenized.wishart import node_counts, pair_rule, size_rule

SOURCES = (HOMOGENIZED,)
LARGEST_LOGIT_SCALE = 1e4
_NEGLIGIBLE = 1e-13  # nodes of smaller weight change nothing


class Participation(NamedTuple):
    """f = E Σ π_ik² (1/f keys share the attention of one token) and g = E Σ π_ik π_jk."""

    f: float
    g: float


def check_logit_scale(b: float) -> float:
    """0 ≤ b ≤ 10⁴, or infinity: in between, the grids of the integrals would not fit in memory."""
    return math.inf if b == math.inf else finite_number("b", b, 0.0, LARGEST_LOGIT_SCALE)


def whole_or_infinite(name: str, value: float, least: int) -> float:
    """``value`` as a float that is a whole number ≥ ``least``, or infinity."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    ok = number and (value == math.inf or (value >= least and value == math.floor(value)))
    require(bool(ok), name, f"be a whole number ≥ {least} or infinity", value)
    return float(value)


def check_width(p: float) -> float:
    """The head width p ≥ 1."""
    return whole_or_infinite("p", p, 1)


def check_dimension(d: float) -> float:
    """The dimension d ≥ 2."""
    return whole_or_infinite("d", d, 2)


def check_overlap(name: str, gamma: float, n: float, *, collapsed: bool = True) -> float:
    """γ with -1/(n-1) < γ ≤ 1, or < 1 unless ``collapsed`` is allowed."""
    value = finite_number(name, gamma, -1.0 / (n - 1), 1.0, open_low=True)
    require(collapsed or value < 1, name, "be < 1", gamma)
    return value


def mean_participation(n: int, b: float, gamma: float, p: float = math.inf) -> Participation:
    """(f, g) for n tokens of overlap γ, logit scale b (``math.inf`` for the argmax) and head width p."""
    keys = np.array([float(positive_integer("n", n, 2))])
    f, g = participations(keys, check_logit_scale(b), check_overlap("gamma", gamma, n), check_width(p))
    return Participation(float(f[0]), float(g[0]))


def participations(
    keys: np.ndarray, b: float, gamma: float, p: float, light: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """f and g for every n of ``keys`` (real n > 1 are welcome), at little more than the cost of one; no checks.

    ``light`` makes finite p two to three times cheaper, for a relative error of g of 1e-7 (p ≥ 16).
    """
    if b == 0 or (gamma == 1 and math.isfinite(b)):
        return 1 / keys, 1 / keys
    if gamma == 1:
        return np.ones_like(keys), np.ones_like(keys)
    scale = b * math.sqrt(1 - gamma)
    if math.isinf(p):
        return row_coincidence(keys, scale), pair_coincidence(keys, (scale, scale), gamma)
    counts, sums = (node_counts(p, light), LIGHT if light else COARSE)
    return _row_average(keys, scale, p, 2 * counts[0]), pair_average(keys, scale, gamma, p, counts, sums)


def _row_average(keys: np.ndarray, scale: float, p: float, count: int) -> np.ndarray:
    sizes, weights = size_rule(p, count)
    values = [w * row_coincidence(keys, scale * r) for r, w in zip(sizes.tolist(), weights, strict=True)]
    return np.sum(values, axis=0)


def pair_average(
    keys: np.ndarray, scale: float, gamma: float, p: float, counts: tuple[int, int, int], sums: Sums = COARSE
) -> np.ndarray:
    """E G_n(scale r_i, scale r_j, c) over rows of width p at overlap γ, with ``counts`` nodes for (ρ, c, ψ)."""
    if math.isinf(scale):
        counts = (counts[0], counts[1], 1)  # an argmax depends on the correlation alone
    total = np.zeros_like(keys)
    for weight, first, second, c in pair_rule(p, gamma, counts):
        if weight > _NEGLIGIBLE:
            total += weight * pair_coincidence(keys, (scale * first, scale * second), c, sums)
    return total
