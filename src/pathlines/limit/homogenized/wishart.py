"""Gauss rules for heads of finite width p: the random sizes and the random correlation of the logits of two rows.

Given y_i = W'ᵀx_i ∈ R^p the logits of row i are normal of size r_i = |y_i|/√p (in units of their mean square) and rows
i, j have correlation c = cos(y_i, y_j); y_i, y_j are normal of correlation γ. With r_i² = ρ²(1+sin ψ)/2 and
r_j² = ρ²(1-sin ψ)/2 the 2×2 Wishart law of (y_i, y_j) says (derived)

    ρ² = [(1+γ)χ²_p + (1-γ)χ'²_p]/p,        (c, ψ) given ρ:  (1-c²)^{(p-3)/2} (cos ψ)^{p-1} e^{κ c cos ψ} dc dψ,

κ = pγρ²/(2(1-γ²)). Each law has light tails; it is sampled finely and compressed to a Gauss rule, for polynomials in ρ,
in arccos c and in cos ψ, in which softmax moments vary most evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh_tridiagonal

_FINE, _FINE_WEIGHTS = np.polynomial.legendre.leggauss(160)
_SIGMAS = 11.0


def _from_jacobi(diagonal: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    nodes, vectors = eigh_tridiagonal(diagonal, off)
    return nodes, vectors[0] ** 2


def gauss_rule(values: np.ndarray, weights: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the ``count``-point Gauss rule of the discrete law ``weights`` at ``values`` (Lanczos)."""
    weights = weights / np.sum(weights)
    centre = float(weights @ values)
    spread = math.sqrt(float(weights @ (values - centre) ** 2))
    if spread == 0 or count == 1:
        return np.array([centre]), np.ones(1)
    x = (values - centre) / spread
    basis = np.zeros((count + 1, len(values)))
    basis[0] = np.sqrt(weights)
    diagonal, off = np.zeros(count), np.zeros(count)
    for k in range(count):
        new = x * basis[k]
        diagonal[k] = new @ basis[k]
        for _ in range(2):
            new = new - (basis[: k + 1] @ new) @ basis[: k + 1]
        off[k] = np.linalg.norm(new)
        basis[k + 1] = new / off[k]
    nodes, mass = _from_jacobi(diagonal, off[:-1])
    return centre + spread * nodes, mass


@lru_cache(maxsize=64)
def chi_square_rule(p: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for χ²_p/p: generalised Gauss-Laguerre from its Jacobi matrix, which overflows for no p."""
    alpha, k = 0.5 * p - 1, np.arange(count)
    nodes, weights = _from_jacobi(2 * k + alpha + 1, np.sqrt(k[1:] * (k[1:] + alpha)))
    return nodes * (2 / p), weights


@lru_cache(maxsize=64)
def size_rule(p: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for r = χ_p/√p, the size of one row of logits."""
    squares, weights = chi_square_rule(p, 4 * count)
    return gauss_rule(np.sqrt(squares), weights, count)


def _total_size(p: float, gamma: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    squares, weights = chi_square_rule(p, 3 * count)
    total = (1 + gamma) * squares[:, None] + (1 - gamma) * squares
    return gauss_rule(np.sqrt(total).ravel(), np.outer(weights, weights).ravel(), count)


def _stretched(centre: float, width: float, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Fine nodes over centre ± 11 widths, cut at ``low`` and ``high``, and the logarithms of their weights."""
    start, end = max(low, centre - _SIGMAS * width), min(high, centre + _SIGMAS * width)
    half = 0.5 * (end - start)
    return 0.5 * (start + end) + half * _FINE, np.log(half * _FINE_WEIGHTS)


def _log_asymmetry(p: float, pull: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """ψ and log[(cos ψ)^{p-1} e^{pull (cos ψ - 1)}] dψ for one pull, or with one row for each."""
    typical = max(p - 1 + float(np.max(pull)), 1.0)
    psi, log_step = _stretched(0.0, 1 / math.sqrt(typical), -0.5 * math.pi, 0.5 * math.pi)
    dip = 2 * np.sin(0.5 * psi) ** 2
    return psi, log_step + (p - 1) * np.log1p(-dip) - np.multiply.outer(pull, dip)


def _correlations(p: float, kappa: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes c and weights, the asymmetry ψ summed out."""
    if p == 1:
        c = np.array([1.0, -1.0])
        log_law = kappa * c + np.logaddexp.reduce(_log_asymmetry(p, kappa * c)[1], axis=1)
        law = np.exp(log_law - np.max(log_law))
        return c, law / np.sum(law)
    root = math.hypot(p - 2, 2 * kappa)
    peak = 2 * kappa / (p - 2 + root) if kappa else 0.0
    sine2 = max(1 - peak * peak, 1 / (1 + p + abs(kappa)))
    width = 1 / math.sqrt(max((p - 2) / sine2 + abs(kappa * peak), 0.5))
    angle, log_step = _stretched(math.acos(peak), width, 0.0, math.pi)
    c = np.cos(angle)
    rest = np.logaddexp.reduce(_log_asymmetry(p, kappa * c)[1], axis=1)
    log_law = log_step + (p - 2) * np.log(np.sin(angle)) - 2 * kappa * np.sin(0.5 * angle) ** 2 + rest
    angles, weights = gauss_rule(angle, np.exp(log_law - np.max(log_law)), count)
    return np.cos(angles), weights


def node_counts(p: float, light: bool = False) -> tuple[int, int, int]:
    """Nodes for (ρ, c, ψ). Absolute error of g, against rules with 1.5 times the nodes (b ≤ 8, n = 16 and 1024): below
    1e-9 for p ≥ 16, 4e-9 at p = 12, and 1e-7 at p = 4 and b ≤ 4. ``light`` has one node less on every axis."""
    rules = ((4096, (3, 4, 2)), (512, (4, 4, 2)), (128, (5, 5, 2)), (48, (6, 6, 3)), (24, (8, 7, 3)), (12, (9, 9, 4)))
    rho, c, psi = next((counts for least, counts in rules if p >= least), (11, 11, 5))
    return (max(rho - 1, 2), c - 1, max(psi - 1, 2)) if light else (rho, c, psi)


def pair_rule(p: float, gamma: float, counts: tuple[int, int, int]) -> Iterator[tuple[float, float, float, float]]:
    """Yield (weight, r_i, r_j, c) over which G is averaged at overlap γ, |γ| < 1; the swap of i and j is used up."""
    for rho, weight_rho in zip(*_total_size(p, gamma, counts[0]), strict=True):
        kappa = float(0.5 * p * rho * rho * gamma / ((1 - gamma) * (1 + gamma)))
        for c, weight_c in zip(*_correlations(p, kappa, counts[1]), strict=True):
            psi, log_law = _log_asymmetry(p, float(kappa * c))
            law = np.exp(log_law - np.max(log_law))
            for cosine, weight in zip(*gauss_rule(np.cos(psi), law, counts[2]), strict=True):
                sine = math.sqrt(max(1 - cosine * cosine, 0.0))
                first, second = (float(rho) * math.sqrt(0.5 * (1 + s)) for s in (sine, -sine))
                yield float(weight_rho * weight_c * weight), first, second, float(c)
