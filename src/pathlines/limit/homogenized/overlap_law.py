"""The law of the mean overlap in d dimensions: the layer map with its fluctuations, which the map alone leaves out.

Tokens that start alike (a simplex, or uniform on the sphere) stay exchangeable. Their mean square m = |x̄|² = γ+(1-γ)/n
multiplies by random factors while it is small, so logit m is followed as a Gaussian variable, with log r² (r² the mean
square of the residual stream) beside it where norms come before the branch. A layer adds a random branch f to the
stream, products N_ij becoming M_ij = N_ij + F_ij; d coordinates, and e units inside the branch, make them fluctuate:

    Cov(tr uM̂, tr wM̂) = (2/d)[tr(uMwM) - tr(uNwN)] + (2/e) tr(uFwF),                                      (derived)

with u the gradient of γ̄ (or of any other function). All matrices are aI + b11ᵀ, so traces are sums of two terms. The
mean of γ̄ after the layer is that of ``next_overlap``, averaged over the law before it: the layer map lacks the average,
which delays collapse by 4τ/d and more, because log-odds that fluctuate by 2√(τ/d) have a smaller mean than their mean
has log-odds. Two more variances matter and obey V' = ((r²+F')/M)² V + noise, F' = ∂F_ij/∂K_ij: that of the row means
ρ_k = ⟨x_k,x̄⟩ over tokens, which lowers attended products by 2b²χ Var_k ρ_k (attention prefers tokens away from the
mean; χ is their ``preference``), and that of single overlaps, which adds ½F'' Var K_ij.

Neglected: O(d⁻²), the noise of the scores (O(v/H), for sharp attention), and the next order in b of what the spread of
rows and overlaps does: as large as the term 2b²χ Var_k ρ_k at b ≈ 1 to 2, so that leaving it out
(``preference=False``) shows the size of what is not known. Derived, for the chain of Homogenized Transformers
(arXiv:2604.01978) and for encoders built on it. Cost: some 1 ms per layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from pathlines.foundation.errors import positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.homogenized.gram import next_overlap
from pathlines.limit.homogenized.perceptron_kernel import ends, perceptron_kernel, perceptron_slope
from pathlines.limit.homogenized.simplex import SimplexTable

SOURCES = (HOMOGENIZED,)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_SMALL = 1e-4


class Products(NamedTuple):
    """F_ii, F_ij of a branch at overlap γ, and F', F'' of F_ij in K_ij."""

    own: np.ndarray
    pair: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


class Branch(NamedTuple):
    """(γ, Var_k ρ_k) ↦ products of the branch for a normalised stream, and the units e inside it."""

    products: Callable[[np.ndarray, float], Products]
    inner: float = math.inf


class OverlapLaw(NamedTuple):
    """After 0, 1, … layers: mean and standard deviation over runs of γ̄, and of logit m."""

    mean: np.ndarray
    spread: np.ndarray
    log_odds: np.ndarray
    log_odds_spread: np.ndarray


class _State(NamedTuple):
    """Mean and covariance of (logit m, log r²); variances over tokens of ρ_k and over pairs of K_ij."""

    centre: np.ndarray
    covariance: np.ndarray
    rows: float
    pairs: float


def attention_branch(table: SimplexTable, a: float, inner: float = math.inf, *, preference: bool = True) -> Branch:
    """a(γ+(1-γ)f - 2b²χV), a(γ+(1-γ)g - 2b²χV); F', F'' as at γ = 0, where the logits of two tokens are independent.

    There E Σ_k π_kπ'_k has the derivatives B²(1-f)²/(n-1) and B⁴(nE∂²π_k)²/n in the correlation, B = b√(1-γ).
    """
    n, b = table.n, table.b

    def products(gamma: np.ndarray, rows: float) -> Products:
        own, pair = table.attended(gamma)
        scale = b * math.sqrt(max(1 - float(np.mean(gamma)), 0.0))
        square, cube = (power_participation(n, scale, k) for k in (2, 3))
        sharpness = 1 - 3 * square + 2 * cube
        away = 2 * b * b * _preference(n, square, cube) * rows if preference else 0.0
        slope = a * (1 - gamma) * scale**2 * (1 - square) ** 2 / (n - 1)
        bend = a * (1 - gamma) * scale**4 * sharpness**2 / n
        return Products(a * (own - away), a * (pair - away), slope, bend)

    return Branch(products, inner)


def _preference(n: float, square: float, cube: float) -> float:
    """χ: how much less attention a token gets for being nearer to the mean, 1 as n → ∞ while weights stay small.

    Logits are independent up to a common one, that of token k of variance b²(1-γ-2a_k) when its overlaps are larger by
    a_k. By Gaussian integration by parts E π_k changes by -b²a_k E[∂²π_k/∂l_k² - ∂²π_k/∂l_j²]; χ is n times this mean,
    from E Σ π² and E Σ π³.
    """
    if n <= 2:
        return 0.0
    own, other = 1 - 3 * square + 2 * cube, (3 * square - 2 * cube - 1) / (n - 1)
    return (own - other) / (1 - 2 / n) ** 2


def power_participation(n: float, scale: float, k: int) -> float:
    """E Σ_j π_j^k = n/(k-1)! ∫du E[e^{k(u+Bε)-e^{u+Bε}}] (E e^{-e^{u+Bε}})^{n-1}, by trapezoid rules; 1e-8."""
    step = 0.3 if scale == 0 else min(0.3, 0.38 / scale)
    noise = step * np.arange(-math.ceil(9 / step), math.ceil(9 / step) + 1)
    weight = np.exp(-(noise**2) / 2)
    weight /= weight.sum()
    u = np.arange(-9 * scale - math.log(n) - 25, 9 * scale + 5, 0.3)
    z = u[:, None] + scale * noise
    grown = np.exp(np.minimum(z, 600.0))
    some = np.exp(k * z - grown) @ weight
    left = -np.expm1(-grown) @ weight
    return float(
        0.3 * n / math.factorial(k - 1) * np.sum(some * np.exp((n - 1) * np.log1p(-np.minimum(left, 1 - 1e-16))))
    )


def perceptron_branch(activation: str, sigma_w: float, power: float, width: float = math.inf) -> Branch:
    """v_m κ(1), v_m κ(γ) and the derivatives of the kernel."""
    top, _ = ends(activation, sigma_w)

    def products(gamma: np.ndarray, rows: float) -> Products:
        inside = np.clip(gamma, -1 + _SMALL, 1 - _SMALL)
        slopes = [perceptron_slope(inside + h, activation, sigma_w) for h in (-_SMALL, 0.0, _SMALL)]
        bend = (slopes[2] - slopes[0]) / (2 * _SMALL)
        kappa = perceptron_kernel(gamma, activation, sigma_w)
        return Products(np.full_like(kappa, power * top), power * kappa, power * slopes[1], power * bend)

    return Branch(products, width)


def overlap_law(
    layers: int, n: int, d: int, branches: Sequence[Branch], *, norm: str = "post", random_start: bool = False
) -> OverlapLaw:
    """``layers`` layers of these branches, one after the other, from orthogonal tokens or from uniform ones."""
    state = _uniform_start(n, d) if random_start else _State(np.array([-math.log(n - 1), 0.0]), np.zeros((2, 2)), 0, 0)
    found = [_summary(state, n)]
    for _ in range(positive_integer("layers", layers)):
        for branch in branches:
            state = _added(state, branch, n, d, norm == "pre")
        found.append(_summary(state, n))
    return OverlapLaw(*np.array(found).T)


def _uniform_start(n: int, d: int) -> _State:
    """Var K_ij = 1/d, different pairs uncorrelated: Var m = 2(n-1)/(n³d) and Var_k ρ_k = (n-2)/(n²d)."""
    relative, slope = 2 * (n - 1) / (n * d), n / (n - 1)
    mean = -math.log(n - 1) + 0.5 * (2 / n - 1) * slope**2 * relative
    return _State(np.array([mean, 0.0]), np.diag([slope**2 * relative, 0.0]), (n - 2) / (n * n * d), 1 / d)


def _nodes(state: _State) -> tuple[np.ndarray, np.ndarray]:
    """Points (2, k) and weights of the Gaussian law; nothing is spent on a direction without variance."""
    values, vectors = np.linalg.eigh(state.covariance)
    steps = [_NODES if v > 1e-14 else np.zeros(1) for v in values]
    masses = [_WEIGHTS if len(s) > 1 else np.ones(1) for s in steps]
    grid = np.stack([g.ravel() for g in np.meshgrid(*steps, indexing="ij")])
    weights = np.outer(*masses).ravel()
    points = state.centre[:, None] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * grid)
    return points, weights / weights.sum()


def _summary(state: _State, n: int) -> tuple[float, float, float, float]:
    points, weights = _nodes(state)
    m = expit(points[0])
    gamma = (n * m - 1) / (n - 1)
    mean = float(weights @ gamma)
    spread = math.sqrt(float(weights @ (gamma - mean) ** 2))
    return mean, spread, float(state.centre[0]), math.sqrt(max(float(state.covariance[0, 0]), 0.0))


class _Moved(NamedTuple):
    """One branch at given overlaps and mean squares: eigenvalues of N and F on 1 and beside it, M_ii, mean cosine."""

    old: tuple[np.ndarray, np.ndarray]
    new: tuple[np.ndarray, np.ndarray]
    after: np.ndarray
    cosine: np.ndarray
    stretch: np.ndarray
    n: int

    def noise(self, u: tuple[Any, ...], w: tuple[Any, ...], d: float, inner: float) -> np.ndarray:
        """Cov(tr uM̂, tr wM̂) for u, w by their eigenvalues, the second n-1 fold."""
        total = [o + f for o, f in zip(self.old, self.new, strict=True)]
        both = (u[0] * w[0], (self.n - 1) * u[1] * w[1])
        return sum(
            k * (2 / d * (m * m - o * o) + 2 / inner * f * f)
            for k, m, o, f in zip(both, total, self.old, self.new, strict=True)
        )

    def cosine_gradient(self) -> tuple[np.ndarray, np.ndarray]:
        """γ̄ = mean of M_ij/√(M_ii M_jj) over i ≠ j: 1/(n(n-1)) beside the diagonal, -c/n on it, over M_ii."""
        size = self.n * self.after
        return (1 - self.cosine) / size, -(self.cosine + 1 / (self.n - 1)) / size


def _moved(gamma: np.ndarray, power: np.ndarray, branch: Branch, rows: float, pairs: float, n: int, d: int) -> _Moved:
    own, pair, slope, bend = branch.products(gamma, rows)
    after = power + own
    share, fo, fp = power / after, own / after, pair / after
    c = share * gamma + fp
    mean = next_overlap(share * gamma, c, share, share, d)
    inside = (-2 * fo * fp + c * (0.5 * fp**2 + 1.5 * fo**2)) / branch.inner
    old = (power * (1 + (n - 1) * gamma), power * (1 - gamma))
    new = (own + (n - 1) * pair, own - pair)
    return _Moved(old, new, after, mean + inside + 0.5 * bend * pairs / after, (power + slope) / after, n)


def _added(state: _State, branch: Branch, n: int, d: int, pre: bool) -> _State:
    points, weights = _nodes(state)
    m, power = expit(points[0]), np.exp(points[1])
    moved = _moved((n * m - 1) / (n - 1), power, branch, state.rows, state.pairs, n, d)
    u, even = moved.cosine_gradient(), (1 / n / moved.after,) * 2
    mass = np.clip((1 - 1 / n) * moved.cosine + 1 / n, 1e-300, 1 - 1e-15)
    steep = (1 - 1 / n) / (mass * (1 - mass))
    noise = np.array(
        [
            [moved.noise(a, b, d, branch.inner) * x * y for b, y in ((u, steep), (even, 1.0))]
            for a, x in ((u, steep), (even, 1.0))
        ]
    )
    means = np.stack(
        [
            logit(mass) + 0.5 * (2 * mass - 1) * noise[0, 0],
            np.log(moved.after) - 0.5 * noise[1, 1],
        ]
    )
    if not pre:
        means[1], noise[1, :], noise[:, 1] = 0.0, 0.0, 0.0
    centre = means @ weights
    off = means - centre[:, None]
    covariance = (weights * off) @ off.T + noise @ weights
    rows, pairs = _spreads(state, branch, n, d)
    return _State(centre, covariance, rows, pairs)


def _spreads(state: _State, branch: Branch, n: int, d: int) -> tuple[float, float]:
    """Var_k ρ_k and Var K_ij after the branch, at the centre of the law."""
    gamma, power = np.array((n * expit(state.centre[0]) - 1) / (n - 1)), np.exp(np.array(state.centre[1]))
    moved = _moved(gamma, power, branch, state.rows, state.pairs, n, d)
    pair = _moved(gamma, power, branch, state.rows, state.pairs, 2, d)
    kept = moved.stretch**2
    of_pair, of_mean = (x.noise(x.cosine_gradient(), x.cosine_gradient(), d, branch.inner) for x in (pair, moved))
    c, size = moved.cosine, (n * moved.after) ** 2
    q = 1 + c / 2 * (n - 2)
    mixed, beside = 2 * (0.5 - q / n) ** 2 * (n - 1), q * q * ((1 - 2 / n) ** 2 + (n - 2) / n**2)
    total = [o + f for o, f in zip(moved.old, moved.new, strict=True)]

    def form(x: Sequence[np.ndarray]) -> np.ndarray:
        return mixed * x[0] * x[1] + beside * x[1] ** 2

    of_rows = (2 / d * (form(total) - form(moved.old)) + 2 / branch.inner * form(moved.new)) / size
    return float(kept * state.rows + of_rows), float(kept * state.pairs + of_pair - of_mean)
