"""Exact probabilities for random weights: eigenvalues of real random matrices by de Bruijn's Pfaffian.

The joint density of the eigenvalues of the orthogonal ensembles is ∏ w(x_i) ∏_{i<j} |x_i - x_j|, and the integral of
det φ_j(x_i) over x_1 < … < x_m is the Pfaffian of ∫∫ sgn(y - x) φ_j(x)φ_k(y) (N. G. de Bruijn, 1955). Used for
V = I, where blow-up of softmax attention and the limit covariance are statements about such eigenvalues (derived).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.papers import UNIFIED

SOURCES = (UNIFIED,)
Basis = Callable[[np.ndarray], np.ndarray]
_NODES = 120


def ordered_integral(pieces: list[tuple[float, float, float]], basis: Basis, m: int) -> float:
    """∫_{x_1<…<x_m} det φ_j(x_i) ∏ z(x_i) dx over intervals (low, high, z), by Gauss-Legendre in each.

    ``basis`` returns φ_0..φ_{m-1} as rows; the inner integral up to each node is integrated as well.
    """
    x, w = np.polynomial.legendre.leggauss(_NODES)
    pairs, totals = np.zeros((m, m)), np.zeros(m)
    for low, high, z in pieces:
        nodes, weights = (high - low) / 2 * x + (high + low) / 2, (high - low) / 2 * w * z
        phi = basis(nodes)
        inner = totals[:, None] + z * _up_to(low, nodes, basis)
        pairs += (inner * weights) @ phi.T
        totals = totals + phi @ weights
    skew = pairs - pairs.T
    if m % 2:
        skew = np.block([[skew, totals[:, None]], [-totals[None, :], np.zeros((1, 1))]])
    return _pfaffian(skew)


def _up_to(low: float, nodes: np.ndarray, basis: Basis) -> np.ndarray:
    """∫_low^node φ_j."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half = (nodes - low) / 2
    return np.einsum("jab,b->ja", basis(low + half[:, None] * (x + 1)), w) * half


def _pfaffian(matrix: np.ndarray) -> float:
    """By expansion along the first row: m is small."""
    if len(matrix) == 0:
        return 1.0
    total = 0.0
    for k in range(1, len(matrix)):
        rest = [i for i in range(1, len(matrix)) if i != k]
        total += (-1) ** (k - 1) * matrix[0, k] * _pfaffian(matrix[np.ix_(rest, rest)])
    return total


def _powers(x: np.ndarray, count: int, squared: bool) -> np.ndarray:
    """Polynomials times e^{-x²/2}: x^j (GOE), or x^{2j} (Wishart with as many degrees of freedom as rows, λ = x²)."""
    exponent = np.arange(count) * (2 if squared else 1)
    return x[None] ** exponent.reshape(-1, *(1,) * x.ndim) * np.exp(-(x**2) / 2)


def no_blow_up_ginibre(d: int) -> float:
    """P(λ_max(A + Aᵀ) ≤ 0), entries of A i.i.d. N(0, 1): (2 - √2)/4 for d = 2. V = I, any start of full rank… Σ_0 = I.

    By Sylvester's law of inertia it does not depend on Σ_0.
    """
    m, far = positive_integer("d", d), 14.0
    basis: Basis = lambda x: _powers(x, m, False)  # noqa: E731
    whole = ordered_integral([(-far, 0.0, 1.0), (0.0, far, 1.0)], basis, m)
    return float(ordered_integral([(-far, 0.0, 1.0)], basis, m) / whole)


def no_blow_up_query_key(d: int) -> float:
    """The same for A = KᵀQ with d × d Gaussian Q, K: ½ - π/8 for d = 2.

    A + Aᵀ = UᵀU - WᵀW with U, W = (K ± Q)/√2, so all roots x = sin²θ of a matrix Beta must be below ½; their density in
    θ is ∏|cos 2θ_i - cos 2θ_j|.
    """
    m = positive_integer("d", d)

    def basis(x: np.ndarray) -> np.ndarray:
        return np.cos(2 * np.arange(m).reshape(-1, *(1,) * x.ndim) * x[None])

    below, above = (0.0, np.pi / 4, 1.0), (np.pi / 4, np.pi / 2, 1.0)
    return float(ordered_integral([below], basis, m) / ordered_integral([below, above], basis, m))


def rank_counts(d: int, threshold: float) -> np.ndarray:
    """P(#{λ_i(Σ_∞) > threshold} = k), k = 0..⌈d/2⌉, for V = I, K = -Q, Q Gaussian in R^{⌊d/2⌋×d}, Σ_0 = GGᵀ.

    Σ_∞ = U(UᵀΣ_0^{-1}U)^{-1}Uᵀ has the eigenvalues of an m × m Wishart matrix with m = ⌈d/2⌉ degrees of freedom (and
    zeros). E z^{#} is a polynomial in z: its values at m + 1 points give the probabilities.
    """
    m, far = -(-positive_integer("d", d, 2) // 2), 14.0
    at = np.sqrt(finite_number("threshold", threshold, 0.0, open_low=True))
    basis: Basis = lambda x: _powers(x, m, True)  # noqa: E731
    points = np.arange(m + 1) / m
    values = [ordered_integral([(0.0, at, 1.0), (at, far, z)], basis, m) for z in points]
    return np.linalg.solve(np.vander(points, increasing=True), np.array(values) / values[-1])
