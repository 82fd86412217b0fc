"""V = I and K = -Q: softmax, l2 and Sinkhorn attention solved at every time, with one limit (derived).

For A = -QᵀQ the precision moves by queries only, Σ^{-1} = Σ_0^{-1} + QᵀHQ, and QΣQᵀ keeps its eigenvectors u_k. Its
eigenvalues z_k solve the scalar equation of their kind with a = -1, and

    Σ(t) = Σ_0 - Σ_k (1 - z_k(t)/z_k(0))/z_k(0) (Σ_0Qᵀu_k)(Σ_0Qᵀu_k)ᵀ.

Softmax: 1/z = 1/z_0 + 2t. l2: 1/z - 2 ln z = 4t + const. Sinkhorn: 1/z ≈ 2t/ε² late. In the end z = 0, whatever the
kind; l2 is behind its leading order by (ln t)/(2t) of the distance. A Unified Perspective on the Dynamics of Deep
Transformers, arXiv:2501.18322, for the equations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import wrightomega

from pathlines.foundation.errors import finite_array, finite_number
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.matrices import checked_covariance
from pathlines.limit.gaussian.sinkhorn import scalar_sinkhorn

SOURCES = (UNIFIED,)
KINDS = ("softmax", "l2", "sinkhorn")


def opposed_covariance(kind: str, t: float, Q: Any, start: Any, eps: float = 1.0) -> np.ndarray:
    """Σ(t) for V = I, K = -Q (Q of full row rank), Sinkhorn with prefactor 1/ε; t = ∞ is the limit."""
    queries = finite_array("Q", Q).astype(float)
    cov = checked_covariance("start", start, queries.shape[1])
    sizes, vectors = np.linalg.eigh(queries @ cov @ queries.T)
    time = float(t) if t == np.inf else finite_number("t", t, 0.0)
    left = np.array([_scalar(one_of("kind", kind, KINDS), time, float(z), eps) for z in sizes])
    sent = cov @ queries.T @ vectors
    return cov - (sent * (1 - left / sizes) / sizes) @ sent.T


def _scalar(kind: str, t: float, size: float, eps: float) -> float:
    if t == np.inf:
        return 0.0
    if kind == "softmax":
        return size / (1 + 2 * size * t)
    if kind == "l2":
        half = 1 / (2 * size)
        return float(1 / (2 * wrightomega(np.log(half) + half + 2 * t).real))
    return float(scalar_sinkhorn(t, 1.0, -1.0, eps, size, 1 / eps)[0][0])
