"""β = 0: every token feels the same pull, the flow is conformal, and cross-ratios do not change.

With u_ij = 1-⟨x_i,x_j⟩ the flow x_i' = P_{x_i} m(t) gives (ln u_ij)' = -⟨m,x_i⟩-⟨m,x_j⟩, so that u_ij u_kl/(u_ik u_jl)
is constant for any four tokens and any common m(t) (derived). At β = 0 of SA and USA, m is the mean token.
Model: A mathematical perspective on Transformers, arXiv:2312.10794.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers import PERSPECTIVE

SOURCES = (PERSPECTIVE,)


def poisson_radius(times: ArrayLike, start: float) -> np.ndarray:
    """r(t) = |x̄(t)| of the Poisson kernel on the circle under the β = 0 mean-field flow (derived).

    The kernel (1-r²)/(2π(1-2r cos θ+r²)) stays one; r' = ½r(1-r²), so r²/(1-r²) = e^t r0²/(1-r0²). Any real times.
    """
    t = real_array("times", times)
    r0 = finite_number("start", start, 0.0, 1.0)
    if r0 == 0:
        return np.zeros(t.shape)[()]
    with np.errstate(over="ignore"):
        return (r0 / np.sqrt(r0 * r0 + (1 - r0) * (1 + r0) * np.exp(-t)))[()]


def quantile_mean(radius: ArrayLike, n: int) -> np.ndarray:
    """x̄ of n quantiles of a Poisson kernel, the images of wⁿ = −1 under w -> (w+r)/(1+rw) (derived).

    r + (1-r²)(-r)ⁿ/(r(1+(-r)ⁿ)): the geometric series of the map, of which the mean over w keeps every n-th term.
    """
    r = real_array("radius", radius)
    power = (-r) ** positive_integer("n", n, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(r == 0, 0.0, r + (1 - r) * (1 + r) * power / (r * (1 + power)))[()]


def quantile_radius(times: ArrayLike, start: float, n: int) -> np.ndarray:
    """|x̄(t)| of n quantiles of a Poisson kernel under the β = 0 flow: exact for every n, at increasing times (derived).

    The flow moves them by maps of the same kind, r' = ½(1-r²) x̄(r), which is the mean-field law up to rⁿ. Solved in
    v = ln((1+r)/(1-r)), v' = x̄(r).
    """
    t = np.atleast_1d(real_array("times", times, 0.0))
    r0 = finite_number("start", start, 0.0, 1.0)
    require(r0 < 1, "start", "be below 1", start)
    speed = lambda _, v: quantile_mean(np.tanh(v / 2), n)  # noqa: E731
    span = (0.0, max(float(t[-1]), 1e-300))
    found = solve_ivp(speed, span, [2 * np.arctanh(r0)], "DOP853", t_eval=t, rtol=1e-13, atol=1e-14)
    return np.abs(quantile_mean(np.tanh(found.y[0] / 2), n))


def all_quadruples(n: int) -> np.ndarray:
    """Index quadruples (i,j,k,l) and (i,j,l,k) for all i<j<k<l: two independent cross-ratios for every four tokens."""
    positive_integer("n", n, 4)
    four = np.array(list(combinations(range(n), 4)))
    return np.concatenate([four, four[:, [0, 1, 3, 2]]])


def deficit_cross_ratios(deficits: ArrayLike, quadruples: ArrayLike | None = None) -> np.ndarray:
    """u_ij u_kl/(u_ik u_jl) for the rows (i,j,k,l) of ``quadruples``; ``None`` means ``all_quadruples(n)``.

    ``deficits`` is the matrix u_ij = ½|x_i-x_j|² (from differences, not 1-⟨x_i,x_j⟩, to stay precise), with any leading
    axes, e.g. times. Cost: n⁴/12 ratios when all are asked for.
    """
    u = finite_array("deficits", deficits).astype(np.float64)
    require(u.ndim >= 2 and u.shape[-1] == u.shape[-2], "deficits", "hold square matrices", u)
    n = u.shape[-1]
    rows = all_quadruples(n) if quadruples is None else finite_array("quadruples", quadruples, ("m", 4)).astype(int)
    require(bool(np.all((rows >= 0) & (rows < n))), "quadruples", f"hold indices from 0 to {n - 1}", rows)
    i, j, k, l = rows.T  # noqa: E741
    below = [u[..., i, k], u[..., j, l]]
    require(all(bool(np.all(part > 0)) for part in below), "deficits", "be positive between the chosen tokens", u)
    # two quotients of comparable numbers: the products would underflow for tight clusters
    return (u[..., i, j] / below[0]) * (u[..., k, l] / below[1])
