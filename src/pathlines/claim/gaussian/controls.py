"""Control variates of samples: products of the modes in which a law is sampled.

How far n tokens stray from their mean field is, to leading order, a quadratic form in z_k = n^{-1/2} Σ_j ψ_k(x_j), ψ_k
orthonormal polynomials of the law without the constant. E z_k z_l = δ_kl exactly and at every n, so the products less
δ_kl are controls whose expectation is known, and nine tenths of the spread between samples goes with them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from math import factorial, sqrt
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from numpy.polynomial.legendre import legval


def hermite(z: np.ndarray, k: int) -> np.ndarray:
    """He_k/√k!, orthonormal for N(0, 1)."""
    return hermeval(z, [0.0] * k + [1.0]) / sqrt(factorial(k))


def legendre(x: np.ndarray, k: int) -> np.ndarray:
    """√(2k+1) P_k, orthonormal for the uniform law on [-1, 1]."""
    return legval(x, [0.0] * k + [1.0]) * sqrt(2 * k + 1)


def modes(points: Any, degree: int, basis: Callable[[np.ndarray, int], np.ndarray] = hermite) -> np.ndarray:
    """ψ_k of (runs, n, d) points, (modes, runs, n): products over the coordinates of total degree 1 … ``degree``."""
    x = np.asarray(points, float)
    each = [[basis(x[..., a], k) for k in range(degree + 1)] for a in range(x.shape[-1])]
    kept = [i for i in product(range(degree + 1), repeat=x.shape[-1]) if 0 < sum(i) <= degree]
    return np.stack([np.prod([each[a][k] for a, k in enumerate(i)], axis=0) for i in kept])


def sample_controls(found: np.ndarray) -> np.ndarray:
    """z_k z_l - δ_kl of ``modes``, (runs, pairs)."""
    z = np.sqrt(found.shape[2]) * found.mean(axis=2)
    return _pairs(z[..., None])


def prefix_controls(found: np.ndarray, after: int, last: int) -> np.ndarray:
    """The same of the first i points each, averaged over after < i ≤ last: for masked attention, (runs, pairs)."""
    i = np.arange(1, found.shape[2] + 1)
    z = np.cumsum(found, axis=2) / np.sqrt(i)
    return _pairs(z[..., after:last])


def _pairs(z: np.ndarray) -> np.ndarray:
    together = combinations_with_replacement(range(len(z)), 2)
    return np.stack([np.mean(z[k] * z[q], axis=-1) - (k == q) for k, q in together], axis=1)
