"""Masked linear attention on blocks of positions by SciPy, in covariance form.

    α_s' = B_s α_s,   Σ_s' = B_sΣ_s + Σ_sB_sᵀ,   B_s = Σ_h C_h M_{≤s} A_h,   M_{≤s} = Σ_{τ≤s} θ_τ (Σ_τ + α_τα_τᵀ)

The framework of A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322; equations derived. They
hold for any laws of the blocks, Gaussian or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import ArgumentError, finite_array
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.moments import Head, Moments

SOURCES = (UNIFIED,)


def masked_linear_moments(
    heads: Sequence[Head],
    shares: Any,
    means: Any,
    covariances: Any,
    times: Any,
    reduce: str = "sum",
    rtol: float = 1e-12,
) -> Moments:
    """(times, blocks, d) means and (times, blocks, d, d) covariances at increasing ``times``; ``shares`` are θ_s.

    ``reduce`` "mean" divides M_{≤s} by θ_1 + … + θ_s.
    """
    alpha = finite_array("means", means, ("blocks", "d")).astype(float)
    b, d = alpha.shape
    sigma = finite_array("covariances", covariances, (b, d, d)).astype(float)
    theta = finite_array("shares", shares, (b,)).astype(float)
    seen = np.cumsum(theta) if one_of("reduce", reduce, ("sum", "mean")) == "mean" else np.ones(b)
    grid = np.atleast_1d(finite_array("times", times)).astype(float)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        a, s = y[: b * d].reshape(b, d), y[b * d :].reshape(b, d, d)
        out_a, out_s, total = np.empty_like(a), np.empty_like(s), np.zeros((d, d))
        for i in range(b):
            total = total + theta[i] * (s[i] + np.outer(a[i], a[i]))
            push = sum((h.value @ total @ h.score for h in heads), np.zeros((d, d))) / seen[i]
            out_a[i], out_s[i] = push @ a[i], push @ s[i] + (push @ s[i]).T
        return np.concatenate([out_a.ravel(), out_s.ravel()])

    begin = np.concatenate([alpha.ravel(), sigma.ravel()])
    found = solve_ivp(rate, (0.0, float(grid[-1])), begin, "DOP853", t_eval=grid, rtol=rtol, atol=1e-3 * rtol)
    if found.status != 0:
        raise ArgumentError(f"Argument `times` must end before the solution does ({found.message}).")
    return Moments(found.y[: b * d].T.reshape(-1, b, d), found.y[b * d :].T.reshape(-1, b, d, d))
