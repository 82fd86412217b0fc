"""The covariance of the common noise for Gaussian heads with means, without sampling: a Hermite series.

Heads V = V̄ + σ_V N, A = Ā + N at p = ∞, logits β⟨A x_i, x_k⟩ (Homogenized Transformers, arXiv:2604.01978). The query
of token i is Āx_i + g with g standard normal, and those of tokens i, j are correlated by K_ij = ⟨x_i, x_j⟩. With m_i(g)
the softmax mean of the keys and c_α^i = E[m_i(g) h_α(g)] its coefficients in orthonormal Hermite polynomials (derived)

    E[m_i m_jᵀ] = Σ_α K_ij^|α| c_α^i c_α^jᵀ,   s_ij its trace,   b_ρ(x_i) = V̄ c_0^i,
    C_ij = E[G_i G_jᵀ] = P_i ( σ_V² s_ij I + V̄ (E[m_i m_jᵀ] - c_0^i c_0^jᵀ) V̄ᵀ ) P_j .
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require

LARGEST = 1 << 22
"""Nodes of the tensor rule: 161 each way in three dimensions, 2000 in two."""


class NoiseCovariance(NamedTuple):
    """Drift b_i = P_i b_ρ(x_i) (n, d), s_ij (n, n), E[m_i m_jᵀ] and C_ij (n, n, d, d)."""

    drift: np.ndarray
    products: np.ndarray
    second_moments: np.ndarray
    covariance: np.ndarray

    @property
    def traces(self) -> np.ndarray:
        """tr C_ij."""
        return np.einsum("ijaa->ij", self.covariance)


def noise_covariance(
    tokens: Any,
    beta: float,
    sigma_v: float,
    value_mean: Any = 0.0,
    score_mean: Any = 0.0,
    *,
    nodes: int = 84,
    degree: int = 52,
) -> NoiseCovariance:
    """Drift and noise covariance at the unit ``tokens`` (n, d), d ≤ 3 in practice; means are matrices or c for c·I.

    ``nodes`` Gauss-Hermite points along each axis and Hermite polynomials up to ``degree``: at d = 3, β = 1.5 nine
    digits, in two seconds. The series converges like |K_ij|^degree times the decay of the coefficients (slower for
    large β); its diagonal is a direct average.
    """
    x = finite_array("tokens", tokens, ("n", "d")).astype(float)
    d = x.shape[1]
    require(len(x) > 0, "tokens", "hold at least one token", x)
    require(bool(np.allclose(np.linalg.norm(x, axis=1), 1, atol=1e-6)), "tokens", "be unit vectors", x)
    nodes, degree = positive_integer("nodes", nodes), positive_integer("degree", degree, 0)
    require(nodes**d <= LARGEST, "nodes", f"leave at most {LARGEST} points in {d} dimensions", nodes)
    require(degree < nodes, "degree", f"be below `nodes` = {nodes}", degree)
    beta, sigma = finite_number("beta", beta), finite_number("sigma_v", sigma_v, 0.0)
    value, score = (_matrix(name, m, d) for name, m in (("value_mean", value_mean), ("score_mean", score_mean)))
    coefficients, own = zip(*(_hermite(x, score @ row, beta, nodes, degree) for row in x), strict=True)
    gram = np.clip(x @ x.T, -1.0, 1.0)
    moments = _series(gram, np.array(coefficients), degree, d)
    moments[np.arange(len(x)), np.arange(len(x))] = own
    mean = np.array([c[(0,) * d] for c in coefficients])
    products = np.einsum("ijaa->ij", moments)
    inner = moments - np.einsum("ia,jb->ijab", mean, mean)
    whole = sigma**2 * products[..., None, None] * np.eye(d) + value @ inner @ value.T
    flat = np.eye(d) - np.einsum("ia,ib->iab", x, x)
    covariance = np.einsum("iab,ijbc,jcd->ijad", flat, whole, flat)
    return NoiseCovariance(np.einsum("iab,ib->ia", flat, mean @ value.T), products, moments, covariance)


def _matrix(name: str, mean: Any, d: int) -> np.ndarray:
    array = finite_array(name, mean).astype(float)
    return float(array) * np.eye(d) if array.ndim == 0 else finite_array(name, array, (d, d))


def _hermite(x: np.ndarray, query: np.ndarray, beta: float, nodes: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of m(g), one axis for each direction and the components last, and E[m mᵀ]."""
    d = x.shape[1]
    g, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    along = [
        beta * np.multiply.outer(g, x[:, a]).reshape((1,) * a + (nodes,) + (1,) * (d - 1 - a) + (-1,)) for a in range(d)
    ]
    logits = sum(along, beta * x @ query)
    attention = np.exp(logits - logits.max(axis=-1, keepdims=True))
    attention /= attention.sum(axis=-1, keepdims=True)
    mean = attention @ x
    polynomials = _normalised(g, degree) * weights[:, None]
    coefficients = mean
    for _ in range(d):  # each pass takes the first axis away and appends its degrees before the components
        coefficients = np.moveaxis(np.tensordot(coefficients, polynomials, (0, 0)), -1, d - 1)
    mass = weights
    for _ in range(d - 1):
        mass = np.multiply.outer(mass, weights)
    flat = mean.reshape(-1, d)
    return coefficients, (flat * mass.reshape(-1, 1)).T @ flat


def _normalised(g: np.ndarray, degree: int) -> np.ndarray:
    """h_k(g), k = 0 … degree, orthonormal under the normal law: h_{k+1} = (g h_k - √k h_{k-1})/√(k+1)."""
    rows = [np.ones_like(g), g]
    for k in range(1, degree):
        rows.append((g * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1))
    return np.stack(rows[: degree + 1], axis=1)


def _series(gram: np.ndarray, coefficients: np.ndarray, degree: int, d: int) -> np.ndarray:
    """Σ_α K_ij^|α| c_α^i c_α^jᵀ over |α| ≤ degree, (n, n, d, d)."""
    n = len(gram)
    total = np.indices((degree + 1,) * d).sum(axis=0).ravel()
    kept = np.flatnonzero(total <= degree)
    order = kept[np.argsort(total[kept], kind="stable")]
    rows = coefficients.reshape(n, -1, d)[:, order]
    edges = np.searchsorted(total[order], np.arange(degree + 2))
    powers = gram[None] ** np.arange(degree + 1)[:, None, None]
    found = np.zeros((n, n, d, d))
    for k in range(degree + 1):
        part = rows[:, edges[k] : edges[k + 1]]
        found += powers[k][..., None, None] * np.einsum("ika,jkb->ijab", part, part, optimize=True)
    return found
